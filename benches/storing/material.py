"""Events to be stored, and bare SQLite to store them in."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from cvx.types import Event, Vector

DIM, SEED, NAMESPACES, VOCABULARY, WORDS = 128, 0, 10, 30_000, 10
COLUMNS = (
    "event_id", "timestamp", "text", "embedding", "entity", "node", "namespace", "kind", "action",
    "metadata", "reward", "recallable", "episode", "tags", "recorded", "source", "trust",
    "visibility", "salience", "state", "key",
)  # fmt: skip


class Material:
    """Seeded events: words as rare as in a language, random vectors."""

    def __init__(self, seed: int = SEED) -> None:
        self.rng = np.random.default_rng(seed)
        share = 1.0 / np.arange(1, VOCABULARY + 1)
        self._share = share / share.sum()

    def text(self) -> str:
        """Return ten words by their frequency, after one that is in every text."""
        chosen = self.rng.choice(VOCABULARY, size=WORDS, p=self._share)
        return "the " + " ".join(f"word{number}" for number in chosen)

    def vectors(self, n: int) -> Vector:
        """Return n normal vectors."""
        return self.rng.normal(size=(n, DIM)).astype(np.float32)

    def events(self, n: int) -> list[Event]:
        """Return n events, spread over entities and namespaces."""
        return [
            Event(
                entity_id=at % 500,
                timestamp=at,
                text=self.text(),
                vector=vector,
                namespace=f"n{at % NAMESPACES}",
            )
            for at, vector in enumerate(self.vectors(n))
        ]


def bare(path: Path, *, words: bool) -> sqlite3.Connection:
    """Open plain SQLite as durable as the record is."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"CREATE TABLE events (event_id INTEGER PRIMARY KEY, {', '.join(COLUMNS[1:])})")
    if words:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='')")
    return db


def row(number: int, event: Event) -> tuple[object, ...]:
    """Return an event as bare SQLite stores it: every column that ours has."""
    assert event.vector is not None
    return (
        number, event.timestamp, event.text, event.vector.tobytes(), event.entity_id, number,
        event.namespace, event.kind, None, "{}", None, 1, None, "[]", 1_700_000_000_000_000, "",
        1.0, "private", None, "active", None,
    )  # fmt: skip


INSERT = f"INSERT INTO events VALUES ({', '.join('?' * len(COLUMNS))})"
