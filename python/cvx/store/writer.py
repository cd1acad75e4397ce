"""What may be written, inside a transaction of the record and nowhere else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

from cvx.arguments import wrong
from cvx.errors import (
    DuplicateKeyError,
    EpisodeEndedError,
    InvalidInputError,
    UnknownError,
)
from cvx.store import text
from cvx.store.learned import event_context
from cvx.store.learnedwriter import LearnedWriter
from cvx.store.packing import bytes_of, event_row, json_of, packed
from cvx.store.reads import DISCARDED, OPEN, OWN_ENTITIES
from cvx.store.rows import COLUMNS
from cvx.types import Edge, Episode, Event, Vector
from cvx.validation import check_edge, check_episode, storable_text


class Writer(LearnedWriter):
    """The open end of one transaction; ``Record.transaction`` hands it out.

    It is of no use after the transaction has ended. Everything that an index must follow, or that
    a view of the past must take back, goes into the journal with it: ids and values before and
    after, never a predicate.
    """

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

        Raises
        ------
        InvalidInputError
            It has no outcome in [0, 1]: it is not closed yet.
        """
        number = episode.episode_id
        if number is None:
            number = self._next("episodes", "episode_id")
        self._put("episodes", [self._episode_row(number, episode)])
        self.add_events(episode.steps, episode_id=number, recallable=recallable)
        self.journal("episode", [number])
        return number

    def _episode_row(self, number: int, episode: Episode) -> tuple[object, ...]:
        reward = 0.0 if episode.kind.startswith((OPEN, DISCARDED)) else episode.reward
        if not isinstance(reward, Real) or not 0.0 <= float(reward) <= 1.0:
            raise wrong(
                "the episode's reward", reward, "its outcome in [0, 1] first", InvalidInputError
            )
        check_episode(episode)
        return (
            number,
            episode.entity_id,
            episode.namespace,
            episode.kind,
            episode.goal,
            episode.task_type,
            float(reward),
            json_of(episode.metadata),
            self.recorded,
        )

    def open_episode(self, episode: Episode) -> int:
        """Store an episode that begins, without steps, and return its number.

        Its steps are added with ``add_events``; they do not advise before ``close_episode``.
        """
        found = self._db.execute("SELECT ifnull(max(episode_id), -1) + 1 FROM episodes")
        number = int(found.fetchone()[0])
        begun = replace(episode, kind=f"{OPEN}{episode.kind}")
        self._put("episodes", [self._episode_row(number, begun)])
        return number

    def next_own_entity(self) -> int:
        """Return the first number of an entity that no episode has, and no user's own."""
        found = self._db.execute(
            "SELECT ifnull(max(entity), -1) + 1 FROM episodes WHERE entity < ?", (OWN_ENTITIES,)
        )
        return int(found.fetchone()[0])

    def change_open_episode(self, episode: Episode) -> None:
        """Store who holds an open episode, or that it was discarded: its steps are put away then.

        Parameters
        ----------
        episode : Episode
            As ``Record.unfinished`` returns it, with another kind or other metadata.
        """
        assert episode.episode_id is not None
        self._overwrite("episodes", [self._episode_row(episode.episode_id, episode)])
        if episode.kind.startswith(DISCARDED):
            self.set_columns("state", dict.fromkeys(_ids(episode.steps), "archived"))

    def close_episode(self, episode: Episode, *, recallable: bool = True) -> None:
        """Give an open episode its outcome: its steps advise from now on, or are of a failure.

        Parameters
        ----------
        episode : Episode
            With its outcome; its steps are stored already.
        recallable : bool, default True
            Whether its steps may advise.

        Raises
        ------
        InvalidInputError
            It has no outcome in [0, 1].
        EpisodeEndedError
            Another process ended or discarded it.
        """
        assert episode.episode_id is not None
        found = self._row("episodes", (episode.episode_id,))
        if found is None or not found[3].startswith(OPEN):
            raise EpisodeEndedError(
                f"episode {episode.episode_id} was ended or discarded by another process: begin "
                "another one"
            )
        self._overwrite("episodes", [self._episode_row(episode.episode_id, episode)])
        if recallable:
            self.set_columns("recallable", dict.fromkeys(_ids(episode.steps), 1))
        else:
            self.set_columns("kind", dict.fromkeys(_ids(episode.steps), "failed_step"))
        self.set_rewards(
            (step.node, step.reward) for step in episode.steps if step.node is not None
        )
        self.journal("episode", [episode.episode_id])

    def _next(self, table: str, key: str) -> int:
        found = self._db.execute(f"SELECT ifnull(max({key}), 0) + 1 FROM {table}")
        return int(found.fetchone()[0])

    def add_events(
        self,
        events: Iterable[Event],
        *,
        nodes: Iterable[int] | None = None,
        episode_id: int | None = None,
        recallable: bool = True,
    ) -> list[int]:
        """Store events; those without an ``event_id`` get the next one.

        Parameters
        ----------
        events : iterable of Event
            In any order.
        nodes : iterable of int, optional
            Their places in the index; by default each event's own ``node``, and an event without
            one is in no index.
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
            A field that cannot be stored, by name.
        DuplicateKeyError
            A key that another event of the namespace has.
        """
        following = self.next_event
        stored, found = [], []
        given = None if nodes is None else iter(nodes)
        for event in events:
            node = event.node if given is None else next(given)
            number = following if event.event_id is None else event.event_id
            self.next_event = following = max(following, number + 1)
            owner = event.episode_id if episode_id is None else episode_id
            row = event_row(event, (number, node, owner), recallable, self.recorded)
            stored.append(row)
            found.append((number, event.text))
        try:
            self._put("events", stored)
            text.add(self._db, found)
        except sqlite3.IntegrityError as error:
            if "events.key" not in str(error):
                raise
            raise DuplicateKeyError(
                f"{self._known_key(stored)} is the key of another event of its namespace: give "
                "one of its own, or leave it out"
            ) from error
        self._journal_nodes([row[5] for row in stored])
        return [number for number, _ in found]

    def _known_key(self, stored: Iterable[tuple[Any, ...]]) -> str:
        seen = set()
        for row in stored:
            namespace, key, number = row[6], row[20], row[0]
            found = self._db.execute(
                "SELECT 1 FROM events WHERE namespace = ? AND key = ? AND event_id <> ?",
                (namespace, key, number),
            )
            if key is not None and ((namespace, key) in seen or found.fetchone()):
                return f"{key!r} of event {number}"
            seen.add((namespace, key))
        return "a key"

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
        listed = [(storable_text("an alias", words), vector) for words, vector in aliases]
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
            check_edge(e)
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

    def change_event(self, event_id: int, changed: Mapping[str, object]) -> int:
        """Store a new version of an event, at a node of its own; the journal keeps the older one.

        Links go with it; with another text its use starts anew.

        Parameters
        ----------
        event_id : int
            The event.
        changed : mapping of str to value
            Columns of ``packing.VERSIONED`` but for ``node`` and ``recorded``, as in the table.

        Returns
        -------
        int
            The new node.

        Raises
        ------
        UnknownError
            No such event.
        """
        found = self._row("events", (event_id,))
        if found is None:
            raise UnknownError(f"there is no event {event_id}: it was erased or never given")
        before = dict(zip(COLUMNS["events"], found, strict=True))
        said = text.whole(self._db, event_id)
        (node,) = self.take_nodes(1)
        after = {**changed, "node": node, "recorded": self.recorded}
        self._db.execute(
            f"UPDATE events SET {', '.join(f'{name} = ?' for name in after)} WHERE event_id = ?",
            (*after.values(), event_id),
        )
        self._renew("events", "event_id = ?", [event_id])
        text.replace(self._db, event_id, said, text.whole(self._db, event_id))
        self.journal("version", [[event_id, packed(before), node]])
        if changed.get("text", before["text"]) != before["text"]:
            self._remove("usage", "context = ?", (event_context(event_id),))
        if before["node"] is not None:
            plain = f'["node",{before["node"]}]'
            self._remove("usage", "context = ? OR context LIKE ?", (plain, f"%,{plain}]"))
            self._move_links(before["node"], node)
            self._move_decays(before["node"], node)
        return node

    def _move_decays(self, old: int, new: int) -> None:
        found = self._db.execute(
            "SELECT episode, before, after FROM decays WHERE node = ? ORDER BY recorded, episode",
            (old,),
        ).fetchall()
        self._remove("decays", "node = ?", (old,))
        self._put("decays", ((game, new, a, b, self.recorded) for game, a, b in found))

    def _move_links(self, old: int, new: int) -> None:
        found = self._db.execute(
            "SELECT from_node, to_node, kind, weight, why, evidence FROM links"
            " WHERE from_node = ?1 OR to_node = ?1",
            (old,),
        ).fetchall()
        self.remove_links(row[:3] for row in found)
        self.add_links(
            Edge(new if a == old else a, new if b == old else b, *rest) for a, b, *rest in found
        )

    def _link(self, ends: tuple[int, int, str]) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._db.execute(
            "SELECT weight, why, evidence, recorded FROM links"
            " WHERE from_node = ? AND to_node = ? AND kind = ?",
            ends,
        ).fetchone()
        return found

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
        """Store new values of a column of events by id: metadata, state, recallable or kind.

        Raises
        ------
        UnknownError
            No such event.
        """
        changes = []
        for event, after in values.items():
            found = self._db.execute(f"SELECT {column} FROM events WHERE event_id = ?", (event,))
            before = found.fetchone()
            if before is None:
                raise UnknownError(f"there is no event {event}: it was erased or never given")
            if before[0] != after:
                changes.append([event, before[0], after])
                self._db.execute(
                    f"UPDATE events SET {column} = ? WHERE event_id = ?", (after, event)
                )
        self._renew("events", "event_id = ?", [event for event, *_ in changes])
        if changes:
            # The declaration of a kind of edge is called "kind" in the journal.
            self.journal("step_kind" if column == "kind" else column, changes)


def _ids(steps: Iterable[Event]) -> list[int]:
    return [step.event_id for step in steps if step.event_id is not None]
