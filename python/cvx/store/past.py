"""The record as it was at a time of recording."""

from __future__ import annotations

import json

from cvx.errors import UnknownError
from cvx.store import rows, text
from cvx.store.packing import unpacked
from cvx.store.record import Record

_BY_TIME = (
    "decisions", "decays", "model_state", "aliases", "events", "episodes", "journal",
)  # fmt: skip
_COLUMNS = {
    "state": "state",
    "recallable": "recallable",
    "metadata": "metadata",
    "step_kind": "kind",
}
"""Columns of events by what the journal calls a change to them."""


def as_of(record: Record, recorded: int) -> Record:
    """Return a read-only copy in RAM that knows nothing of what was recorded later.

    What was erased since is not in it. Counts of use, decays, decisions and the state of models
    are what they were then.

    Parameters
    ----------
    record : Record
        The record of today.
    recorded : int
        In microseconds since 1970-01-01 UTC; what was recorded at that time is known.

    Raises
    ------
    UnknownError
        A time from which what was overwritten since is not kept: by an older format, or any more.
    """
    since = int(record.meta("whole_since") or 0)
    if recorded < since:
        raise UnknownError(
            f"{record.path} keeps what was overwritten from {since} on, not at {recorded}: its "
            "journal reaches no further back, or an older version of cvx wrote it until then; ask "
            "for a later time"
        )
    past = record.copy()
    later = list(reversed(past.query_after(recorded)))
    with past.transaction() as write:
        db = write.connection
        for op, body in later:
            for entry in reversed(body):
                if op == "row":
                    table, key, before = entry
                    where = " AND ".join(f"{name} = ?" for name in rows.KEYS[table])
                    if before is None:
                        db.execute(f"DELETE FROM {table} WHERE {where}", key)
                    else:
                        # In one statement: steps name their episode all the while.
                        put = rows.insert_sql(table, replace=True)
                        db.execute(put, (*before, rows.row_crc(*before)))
                elif op == "link":
                    a, b, kind, before, _ = entry
                    db.execute(
                        "DELETE FROM links WHERE from_node = ? AND to_node = ? AND kind = ?",
                        (a, b, kind),
                    )
                    if before is not None:
                        values = (a, b, kind, *before)
                        db.execute(rows.insert_sql("links"), (*values, rows.row_crc(*values)))
                elif op == "reward":
                    db.execute("UPDATE events SET reward = ? WHERE node = ?", (entry[1], entry[0]))
                elif op == "version":
                    number, told, _ = entry
                    before = unpacked(told)
                    names = ", ".join(f"{name} = ?" for name in before)
                    db.execute(
                        f"UPDATE events SET {names} WHERE event_id = ?", (*before.values(), number)
                    )
                elif op in _COLUMNS:
                    db.execute(
                        f"UPDATE events SET {_COLUMNS[op]} = ? WHERE event_id = ?",
                        (entry[1], entry[0]),
                    )
                elif op == "kind":
                    kinds = json.loads(past.meta("edge_kinds") or "[]")
                    write.set_meta("edge_kinds", json.dumps([k for k in kinds if k != entry]))
        for table in _BY_TIME:
            db.execute(f"DELETE FROM {table} WHERE recorded > ?", (recorded,))
        db.execute(rows.renew_crc_sql("events", "true"))
        text.refill(db)
    past.refuse_writes("this is a view of the past: write to the memory itself")
    return past
