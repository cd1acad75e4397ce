"""The DuckDB file of a causal memory core: its rows, its tables, and the only SQL on them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.causal.judges import Judgement
from cvx.errors import (
    DamagedStoreError,
    StoreError,
)
from cvx.extras import needs
from cvx.store.files import sync
from cvx.store.transfer.duckdb_file import connect
from cvx.types import Vector

if TYPE_CHECKING:
    import duckdb

COLUMNS = (
    "event_id",
    "timestamp",
    "effect_text",
    "embedding",
    "cause_id",
    "relationship_text",
)
"""Of ``events``, in the order of the blueprint; a file may have more behind them."""


@dataclass(frozen=True, slots=True)
class CoreEvent:
    """A row of ``events``.

    Parameters
    ----------
    event_id : int
        From 1 up, in the order of writing.
    timestamp : datetime
        When it was recorded, in UTC, without a zone.
    effect_text : str
        What happened.
    embedding : ndarray of shape (dim,), float32
    cause_id : int, optional
        What led to it; ``None`` for the root of a chain.
    relationship_text : str, optional
        How; ``None`` exactly where ``cause_id`` is.
    """

    event_id: int
    timestamp: datetime
    effect_text: str
    embedding: Vector = field(repr=False, compare=False)
    cause_id: int | None = None
    relationship_text: str | None = None

    @property
    def id(self) -> int:
        """The same as ``event_id``."""
        return self.event_id

    @property
    def text(self) -> str:
        """The same as ``effect_text``."""
        return self.effect_text


def core_event(row: Sequence[Any]) -> CoreEvent:
    """Return an event from the first columns of its row."""
    event_id, timestamp, text, embedding, cause_id, relationship = row[: len(COLUMNS)]
    vector = np.asarray(embedding, dtype=np.float32)
    return CoreEvent(int(event_id), timestamp, text, vector, cause_id, relationship)


_TABLES = """
CREATE SEQUENCE IF NOT EXISTS event_ids;
CREATE TABLE IF NOT EXISTS events (
    event_id INTEGER PRIMARY KEY DEFAULT nextval('event_ids'),
    timestamp TIMESTAMP NOT NULL,
    effect_text VARCHAR NOT NULL,
    embedding FLOAT[] NOT NULL,
    cause_id INTEGER REFERENCES events (event_id),
    relationship_text VARCHAR,
    CHECK ((cause_id IS NULL) = (relationship_text IS NULL))
);
CREATE INDEX IF NOT EXISTS events_by_timestamp ON events (timestamp);
CREATE SEQUENCE IF NOT EXISTS judgement_ids;
CREATE TABLE IF NOT EXISTS judgements (
    judgement_id INTEGER PRIMARY KEY DEFAULT nextval('judgement_ids'),
    timestamp TIMESTAMP NOT NULL,
    cause_id INTEGER NOT NULL,
    effect_id INTEGER NOT NULL,
    verdict VARCHAR NOT NULL CHECK (verdict IN ('yes', 'no', 'unjudged')),
    probability DOUBLE,
    explanation VARCHAR NOT NULL
);
CREATE INDEX IF NOT EXISTS judgements_by_effect ON judgements (effect_id);
"""

_ROW = ", ".join(COLUMNS)
_MOST_SKIPPED = 10_000_000
"""A sequence can only be moved on by taking numbers from it, one after the other."""
# DuckDB refuses the second of two who make the same tables at once.
_OPENING = threading.Lock()


_IN_RAM = ":memory:"


def _make(path: Path) -> None:
    """Make the file of a core with its tables; it gets its name once it is whole on the disk."""
    half = path.with_name(f"{path.name}.{os.getpid()}.partial")
    half.unlink(missing_ok=True)
    made = connect(str(half))
    try:
        made.execute(_TABLES)
    finally:
        made.close()
    sync(half)
    # Another process may have made it meanwhile: its file stays.
    with suppress(FileExistsError):
        os.link(half, path)
    half.unlink()
    sync(path.parent)


class CoreFile:
    """Rows in and out of one DuckDB file. Rows are added, never changed.

    DuckDB refuses to update a row that another one references, so what is found out later is
    a further row: a judgement.

    Parameters
    ----------
    path : str
        The file, made if it does not exist; ":memory:" for none.

    Raises
    ------
    StoreError, DamagedStoreError
        Another process has it open; it is damaged; its ``events`` are another table; it cannot
        be opened for another reason.
    MissingExtraError
        DuckDB is not installed (extra ``duckdb``).
    """

    def __init__(self, path: str) -> None:
        with needs("duckdb"):
            import duckdb
        self.path = path
        self._errors = duckdb.Error
        self._db: duckdb.DuckDBPyConnection | None = None
        with _OPENING, self._typed():
            if path != _IN_RAM and not Path(path).exists():
                _make(Path(path))
            self._db = connect(path)
            try:
                self._check_columns()
                self.connection.execute(_TABLES)
                self._catch_up_ids()
            except BaseException:
                self.close()
                raise

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The open database.

        Raises
        ------
        StoreError
            It was closed.
        """
        if self._db is None:
            raise StoreError(f"{self.path} is closed: open it again")
        return self._db

    def close(self) -> None:
        """Close the file. Closing it again does nothing."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _check_columns(self) -> None:
        views = self.connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE view_name IN ('events', 'judgements')"
        ).fetchall()
        if views:
            raise StoreError(
                f"{self.path} has a view in the place of the table {views[0][0]}: give the file of "
                "a causal memory core"
            )
        rows = self.connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'events'"
            " ORDER BY ordinal_position"
        ).fetchall()
        names = tuple(row[0] for row in rows)
        if names and names[: len(COLUMNS)] != COLUMNS:
            raise StoreError(
                f"{self.path} has a table events of {', '.join(names)}: a causal memory core has "
                f"{', '.join(COLUMNS)}; give another file"
            )

    def _catch_up_ids(self) -> None:
        """Let the sequence go on behind ids that somebody else has written."""
        given, last = self.connection.execute(
            "SELECT ifnull((SELECT max(event_id) FROM events), 0), ifnull((SELECT last_value FROM"
            " duckdb_sequences() WHERE sequence_name = 'event_ids'), 0)"
        ).fetchall()[0]
        if given - last > _MOST_SKIPPED:
            raise StoreError(
                f"{self.path} holds event_id {given}, and at most {_MOST_SKIPPED:,} ids beyond the "
                f"{last} given are passed over: number its events from 1"
            )
        if given > last:
            self.connection.execute(
                "SELECT max(nextval('event_ids')) FROM range(?)", (given - last,)
            )

    @contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            text = " ".join(str(error).split())
            if "set lock" in text:
                raise StoreError(
                    f"{self.path} is open in another process ({text[:160]}): close it there, or "
                    "use cvx.Memory, which several processes may open"
                ) from error
            damaged = ("Corrupt", "not a valid DuckDB", "Could not read enough", "checksum")
            if any(word in text for word in damaged):
                raise DamagedStoreError(
                    f"{self.path} is damaged or no DuckDB file ({text[:160]}): restore a copy"
                ) from error
            raise StoreError(f"{self.path}: {text[:300]}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Store all of the block, or nothing of it; it is durable when the block ends."""
        with self._typed():
            self.connection.execute("BEGIN")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
        if self.path != _IN_RAM:
            # DuckDB syncs what its log holds; the log is a new file after each checkpoint.
            sync(Path(self.path).parent)

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._typed():
            return self.connection.execute(sql, values).fetchall()

    def insert(
        self,
        timestamp: datetime,
        effect_text: str,
        embedding: Vector,
        cause_id: int | None,
        relationship_text: str | None,
    ) -> int:
        """Add an event and return its id."""
        found = self._rows(
            f"INSERT INTO events ({_ROW}) VALUES (nextval('event_ids'), ?, ?, ?, ?, ?)"
            " RETURNING event_id",
            (timestamp, effect_text, embedding, cause_id, relationship_text),
        )
        return int(found[0][0])

    def insert_judgements(
        self, timestamp: datetime, effect_id: int, made: Sequence[tuple[int, Judgement]]
    ) -> None:
        """Add what was judged of an effect, as pairs of cause and judgement."""
        if made:
            marks = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(made))
            values = [
                value
                for cause_id, one in made
                for value in (
                    timestamp,
                    cause_id,
                    effect_id,
                    one.verdict,
                    one.probability,
                    one.why,
                )
            ]
            self._rows(
                "INSERT INTO judgements (timestamp, cause_id, effect_id, verdict, probability,"
                f" explanation) VALUES {marks}",
                values,
            )

    def event(self, event_id: int) -> CoreEvent | None:
        """Return an event, with the cause that was found later where it had none; or None."""
        found = self._rows(f"SELECT {_ROW} FROM events WHERE event_id = ?", (event_id,))
        return self._whole(found[0]) if found else None

    def _whole(self, row: tuple[Any, ...]) -> CoreEvent:
        event = core_event(row)
        if event.cause_id is not None:
            return event
        later = self._rows(
            "SELECT cause_id, explanation FROM judgements WHERE effect_id = ? AND verdict = 'yes'"
            " ORDER BY judgement_id DESC LIMIT 1",
            (event.event_id,),
        )
        return core_event((*row[:4], *later[0])) if later else event

    def count(self) -> int:
        """Return how many events there are."""
        return int(self._rows("SELECT count(*) FROM events")[0][0])

    def ids(self) -> list[int]:
        """Return the id of every event."""
        return [row[0] for row in self._rows("SELECT event_id FROM events")]

    def events(self, only: Sequence[int] | None = None) -> list[CoreEvent]:
        """Return events with the cause that counts for each, in the order of writing.

        Parameters
        ----------
        only : sequence of int, optional
            Their ids; by default every event.

        Raises
        ------
        StoreError
            Their vectors have different dimensions, or none.
        """
        later = {
            row[0]: row[1:]
            for row in self._rows(
                "SELECT effect_id, cause_id, explanation FROM judgements WHERE verdict = 'yes'"
                " ORDER BY judgement_id"
            )
        }
        with self._typed():
            # Vectors come as arrays this way, twenty times as fast as lists of numbers.
            found = self.connection.execute(
                f"SELECT {_ROW} FROM events"
                " WHERE ?::BIGINT[] IS NULL OR event_id IN (SELECT unnest(?::BIGINT[]))"
                " ORDER BY event_id",
                (only, only),
            ).fetchnumpy()
        vectors = list(found["embedding"])
        lengths = {len(vector) if np.ndim(vector) == 1 else 0 for vector in vectors}
        if 0 in lengths or len(lengths) > 1:
            raise StoreError(
                f"{self.path} has vectors of {sorted(lengths)} dimensions: those of one file are "
                "of one model; give another file"
            )
        columns = [found[name].tolist() for name in COLUMNS if name != "embedding"]
        rows = zip(*columns[:3], vectors, *columns[3:], strict=True)
        return [
            core_event((*row[:4], *later[row[0]]) if row[4] is None and row[0] in later else row)
            for row in rows
        ]

    def effects_of(self, causes: Sequence[int]) -> list[CoreEvent]:
        """Return the events that have one of these as their cause, in the order of writing."""
        marks = ", ".join("?" * len(causes))
        rows = self._rows(
            f"SELECT event_id FROM events WHERE cause_id IN ({marks}) UNION"
            f" SELECT effect_id FROM judgements WHERE verdict = 'yes' AND cause_id IN ({marks})"
            " ORDER BY 1",
            (*causes, *causes),
        )
        found = (self.event(row[0]) for row in rows)
        return [event for event in found if event is not None and event.cause_id in causes]

    def unjudged(self) -> list[tuple[int, int]]:
        """Return the pairs of cause and effect whose last judgement is none, oldest first."""
        return [
            (row[0], row[1])
            for row in self._rows(
                "SELECT cause_id, effect_id FROM judgements GROUP BY cause_id, effect_id"
                " HAVING arg_max(verdict, judgement_id) = 'unjudged' ORDER BY max(judgement_id)"
            )
        ]
