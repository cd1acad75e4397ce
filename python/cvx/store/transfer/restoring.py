"""Taking an export into an empty record, as it was."""

from __future__ import annotations

import json

from cvx.store import rows, text
from cvx.store.failpoints import reach
from cvx.store.lock import Tail
from cvx.store.transfer.incoming import Imported, Incoming
from cvx.store.transfer.tables import ORDER, Progress, counted
from cvx.store.writer import Writer


def restore(write: Writer, incoming: Incoming, progress: Progress) -> Imported:
    """Store every row as it is: ids, times of recording and the journal included."""
    db = write.connection
    db.execute("PRAGMA defer_foreign_keys = ON")
    counts = dict.fromkeys(ORDER, 0)
    header = incoming.header
    for table, some in counted(incoming.batches(), header.total, progress):
        db.executemany(rows.insert_sql(table), some)
        counts[table] += len(some)
        reach("import.written")
    text.refill(db)
    for key, value in header.meta.items():
        write.set_meta(key, value)
    write.tail = Tail(header.seq, header.chain)
    if not _journal_covers_all(write):
        # An index that followed the empty record would miss what was there before its journal.
        write.journal("erase", [])
    return Imported(merged=False, counts=counts, left_out={})


def _journal_covers_all(write: Writer) -> bool:
    db = write.connection
    covered = 0
    for (body,) in db.execute("SELECT body FROM journal WHERE op = 'insert'"):
        covered += sum(last - first + 1 for first, last in json.loads(body))
    there = db.execute(
        "SELECT (SELECT count(node) FROM events) + (SELECT count(*) FROM aliases)"
    ).fetchone()[0]
    return covered >= int(there)
