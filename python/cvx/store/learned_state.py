"""Saves learned models in files beside the index, so that opening need not learn again.

A file is a line of JSON with what it is of, a line that signs it with a key of the user's own, the
state as JSON, and its arrays. It says nothing that the record does not: one that is damaged, or
that another user wrote, is passed over.

A large file is mapped: what a process changes of its arrays, and what it puts into the room behind
them, is its own. To read all of it before the first use would cost more than the use; so it is
believed where it is the very file that was written and nobody touched it since: a signed file
beside it says which inode that is, and when it last changed, which no program can set. Anywhere
else it is held against its digest.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import mmap
import os
import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from cvx.store.files import LEARNED_STATE, named_like, open_own, read_own, regular, write_whole
from cvx.store.lock import Tail
from cvx.store.record import Record

_FORMAT = 2
_TYPES = {"<f4", "<f8", "<i8", "<u8", "|u1"}
_MOST_FILES = 64
_MOST_HEAD = 1 << 20
"""Bytes of the first line."""
_HASHED = 1 << 24
"""A file of so many bytes is read and held against its digest: that takes milliseconds."""
_ROOM = 8
"""Behind an array of rows there is room for this part of them more, which takes none on disk."""
_LINE = 64
"""Where arrays begin."""
_NO_RESERVE: int = getattr(mmap, "MAP_NORESERVE", 0)


def _key() -> bytes | None:
    """Return the key of this user, made at first use; None where it cannot be kept.

    It lies outside every store, in ``cvx/learned.key`` below ``$XDG_STATE_HOME`` (or
    ``~/.local/state``): a folder that somebody else filled cannot say what was learned here.
    """
    try:
        base = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        place = base / "cvx" / "learned.key"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with TemporaryDirectory(dir=place.parent) as beside:
                new = Path(beside) / "key"
                write_whole(new, secrets.token_bytes(32))
                with suppress(FileExistsError):  # Another process was first.
                    os.link(new, place)
        with open_own(place) as file:
            key = file.read(33)
        return key if len(key) == 32 else None
    except (OSError, RuntimeError):
        return None


def _signed(key: bytes, head: bytes) -> bytes:
    return hmac.digest(key, head, "sha256").hex().encode()


class MappedRows(np.ndarray[Any, np.dtype[Any]]):
    """Rows of a file, which can be changed, and the room in it that they begin.

    Attributes
    ----------
    room : ndarray
        As long as there is room for rows.
    """

    room: np.ndarray[Any, np.dtype[Any]]


def _path(folder: Path, of: Mapping[str, Any]) -> Path:
    name = hashlib.blake2b(json.dumps(of["asker"]).encode(), digest_size=8).hexdigest()
    return folder / f"learned-{name}.bin"


def checksum_of(files: Iterable[Path]) -> str:
    """Return a checksum of source code: another one might make something else of a record.

    Raises
    ------
    OSError
        A file is not there, as in an installation without sources.
    """
    code = b"".join(file.read_bytes() for file in files)
    return f"{zlib.crc32(code):08x} {np.__version__}"


def write_state(
    folder: Path, record: Record, of: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Write a state, in the place of the one of the same asker.

    Where this user's key cannot be kept, nothing is written.

    Parameters
    ----------
    folder : Path
        Of the snapshots.
    record : Record
        What it was learned from, up to the end of its journal. It is locked, so that what others
        erase meanwhile does not come back by this file.
    of : mapping
        What it is of: ``asker``, and whatever must be equal for it to be of use.
    state : mapping
        Of lists, numbers, texts and arrays of numbers.

    Raises
    ------
    TypeError, ValueError
        The state holds something else.
    OSError
        The file system refused.
    """
    arrays: list[Any] = []
    key = _key()
    if key is None:
        return

    def place(value: Any) -> dict[str, int]:
        if not isinstance(value, np.ndarray) or value.dtype.str not in _TYPES:
            raise TypeError(f"{type(value).__name__} cannot be saved")
        arrays.append(value)
        return {"array": len(arrays) - 1}

    of = {**of, "uuid": record.meta("uuid"), "end": [*record.tail()]}
    body = json.dumps(state, default=place, separators=(",", ":")).encode()
    digest, end = hashlib.sha256(body), len(body)
    places: list[tuple[str, Sequence[int], int, int | None]] = []
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
        start = _line(end)
        room = len(array) + len(array) // _ROOM if array.ndim == 1 else None
        places.append((array.dtype.str, array.shape, start, room))
        end = start + array.nbytes // max(len(array), 1) * (room or len(array))
    header = {
        "format": _FORMAT,
        "of": of,
        "body": len(body),
        "arrays": places,
        "size": end,
        "digest": digest.hexdigest(),
    }

    def write(file: BinaryIO) -> None:
        head = json.dumps(header, separators=(",", ":")).encode()
        file.write(b"%b\n%b\n" % (head, _signed(key, head)))
        first = _line(file.tell())
        file.seek(first)
        file.write(body)
        for array, (_, _, start, _) in zip(arrays, places, strict=True):
            file.seek(first + start)
            file.write(np.ascontiguousarray(array).data)
        file.truncate(first + end)

    path = _path(folder, of)
    write_whole(path, write)
    if end > _HASHED:
        _seal(path, key, digest.hexdigest(), path.stat())
    known = filter(regular, named_like(folder, LEARNED_STATE))
    states = [one for one in known if one.suffix == ".bin"]
    for old in sorted(states, key=lambda one: one.stat().st_mtime)[:-_MOST_FILES]:
        old.unlink(missing_ok=True)
        old.with_suffix(".seal").unlink(missing_ok=True)


