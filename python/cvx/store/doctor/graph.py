"""What points at something that is not there, and counters that would give an id twice."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping

from cvx.store import rows
from cvx.store.doctor.findings import Check, Finding
from cvx.store.rowcheck import node_bound

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
