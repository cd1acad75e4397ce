"""cvx compact."""

from __future__ import annotations

from cvx.cli.opening import opened
from cvx.cli.options import Json, Store
from cvx.cli.output import emit, line, note


def compact(store: Store = None, json: Json = False) -> None:
    """Give back unused room on the disk.

    For example:
      cvx compact --json

    The database is written anew without free pages, and one fresh snapshot of the index is kept.
    """
    with opened(store, embeds=False) as memory:
        done = memory.admin.compact()
    if json:
        emit({"before": done.before, "after": done.after, "complete": done.complete})
        return
    line(f"{done.before:,} bytes before, {done.after:,} after")
    if not done.complete:
        note("another process is reading: the log could not be emptied; run it again later")
