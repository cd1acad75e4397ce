"""What may be written, inside a transaction of the record and nowhere else."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cvx.errors import InvalidInputError, UnknownEventError
from cvx.store import rows, text
from cvx.store.lock import Tail
from cvx.store.packing import bytes_of, decision_row, event_row, json_of
from cvx.types import Decision, Edge, Episode, Event, Vector


class Writer:
    """The open end of one transaction; ``Record.transaction`` hands it out.

    It is of no use after the transaction has ended. Everything that an index must follow, or that
    a view of the past must take back, goes into the journal with it: ids and values before and
    after, never a predicate.

    Attributes
    ----------
    recorded : int
        The time of recording of everything in the transaction.
    tail : Tail
        The end of the journal so far.
    """

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self._db = connection
        last = connection.execute(
            "SELECT seq, chain, recorded FROM journal ORDER BY seq DESC LIMIT 1"
        ).fetchone() or (0, 0, now - 1)
        self.tail = Tail(last[0], last[1])
        self.recorded = max(now, last[2] + 1)
        self._stored = {"next_node": self._counter("next_node")}
        self._stored["next_event"] = self._counter("next_event")
        self.next_node = self._stored["next_node"]
        self._next_event = self._stored["next_event"]

    def _counter(self, name: str) -> int:
        found = self._db.execute("SELECT value FROM meta WHERE key = ?", (name,))
        return int(found.fetchone()[0])

    @property
    def connection(self) -> sqlite3.Connection:
        """The database, inside the transaction."""
        return self._db

    def finish(self) -> None:
        """Store what the transaction counted; called once, before the commit."""
        for name, value in (("next_node", self.next_node), ("next_event", self._next_event)):
            if value != self._stored[name]:
                self.set_meta(name, str(value))

    def journal(self, op: str, body: object) -> None:
        """Add a row to the journal."""
        text_of_body = json.dumps(body, separators=(",", ":"), allow_nan=False)
        seq, chain = self.tail.seq + 1, zlib.crc32(text_of_body.encode(), self.tail.chain)
        self._put("journal", [(seq, self.recorded, op, text_of_body, chain)])
        self.tail = Tail(seq, chain)

    def _put(
        self, table: str, values: Iterable[tuple[object, ...]], *, replace: bool = False
    ) -> None:
        self._db.executemany(
            rows.insert_sql(table, replace=replace), ((*row, rows.row_crc(*row)) for row in values)
        )

    def set_meta(self, key: str, value: str) -> None:
        """Store what the record says of itself under a key."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def take_nodes(self, n: int) -> range:
        """Return the next n node ids; none of them was given before, or ever will be again."""
        first, self.next_node = self.next_node, self.next_node + n
        return range(first, first + n)

    def add_episode(self, episode: Episode, *, recallable: bool = True) -> int:
        """Store a closed episode with its steps.

        Parameters
        ----------
        episode : Episode
            Its ``episode_id`` is kept if it has one.
        recallable : bool, default True
            Whether its steps may advise.

        Returns
        -------
        int
            The episode's id.
        """
        number = episode.episode_id
        if number is None:
            number = self._next("episodes", "episode_id")
        self._put(
            "episodes",
            [
                (
                    number,
                    episode.entity_id,
                    episode.namespace,
                    episode.kind,
                    episode.goal,
                    episode.task_type,
                    None if episode.reward is None else float(episode.reward),
                    json_of(episode.metadata),
                    self.recorded,
                )
            ],
        )
        self.add_events(episode.steps, episode_id=number, recallable=recallable)
        self.journal("episode", [number])
        return number

    def _next(self, table: str, key: str) -> int:
        found = self._db.execute(f"SELECT ifnull(max({key}), 0) + 1 FROM {table}")
        return int(found.fetchone()[0])

    def add_events(
        self, events: Iterable[Event], *, episode_id: int | None = None, recallable: bool = True
    ) -> list[int]:
        """Store events; those without an ``event_id`` get the next one.

        Parameters
        ----------
        events : iterable of Event
            In any order. A ``node`` is kept; without one the event is in no index.
        episode_id : int, optional
            The episode they are steps of; ``None`` keeps each event's own.
        recallable : bool, default True
            Whether they may advise.

        Returns
        -------
        list of int
            Their ids.

        Raises
        ------
        InvalidInputError
            A text that is no Unicode (a lone surrogate).
        """
        following = self._next_event
        stored, found = [], []
        for event in events:
            number = following if event.event_id is None else event.event_id
            self._next_event = following = max(following, number + 1)
            owner = event.episode_id if episode_id is None else episode_id
            stored.append(event_row(event, number, owner, recallable, self.recorded))
            found.append((number, event.text))
        try:
            self._put("events", stored)
            text.add(self._db, found)
        except UnicodeEncodeError as error:
            raise InvalidInputError(
                f"a text cannot be stored ({error}): replace lone surrogates first"
            ) from error
        self._journal_nodes([row[5] for row in stored])
        return [number for number, _ in found]

    def _journal_nodes(self, nodes: Iterable[Any]) -> None:
        runs: list[list[int]] = []
        for node in nodes:
            if node is None:
                continue
            if runs and runs[-1][1] + 1 == node:
                runs[-1][1] = node
            else:
                runs.append([node, node])
        if runs:
            self.next_node = max(self.next_node, *(last + 1 for _, last in runs))
            self.journal("insert", runs)

    def add_aliases(self, event_id: int, aliases: Iterable[tuple[str, Vector]]) -> list[int]:
        """Give an event further vectors to be found by; returns their nodes."""
        listed = list(aliases)
        nodes = list(self.take_nodes(len(listed)))
        before = text.whole(self._db, event_id)
        self._put(
            "aliases",
            (
                (node, event_id, words, bytes_of(vector), self.recorded)
                for node, (words, vector) in zip(nodes, listed, strict=True)
            ),
        )
        text.replace(self._db, event_id, before, text.whole(self._db, event_id))
        self._journal_nodes(nodes)
        return nodes

    def add_links(self, edges: Iterable[Edge]) -> None:
        """Store edges; one of the same ends and kind replaces the older one."""
        changes = []
        for e in edges:
            ends = (e.from_node, e.to_node, e.kind)
            after = (float(e.weight), e.why, e.evidence, self.recorded)
            changes.append([*ends, self._link(ends), after])
            self._put("links", [(*ends, *after)], replace=True)
        if changes:
            self.journal("link", changes)

    def remove_links(self, ends: Iterable[tuple[int, int, str]]) -> None:
        """Take edges away; those that do not exist are passed over."""
        changes = []
        for end in ends:
            before = self._link(end)
            if before is not None:
                self._db.execute(
                    "DELETE FROM links WHERE from_node = ? AND to_node = ? AND kind = ?", end
                )
                changes.append([*end, before, None])
        if changes:
            self.journal("link", changes)

    def _link(self, ends: tuple[int, int, str]) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._db.execute(
            "SELECT weight, why, evidence, recorded FROM links"
            " WHERE from_node = ? AND to_node = ? AND kind = ?",
            ends,
        ).fetchone()
        return found

    def add_decays(self, decays: Iterable[tuple[int, int, float, float]]) -> None:
        """Store decays as (episode, node, reward before, reward after), and the new rewards."""
        listed = [(game, node, float(a), float(b)) for game, node, a, b in decays]
        self._put("decays", ((*row, self.recorded) for row in listed))
        self.set_rewards((node, after) for _, node, _, after in listed)

    def clear_decays(self, nodes: Iterable[int]) -> None:
        """Forget the decays of these nodes; their rewards are set apart from this."""
        self._db.executemany("DELETE FROM decays WHERE node = ?", ((node,) for node in nodes))

    def set_rewards(self, rewards: Iterable[tuple[int, float | None]]) -> None:
        """Store new rewards as (node, reward)."""
        changes = []
        for node, reward in rewards:
            found = self._db.execute("SELECT reward FROM events WHERE node = ?", (node,))
            before = found.fetchone()
            if before is not None and before[0] != reward:
                changes.append([node, before[0], reward])
        self._db.executemany(
            "UPDATE events SET reward = ? WHERE node = ?",
            ((reward, node) for node, _, reward in changes),
        )
        self._renew("events", "node = ?", [node for node, *_ in changes])
        if changes:
            self.journal("reward", changes)

    def set_columns(self, column: str, values: Mapping[int, object]) -> None:
        """Store new values of a column of ``events``: metadata, state or recallable, by event id.

        Raises
        ------
        UnknownEventError
            No such event.
        """
        changes = []
        for event, after in values.items():
            found = self._db.execute(f"SELECT {column} FROM events WHERE event_id = ?", (event,))
            before = found.fetchone()
            if before is None:
                raise UnknownEventError(f"there is no event {event}: it was erased or never given")
            if before[0] != after:
                changes.append([event, before[0], after])
                self._db.execute(
                    f"UPDATE events SET {column} = ? WHERE event_id = ?", (after, event)
                )
        self._renew("events", "event_id = ?", [event for event, *_ in changes])
        if changes:
            self.journal(column, changes)

    def _renew(self, table: str, where: str, keys: Sequence[object]) -> None:
        self._db.executemany(rows.renew_crc_sql(table, where), ((key,) for key in keys))

    def set_usage(self, counts: Iterable[tuple[str, int, int, int]]) -> None:
        """Store counts as (context, retrieved, followed, helped), replacing older ones."""
        self._put("usage", counts, replace=True)

    def add_usage(self, counts: Mapping[str, int]) -> None:
        """Add to how often contexts were retrieved."""
        for context, more in counts.items():
            found = self._db.execute(
                "SELECT retrieved, followed, helped FROM usage WHERE context = ?", (context,)
            )
            retrieved, followed, helped = found.fetchone() or (0, 0, 0)
            self.set_usage([(context, retrieved + more, followed, helped)])

    def add_decisions(self, decisions: Iterable[Decision]) -> None:
        """Store decisions; a hit is kept as node, entity, distance, score and its factors."""
        self._put("decisions", ((*decision_row(decision), self.recorded) for decision in decisions))

    def set_state(self, name: str, value: Mapping[str, Any]) -> None:
        """Store the state of a model as JSON, replacing the older one."""
        self._put("model_state", [(name, json_of(value), self.recorded)], replace=True)
