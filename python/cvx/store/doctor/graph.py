"""What points at something that is not there, and counters that would give an id twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from cvx.store.doctor.findings import Check, Finding

_NODES = "(SELECT node FROM events WHERE node IS NOT NULL UNION ALL SELECT node FROM aliases)"
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
        f" AND json_extract(context, '$[1]') NOT IN {_NODES})",
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
    """Name counters that lie behind an id that was given already."""
    for name, used in (
        ("next_node", f"SELECT max(node) FROM {_NODES}"),
        ("next_event", "SELECT max(event_id) FROM events"),
        ("next_decision", "SELECT max(decision_id) FROM decisions"),
    ):
        highest = db.execute(used).fetchone()[0]
        found = db.execute("SELECT value FROM meta WHERE key = ?", (name,)).fetchone()
        following = int(found[0]) if found is not None and str(found[0]).isdecimal() else -1
        if following <= (-1 if highest is None else highest):
            yield Finding(
                Check.COUNTER,
                f"meta ['{name}']",
                f"the next id is {following}, and {highest} was given: it would be given twice",
                "meta",
                (name,),
            )
