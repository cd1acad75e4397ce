"""What can be read from the record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cvx.store import rows
from cvx.store.learned import Learned
from cvx.store.wordsearch import WordSearch
from cvx.types import Edge, Episode, Event, IntArray

_MOST_AT_ONCE = 500
_IN = "IN (SELECT value FROM json_each(?))"
_OF_A_NODE = (
    "node",
    "entity",
    "timestamp",
    "embedding",
    "reward",
    "namespace",
    "visibility",
    "tags",
    "action",
)


class Reads(Learned):
    """The reading half of a record."""

    _words: WordSearch

    def next_ids(self) -> tuple[int, int]:
        """Return the first free episode id and entity id."""
        row = self.query(
            "SELECT (SELECT ifnull(max(episode_id), -1) FROM episodes),"
            " max((SELECT ifnull(max(entity), -1) FROM events),"
            " (SELECT ifnull(max(entity), -1) FROM episodes))"
        )[0]
        return row[0] + 1, row[1] + 1

    def episodes(self, ids: Iterable[int] | None = None) -> list[Episode]:
        """Return every closed episode with its steps, or those of these ids, in order."""
        which, chosen = ("IS NOT NULL", ()) if ids is None else (_IN, (str(list(ids)),))
        steps: dict[int, list[Event]] = {}
        for event in self._events(f"WHERE episode {which} ORDER BY event_id", chosen):
            if event.episode_id is not None:
                steps.setdefault(event.episode_id, []).append(event)
        return [
            Episode(
                episode_id=row[0],
                entity_id=row[1],
                namespace=row[2],
                kind=row[3],
                goal=row[4],
                task_type=row[5],
                reward=row[6],
                metadata=json.loads(row[7]),
                steps=tuple(steps.get(row[0], ())),
            )
            for row in self._checked(
                "episodes", f"WHERE episode_id {which} ORDER BY episode_id", chosen
            )
        ]

    def events(self, ids: Iterable[int] | None = None) -> list[Event]:
        """Return every event, or those of these ids, in the order of writing.

        Raises
        ------
        DamagedRecordError
            A row is not what was written.
        """
        if ids is None:
            return self._events("ORDER BY event_id")
        wanted = sorted(set(ids))
        out: list[Event] = []
        for at in range(0, len(wanted), _MOST_AT_ONCE):
            some = wanted[at : at + _MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            out += self._events(f"WHERE event_id IN ({marks}) ORDER BY event_id", some)
        return out

    def whole_events(self, ids: Iterable[int]) -> list[Event]:
        """Return those of these events that are what was written, by id.

        Others are noted in ``damaged``: one bad row does not keep the rest of an answer back.
        """
        wanted = sorted(set(ids))
        out: list[Event] = []
        for at in range(0, len(wanted), _MOST_AT_ONCE):
            some = wanted[at : at + _MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            rest = f"WHERE event_id IN ({marks}) ORDER BY event_id"
            out += map(_event, self._whole("events", rest, some))
        return out

    def _events(self, rest: str, values: Sequence[object] = ()) -> list[Event]:
        return [_event(row) for row in self._checked("events", rest, values)]

    def events_of_nodes(self, nodes: Sequence[int], *, active: bool = False) -> dict[int, int]:
        """Return the event of each of these nodes, those of aliases included.

        Parameters
        ----------
        nodes : sequence of int
            Index rows.
        active : bool, default False
            Leave out events that were archived or quarantined.
        """
        state = " AND state = 'active'" if active else ""
        out: dict[int, int] = {}
        for at in range(0, len(nodes), _MOST_AT_ONCE):
            some = nodes[at : at + _MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            out.update(
                self.query(
                    f"SELECT node, event_id FROM events WHERE node IN ({marks}){state}"
                    " UNION ALL SELECT aliases.node, event_id FROM aliases"
                    f" JOIN events USING (event_id) WHERE aliases.node IN ({marks}){state}",
                    (*some, *some),
                )
            )
        return out

    def trust_of(self, events: Sequence[int]) -> dict[int, float]:
        """Return how far the source of each of these events is believed."""
        out: dict[int, float] = {}
        for at in range(0, len(events), _MOST_AT_ONCE):
            some = events[at : at + _MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            out.update(
                self.query(f"SELECT event_id, trust FROM events WHERE event_id IN ({marks})", some)
            )
        return out

    def public_namespaces(self) -> list[str]:
        """Return the namespaces that hold something public."""
        found = self.query(
            "WITH RECURSIVE seen (name) AS ("
            " SELECT min(namespace) FROM events WHERE visibility = 'public'"
            " UNION ALL SELECT (SELECT min(namespace) FROM events"
            " WHERE visibility = 'public' AND namespace > name) FROM seen WHERE name IS NOT NULL)"
            " SELECT name FROM seen WHERE name IS NOT NULL"
        )
        return [row[0] for row in found]

    def nodes_of_events(self, events: Sequence[int]) -> dict[int, list[int]]:
        """Return the nodes of each of these events, its own before those of its aliases."""
        out: dict[int, list[int]] = {}
        for at in range(0, len(events), _MOST_AT_ONCE):
            some = events[at : at + _MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            for event, node in self.query(
                f"SELECT event_id, node FROM events WHERE event_id IN ({marks})"
                f" AND node IS NOT NULL UNION ALL SELECT event_id, node FROM aliases"
                f" WHERE event_id IN ({marks})",
                (*some, *some),
            ):
                out.setdefault(event, []).append(node)
        return out

    def index_rows(self, first: int, last: int) -> list[tuple[Any, ...]]:
        """Return what an index holds of the nodes from first to last, by node.

        Rows that are damaged, and aliases of such events, are left out and noted in ``damaged``.

        Returns
        -------
        list of tuple
            node, entity, timestamp, embedding, reward, namespace, visibility, tags, action,
            whether it advises.
        """
        bounds = (first, last)
        at = {name: place for place, name in enumerate(rows.COLUMNS["events"])}
        wanted = [at[name] for name in _OF_A_NODE]

        def node_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
            advises = bool(row[at["recallable"]]) and row[at["state"]] == "active"
            return (*(row[place] for place in wanted), advises)

        own = self._whole("events", "WHERE node BETWEEN ? AND ? ORDER BY node", bounds)
        found = [node_row(row) for row in own]
        aliases = self._whole("aliases", "WHERE node BETWEEN ? AND ? ORDER BY node", bounds)
        for node, event, _, embedding, *_ in aliases:
            for row in self._whole("events", "WHERE event_id = ?", (event,)):
                _, entity, time, _, *rest = node_row(row)
                found.append((node, entity, time, embedding, *rest))
        return sorted(found, key=lambda row: row[0])

    def lexical(self, words: str, k: int, where: str, values: Sequence[object]) -> list[int]:
        """Find events by the words of a text, see ``cvx.store.wordsearch.WordSearch.search``."""
        with self._lock, self.typed_errors():
            return self._words.search(self._connection(), words, k, where, values)

    def postings(self, word: str, most: int = 2000) -> IntArray | None:
        """Return the ids of the events that hold a word, ascending; None if above ``most``."""
        with self._lock, self.typed_errors():
            return self._words.postings(self._connection(), word, most)

    def event_of_key(self, key: str, namespace: str) -> int | None:
        """Return the event that is called so elsewhere, None if there is none."""
        found = self.query(
            "SELECT event_id FROM events WHERE namespace = ? AND key = ?", (namespace, key)
        )
        return int(found[0][0]) if found else None

    def not_recallable(self) -> list[int]:
        """Return the nodes of events that may not advise, ascending."""
        found = self.query(
            "SELECT node FROM events WHERE NOT recallable AND node IS NOT NULL ORDER BY node"
        )
        return [row[0] for row in found]

    def links(self) -> list[Edge]:
        """Return every edge, by its ends and kind."""
        return [Edge(*r[:7]) for r in self._checked("links", "ORDER BY from_node, to_node, kind")]

    def whole_links(self) -> list[Edge]:
        """Return every edge whose row is what was written; others are noted in ``damaged``."""
        return [Edge(*r[:7]) for r in self._whole("links", "ORDER BY from_node, to_node, kind")]

    def put_away(self, nodes: Sequence[int]) -> set[int]:
        """Return those of these nodes whose events were archived or quarantined."""
        out: set[int] = set()
        for at in range(0, len(nodes), _MOST_AT_ONCE):
            some = nodes[at : at + _MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            found = self.query(
                f"SELECT node FROM events WHERE node IN ({marks}) AND state <> 'active'"
                " UNION ALL SELECT aliases.node FROM aliases JOIN events USING (event_id)"
                f" WHERE aliases.node IN ({marks}) AND state <> 'active'",
                (*some, *some),
            )
            out.update(row[0] for row in found)
        return out

    def own_nodes(self, nodes: Sequence[int]) -> dict[int, int]:
        """Return, for those of these nodes that are aliases, the nodes of their events."""
        out: dict[int, int] = {}
        for at in range(0, len(nodes), _MOST_AT_ONCE):
            some = nodes[at : at + _MOST_AT_ONCE]
            marks = ", ".join("?" * len(some))
            out.update(
                self.query(
                    "SELECT aliases.node, events.node FROM aliases JOIN events USING (event_id)"
                    f" WHERE aliases.node IN ({marks})",
                    some,
                )
            )
        return out

    def links_of(self, nodes: Sequence[int], *, incoming: bool) -> list[Edge]:
        """Return the edges that end at these nodes, or start there; damaged ones are left out."""
        column = "to_node" if incoming else "from_node"
        marks = ", ".join("?" * len(nodes))
        rest = f"WHERE {column} IN ({marks}) ORDER BY weight DESC, from_node, to_node, kind"
        return [Edge(*row[:7]) for row in self._whole("links", rest, nodes)]


def _event(row: tuple[Any, ...]) -> Event:
    return Event(
        event_id=row[0],
        timestamp=row[1],
        text=row[2],
        vector=None if row[3] is None else np.frombuffer(row[3], dtype="<f4"),
        entity_id=row[4],
        node=row[5],
        namespace=row[6],
        kind=row[7],
        action=row[8],
        metadata=json.loads(row[9]),
        reward=row[10],
        episode_id=row[12],
        tags=tuple(json.loads(row[13])),
        recorded=row[14],
        source=row[15],
        trust=row[16],
        visibility=row[17],
        salience=row[18],
        state=row[19],
        key=row[20],
    )