def _sealed(key: bytes, digest: str, there: os.stat_result) -> bytes:
    """Return what says that a file is the one whose content has a digest."""
    said = f"seal {digest} {there.st_dev} {there.st_ino} {there.st_ctime_ns} {there.st_size}"
    return _signed(key, said.encode())


def _seal(path: Path, key: bytes, digest: str, there: os.stat_result) -> None:
    with suppress(OSError):
        write_whole(path.with_suffix(".seal"), _sealed(key, digest, there))


def _is_sealed(path: Path, key: bytes, digest: str, there: os.stat_result) -> bool:
    with suppress(OSError):
        return hmac.compare_digest(read_own(path.with_suffix(".seal")), _sealed(key, digest, there))
    return False


def _raw(file: BinaryIO, size: int) -> bytearray | mmap.mmap:
    """Return the bytes of a file, which the caller may change for itself."""
    if size <= _HASHED:
        file.seek(0)
        return bytearray(file.read(size))
    kind, access = mmap.MAP_PRIVATE | _NO_RESERVE, mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(file.fileno(), size, flags=kind, prot=access)


def _line(end: int) -> int:
    """Return where what comes next begins."""
    return -(-end // _LINE) * _LINE


def _rows(
    raw: bytearray | mmap.mmap,
    first: int,
    kind: str,
    shape: Sequence[int],
    start: int,
    room: int | None,
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return an array of a file.

    Raises
    ------
    ValueError
        It is none of a state, or goes beyond the file.
    """
    if kind not in _TYPES:
        raise ValueError(f"{kind} is no type of a state")
    if room is None:
        return np.frombuffer(raw, kind, math.prod(shape), first + start).reshape(tuple(shape))
    whole = np.frombuffer(raw, kind, room, first + start)
    rows = whole[: shape[0]].view(MappedRows)
    rows.room = whole
    return rows


def read_state(
    folder: Path, record: Record, of: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], int] | None:
    """Return the state of an asker, and what it is of; None where there is none that fits.

    Parameters
    ----------
    folder : Path
        Of the snapshots.
    record : Record
        Its journal must go on from where that of the state ended, of which the number is returned
        too.
    of : mapping
        What it must be of; it may say more.
    """
    path, key = _path(folder, of), _key()
    if key is None:
        return None
    try:
        with open_own(path) as file:
            head, signed = file.readline(_MOST_HEAD)[:-1], file.readline(_MOST_HEAD)[:-1]
            # Nothing of it is believed before.
            if not hmac.compare_digest(signed, _signed(key, head)):
                return None
            header, there = json.loads(head), os.fstat(file.fileno())
            first = _line(file.tell())
            if header["format"] != _FORMAT or there.st_size != first + header["size"]:
                return None
            raw = _raw(file, there.st_size)
        found = header["of"]
        wanted = {**of, "uuid": record.meta("uuid")}
        if any(found.get(name) != value for name, value in wanted.items()):
            return None
        end = Tail(*found["end"])
        if not record.reaches(end):
            return None
        body = bytes(raw[first : first + header["body"]])
        arrays = [_rows(raw, first, *place) for place in header["arrays"]]
        told = header["digest"]
        if isinstance(raw, bytearray) or not _is_sealed(path, key, told, there):
            digest = hashlib.sha256(body)
            for array in arrays:
                digest.update(array.data)
            if digest.hexdigest() != told:
                return None
            if not isinstance(raw, bytearray) and not record.frozen:
                # Such as in a copy of the folder: the next one need not read it all.
                _seal(path, key, told, there)

        def placed(told: dict[str, Any]) -> Any:
            return arrays[told["array"]] if [*told] == ["array"] else told

        return json.loads(body, object_hook=placed), found, end.seq
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
