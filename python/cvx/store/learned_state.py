"""Files beside the index with what was learned from the record: they spare learning it again.

A file is a line of JSON with what it is of, a line with its checksum, the state as JSON, and its
arrays. It says nothing that the record does not: one that is not what was written is passed over.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cvx.store.files import LEARNED_STATE, open_own, regular, write_whole

_FORMAT = 1
_TYPES = {"<f4", "<f8", "<i8", "<u8", "|u1"}
_MOST_FILES = 64


def _path(folder: Path, of: Mapping[str, Any]) -> Path:
    name = json.dumps(of["asker"]).encode()
    return folder / f"learned-{hashlib.blake2b(name, digest_size=8).hexdigest()}.bin"


def write_state(folder: Path, of: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Write a state, in the place of the one of the same asker; the caller keeps writers out.

    Parameters
    ----------
    folder : Path
        Of the snapshots.
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

    def place(value: Any) -> dict[str, int]:
        if not isinstance(value, np.ndarray) or value.dtype.str not in _TYPES:
            raise TypeError(f"{type(value).__name__} cannot be saved")
        arrays.append(value)
        return {"array": len(arrays) - 1}

    body = json.dumps(state, default=place, separators=(",", ":")).encode()
    raw = b"".join([body, *(array.tobytes() for array in arrays)])
    header = {
        "format": _FORMAT,
        "of": of,
        "body": len(body),
        "arrays": [[array.dtype.str, array.shape] for array in arrays],
        "crc": zlib.crc32(raw),
    }
    head = json.dumps(header, separators=(",", ":")).encode()
    path = _path(folder, of)
    write_whole(path, b"%b\n%08x\n%b" % (head, zlib.crc32(head), raw))
    known = [one for one in folder.iterdir() if LEARNED_STATE.fullmatch(one.name) and regular(one)]
    for old in sorted(known, key=lambda one: one.stat().st_mtime)[:-_MOST_FILES]:
        old.unlink(missing_ok=True)


def read_state(folder: Path, of: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the state of an asker, and what it is of; None where there is none that fits.

    Parameters
    ----------
    folder : Path
        Of the snapshots.
    of : mapping
        What it must be of; it may say more.
    """
    try:
        with open_own(_path(folder, of)) as file:
            head, crc, raw = file.read().split(b"\n", 2)
        header = json.loads(head)
        found = header["of"]
        if int(crc, 16) != zlib.crc32(head) or header["format"] != _FORMAT:
            return None
        if any(found.get(name) != value for name, value in of.items()):
            return None
        if header["crc"] != zlib.crc32(raw):
            return None
        at, arrays = header["body"], []
        for kind, shape in header["arrays"]:
            if kind not in _TYPES:
                return None
            array = np.frombuffer(raw, kind, math.prod(shape), at).reshape(shape)
            at += array.nbytes
            arrays.append(array)

        def placed(told: dict[str, Any]) -> Any:
            return arrays[told["array"]] if [*told] == ["array"] else told

        return json.loads(raw[: header["body"]], object_hook=placed), found
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
