"""Saves learned models in files beside the index, so that opening need not learn again.

A file is a line of JSON with what it is of, a line that signs it with a key of the user's own, the
state as JSON, and its arrays. It says nothing that the record does not: one that is damaged, or
that another user wrote, is passed over.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cvx.store.files import LEARNED_STATE, open_own, regular, write_whole
from cvx.store.lock import Tail
from cvx.store.record import Record

_FORMAT = 1
_TYPES = {"<f4", "<f8", "<i8", "<u8", "|u1"}
_MOST_FILES = 64
_MOST_HEAD = 1 << 20
"""Bytes of the first line."""


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


def _path(folder: Path, of: Mapping[str, Any]) -> Path:
    name = json.dumps(of["asker"]).encode()
    return folder / f"learned-{hashlib.blake2b(name, digest_size=8).hexdigest()}.bin"


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
    raw = b"".join([body, *(array.tobytes() for array in arrays)])
    header = {
        "format": _FORMAT,
        "of": of,
        "body": len(body),
        "arrays": [[array.dtype.str, array.shape] for array in arrays],
        "size": len(raw),
        "digest": hashlib.sha256(raw).hexdigest(),
    }
    head = json.dumps(header, separators=(",", ":")).encode()
    path = _path(folder, of)
    write_whole(path, b"%b\n%b\n%b" % (head, _signed(key, head), raw))
    known = [one for one in folder.iterdir() if LEARNED_STATE.fullmatch(one.name) and regular(one)]
    for old in sorted(known, key=lambda one: one.stat().st_mtime)[:-_MOST_FILES]:
        old.unlink(missing_ok=True)


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
            header = json.loads(head)
            raw = file.read(header["size"] + 1)
        found = header["of"]
        if header["format"] != _FORMAT or header["digest"] != hashlib.sha256(raw).hexdigest():
            return None
        wanted = {**of, "uuid": record.meta("uuid")}
        if any(found.get(name) != value for name, value in wanted.items()):
            return None
        end = Tail(*found["end"])
        if not record.reaches(end):
            return None
        at, arrays = header["body"], []
        for kind, shape in header["arrays"]:
            if kind not in _TYPES:
                return None
            array = np.frombuffer(raw, kind, math.prod(shape), at).reshape(shape)
            at += array.nbytes
            # Without a copy each would hold the whole file.
            arrays.append(array.copy())

        def placed(told: dict[str, Any]) -> Any:
            return arrays[told["array"]] if [*told] == ["array"] else told

        return json.loads(raw[: header["body"]], object_hook=placed), found, end.seq
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
