"""Failpoints: places where a test can kill the process or make a write fail."""

from __future__ import annotations

import os
import signal

from cvx.errors import RecordIOError

ENVIRONMENT = "CVX_FAILPOINT"
"""``name``, ``name:kill`` or ``name:error``, with ``@n`` for the n-th time it is reached."""

NAMES = (
    "transaction.begun",
    "transaction.written",
    "transaction.committed",
    "tail.written",
    "snapshot.begun",
    "snapshot.renamed",
    "manifest.written",
    "manifest.synced",
    "manifest.renamed",
    "snapshot.pruned",
    "erase.committed",
    "erase.snapshots_gone",
    "erase.vacuumed",
    "erase.truncated",
    "migrate.altered",
    "migrate.widened",
    "close.snapshot",
    "close.checkpointed",
)

_reached: dict[str, int] = {}
_wanted = os.environ.get(ENVIRONMENT, "")


def reach(name: str) -> None:
    """Pass a failpoint: it fires only if the process's environment names it.

    Raises
    ------
    RecordIOError
        The failpoint is set to ``error``.
    """
    if not _wanted:
        return
    target, _, action = _wanted.partition(":")
    target, _, count = target.partition("@")
    if target != name:
        return
    _reached[name] = _reached.get(name, 0) + 1
    if _reached[name] != int(count or 1):
        return
    if action == "error":
        raise RecordIOError(f"failpoint {name}: the test asked for an error here")
    os.kill(os.getpid(), signal.SIGKILL)
