"""Errors as a person reads them, and as exit codes."""

from __future__ import annotations

import json
import sys

from cvx.errors import (
    CvxError,
    EmbedderError,
    FileError,
    InternalError,
    InvalidInputError,
    MissingExtraError,
    SettingsMismatchError,
    SnapshotError,
    StoreError,
    StoreNotFoundError,
    UnknownError,
)
from cvx.escaping import printable

NOTHING = 1
USAGE = 2
STORE = 3
OUTSIDE = 4
FAULT = 5
INTERRUPTED = 130

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (InternalError, FAULT),
    (UnknownError, NOTHING),
    (StoreNotFoundError, STORE),
    (SettingsMismatchError, STORE),
    (StoreError, STORE),
    (SnapshotError, STORE),
    (MissingExtraError, OUTSIDE),
    (EmbedderError, OUTSIDE),
    (FileError, OUTSIDE),
    (FileError, OUTSIDE),
    (InvalidInputError, USAGE),
    (CvxError, USAGE),
    (OSError, OUTSIDE),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error: the first class of the table that fits."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAULT)


def report(error: Exception, *, as_json: bool) -> int:
    """Say on stderr what went wrong, without a traceback; return the exit code.

    With ``as_json`` it is one object: ``{"error": {"kind", "message", "exit"}}``.
    """
    code = exit_code(error)
    message = str(error) or type(error).__name__
    if code == FAULT:
        message = f"a fault of cvx: {type(error).__name__}: {message}; please report it"
    if as_json:
        told = {"kind": type(error).__name__, "message": message, "exit": code}
        sys.stderr.write(json.dumps({"error": told}) + "\n")
    else:
        sys.stderr.write(f"cvx: {printable(message)}\n")
    return code
