"""The files around the record: the lock with its tail, snapshots, and what a crash left."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cvx.errors import SnapshotError
from cvx.store.cached import Index
from cvx.store.doctor.findings import Check, Finding
from cvx.store.lock import Tail, parse_tail
from cvx.store.ownfiles import HALF_EXPORT, HALF_SNAPSHOT, SNAPSHOT, read_own, regular
from cvx.store.snapshots import Manifest
from cvx.store.store import IndexKind
from cvx.store.transfer.founding import STAGING


@dataclass(frozen=True, slots=True)
class Seen:
    """What the files said before the record was read: they cannot be ahead of it by rights.

    Parameters
    ----------
    lock : bytes or None
        What was in LOCK; None where there was no such file.
    manifests : mapping
        What was in the manifest of each snapshot, by its path.
    misplaced : mapping
        What is wrong with something else in the place of a file of the store, by its name.
    """

    lock: bytes | None
    manifests: Mapping[Path, bytes]
    misplaced: Mapping[str, str]


def look(folder: Path) -> Seen:
    """Read the small files of a store, without taking the lock."""
    lock = None
    with suppress(OSError):
        lock = read_own(folder / "LOCK")
    manifests = {}
    for path in _own_snapshots(folder):
        # Another process may write a newer one meanwhile and remove this.
        if path.suffix == ".json":
            with suppress(OSError):
                manifests[path] = read_own(path)
    others = {}
    for name, is_one, wanted in (
        ("memory.db", Path.is_file, "file of the record"),
        ("LOCK", Path.is_file, "lock file"),
        ("index", Path.is_dir, "folder of snapshots"),
    ):
        path = folder / name
        if path.is_symlink():
            others[name] = f"the {wanted} is a symbolic link, which is not followed: move it away"
        elif path.exists() and not is_one(path):
            what = "a folder" if path.is_dir() else "a file" if path.is_file() else "no file"
            others[name] = f"the {wanted} is {what}: move it away"
    return Seen(lock, manifests, others)


def _own_snapshots(folder: Path) -> list[Path]:
    index = folder / "index"
    if index.is_symlink() or not index.is_dir():
        return []
    return sorted(path for path in index.iterdir() if SNAPSHOT.fullmatch(path.name))


def misplaced(seen: Seen) -> Iterator[Finding]:
    """Name what stands where a file of the store goes: nothing can be opened beside it."""
    for name, what in seen.misplaced.items():
        yield Finding(Check.MISPLACED, name, what)


def lock_and_tail(db: sqlite3.Connection, seen: Seen) -> Iterator[Finding]:
    """Compare the tail that LOCK remembers with that of the record."""
    if "LOCK" in seen.misplaced:
        return
    if seen.lock is None:
        yield Finding(Check.LOCK_MISSING, "LOCK", "there is no lock file; the next writer makes it")
        return
    tail = parse_tail(seen.lock)
    if tail is None:
        if seen.lock:
            yield Finding(Check.LOCK_DAMAGED, "LOCK", "the lock file does not say how far it went")
        return
    end = _tail(db)
    if not _reaches(db, tail):
        yield Finding(
            Check.LOST_TAIL,
            "LOCK",
            f"changes up to {tail.seq} were written, the record ends at {end.seq} or has "
            "another history: the newest changes are lost",
        )
    elif tail.seq < end.seq:
        yield Finding(
            Check.LOCK_OLD, "LOCK", f"it remembers change {tail.seq}, the record has {end.seq}"
        )


def snapshots(
    db: sqlite3.Connection, folder: Path, seen: Seen, kind: IndexKind[Index] | None
) -> Iterator[Finding]:
    """Look at every snapshot, and at what lies beside them."""
    found = db.execute("SELECT value FROM meta WHERE key = 'uuid'").fetchone()
    own = None if found is None else found[0]
    for path, raw in seen.manifests.items():
        manifest = Manifest.from_bytes(raw)
        if manifest is None or str(manifest.seq) != path.stem:
            yield _damaged(path, "its manifest is not what was written")
        else:
            yield from _snapshot(db, path, manifest, own, kind)
    for path in _own_snapshots(folder):
        pair = path.with_suffix(".json")
        if not regular(path):
            what = f"{path.name} is a symbolic link, or no file"
            yield Finding(Check.SNAPSHOT_FOREIGN, f"index/{path.stem}.cvx", what)
        elif path.suffix == ".cvx" and not os.path.lexists(pair):
            yield Finding(Check.STRAY_FILE, f"index/{path.name}", "a crash left it")


def _damaged(path: Path, what: str) -> Finding:
    return Finding(Check.SNAPSHOT_DAMAGED, f"index/{path.stem}.cvx", what)


def _snapshot(
    db: sqlite3.Connection,
    path: Path,
    manifest: Manifest,
    own: str | None,
    kind: IndexKind[Index] | None,
) -> Iterator[Finding]:
    where = f"index/{path.stem}.cvx"
    if manifest.uuid != own:
        yield Finding(Check.SNAPSHOT_FOREIGN, where, "it belongs to another store")
    elif not _reaches(db, Tail(manifest.seq, manifest.chain)):
        yield Finding(
            Check.SNAPSHOT_AHEAD,
            where,
            f"it holds change {manifest.seq}, which the record does not have: the newest changes "
            "are lost",
        )
    elif kind is not None:
        made = (manifest.embedder, manifest.metric, manifest.dim)
        if made != (kind.embedder, kind.metric, kind.dim):
            yield Finding(Check.SNAPSHOT_FOREIGN, where, f"its vectors are of {manifest.embedder}")
        else:
            yield from _loaded(path.with_suffix(".cvx"), manifest, kind)


def _loaded(path: Path, manifest: Manifest, kind: IndexKind[Index]) -> Iterator[Finding]:
    try:
        size = path.stat().st_size
        if size == manifest.size:
            kind.load(path)
        else:
            yield _damaged(path, f"it has {size} bytes, {manifest.size} were written")
    except (SnapshotError, OSError) as error:
        # Gone with its manifest, another process has only replaced it.
        if path.with_suffix(".json").exists():
            yield _damaged(path, str(error))


def stray_files(folder: Path) -> Iterator[Finding]:
    """Name what a process that was killed left beside the record and the snapshots."""
    found = [*folder.iterdir()]
    if not (folder / "index").is_symlink() and (folder / "index").is_dir():
        found += (folder / "index").iterdir()
    for path in sorted(found):
        inside = path.parent != folder
        ours = HALF_SNAPSHOT if inside else HALF_EXPORT
        if path.is_symlink() or not (ours.fullmatch(path.name) or path == folder / STAGING):
            continue
        yield Finding(Check.STRAY_FILE, str(path.relative_to(folder)), "a crash left it")


def _tail(db: sqlite3.Connection) -> Tail:
    found = db.execute("SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1").fetchone()
    return Tail(0, 0) if found is None else Tail(*found)


def _reaches(db: sqlite3.Connection, tail: Tail) -> bool:
    if tail.seq == 0:
        return True
    found = db.execute("SELECT chain FROM journal WHERE seq = ?", (tail.seq,)).fetchone()
    return found is not None and found[0] == tail.chain
