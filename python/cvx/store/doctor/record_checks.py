"""Checks the record: rows, pages, full-text index, references, counters, journal."""

from __future__ import annotations

import re
import sqlite3
import time
import zlib
from collections.abc import Collection, Iterator, Mapping

from cvx.store import fulltext, rows
from cvx.store.database import lenient
from cvx.store.doctor.findings import Check, Finding
from cvx.store.history import FIRST_KEPT, number_of
from cvx.store.row_validation import TAKEN_OVER, RowCheck, may_say, node_bound
from cvx.validation import LAST_RECORDED

_MOST = 1000
_DAY = 24 * 3_600_000_000
_OF_A_ROW = re.compile(r"CHECK constraint failed|NULL value in|non-\w+ value in")


def damaged_rows(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name every row that is not what was written."""
    for table in rows.COLUMNS:
        try:
            for _, key in rows.damaged(db, (table,)):
                what = "the row is not what was written: its checksum does not hold"
                yield Finding(Check.ROW, f"{table} {_shown(key)}", what, table, key)
        except sqlite3.DatabaseError as error:
            yield Finding(Check.PAGE, table, f"the table cannot be read to its end ({error})")


def unstorable_rows(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name every row that is whole and that cvx could not have written."""
    for table, key, why in RowCheck.of(db).refused(db):
        yield Finding(Check.VALUE, f"{table} {_shown(key)}", why, table, key)


def damaged_pages(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name what SQLite itself finds wrong with its pages and indexes."""
    try:
        said = [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({_MOST})")]
    except sqlite3.DatabaseError as error:
        said = [str(error)]
    for text in said:
        # What concerns the content of a row is found, and named better, by its checksum.
        if text != "ok" and not _OF_A_ROW.search(text):
            yield Finding(Check.PAGE, "memory.db", text)


def count_rows(db: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows each checked table has; those that cannot be read have none."""
    out = {}
    for table in rows.COLUMNS:
        try:
            out[table] = int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.DatabaseError:
            out[table] = 0
    return out


def _shown(key: tuple[object, ...]) -> str:
    return str(list(key)).encode("ascii", "backslashreplace").decode()


def differing_words(db: sqlite3.Connection, damaged: Collection[object]) -> Iterator[Finding]:
    """Name every event that the text index misses, holds beside its right, or holds otherwise.

    The index is built once more in RAM, by the same code, and both are compared posting by
    posting.

    Parameters
    ----------
    db : Connection
        Read-only; what is made goes into its temporary schema.
    damaged : collection
        Events whose rows are damaged: what their texts were is not known.
    """
    tables = dict(
        db.execute(
            "SELECT name, sql FROM main.sqlite_master"
            " WHERE sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'"
        ).fetchall()
    )
    for table, sql in tables.items():
        # An unqualified name means the temporary table from here on: ``text`` fills the twin.
        db.execute(sql.replace(f" {table} ", f" temp.{table} ", 1))
    try:
        with lenient(db, "replace"):
            fulltext.refill(db)
            for table in tables:
                yield from _compared(db, table, damaged)
    finally:
        for table in tables:
            db.execute(f"DROP TABLE temp.{table}")


_DIFFERING = """
WITH stored AS (SELECT doc, term, offset FROM temp.words_of_main),
    expected AS (SELECT doc, term, offset FROM temp.words_of_temp)
SELECT doc, doc IN (SELECT doc FROM stored), doc IN (SELECT doc FROM expected) FROM (
    SELECT doc FROM (SELECT * FROM stored EXCEPT SELECT * FROM expected)
    UNION SELECT doc FROM (SELECT * FROM expected EXCEPT SELECT * FROM stored)
) ORDER BY doc
"""
_DIFFERENCE = {
    (False, True): "is not in the text index: its words do not find it",
    (True, False): "is in the text index, and there is no such text",
    (True, True): "is in the text index with other words",
}


def _compared(db: sqlite3.Connection, table: str, damaged: Collection[object]) -> Iterator[Finding]:
    try:
        for schema in ("main", "temp"):
            words = f"fts5vocab('{schema}', '{table}', 'instance')"
            db.execute(f"CREATE VIRTUAL TABLE temp.words_of_{schema} USING {words}")
        for event, stored, expected in db.execute(_DIFFERING).fetchall():
            if event not in damaged:
                what = f"event {event} {_DIFFERENCE[bool(stored), bool(expected)]}"
                yield Finding(Check.WORDS, f"{table} [{event}]", what, table, (event,))
    except sqlite3.DatabaseError as error:
        yield Finding(Check.WORDS, table, f"the text index cannot be read ({error})")
    finally:
        for schema in ("main", "temp"):
            db.execute(f"DROP TABLE IF EXISTS temp.words_of_{schema}")


_NODES = "(SELECT node FROM events WHERE node IS NOT NULL UNION ALL SELECT node FROM aliases)"
_EARLIER = (
    "(SELECT ifnull(json_extract(value, '$[1].node'), -1) FROM journal, json_each(body)"
    " WHERE op = 'version' AND json_valid(body))"
)
"""Nodes of earlier versions: a loop that counted them may write that down later."""
_ORPHANS = (
    (
        "links",
        ("from_node", "to_node", "kind"),
        f"from_node NOT IN {_NODES} OR to_node NOT IN {_NODES}",
        "the link ends at a node that no event has",
    ),
    (
        "aliases",
        ("node",),
        "event_id NOT IN (SELECT event_id FROM events)",
        "the alias is of an event that does not exist",
    ),
    (
        "decays",
        ("episode", "node"),
        f"node NOT IN {_NODES}",
        "the decay is of a node that no event has",
    ),
    (
        "usage",
        ("context",),
        "(context LIKE '[\"event\",%]' AND json_valid(context)"
        " AND json_extract(context, '$[1]') NOT IN (SELECT event_id FROM events))"
        " OR (context LIKE '[\"node\",%]' AND json_valid(context)"
        f" AND json_extract(context, '$[1]') NOT IN {_NODES}"
        f" AND json_extract(context, '$[1]') NOT IN {_EARLIER})",
        "the count is of an event that does not exist",
    ),
    (
        "events",
        ("event_id",),
        "episode IS NOT NULL AND episode NOT IN (SELECT episode_id FROM episodes)",
        "the event is a step of an episode that does not exist",
    ),
    (
        "decisions",
        ("decision_id",),
        "episode IS NOT NULL AND episode NOT IN (SELECT episode_id FROM episodes)",
        "the decision was made in an episode that does not exist",
    ),
)


def orphans(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name every row that refers to one that does not exist."""
    for table, key, condition, what in _ORPHANS:
        for row in db.execute(f"SELECT {', '.join(key)} FROM {table} WHERE {condition}"):
            yield Finding(Check.ORPHAN, f"{table} {list(row)}", what, table, tuple(row))


def counters(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name counters from which an id would be given twice, or one that no record can have."""
    for name in COUNTERS:
        highest, bound = highest_id(db, name)
        found = db.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        told = "-1" if found is None else str(found[0])
        following = int(told) if re.fullmatch("[0-9]{1,16}", told) else -1
        if not highest < following <= bound:
            yield Finding(
                Check.COUNTER,
                f"meta ['{name}']",
                f"the next id is {told[:20]}: {highest} was given, and the most is {bound}",
                "meta",
                (name,),
            )


def settings(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name what the record says of itself, or fails to say, as cvx never does."""
    told = dict(db.execute("SELECT key, value FROM meta"))
    wrong = {
        name: f"it is {str(value)[:40]!r}, which cvx never writes"
        for name, value in told.items()
        if name in TAKEN_OVER and name not in COUNTERS and not may_say(name, value)
    }
    needed = ("uuid", *VECTORS) if "embedder" in told else ("uuid",)
    missing = {name: "the record does not say it" for name in needed if name not in told}
    first = first_kept(db)
    if FIRST_KEPT in told.keys() - wrong.keys() and int(told[FIRST_KEPT]) != first:
        wrong[FIRST_KEPT] = f"it is {told[FIRST_KEPT]}, and the journal begins with {first}"
    for name, what in (wrong | missing).items():
        yield Finding(Check.VALUE, f"meta ['{name}']", what, "meta", (name,))


VECTORS = ("embedder", "dim", "metric")
"""What a record says of its vectors, all of it or nothing."""


COUNTERS: Mapping[str, tuple[str, int]] = {
    "next_node": (_NODES, -1),
    "next_event": ("(SELECT event_id AS node FROM events)", 0),
    "next_decision": ("(SELECT decision_id AS node FROM decisions)", -1),
}
"""Where the ids are that each has given, and the one before the first."""


def highest_id(db: sqlite3.Connection, counter: str) -> tuple[int, int]:
    """Return the highest id that a counter has given by rights, and the most it may say."""
    ids, least = COUNTERS[counter]
    bound = rows.MOST_ID
    if counter == "next_node":
        bound = node_bound(db.execute(f"SELECT count(*) FROM {ids}").fetchone()[0])
    found = f"SELECT max(node) FROM {ids} WHERE node < ? AND typeof(node) = 'integer'"
    highest = db.execute(found, (bound,)).fetchone()[0]
    return least if highest is None else int(highest), bound


PLACEHOLDER = "lost"
"""The op of a row that stands for one whose content is gone."""


def gaps(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name runs of numbers that are missing, at the end too."""
    expected, previous = first_kept(db), 0
    for (seq,) in db.execute("SELECT seq FROM journal ORDER BY seq"):
        if seq != expected:
            yield _gap(expected, seq - 1)
        expected, previous = seq + 1, seq
    given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'journal'").fetchone()
    if given is not None and given[0] > previous:
        yield _gap(previous + 1, given[0])


def first_kept(db: sqlite3.Connection) -> int:
    """Return from which number on the journal is kept: as it says, unless it begins before."""
    told, first = db.execute(
        "SELECT (SELECT value FROM meta WHERE key = ?), (SELECT min(seq) FROM journal)",
        (FIRST_KEPT,),
    ).fetchone()
    said = number_of(None if told is None else str(told)) or 1
    return said if type(first) is not int else max(1, min(said, first))


def _gap(first: int, last: int) -> Finding:
    return Finding(
        Check.JOURNAL,
        f"journal [{first}..{last}]",
        f"{last - first + 1} changes are missing: an index that follows did not hear of them",
        "journal",
        (first, last),
    )


def clock_ahead(db: sqlite3.Connection) -> Iterator[Finding]:
    """Name the last change where it is recorded far ahead of the clock of this machine.

    And every table with rows that are recorded after the last change.
    """
    (last,) = db.execute(_LAST_CHANGE).fetchone()
    ahead = (last - time.time_ns() // 1000) / _DAY if last is not None else 0
    if ahead > 1:
        yield Finding(
            Check.CLOCK_AHEAD,
            "journal",
            f"the last change is recorded {ahead:,.0f} days ahead of this machine's clock, and "
            "later ones right after it; set the clock right, or restore a copy",
        )
    for table, names in rows.COLUMNS.items():
        if last is not None and "recorded" in names and table != "journal":
            found = f"SELECT count(*) FROM {table} WHERE recorded > ? AND recorded < ?"
            (count,) = db.execute(found, (last, LAST_RECORDED)).fetchone()
            if count:
                what = f"{count} rows are recorded later than the last change: no look back has it"
                yield Finding(Check.CLOCK_AHEAD, table, what, table)


_LAST_CHANGE = (
    "SELECT max(recorded) FROM journal"
    f" WHERE typeof(recorded) = 'integer' AND recorded < {LAST_RECORDED}"
)


def backward_times(db: sqlite3.Connection, damaged: Collection[object]) -> Iterator[Finding]:
    """Name every change that is recorded before the one before it."""
    before = 0
    for seq, recorded in db.execute("SELECT seq, recorded FROM journal ORDER BY seq"):
        # Those beyond all bounds are named as values.
        if seq in damaged or type(recorded) is not int or not 0 <= recorded < LAST_RECORDED:
            continue
        if recorded < before:
            what = f"it is recorded at {recorded}, the change before it at {before}"
            where = f"journal [{seq}]"
            yield Finding(Check.JOURNAL, where, what, "journal", (seq,))
        before = recorded


def breaks(db: sqlite3.Connection, damaged: Collection[object]) -> Iterator[Finding]:
    """Name rows that do not follow from the one before them.

    An erase takes words out of older rows and leaves their chain as it was, since it names the
    history; only what is younger than the last erase can be held to it.
    """
    start = db.execute("SELECT ifnull(max(seq), 0) FROM journal WHERE op = 'erase'").fetchone()[0]
    before: tuple[int, int] | None = (0, 0) if start == 0 and first_kept(db) == 1 else None
    for seq, body, chain in db.execute(
        "SELECT seq, body, chain FROM journal WHERE seq >= ? ORDER BY seq", (start,)
    ):
        if before is not None and before[0] + 1 == seq and seq not in damaged:
            raw = str(body).encode("utf-8", "surrogateescape")
            if zlib.crc32(raw, before[1]) != chain:
                yield Finding(
                    Check.JOURNAL,
                    f"journal [{seq}]",
                    "the change does not follow from the one before it: one of them was replaced",
                    "journal",
                    (seq,),
                )
        # One from elsewhere may be no number, which the check of values has named.
        before = (seq, chain) if seq not in damaged and isinstance(chain, int) else None
