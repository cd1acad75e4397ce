"""Snapshot files of the index: writes, finds, checks and prunes them.

``index/<seq>.cvx`` is what the index itself writes, ``index/<seq>.json`` says of which record, at
which number of the journal, for which embedder. The second is renamed into place last: a snapshot
without it does not exist.
"""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from cvx.errors import RecordIOError, SnapshotError
from cvx.index import RawIndex
from cvx.store.failpoints import reach
from cvx.store.files import (
    HALF_LEARNED_STATE,
    HALF_SNAPSHOT,
    SNAPSHOT,
    make_folders,
    named_like,
    read_own,
    refuse_link,
    regular,
    sync,
    write_whole,
)
from cvx.store.lock import Tail
from cvx.store.record import Record

KEEP = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a snapshot belongs to.

    Parameters
    ----------
    uuid : str
        Of the record.
    seq, chain : int
        The end of the journal that it holds.
    embedder, metric : str
        What the vectors are, and how they are compared.
    dim : int
        Length of the vectors.
    size : int
        Bytes of the snapshot.
    format : int
        Of this file.
    """

    uuid: str
    seq: int
    chain: int
    embedder: str
    metric: str
    dim: int
    size: int
    format: int = 1

    def to_text(self) -> str:
        """Return it as JSON, with a checksum in the second line."""
        body = json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)
        return f"{body}\n{zlib.crc32(body.encode()):08x}\n"

    @classmethod
    def from_bytes(cls, raw: bytes) -> Manifest | None:
        """Read it back; None where it is not what was written."""
        try:
            body, crc, rest = raw.decode().split("\n")
            if rest or int(crc, 16) != zlib.crc32(body.encode()):
                return None
            return cls(**json.loads(body))
        except (ValueError, TypeError):
            return None


class Snapshots:
    """The folder of snapshots of one record.

    Parameters
    ----------
    folder : Path
        Made if it does not exist and the record may be written to. Files of other names than ours
        are left alone.
    record : Record
        What the snapshots are of.
    kind : (str, str, int)
        Embedder, metric and dimension.

    Attributes
    ----------
    refused : list of str
        Why snapshots were passed over when the store was opened.

    Raises
    ------
    RecordIOError
        The folder is a link, or cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        record: Record,
        kind: tuple[str, str, int],
    ) -> None:
        self.folder = folder
        self.record = record
        self.refused: list[str] = []
        self._kind = kind
        refuse_link(folder)
        if not record.frozen:
            make_folders(folder)

    def manifests(self) -> list[Manifest]:
        """Return what there is of this record, newest first."""
        out = []
        for path in self._files(SNAPSHOT):
            if path.suffix != ".json":
                continue
            if not regular(path):
                self._refuse(f"{path.name}: a symbolic link, or no file")
                continue
            with suppress(OSError):
                found = Manifest.from_bytes(read_own(path))
                if found is None or path.stem != str(found.seq):
                    self._refuse(f"{path.name}: not what was written")
                elif found.uuid == self.record.meta("uuid"):
                    out.append(found)
        return sorted(out, key=lambda one: -one.seq)

    def _files(self, *kinds: re.Pattern[str]) -> list[Path]:
        """Return what is in the folder under names of ours, that of a link included."""
        refuse_link(self.folder)
        return named_like(self.folder, *kinds)

    def ahead(self) -> Tail | None:
        """Return the end of the journal in a snapshot that the record does not reach, if any."""
        for one in self.manifests():
            tail = Tail(one.seq, one.chain)
            if self.record.keeps_changes_after(tail.seq - 1) and not self.record.reaches(tail):
                return tail
        return None

    def oldest(self) -> int | None:
        """Return the number of the journal that the oldest snapshot of this record holds."""
        return min((one.seq for one in self.manifests()), default=None)

    def newest(self) -> tuple[RawIndex, int] | None:
        """Return the newest snapshot that is whole and fits, with its number, or None."""
        for one in self.manifests():
            path = self.folder / f"{one.seq}.cvx"
            if not self.record.reaches(Tail(one.seq, one.chain)):
                self._refuse(f"{path.name}: of another history")
            elif (one.embedder, one.metric, one.dim) != self._kind:
                self._refuse(f"{path.name}: of embedder {one.embedder}")
            elif not regular(path):
                self._refuse(f"{path.name}: a symbolic link, or no file")
            else:
                try:
                    return load(path, one.size), one.seq
                except (SnapshotError, OSError) as error:
                    self._refuse(f"{path.name}: {error}")
        return None

    def _refuse(self, why: str) -> None:
        if why not in self.refused:
            self.refused.append(why)

    def write(self, index: RawIndex, tail: Tail) -> None:
        """Write a snapshot; the caller keeps writers out, here and in other processes.

        Raises
        ------
        SnapshotError, RecordIOError
            The file system refused; older snapshots are still there.
        """
        path = self.folder / f"{tail.seq}.cvx"
        reach("snapshot.begun")
        try:
            if path.is_symlink():
                # No link in a store is followed, and save replaces none.
                path.unlink()
        except OSError as error:
            raise RecordIOError(f"{path}: {error.strerror}") from error
        index.save(path)
        path.chmod(0o600)
        reach("snapshot.renamed")
        try:
            manifest = Manifest(
                str(self.record.meta("uuid")),
                tail.seq,
                tail.chain,
                *self._kind,
                path.stat().st_size,
            )
            write_whole(self.folder / f"{tail.seq}.json", manifest.to_text().encode())
        except OSError as error:
            raise RecordIOError(f"{self.folder}: {error.strerror}") from error
        self.prune(KEEP)

    def prune(self, keep: int) -> None:
        """Remove all but the newest snapshots, and what a crash left behind."""
        kept = {
            f"{one.seq}.{ending}" for one in self.manifests()[:keep] for ending in ("cvx", "json")
        }
        # Names of manifests first: a snapshot may be without one, never the other way round.
        ours = self._files(SNAPSHOT, HALF_SNAPSHOT, HALF_LEARNED_STATE)
        for path in sorted(ours, key=lambda path: path.suffix != ".json"):
            if path.name not in kept:
                with suppress(OSError):
                    path.unlink()
                reach("snapshot.pruned")
        sync(self.folder)


def load(path: Path, size: int, *, verify: bool = False) -> RawIndex:
    """Open a snapshot of so many bytes, mapped; rows are checked when they are first read, or now.

    Raises
    ------
    SnapshotError, OSError
        It is longer or shorter, damaged, or cannot be read.
    """
    if path.stat().st_size != size:
        raise SnapshotError(f"it has {path.stat().st_size} bytes, {size} were written")
    return RawIndex.load(path, verify=verify, mmap=True)
