"""Taking an export into an empty record, as it was."""

from __future__ import annotations

import json
import sqlite3

from cvx.errors import ExportError
from cvx.store import rows, text
from cvx.store.failpoints import reach
from cvx.store.lock import Tail
from cvx.store.rowcheck import RowCheck, node_bound
from cvx.store.transfer.header import Header
from cvx.store.transfer.incoming import Imported, Incoming
from cvx.store.transfer.tables import ORDER, Progress, checked, counted
from cvx.store.writer import Writer


def restore(write: Writer, incoming: Incoming, progress: Progress) -> Imported:
    """Store every row as it is: ids, times of recording and the journal included.

    Raises
    ------
    ExportError
        A row could not have been written by cvx, or they do not fit together.
    """
    db = write.connection
    db.execute("PRAGMA defer_foreign_keys = ON")
    counts = dict.fromkeys(ORDER, 0)
    header = incoming.header
    check = RowCheck(db, int(header.meta.get("dim", 0)), header.meta.get("metric", ""))
    found = checked(incoming.batches(), check)
    for table, some in counted(found, header.total, progress):
        db.executemany(rows.insert_sql(table), some)
        counts[table] += len(some)
        reach("import.written")
    text.refill(db)
    for key, value in header.meta.items():
        write.set_meta(key, value)
    write.next_node, write.next_event, write.next_decision = _counters(db, header)
    _check_whole(db, header)
    write.tail = Tail(header.seq, header.chain)
    if not _journal_covers_all(write):
        # An index that followed the empty record would miss what was there before its journal.
        write.journal("erase", [])
    return Imported(merged=False, counts=counts, left_out={})


def _counters(db: sqlite3.Connection, header: Header) -> list[int]:
    """Return the first ids that are free, as the export says; they are bounded by those given."""
    nodes = (
        "SELECT ifnull(max(node), -1), count(*) FROM (SELECT node FROM events"
        " WHERE node IS NOT NULL UNION ALL SELECT node FROM aliases)"
    )
    (highest, count), out = db.execute(nodes).fetchone(), list[int]()
    for name, given, bound in (
        ("next_node", highest, node_bound(count)),
        ("next_event", _highest(db, "events", "event_id"), rows.MOST_ID),
        ("next_decision", _highest(db, "decisions", "decision_id"), rows.MOST_ID),
    ):
        following = int(header.meta.get(name, given + 1))
        if not given < following <= bound:
            raise ExportError(
                f"the export says {name} {following}, with ids up to {given}: more than that, and "
                f"at most {bound}, is possible. Import it into a store that holds something, where "
                "everything gets new ids; nothing was taken in"
            )
        out.append(following)
    return out


def _highest(db: sqlite3.Connection, table: str, key: str) -> int:
    return int(db.execute(f"SELECT ifnull(max({key}), -1) FROM {table}").fetchone()[0])


def _check_whole(db: sqlite3.Connection, header: Header) -> None:
    """Ask what the doctor would find between rows that are each sound."""
    from cvx.store.doctor import graph, history

    for finding in (*graph.orphans(db), *history.gaps(db), *history.breaks(db, ())):
        raise ExportError(
            f"the export contradicts itself: {finding.where}: {finding.what}. Nothing was taken in"
        )
    end = db.execute("SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1").fetchone()
    if (end or (0, 0)) != (header.seq, header.chain):
        raise ExportError(
            f"the export says that its journal ends at {header.seq}, and it ends elsewhere: export "
            "again. Nothing was taken in"
        )


def _journal_covers_all(write: Writer) -> bool:
    db = write.connection
    covered = 0
    for (body,) in db.execute("SELECT body FROM journal WHERE op = 'insert'"):
        covered += sum(last - first + 1 for first, last in json.loads(body))
    there = db.execute(
        "SELECT (SELECT count(node) FROM events) + (SELECT count(*) FROM aliases)"
    ).fetchone()[0]
    return covered >= int(there)
