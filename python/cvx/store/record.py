"""`Record`: reads events, episodes, links, usage, decisions and model state from SQLite."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from cvx.errors import DamagedStoreError, StoreError
from cvx.store import fulltext, rows
from cvx.store.database import Database, lenient, reaches
from cvx.store.failpoints import reach
from cvx.store.lock import Tail
from cvx.store.rows import DISCARDED, OPEN, OWN_ENTITIES, episode_of, event_context, event_of
from cvx.store.transactions import Transactions
from cvx.types import UNNAMED_ENTITIES, Edge, Episode, Event, IntArray

_UNREADABLE = (ValueError, TypeError, RecursionError)
"""What reading a row raises that another program wrote: no JSON, or no floats."""
_JSON = ("cue", "hits", "action_scores", "followed", "record")

T = TypeVar("T")


class Record(Transactions):
    """Everything that was written, in the standard library's SQLite.

    Reading is done by the methods here; writing only inside ``transaction``, one writer at a time
    over all threads and processes. Every row carries a checksum, and every row read is checked.

    Parameters
    ----------
    path : str or Path, default ":memory:"
        A database file, or ":memory:" for one that lives as long as the object. The lock is the
        file LOCK beside a ``memory.db``, or the file's name with ``.lock``.
    read_only : bool, default False
        Read it without writing anything, also where nothing can be written. The database must be
        there, and of this version.
    clock : callable, optional
        Returns the time of recording in microseconds since 1970-01-01 UTC; the system's by
        default. A transaction is recorded later than the one before it, whatever the clock says.

    Attributes
    ----------
    database : Database
        The file, its lock and its connection.
    damaged : dict of str to None
        The rows that were left out because they are not what was written, in the order in which
        they were met. Reading what was asked for by name raises instead.
    refused : set of int
        The nodes whose rows the index would not take: no recall shows their events.

    sound_to : Tail or None
        The change with which every row was last looked through, and found to be what cvx writes.

    known_until : int
        The time of recording that a view of the past ends with.

    Raises
    ------
    StoreVersionError
        The file was written by a later version of cvx, or is no record at all.
    DamagedStoreError
        It has triggers, views, tables or indexes that no record has, or not those of one.
    StoreError
        The file cannot be opened.
    StoreNotFoundError
        There is nothing in it, and it is only to be read.

    Examples
    --------
    >>> from cvx.types import Episode, Event
    >>> record = Record()
    >>> with record.transaction() as write:
    ...     episode_id = write.add_episode(Episode(reward=1.0, steps=(
    ...         Event(timestamp=0, text="a door", action="open door"),)))
    >>> [episode.actions for episode in record.episodes()]
    [('open door',)]
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        clock: Callable[[], int] | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = str(path)
        self.damaged: dict[str, None] = {}
        self.refused: set[int] = set()
        self.sound_to: Tail | None = None
        self.known_until = 2**63 - 1
        super().__init__(Database(self.path, read_only=read_only), clock)
        if read_only:
            self.refuse_writes(f"{self.path} was opened to be read only: open it without read_only")

    # The file.

    def close(self) -> None:
        """Close the database. Closing it again does nothing.

        Raises
        ------
        StoreError
            This thread is writing to it, or to the same file through another object; it stays open.
        """
        with self.mutex:
            if self.writing and not self.closed:
                raise StoreError(
                    f"something is being written to {self.path}: close it after that has ended"
                )
        self.database.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.database.closed

    def copy(self) -> Record:
        """Return the whole record once more, in RAM."""
        twin = Record(clock=self._clock)
        self.database.copy_into(twin.database)
        return twin

    def as_it_is(self) -> Record:
        """Return another record of the same file, to be read only.

        It is a copy where this one is in RAM, or this thread is writing to it: nobody else sees
        what is new.
        """
        if self.path == ":memory:" or self.database.is_writer:
            return self.copy()
        return Record(self.path, clock=self._clock, read_only=True)

    def compact(self) -> bool:
        """Write the database anew, without free pages, and empty the write-ahead log.

        Views of the past that this process has of it, and copies that are some, are closed: they
        show what is gone.

        Returns
        -------
        bool
            Whether the log could be emptied; another process that is reading keeps it.
        """
        with self.locked(), self.database.typed_errors():
            db = self.writable()
            self.database.end_views()
            db.execute("VACUUM")
            reach("erase.vacuumed")
            busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            reach("erase.truncated")
            return not busy

    @property
    def mutex(self) -> threading.RLock:
        """What the thread that writes holds; may be taken again by its holder."""
        return self.database.mutex

    def locked(self) -> AbstractContextManager[None]:
        """Keep every other writer out, without a transaction; not inside one."""
        return self.database.locked()

    def version(self) -> Tail:
        """Return the end of the journal, as it was before the transaction of this thread, if any.

        Raises
        ------
        RecordIOError
            The file is read as it stands, and somebody has written to it.
        """
        self.database.check_unchanged()
        began = self._began if self.database.is_writer else None
        return began or self.tail()

    def lost_tail(self) -> Tail | None:
        """Return the end that the lock file remembers, if the record does not reach it."""
        # It is noted after the commit: what looks lost beside a writer is looked at again alone.
        if self._lost_tail() is None:
            return None
        with self.locked():
            return self._lost_tail()

    def _lost_tail(self) -> Tail | None:
        noted = self.database.noted_tail()
        if noted is None or not self.keeps_changes_after(noted.seq - 1):
            return None
        return None if self.reaches(noted) else noted

    def forget_lost_tail(self) -> None:
        """Take the record as it is for the whole of it."""
        with self.locked():
            self.database.note_tail()

    # Rows of any table.

    def reading(self) -> AbstractContextManager[None]:
        """See one state of the record in all reads of the block, whoever commits meanwhile.

        What follows the record in RAM, an index say, is this thread's alone meanwhile. Blocks may
        stand inside each other and inside a transaction, which is a state of its own; nothing may
        be written inside one.
        """
        return self.database.reading()

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, unchecked."""
        return self.database.query(sql, values)

    def checked(
        self, table: str, rest: str = "", values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """Return rows of a table with their checksums, every one as it was written.

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
            A row, named, is not what was written.
        """
        found = self._read(table, rest, values)
        for row in found:
            if not rows.whole(row):
                raise DamagedStoreError(
                    f"{self.path}: row {rows.key_of(table, row)} of {table} is not what was "
                    "written: restore a copy, or let doctor save the rest"
                )
        return found

    def whole(
        self, table: str, rest: str = "", values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """Return the rows that are as they were written, and note the others as damaged."""
        found, read = [], self._read(table, rest, values)
        for row, whole in zip(read, rows.whole_rows(read), strict=True):
            if whole:
                found.append(row)
            else:
                self.damaged[f"{table} {rows.key_of(table, row)}"] = None
        return found

    def _read(self, table: str, rest: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self.query(
            f"SELECT {', '.join(rows.stored_columns(table))} FROM {table} {rest}", values
        )

    def columns(
        self, table: str, rest: str = "", values: Sequence[object] = ()
    ) -> dict[str, Sequence[Any]]:
        """Return what ``checked`` does column by column, as it is stored."""
        names = rows.COLUMNS[table]
        found = self.checked(table, rest, values)
        columns = zip(*found, strict=True) if found else ((),) * (len(names) + 1)
        # The checksum comes last, and has done its work.
        return dict(zip(names, columns, strict=False))

    def damage(self) -> list[str]:
        """Read everything, and name each row or page that is not what was written."""
        try:
            with self.database.borrowed() as db, lenient(db):
                found = [f"{table} {list(key)}" for table, key in rows.damaged(db)]
                pages = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
        except sqlite3.DatabaseError as error:
            return [str(error)]
        return found + [page for page in pages if page != "ok"]

    # What the record says of itself.

    def meta(self, key: str) -> str | None:
        """Return what the record says of itself under a key, or None."""
        found = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def told(self, key: str, kind: type[T]) -> T:
        """Return what the record says of itself under a key, JSON of a kind; an empty one if none.

        Raises
        ------
        DamagedStoreError
            It says something else.
        """
        said = self.meta(key)
        if said is None:
            return kind()
        value = rows.parsed(said, kind)
        if value is None:
            raise DamagedStoreError(
                f"{self.path} says {said[:40]!r} of {key}, which cvx never does: restore a copy"
            )
        return value

    # The journal.

    def tail(self) -> Tail:
        """Return the end of the journal."""
        return self.database.tail()

    def reaches(self, tail: Tail) -> bool:
        """Return whether the journal once ended exactly so."""
        return self.database.ask(reaches, tail)

    def keeps_changes_after(self, seq: int) -> bool:
        """Return whether the journal still has every row after a number."""
        first = self.query("SELECT min(seq) FROM journal")[0][0]
        return first is None or int(first) <= seq + 1

    def journal(
        self,
        after: int = 0,
        op: str | None = None,
        *,
        but: Sequence[str] = (),
        recorded_after: int | None = None,
    ) -> list[tuple[int, int, str, Any]]:
        """Return what changed as (seq, recorded, op, body), in order.

        Parameters
        ----------
        after : int, default 0
            Only what has a larger number.
        op : str, optional
            Only changes of one kind.
        but : sequence of str, optional
            Kinds that are left out, unread.
        recorded_after : int, optional
            Only what was recorded later.
        """
        found = self.checked(
            "journal",
            "WHERE seq > ?1 AND (?2 IS NULL OR op = ?2) AND (?3 IS NULL OR recorded > ?3)"
            " AND op NOT IN (SELECT value FROM json_each(?4)) ORDER BY seq",
            (after, op, recorded_after, json.dumps(but)),
        )
        return [(row[0], row[1], row[2], self._body(row)) for row in found]

    def _body(self, row: tuple[Any, ...]) -> list[Any]:
        body: list[Any] | None = rows.parsed(row[3], list)
        if body is None:
            raise DamagedStoreError(
                f"{self.path}: change {row[0]} of the journal cannot be read: let doctor repair it"
            )
        return body

    # Episodes and events.

    def next_ids(self) -> tuple[int, int]:
        """Return the first free episode id, and number of an entity that nobody names.

        In a memory's store it stays clear of the numbers that stand for names in digits.
        """
        least = 0 if self.meta("embedder") is None else UNNAMED_ENTITIES
        # Namespace by namespace: the entities of each lie in order.
        row = self.query(
            "WITH RECURSIVE seen (name) AS (SELECT min(namespace) FROM events UNION ALL"
            " SELECT (SELECT min(namespace) FROM events WHERE namespace > name) FROM seen"
            " WHERE name IS NOT NULL)"
            " SELECT (SELECT ifnull(max(episode_id), -1) FROM episodes),"
            " max(?2 - 1, (SELECT ifnull(max((SELECT max(entity) FROM events"
            " WHERE namespace = name AND entity < ?1)), -1) FROM seen),"
            " (SELECT ifnull(max(entity), -1) FROM episodes WHERE entity < ?1))",
            (OWN_ENTITIES, least),
        )[0]
        return row[0] + 1, row[1] + 1

    def episodes(self, ids: Iterable[int] | None = None) -> list[Episode]:
        """Return every closed episode with its steps, or those of these ids, in order."""
        which, chosen = "IS NOT NULL", tuple[str, ...]()
        if ids is not None:
            which, chosen = rows.AMONG, (rows.listed(ids),)
        with self.database.one_state():
            steps: dict[int | None, list[Event]] = {}
            for event in self._events(f"WHERE episode {which} ORDER BY event_id", chosen):
                steps.setdefault(event.episode_id, []).append(event)
            return [
                replace(episode_of(row, steps.get(row[0], ())), reward=row[6])
                for row in self.checked(
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
        with self.database.one_state():
            found = self.checked("episodes", "WHERE episode_id = ?", (episode_id,))
            if not found or not found[0][3].startswith((OPEN, DISCARDED)):
                return None
            row = found[0]
            steps = self._events("WHERE episode = ? ORDER BY event_id", (episode_id,))
        return episode_of(row, steps)

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

    def _events(self, rest: str, values: Sequence[object] = ()) -> list[Event]:
        out = []
        for row in self.checked("events", rest, values):
            try:
                out.append(event_of(row))
            except _UNREADABLE as error:
                raise DamagedStoreError(
                    f"{self.path}: row {row[0]} of events cannot be read ({error}): let doctor "
                    "repair it"
                ) from error
        return out

    def whole_events(self, ids: Iterable[int]) -> list[Event]:
        """Return those of these events that are what was written, by id.

        Others are noted in ``damaged``: one bad row does not keep the rest of an answer back.
        """
        out: list[Event] = []
        rest = f"WHERE event_id {rows.AMONG} ORDER BY event_id"
        for row in self.whole("events", rest, (rows.listed(ids),)):
            try:
                out.append(event_of(row))
            except _UNREADABLE:
                self.damaged[f"events [{row[0]}]"] = None
        return out

    def event_of_key(self, key: str, namespace: str) -> int | None:
        """Return the event that is called so elsewhere, None if there is none."""
        found = self.query(
            "SELECT event_id FROM events WHERE namespace = ? AND key = ?", (namespace, key)
        )
        return int(found[0][0]) if found else None

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

    def quarantined_sources(self) -> frozenset[str]:
        """Return the sources of which something is in quarantine."""
        # Said twice: the index of what was put away is known by its own condition.
        found = self.query(
            "SELECT DISTINCT source FROM events WHERE state <> 'active' AND state = 'quarantined'"
        )
        return frozenset(row[0] for row in found if row[0])

    def holders(
        self, word: str, *, after: int = -1, upto: int = rows.MOST_ID, most: int
    ) -> IntArray:
        """Return the first events between two ids that hold a word, see ``cvx.store.fulltext``."""
        return self.database.ask(fulltext.holders, word, after, upto, most)

    def holding(self, word: str, events: IntArray) -> IntArray:
        """Return which of these events hold a word, ascending."""
        return self.database.ask(fulltext.holding, word, events)

    def newest_holding(
        self, words: Sequence[str], k: int, where: str, values: Sequence[object]
    ) -> list[int]:
        """Return the newest events that hold all words, see ``cvx.store.fulltext.newest``."""
        return self.database.ask(fulltext.newest, words, k, where, values)

    # Nodes of the index, and the edges that join them.

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
        return self._by_node("event_id", f"{{node}} {rows.AMONG}{state}", nodes)

    def doubted(self, nodes: Sequence[int]) -> dict[int, float]:
        """Return the trust in those of these nodes whose sources are not fully trusted."""
        return self._by_node("trust", f"{{node}} {rows.AMONG} AND trust < 1", nodes)

    def put_away(self) -> set[int]:
        """Return the nodes of all events that were archived or quarantined, aliases included."""
        # Asked for a node, too, SQLite would go through all events instead of the few.
        return {node for node in self._by_node("event_id", "state <> 'active'") if node is not None}

    def _by_node(
        self, column: str, condition: str, nodes: Sequence[int] | None = None
    ) -> dict[int, Any]:
        """Return a column of the events of nodes, for those that fulfil a condition."""
        found = self.query(
            f"SELECT node, {column} FROM events WHERE {condition.format(node='node')}"
            f" UNION ALL SELECT aliases.node, {column} FROM aliases JOIN events USING (event_id)"
            f" WHERE {condition.format(node='aliases.node')}",
            () if nodes is None else (rows.listed(nodes),),
        )
        return dict(found)

    def nodes_of_events(self, events: Sequence[int]) -> dict[int, list[int]]:
        """Return the nodes of each of these events, its own before those of its aliases."""
        out: dict[int, list[int]] = {}
        for event, node in self.query(
            f"SELECT event_id, node FROM events WHERE event_id {rows.AMONG}"
            " AND node IS NOT NULL UNION ALL SELECT event_id, node FROM aliases"
            f" WHERE event_id {rows.AMONG}",
            (rows.listed(events),),
        ):
            out.setdefault(event, []).append(node)
        return out

    def own_nodes(self, nodes: Sequence[int]) -> dict[int, int]:
        """Return, for those of these nodes that are aliases, the nodes of their events."""
        found = self.query(
            "SELECT aliases.node, events.node FROM aliases JOIN events USING (event_id)"
            f" WHERE aliases.node {rows.AMONG}",
            (rows.listed(nodes),),
        )
        return dict(found)

    def links(self) -> list[Edge]:
        """Return every edge, by its ends and kind; damaged ones are left out, and noted."""
        return [Edge(*r[:7]) for r in self.whole("links", "ORDER BY from_node, to_node, kind")]

    def links_of(self, nodes: Sequence[int], *, incoming: bool) -> list[Edge]:
        """Return the edges that end at these nodes, or start there; damaged ones are left out."""
        column = "to_node" if incoming else "from_node"
        rest = f"WHERE {column} {rows.AMONG} ORDER BY weight DESC, from_node, to_node, kind"
        return [Edge(*row[:7]) for row in self.whole("links", rest, (rows.listed(nodes),))]

    # What outcomes wrote.

    def decays(self) -> list[tuple[int, int, float, float]]:
        """Return every decay as (episode, node, reward before, reward after), oldest first."""
        return [row[:4] for row in self.checked("decays", "ORDER BY recorded, episode, node")]

    def usage(self) -> list[tuple[str, float, float, float]]:
        """Return every count as (context, retrieved, followed, helped)."""
        return [row[:4] for row in self.checked("usage", "ORDER BY context")]

    def used(self, events: Sequence[int]) -> dict[int, tuple[int, int | None]]:
        """Return how often events were retrieved, and when they were used last.

        Returns
        -------
        dict of int to (int, int or None)
            By event; those never retrieved or used are not in it. Times are in the unit of the
            events' timestamps.
        """
        contexts = {event_context(event): event for event in events}
        found = self.checked("usage", f"WHERE context {rows.AMONG}", (json.dumps(list(contexts)),))
        return {contexts[row[0]]: (row[1], row[4]) for row in found}

    def newest_decisions(self, page: int = 500) -> Iterator[dict[str, Any]]:
        """Yield decisions as ``decisions`` returns them, the last one first."""
        before = 2**63 - 1
        while True:
            found = self._decisions(
                "WHERE decision_id < ? ORDER BY decision_id DESC LIMIT ?", (before, page)
            )
            yield from found
            if len(found) < page:
                return
            before = found[-1]["decision_id"]

    def decisions(self, episode_id: int | None = None) -> list[dict[str, Any]]:
        """Return decisions as plain dictionaries, of one episode or of all.

        Returns
        -------
        list of dict
            ``decision_id``, ``episode``, ``cue``, ``hits`` (lists of node, entity, distance,
            score, factors as [name, value, weight]), ``action_scores``, ``rendered``,
            ``action``, ``followed``, ``outcome``, ``recorded``, ``record`` (what else was noted).
        """
        return self._decisions(
            "WHERE ?1 IS NULL OR episode = ?1 ORDER BY decision_id", (episode_id,)
        )

    def decision(self, decision_id: int) -> dict[str, Any] | None:
        """Return one decision as ``decisions`` does, None if it was never written."""
        found = self._decisions("WHERE decision_id = ?", (decision_id,))
        return found[0] if found else None

    def _decisions(self, rest: str, values: Sequence[object]) -> list[dict[str, Any]]:
        found = self.checked("decisions", rest, values)
        out = [dict(zip(rows.COLUMNS["decisions"], row, strict=False)) for row in found]
        for row in out:
            for name in _JSON:
                row[name] = json.loads(row[name])
        return out

    def state(self, name: str) -> Mapping[str, Any] | None:
        """Return the state of a model, or None if none was stored under that name."""
        found = self.checked("model_state", "WHERE name = ?", (name,))
        return dict(json.loads(found[0][1])) if found else None
