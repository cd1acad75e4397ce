"""Many typed links as one cause an event, which is what the Causal Memory Core keeps."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

CAUSAL_KINDS = ("caused", "caused_success", "caused_failure", "granger_causal")
"""Links of these kinds say that their end followed from their start."""

_CANDIDATES = f"""
WITH owner AS (
    SELECT node, event_id FROM events WHERE node IS NOT NULL AND embedding IS NOT NULL
    UNION ALL
    SELECT aliases.node, event_id FROM aliases JOIN events USING (event_id)
    WHERE events.embedding IS NOT NULL
)
SELECT effect.event_id, cause.event_id, links.why, links.kind
FROM links
JOIN owner AS cause ON cause.node = from_node
JOIN owner AS effect ON effect.node = to_node
WHERE links.kind IN ({", ".join("?" * len(CAUSAL_KINDS))})
AND effect.event_id <> cause.event_id
ORDER BY effect.event_id, links.weight DESC, links.recorded, from_node, links.kind
"""


class Cause(NamedTuple):
    """The primary cause of an event.

    Attributes
    ----------
    event : int
        The cause.
    relationship : str
        How it led to the effect: the reason of the link, or its kind where it gives none.
    """

    event: int
    relationship: str


def primary_causes(db: sqlite3.Connection) -> dict[int, Cause]:
    """Return the primary cause of every event that has one: its strongest causal link.

    Of equally strong links the one recorded first counts. Links may form circles, causes may not:
    the youngest event of a circle becomes a root. Events without a vector are left out.
    """
    causes: dict[int, Cause] = {}
    for effect, cause, why, kind in db.execute(_CANDIDATES, CAUSAL_KINDS):
        causes.setdefault(effect, Cause(cause, why or kind))
    _open_circles(causes)
    return causes


def _open_circles(causes: dict[int, Cause]) -> None:
    sound: set[int] = set()
    for start in sorted(causes):
        path: list[int] = []
        event = start
        while event in causes and event not in sound and event not in path:
            path.append(event)
            event = causes[event].event
        if event in path:
            circle = path[path.index(event) :]
            del causes[max(circle)]
        sound.update(path)


def depths(causes: dict[int, Cause]) -> dict[int, int]:
    """Return how many causes lie behind each event that has one, its root at 0.

    Examples
    --------
    >>> depths({2: Cause(1, "because"), 3: Cause(2, "because")})
    {2: 1, 3: 2}
    """
    out: dict[int, int] = {}
    for start in causes:
        path = []
        event = start
        while event in causes and event not in out:
            path.append(event)
            event = causes[event].event
        depth = out.get(event, 0)
        for one in reversed(path):
            depth += 1
            out[one] = depth
    return out
