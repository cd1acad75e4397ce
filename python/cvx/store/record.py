"""The record: episodes, events, links, usage, decisions and model state in one SQLite database."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cvx.errors import (
    NestedTransactionError,
    RecordClosedError,
    RecordError,
    RecordVersionError,
)
from cvx.store.schema import SCHEMA_VERSION, TABLES
from cvx.store.writer import Writer
from cvx.types import Edge, Episode, Event


class Record:
    """Everything that was written, in the standard library's SQLite.

    Reading is done by the methods here; writing only inside ``transaction``.

    Parameters
    ----------
    path : str or Path, default ":memory:"
        A database file, or ":memory:" for one that lives as long as the object.
    clock : callable, optional
        Returns the time of recording in microseconds since 1970-01-01 UTC; the system's by
        default.

    Raises
    ------
    RecordVersionError
        The file was written by another version of cvx, or is no record at all.
    RecordError
        The file cannot be opened.

    Examples
    --------
    >>> from cvx.types import Episode, Event
    >>> record = Record()
    >>> with record.transaction() as write:
    ...     episode_id = write.add_episode(Episode(entity_id=0, reward=1.0, steps=(
    ...         Event(entity_id=0, timestamp=0, text="a door", action="open door"),)))
    >>> [episode.actions for episode in record.episodes()]
    [('open door',)]
    """

    def __init__(
        self, path: str | Path = ":memory:", *, clock: Callable[[], int] | None = None
    ) -> None:
        self.path = str(path)
        self._clock = clock or (lambda: time.time_ns() // 1000)
        self._lock = threading.RLock()
        self._writing = False
        self._closed = False
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise RecordError(
                f"{self.path} cannot be opened ({error}): give a file in an existing folder"
            ) from error
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        # Looked at before anything is written: a file of somebody else stays as it is.
        version = self._version()
        if version not in (None, str(SCHEMA_VERSION)):
            raise RecordVersionError(
                f"{self.path} has schema version {version}, this cvx reads {SCHEMA_VERSION}: "
                "open it with the cvx that wrote it"
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA foreign_keys = ON")
        if version is None:
            self._db.executescript(
                f"BEGIN IMMEDIATE; {TABLES}"
                f" INSERT INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}'); COMMIT;"
            )

    def _version(self) -> str | None:
        """The schema version of the file, None for an empty one."""
        try:
            if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return None
            found = self._db.execute("SELECT value FROM meta WHERE key = 'schema_version'")
            return str(found.fetchone()[0])
        except (sqlite3.DatabaseError, TypeError) as error:
            raise RecordVersionError(
                f"{self.path} is no record of cvx ({error}): give another file"
            ) from error

    def close(self) -> None:
        """Close the database. Closing it again does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._db.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise RecordClosedError(f"the record {self.path} is closed: open it again")
        return self._db

    @contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Open the one door for writing: all of the block is stored, or none of it.

        Yields
        ------
        Writer
            What may be written.

        Raises
        ------
        NestedTransactionError
            A transaction of this record is open already in this thread.
        RecordClosedError
            The record was closed.
        """
        with self._lock:
            db = self._connection()
            if self._writing:
                raise NestedTransactionError(
                    f"a transaction of {self.path} is open already: write inside that one"
                )
            self._writing = True
            try:
                db.execute("BEGIN IMMEDIATE")
                try:
                    yield Writer(db, self._clock())
                    db.execute("COMMIT")
                except BaseException:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                    raise
            finally:
                self._writing = False

    def _rows(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection().execute(sql, values).fetchall()

    def next_ids(self) -> tuple[int, int, int]:
        """Return the first free episode id, entity id and decision id."""
        row = self._rows(
            "SELECT (SELECT ifnull(max(episode_id), -1) FROM episodes),"
            " (SELECT ifnull(max(entity), -1) FROM events),"
            " (SELECT ifnull(max(entity), -1) FROM episodes),"
            " (SELECT ifnull(max(decision_id), -1) FROM decisions)"
        )[0]
        return row[0] + 1, max(row[1], row[2]) + 1, row[3] + 1

    def episodes(self) -> list[Episode]:
        """Return every closed episode with its steps, in the order of their ids."""
        steps: dict[int, list[Event]] = {}
        for event in self._events("WHERE episode IS NOT NULL"):
            if event.episode_id is not None:
                steps.setdefault(event.episode_id, []).append(event)
        rows = self._rows(
            "SELECT episode_id, entity, namespace, kind, goal, task_type, reward, metadata"
            " FROM episodes ORDER BY episode_id"
        )
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
            for row in rows
        ]

    def events(self) -> list[Event]:
        """Return every event, in the order of writing."""
        return self._events("")

    def _events(self, where: str) -> list[Event]:
        rows = self._rows(
            "SELECT event_id, timestamp, text, embedding, entity, node, namespace, kind, action,"
            f" metadata, reward, episode, recorded, tags FROM events {where} ORDER BY event_id"
        )
        return [
            Event(
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
                episode_id=row[11],
                recorded=row[12],
                tags=tuple(json.loads(row[13])),
            )
            for row in rows
        ]

    def not_recallable(self) -> list[int]:
        """Return the nodes of events that may not advise, ascending."""
        rows = self._rows(
            "SELECT node FROM events WHERE NOT recallable AND node IS NOT NULL ORDER BY node"
        )
        return [row[0] for row in rows]

    def links(self) -> list[Edge]:
        """Return every edge, by its ends and kind."""
        rows = self._rows(
            "SELECT from_node, to_node, kind, weight, why, evidence, recorded FROM links"
            " ORDER BY from_node, to_node, kind"
        )
        return [Edge(*row) for row in rows]

    def decays(self) -> list[tuple[int, int, float, float]]:
        """Return every decay as (episode, node, reward before, reward after), oldest first."""
        rows = self._rows(
            "SELECT episode, node, before, after FROM decays ORDER BY recorded, episode, node"
        )
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def usage(self) -> list[tuple[str, int, int, int]]:
        """Return every count as (context, retrieved, followed, helped)."""
        rows = self._rows("SELECT context, retrieved, followed, helped FROM usage ORDER BY context")
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def decisions(self, episode_id: int | None = None) -> list[dict[str, Any]]:
        """Return decisions as plain dictionaries, of one episode or of all.

        Returns
        -------
        list of dict
            ``decision_id``, ``episode``, ``cue``, ``hits`` (lists of node, entity, distance,
            score, factors as [name, value, weight]), ``action_scores``, ``rendered``,
            ``action``, ``followed``, ``outcome``, ``recorded``.
        """
        names = "decision_id episode cue hits action_scores rendered action followed outcome"
        rows = self._rows(
            f"SELECT {', '.join(names.split())}, recorded FROM decisions"
            " WHERE ?1 IS NULL OR episode = ?1 ORDER BY decision_id",
            (episode_id,),
        )
        out = [dict(zip((*names.split(), "recorded"), row, strict=True)) for row in rows]
        for row in out:
            for name in ("cue", "hits", "action_scores", "followed"):
                row[name] = json.loads(row[name])
        return out

    def state(self, name: str) -> Mapping[str, Any] | None:
        """Return the state of a model, or None if none was stored under that name."""
        rows = self._rows("SELECT value FROM model_state WHERE name = ?", (name,))
        return dict(json.loads(rows[0][0])) if rows else None
