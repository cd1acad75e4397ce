"""What can be read from the record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cvx.errors import DamagedStoreError
from cvx.store import rows, wordsearch
from cvx.store.nodes import Nodes
from cvx.types import Episode, Event, IntArray

OPEN, DISCARDED = "open ", "discarded "
"""What stands before the kind of an episode that has no outcome yet, or never gets one."""

OWN_ENTITIES = 2**62
"""Entities that nobody named are given numbers below this one; those of the user may lie beyond."""

UNREADABLE = (ValueError, TypeError, RecursionError)
"""What reading a row raises that another program wrote: no JSON, or no floats."""


class Reads(Nodes):
    """The reading half of a record."""

    def next_ids(self) -> tuple[int, int]:
        """Return the first free episode id, and entity id that is not above `OWN_ENTITIES`."""
        row = self.query(
            "SELECT (SELECT ifnull(max(episode_id), -1) FROM episodes),"
            " max((SELECT ifnull(max(entity), -1) FROM events WHERE entity < ?1),"
            " (SELECT ifnull(max(entity), -1) FROM episodes WHERE entity < ?1))",
            (OWN_ENTITIES,),
        )[0]
        return row[0] + 1, row[1] + 1

    def episodes(self, ids: Iterable[int] | None = None) -> list[Episode]:
        """Return every closed episode with its steps, or those of these ids, in order."""
        with self.reading():
            return self._episodes(ids)

    def _episodes(self, ids: Iterable[int] | None) -> list[Episode]:
        which, chosen = "IS NOT NULL", tuple[str, ...]()
        if ids is not None:
            which, chosen = rows.AMONG, (rows.listed(ids),)
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
                "episodes",
                f"WHERE episode_id {which} AND kind NOT LIKE '{OPEN}%'"
                f" AND kind NOT LIKE '{DISCARDED}%' ORDER BY episode_id",
                chosen,
            )
        ]

    def unfinished(self, episode_id: int) -> Episode | None:
        """Return an episode that is open or discarded, with its steps; None if it is neither.

        Its ``kind`` says which of the two, and it has no ``reward``.
        """
        with self.reading():
            found = self._checked("episodes", "WHERE episode_id = ?", (episode_id,))
            if not found or not found[0][3].startswith((OPEN, DISCARDED)):
                return None
            row = found[0]
            steps = self._events("WHERE episode = ? ORDER BY event_id", (episode_id,))
        return Episode(
            episode_id=row[0],
            entity_id=row[1],
            namespace=row[2],
            kind=row[3],
            goal=row[4],
            task_type=row[5],
            metadata=json.loads(row[7]),
            steps=tuple(steps),
        )

    def events(self, ids: Iterable[int] | None = None) -> list[Event]:
        """Return every event, or those of these ids, in the order of writing.

        Raises
        ------
        DamagedStoreError
            A row is not what was written.
        """
        if ids is None:
            return self._events("ORDER BY event_id")
        return self._events(f"WHERE event_id {rows.AMONG} ORDER BY event_id", (rows.listed(ids),))

    def columns(
        self, table: str, rest: str = "", values: Sequence[object] = ()
    ) -> dict[str, Sequence[Any]]:
        """Return rows column by column, as they are stored.

        Parameters
        ----------
        table : str
            One of ``rows.COLUMNS``.
        rest : str
            SQL after the name of the table.
        values : sequence
            For its placeholders.

        Raises
        ------
        DamagedStoreError
            A row is not what was written.
        """
        names = rows.COLUMNS[table]
        found = self._checked(table, rest, values)
        columns = zip(*found, strict=True) if found else ((),) * (len(names) + 1)
        # The checksum comes last, and has done its work.
        return dict(zip(names, columns, strict=False))

    def whole_events(self, ids: Iterable[int]) -> list[Event]:
        """Return those of these events that are what was written, by id.

        Others are noted in ``damaged``: one bad row does not keep the rest of an answer back.
        """
        out: list[Event] = []
        rest = f"WHERE event_id {rows.AMONG} ORDER BY event_id"
        for row in self._whole("events", rest, (rows.listed(ids),)):
            try:
                out.append(event_of(row))
            except UNREADABLE:
                self.damaged[f"events [{row[0]}]"] = None
        return out

    def _events(self, rest: str, values: Sequence[object] = ()) -> list[Event]:
        out = []
        for row in self._checked("events", rest, values):
            try:
                out.append(event_of(row))
            except UNREADABLE as error:
                raise DamagedStoreError(
                    f"{self.path}: row {row[0]} of events cannot be read ({error}): let doctor "
                    "repair it"
                ) from error
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

    def holders(self, word: str, *, after: int = -1, most: int) -> IntArray:
        """Return the first events above an id that hold a word, see ``cvx.store.wordsearch``."""
        with self._lock, self.typed_errors():
            return wordsearch.holders(self._connection(), word, after, most)

    def holding(self, word: str, events: IntArray) -> IntArray:
        """Return which of these events hold a word, ascending."""
        with self._lock, self.typed_errors():
            return wordsearch.holding(self._connection(), word, events)

    def newest_holding(
        self, words: Sequence[str], k: int, where: str, values: Sequence[object]
    ) -> list[int]:
        """Return the newest events that hold all words, see ``cvx.store.wordsearch.newest``."""
        with self._lock, self.typed_errors():
            return wordsearch.newest(self._connection(), words, k, where, values)

    def event_of_key(self, key: str, namespace: str) -> int | None:
        """Return the event that is called so elsewhere, None if there is none."""
        found = self.query(
            "SELECT event_id FROM events WHERE namespace = ? AND key = ?", (namespace, key)
        )
        return int(found[0][0]) if found else None


def event_of(row: Sequence[Any]) -> Event:
    """Return the event of a row, in the order of ``rows.COLUMNS``."""
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
        tags=() if row[13] == "[]" else tuple(json.loads(row[13])),
        recorded=row[14],
        source=row[15],
        trust=row[16],
        visibility=row[17],
        salience=row[18],
        state=row[19],
        key=row[20],
    )
