"""`Writer`: every write to the record inside a transaction."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from numbers import Real
from typing import Any

from cvx.arguments import wrong
from cvx.errors import (
    DamagedStoreError,
    DuplicateKeyError,
    EpisodeEndedError,
    InvalidInputError,
    UnknownError,
)
from cvx.store import fulltext, rows
from cvx.store.lock import Tail
from cvx.store.rows import (
    DISCARDED,
    OPEN,
    OWN_ENTITIES,
    bytes_of,
    decision_row,
    event_context,
    event_row,
    json_of,
    packed,
    with_entity,
)
from cvx.types import UNNAMED_ENTITIES, Decision, Edge, Episode, Event, Vector
from cvx.validation import LAST_RECORDED, check_edge, check_episode, storable_text

_COUNTERS = ("next_node", "next_event", "next_decision")
_AT_ONCE = 1_000
"""Rows of so many are in memory with their checksums before they are stored."""


def _counter(name: str, told: object) -> int:
    if (
        not isinstance(told, str)
        or not re.fullmatch("[0-9]{1,16}", told)
        or int(told) > rows.MOST_ID
    ):
        raise DamagedStoreError(
            f"the record says {str(told)[:20]} of {name}, from which no id can be given: "
            "save what is sound with `cvx doctor --repair NEW_FOLDER`"
        )
    return int(str(told))


class Writer:
    """The open end of one transaction; ``Record.transaction`` hands it out.

    It is of no use after the transaction has ended. Everything that an index must follow, or that
    a view of the past must take back, goes into the journal with it: ids and values before and
    after, never a predicate. Rows that are replaced leave what they were there, too.

    Attributes
    ----------
    connection : sqlite3.Connection
        The database, inside the transaction.
    recorded : int
        The time of recording of everything in the transaction.
    tail : Tail
        The end of the journal so far.
    next_node, next_event, next_decision : int
        The first ids that were never given.
    """

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self.connection = connection
        *tail, last = connection.execute(
            "SELECT seq, chain, recorded FROM journal ORDER BY seq DESC LIMIT 1"
        ).fetchone() or (0, 0, now - 1)
        if not all(type(number) is int for number in tail):
            raise DamagedStoreError(
                f"the journal ends with {tail}, which is no change: save what is sound with "
                "`cvx doctor --repair NEW_FOLDER`"
            )
        if type(last) is not int or last >= LAST_RECORDED:
            # A time that nobody wrote here: what follows it goes on from the last that was.
            sound = "SELECT ifnull(max(recorded), 0) FROM journal WHERE recorded < ?"
            last = connection.execute(sound, (LAST_RECORDED,)).fetchone()[0]
        self.tail = Tail(*tail)
        self.recorded = max(now, last + 1)
        found = dict(
            connection.execute("SELECT key, value FROM meta WHERE key IN (?, ?, ?)", _COUNTERS)
        )
        self._stored = {name: _counter(name, found.get(name)) for name in _COUNTERS}
        self.next_node = self._stored["next_node"]
        self.next_event = self._stored["next_event"]
        self.next_decision = self._stored["next_decision"]

    def finish(self) -> None:
        """Store what the transaction counted; called once, before the commit."""
        for name, stored in self._stored.items():
            value = getattr(self, name)
            if value != stored:
                self.set_meta(name, str(value))

    def erased_after(self, seq: int) -> bool:
        """Return whether something may have been erased after a number of the journal."""
        found = self.connection.execute(
            "SELECT EXISTS (SELECT 1 FROM journal WHERE seq > ?1 AND op = 'erase')"
            " OR (SELECT min(seq) FROM journal) > ?1 + 1",
            (seq,),
        )
        return bool(found.fetchone()[0])

    def journal(self, op: str, body: object) -> None:
        """Add a row to the journal."""
        text_of_body = json.dumps(body, separators=(",", ":"), allow_nan=False)
        seq, chain = self.tail.seq + 1, zlib.crc32(text_of_body.encode(), self.tail.chain)
        self.put("journal", [(seq, self.recorded, op, text_of_body, chain)])
        self.tail = Tail(seq, chain)

    def set_meta(self, key: str, value: str) -> None:
        """Store what the record says of itself under a key."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def take_nodes(self, n: int) -> range:
        """Return the next n node ids; none of them was given before, or ever will be again."""
        first, self.next_node = self.next_node, self.next_node + n
        return range(first, first + n)

    def take_decisions(self, n: int) -> range:
        """Return the next n decision ids; none of them was given before, or ever will be again."""
        first, self.next_decision = self.next_decision, self.next_decision + n
        return range(first, first + n)

    # Episodes, events and links.

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
            number = max(1, self.next_episode())
        self.put("episodes", [self._episode_row(number, episode)])
        self.add_events(episode.steps, episode_id=number, recallable=recallable)
        self.journal("episode", [number])
        return number

    def _episode_row(self, number: int, episode: Episode) -> tuple[object, ...]:
        reward = 0.0 if episode.kind.startswith((OPEN, DISCARDED)) else episode.reward
        if not isinstance(reward, Real) or not 0.0 <= reward <= 1.0:
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
            json_of(with_entity(episode)),
            self.recorded,
        )

    def open_episode(self, episode: Episode) -> int:
        """Store an episode that begins, without steps, and return its number.

        Its steps are added with ``add_events``; they do not advise before ``close_episode``.
        """
        number = self.next_episode()
        begun = replace(episode, kind=f"{OPEN}{episode.kind}")
        self.put("episodes", [self._episode_row(number, begun)])
        return number

    def next_own_entity(self) -> int:
        """Return the first number of an entity that no episode has, and no user's own."""
        found = self.connection.execute(
            "SELECT ifnull(max(entity), -1) + 1 FROM episodes WHERE entity < ?", (OWN_ENTITIES,)
        )
        return max(int(found.fetchone()[0]), UNNAMED_ENTITIES)

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
        found = self._rows("episodes", [episode.episode_id]).get(episode.episode_id)
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

    def next_episode(self) -> int:
        """Return the first number of an episode that is beyond all others."""
        found = self.connection.execute("SELECT ifnull(max(episode_id), -1) + 1 FROM episodes")
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
            self.put("events", stored)
            fulltext.add(self.connection, found)
        except sqlite3.IntegrityError as error:
            if "events.key" not in str(error):
                raise
            raise DuplicateKeyError(
                f"{self._known_key(stored)} is the key of another event of its namespace: give "
                "one of its own, or leave it out"
            ) from error
        self.journal_nodes([row[5] for row in stored])
        return [number for number, _ in found]

    def _known_key(self, stored: Iterable[tuple[Any, ...]]) -> str:
        seen = set()
        for row in stored:
            namespace, key, number = row[6], row[20], row[0]
            found = self.connection.execute(
                "SELECT 1 FROM events WHERE namespace = ? AND key = ? AND event_id <> ?",
                (namespace, key, number),
            )
            if key is not None and ((namespace, key) in seen or found.fetchone()):
                return f"{key!r} of event {number}"
            seen.add((namespace, key))
        return "a key"

    def journal_nodes(self, nodes: Iterable[Any]) -> None:
        """Tell those that follow of new nodes, ascending."""
        runs: list[list[int]] = []
        for node in (one for one in nodes if one is not None):
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
        before = fulltext.whole(self.connection, event_id)
        self.put(
            "aliases",
            (
                (node, event_id, words, bytes_of(vector), self.recorded)
                for node, (words, vector) in zip(nodes, listed, strict=True)
            ),
        )
        fulltext.replace(
            self.connection, event_id, before, fulltext.whole(self.connection, event_id)
        )
        self.journal_nodes(nodes)
        return nodes

    def add_kinds(self, names: Iterable[str]) -> None:
        """Note kinds of edges that are the user's own; those that are known are passed over."""
        found = self.connection.execute(
            "SELECT value FROM meta WHERE key = 'edge_kinds'"
        ).fetchone()
        known = json.loads(found[0]) if found else []
        if new := [name for name in dict.fromkeys(names) if name not in known]:
            self.set_meta("edge_kinds", json.dumps([*known, *new]))
            self.journal("kind", new)

    def add_links(self, edges: Iterable[Edge]) -> None:
        """Store edges; one of the same ends and kind replaces the older one."""
        new = {}
        for e in edges:
            check_edge(e)
            ends = e.from_node, e.to_node, e.kind
            new[ends] = float(e.weight), e.why, e.evidence, self.recorded
        changes = [[*ends, self._link(ends), after] for ends, after in new.items()]
        self.put("links", ((*ends, *after) for ends, after in new.items()), replace=True)
        if changes:
            self.journal("link", changes)

    def remove_links(self, ends: Iterable[tuple[int, int, str]]) -> None:
        """Take edges away; those that do not exist are passed over."""
        changes = []
        for end in ends:
            before = self._link(end)
            if before is not None:
                self.connection.execute(
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
        found = self._rows("events", [event_id]).get(event_id)
        if found is None:
            raise UnknownError(f"there is no event {event_id}: it was erased or never given")
        before = dict(zip(rows.COLUMNS["events"], found, strict=True))
        said = fulltext.whole(self.connection, event_id)
        (node,) = self.take_nodes(1)
        after = {**changed, "node": node, "recorded": self.recorded}
        rows.update(self.connection, "events", "event_id = ?", (event_id,), after)
        fulltext.replace(self.connection, event_id, said, fulltext.whole(self.connection, event_id))
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
        found = self.connection.execute(
            "SELECT episode, before, after FROM decays WHERE node = ? ORDER BY recorded, episode",
            (old,),
        ).fetchall()
        self._remove("decays", "node = ?", (old,))
        self.put("decays", ((game, new, a, b, self.recorded) for game, a, b in found))

    def _move_links(self, old: int, new: int) -> None:
        found = self.connection.execute(
            "SELECT from_node, to_node, kind, weight, why, evidence FROM links"
            " WHERE from_node = ?1 OR to_node = ?1",
            (old,),
        ).fetchall()
        self.remove_links(row[:3] for row in found)
        self.add_links(
            Edge(new if a == old else a, new if b == old else b, *rest) for a, b, *rest in found
        )

    def _link(self, ends: tuple[int, int, str]) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self.connection.execute(
            "SELECT weight, why, evidence, recorded FROM links"
            " WHERE from_node = ? AND to_node = ? AND kind = ?",
            ends,
        ).fetchone()
        return found

    def set_rewards(self, rewards: Iterable[tuple[int, float | None]]) -> None:
        """Store new rewards as (node, reward); nodes that no event has are passed over."""
        self._change("reward", "node", rewards)

    def set_columns(self, column: str, values: Mapping[int, object]) -> None:
        """Store new values of a column of events by id: metadata, state, recallable or kind.

        Raises
        ------
        UnknownError
            No such event.
        """
        self._change(column, "event_id", values.items())

    def _change(self, column: str, key: str, values: Iterable[tuple[int, object]]) -> None:
        new = dict(values)
        found = self.connection.execute(
            f"SELECT {key}, {column} FROM events WHERE {key} {rows.AMONG}", (rows.listed(new),)
        )
        known = dict(found.fetchall())
        missing = [one for one in new if one not in known]
        if missing and key == "event_id":
            raise UnknownError(f"there is no event {missing[0]}: it was erased or never given")
        changes = [
            [one, known[one], after]
            for one, after in new.items()
            if one in known and known[one] != after
        ]
        self.connection.executemany(
            f"UPDATE events SET {column} = ? WHERE {key} = ?",
            ((after, one) for one, _, after in changes),
        )
        self.connection.executemany(
            rows.renew_crc_sql("events", f"{key} = ?"), ((one,) for one, *_ in changes)
        )
        if changes:
            # The declaration of a kind of edge is called "kind" in the journal.
            self.journal("step_kind" if column == "kind" else column, changes)

    # What outcomes write.

    def add_decays(self, decays: Iterable[tuple[int, int, float, float]]) -> None:
        """Store decays as (episode, node, reward before, reward after), and the new rewards."""
        listed = [(game, node, float(a), float(b)) for game, node, a, b in decays]
        self.put("decays", ((*row, self.recorded) for row in listed))
        self.set_rewards((node, after) for _, node, _, after in listed)

    def clear_decays(self, nodes: Iterable[int]) -> None:
        """Forget the decays of these nodes; their rewards are set apart from this."""
        for node in nodes:
            self._remove("decays", "node = ?", (node,))

    def undo_decays(self, events: Sequence[int]) -> None:
        """Take back what failed episodes cost that have these events as steps.

        What decayed in other episodes too keeps its share of that. A reward that was set since
        stays what it is.
        """
        chosen = f"(SELECT episode FROM events WHERE event_id {rows.AMONG})"
        found = self.connection.execute(
            f"SELECT DISTINCT node FROM decays WHERE episode IN {chosen}", (rows.listed(events),)
        ).fetchall()
        for (node,) in found:
            lost = self.connection.execute(
                f"SELECT episode, before, after, episode IN {chosen} FROM decays WHERE node = ?2"
                " ORDER BY recorded, episode",
                (rows.listed(events), node),
            ).fetchall()
            reward = self.connection.execute(
                "SELECT reward FROM events WHERE node = ?", (node,)
            ).fetchone()
            untouched = reward is not None and reward[0] == lost[-1][2]
            value, kept = lost[0][1], []
            for episode, before, after, undone in lost:
                if not undone:
                    kept.append((episode, node, value, value * after / before if before else 0.0))
                    value = kept[-1][3]
            self._remove("decays", "node = ?", (node,))
            self.put("decays", ((*row, self.recorded) for row in kept))
            if untouched:
                self.set_rewards([(node, value)])

    def set_usage(self, counts: Iterable[tuple[str, float, float, float]]) -> None:
        """Store counts as (context, retrieved, followed, helped), replacing older ones.

        Whole numbers are given as integers: the table turns them into such.
        """
        new = {context: counted for context, *counted in counts}
        self._set_counts(new, lambda context, *old: (*new[context], old[-1]))

    def add_usage(self, counts: Mapping[str, int], used: Mapping[int, int] | None = None) -> None:
        """Add to how often contexts were retrieved, and note when events were used last.

        Parameters
        ----------
        counts : mapping of str to int
            By context, how often more.
        used : mapping of int to int, optional
            By event, when it was used, in the unit of its timestamp; the later time stays.
        """
        times = {event_context(event): time for event, time in (used or {}).items()}

        def added(context: str, retrieved: int, *rest: Any) -> tuple[Any, ...]:
            *use, last = rest
            time = times.get(context, last)
            return (
                retrieved + counts.get(context, 0),
                *use,
                time if last is None else max(time, last),
            )

        self._set_counts({**counts, **times}, added)

    def touch(self, events: Mapping[int, int]) -> None:
        """Note when events were used last, in the unit of their timestamps; the later one stays."""
        self.add_usage({}, events)

    def count_use(self, contexts: Mapping[str, bool], *, by: int = 1) -> None:
        """Add one to how often contexts were followed, and to helped where that is true.

        ``by=-1`` takes it back.
        """
        self._set_counts(
            contexts,
            lambda at, n, f, h, last: (n, max(0, f + by), max(0, h + by * contexts[at]), last),
        )

    def _set_counts(self, contexts: Iterable[str], after: Callable[..., tuple[Any, ...]]) -> None:
        """Set counts and last use of contexts to what follows from those that they have."""
        listed, new = list(contexts), []
        known = self._rows("usage", listed)
        for context in listed:
            *counts, last = after(*known.get(context, (context, 0, 0, 0, None)))
            # A file from elsewhere may have counted to the end.
            new.append((context, *(min(count, rows.MOST_ID) for count in counts), last))
        self._overwrite("usage", new, known)

    def add_decisions(
        self, decisions: Iterable[tuple[Decision, Mapping[str, Any]]], *, replace: bool = False
    ) -> None:
        """Store decisions, each with what else is to be noted of it.

        A hit is kept as node, entity, distance, score and its factors.

        Parameters
        ----------
        decisions : iterable of (Decision, mapping)
        replace : bool, default False
            Whether some of them may be known, and are replaced.
        """
        listed = [decision_row(decision, self.recorded, record) for decision, record in decisions]
        (self._overwrite if replace else self.put)("decisions", listed)
        self.next_decision = max(self.next_decision, *(int(row[0]) + 1 for row in listed), 0)

    def take_feedback(
        self,
        decision_id: int,
        record: Mapping[str, Any],
        *,
        action: str | None,
        outcome: float | None,
        followed: Sequence[int],
    ) -> None:
        """Note what became of a decision that is stored already.

        Parameters
        ----------
        decision_id : int
            Its number.
        record : mapping
            Replaces what was noted of it.
        action, outcome
            As for ``Decision``.
        followed : sequence of int
            Nodes.
        """
        old = self._rows("decisions", [decision_id]).get(decision_id)
        if old is None:
            raise UnknownError(f"there is no decision {decision_id}: write it first")
        row = dict(zip(rows.COLUMNS["decisions"], old, strict=True))
        row["followed"], row["record"] = json.dumps(list(followed)), json_of(record)
        row["action"], row["outcome"] = action, outcome
        self._overwrite("decisions", [tuple(row.values())])

    def set_state(self, name: str, value: Mapping[str, Any]) -> None:
        """Store the state of a model as JSON, replacing the older one."""
        self._overwrite("model_state", [(name, json_of(value), self.recorded)])

    # Rows with their checksums.

    def put(
        self, table: str, values: Iterable[tuple[object, ...]], *, replace: bool = False
    ) -> None:
        """Store rows with their checksums."""
        waiting, sql = iter(values), rows.insert_sql(table, replace=replace)
        while some := list(islice(waiting, _AT_ONCE)):
            sums = rows.row_crcs(some)
            self.connection.executemany(
                sql, [(*row, crc) for row, crc in zip(some, sums, strict=True)]
            )

    def _overwrite(
        self,
        table: str,
        values: Iterable[tuple[object, ...]],
        known: Mapping[Any, tuple[Any, ...]] | None = None,
    ) -> None:
        """Put rows in the place of those with their keys, and what was there into the journal."""
        (key,), listed = rows.KEYS[table], list(values)
        at = rows.COLUMNS[table].index(key)
        known = self._rows(table, [row[at] for row in listed]) if known is None else known
        changes = [[table, [row[at]], known.get(row[at])] for row in listed]
        self.put(table, listed, replace=True)
        if changes:
            self.journal("row", changes)

    def _remove(self, table: str, where: str, values: Sequence[object]) -> None:
        """Take rows away, and put what was there into the journal."""
        names, keys = rows.COLUMNS[table], rows.KEYS[table]
        found = self.connection.execute(
            f"SELECT {', '.join(names)} FROM {table} WHERE {where}", values
        )
        changes = [[table, [row[names.index(name)] for name in keys], row] for row in found]
        self.connection.execute(f"DELETE FROM {table} WHERE {where}", values)
        if changes:
            self.journal("row", changes)

    def _rows(self, table: str, keys: Iterable[object]) -> dict[Any, tuple[Any, ...]]:
        """Return rows of a table that has one key, by it."""
        names, (key,) = rows.COLUMNS[table], rows.KEYS[table]
        found = self.connection.execute(
            f"SELECT {', '.join(names)} FROM {table} WHERE {key} {rows.AMONG}",
            (json.dumps([*keys]),),
        )
        return {row[names.index(key)]: row for row in found}


def _ids(steps: Iterable[Event]) -> list[int]:
    return [step.event_id for step in steps if step.event_id is not None]
