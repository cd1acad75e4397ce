"""Moves a store to another embedder, in batches that can be interrupted and continued.

New vectors collect in a table of their own, a batch a transaction, each with a checksum, while
the store is read and written as before. When every text has one, a single transaction puts them
in the place of the old ones: until it commits, everybody sees the old vectors, from then on the
new ones.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from cvx.errors import (
    EmbedderDimensionError,
    InvalidInputError,
    InvalidVectorError,
    SettingsMismatchError,
)
from cvx.store import rows, schema
from cvx.store.failpoints import reach
from cvx.store.record import Record
from cvx.store.writer import Writer
from cvx.types import Vector

META = "reembed"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a store is to be moved.

    Parameters
    ----------
    embedder : str
        The id of the embedder.
    dim : int
        Dimension of its vectors.
    spec : str or None
        How to make it (``cvx.embed.registry``), where that is known.
    """

    embedder: str
    dim: int
    spec: str | None = None

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read it back."""
        return cls(**json.loads(text))


def checksum(node: int, raw: bytes) -> int:
    """Return the checksum of a row."""
    return zlib.crc32(raw, zlib.crc32(b"%d" % node))


def damaged_staged(db: sqlite3.Connection) -> list[int]:
    """Return the nodes whose vectors are not what was written, and those that no event has."""
    wrong = [
        node
        for node, raw, crc in db.execute("SELECT node, embedding, crc FROM staged ORDER BY node")
        if checksum(node, raw) != crc
    ]
    unknown = db.execute(
        "SELECT node FROM staged WHERE node NOT IN (SELECT node FROM events WHERE node IS NOT NULL"
        " UNION ALL SELECT node FROM aliases)"
    )
    return sorted({*wrong, *(row[0] for row in unknown)})


_TEXTS = (
    "SELECT node, text FROM events WHERE embedding IS NOT NULL AND node IS NOT NULL"
    " UNION ALL SELECT node, text FROM aliases WHERE embedding IS NOT NULL"
)
_MISSING = f"SELECT node, text FROM ({_TEXTS}) WHERE node NOT IN (SELECT node FROM staged)"
_MOST_NAMED = 5


def reembed(
    record: Record,
    target: Target,
    embed: Callable[[list[str]], Vector],
    *,
    batch: int = 256,
    restart: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Give every text a vector of another embedder, then switch over in one transaction.

    Processes that have the store open with the old embedder go on until the switch, and are
    refused with `SettingsMismatchError` from then on.

    Parameters
    ----------
    record : Record
        One that no index follows.
    target : Target
        The other embedder.
    embed : callable
        From n texts to an ndarray of shape (n, ``target.dim``), float32.
    batch : int, default 256
        Texts a transaction; so many are embedded again at the most after a crash.
    restart : bool, default False
        Give up a move to a third embedder that is under way.
    progress : callable, optional
        Is told (vectors made, of how many).

    Returns
    -------
    int
        How many vectors were made in this call; 0 where the store is there already.

    Raises
    ------
    SettingsMismatchError
        A move to another embedder is under way, and ``restart`` is False.
    InvalidInputError
        Events with a vector of their own and no text; nothing changes.
    EmbedderDimensionError, InvalidVectorError
        The embedder's answer cannot be stored; what was made before stays.
    """
    if not _begin(record, target, restart=restart):
        return 0
    total = int(record.query(f"SELECT count(*) FROM ({_TEXTS})")[0][0])
    before = total - _missing(record, target)
    made = 0
    while todo := _next_or_switch(record, target, batch):
        vectors = _checked(embed([text for _, text in todo]), todo, target, record.meta("metric"))
        with record.transaction() as write:
            if _under_way(record, target):
                _stage(write, [node for node, _ in todo], vectors)
        reach("reembed.staged")
        made += len(todo)
        if progress is not None:
            progress(before + made, total)
    reach("reembed.switched")
    return made


def _under_way(record: Record, target: Target) -> bool:
    """Whether the move still goes on: another process may have ended it, or given it up."""
    told = record.meta(META)
    if told is None:
        return False
    now = Target.from_text(told)
    if (now.embedder, now.dim) != (target.embedder, target.dim):
        raise SettingsMismatchError(
            f"the move to {target.embedder} was given up meanwhile for one to {now.embedder}"
        )
    return True


def _missing(record: Record, target: Target) -> int:
    with record.transaction() as write:
        if not _under_way(record, target):
            return 0
        return int(write.connection.execute(f"SELECT count(*) FROM ({_MISSING})").fetchone()[0])


def _next_or_switch(record: Record, target: Target, batch: int) -> list[tuple[int, str]]:
    """Return texts that have no new vector yet; where all have one, switch over and return none.

    Both under the lock: nobody can add a text in between. Another process that moves the store to
    the same place may have switched it already.
    """
    with record.transaction() as write:
        db = write.connection
        if not _under_way(record, target):
            return []
        missing = f"{_MISSING} ORDER BY node LIMIT ?"
        todo = db.execute(missing, (batch,)).fetchall()
        if not todo and _drop_damaged(write):
            todo = db.execute(missing, (batch,)).fetchall()
        if not todo:
            _switch(write, target)
    return todo


def _begin(record: Record, target: Target, *, restart: bool) -> bool:
    """Make the table, or find the one of a move that was broken off; False if all is done."""
    with record.transaction() as write:
        under_way = record.meta(META)
        if under_way is not None:
            before = Target.from_text(under_way)
            if (before.embedder, before.dim) == (target.embedder, target.dim):
                write.set_meta(META, target.to_text())
                return True
            if not restart:
                raise SettingsMismatchError(
                    f"a move to {before.embedder} is under way: go on with that, or give it up "
                    "with restart"
                )
            schema.drop_staged(write.connection)
            write.connection.execute("DELETE FROM meta WHERE key = ?", (META,))
        if record.meta("embedder") == target.embedder:
            return False
        _check_texts(record)
        schema.create_staged(write.connection)
        write.set_meta(META, target.to_text())
    return True


def _check_texts(record: Record) -> None:
    found = record.query(
        "SELECT event_id FROM events WHERE embedding IS NOT NULL AND trim(text) = ''"
    )
    if found:
        named = ", ".join(str(row[0]) for row in found[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        raise InvalidInputError(
            f"{len(found)} events have a vector and no text to embed ({named}{more}): erase them, "
            "or keep this embedder"
        )


def _checked(
    vectors: Vector, todo: Sequence[tuple[int, str]], target: Target, metric: str | None
) -> Vector:
    made = np.asarray(vectors, dtype="<f4")
    if made.shape != (len(todo), target.dim):
        raise EmbedderDimensionError(
            f"{target.embedder} made vectors of shape {made.shape} for {len(todo)} texts, "
            f"({len(todo)}, {target.dim}) was expected: choose another embedder"
        )
    for (node, text), row in zip(todo, made, strict=True):
        shown = f"{target.embedder} made of node {node} ({text[:40]!r})"
        if not np.isfinite(row).all():
            raise InvalidVectorError(f"{shown} NaN or infinity: choose another embedder")
        if metric == "cosine" and not row.any():
            raise InvalidVectorError(
                f"{shown} a vector of zeros: choose another, or erase the event"
            )
    return made


def _stage(write: Writer, nodes: Sequence[int], vectors: Vector) -> None:
    db = write.connection
    # An event may have been erased while its text was being embedded.
    there = {
        row[0]
        for row in db.execute(
            f"SELECT node FROM ({_TEXTS}) WHERE node IN (SELECT value FROM json_each(?))",
            (str(list(nodes)),),
        )
    }
    made = zip(nodes, map(np.ndarray.tobytes, vectors), strict=True)
    db.executemany(
        "INSERT OR REPLACE INTO staged VALUES (?, ?, ?)",
        ((node, raw, checksum(node, raw)) for node, raw in made if node in there),
    )


def _drop_damaged(write: Writer) -> bool:
    """Throw away vectors that are not what was written; tell whether there were any."""
    wrong = damaged_staged(write.connection)
    write.connection.executemany("DELETE FROM staged WHERE node = ?", ((node,) for node in wrong))
    return bool(wrong)


def _forget_older_vectors(db: sqlite3.Connection) -> None:
    """Leave older versions of events without vectors: theirs are those of the other embedder."""
    for seq, raw in db.execute("SELECT seq, body FROM journal WHERE op = 'version'").fetchall():
        body = [[event, {**told, "embedding": None}, node] for event, told, node in json.loads(raw)]
        # The chain stays: it names the history, which goes on.
        changed = json.dumps(body, separators=(",", ":"))
        db.execute("UPDATE journal SET body = ? WHERE seq = ?", (changed, seq))
        db.execute(rows.renew_crc_sql("journal", "seq = ?"), (seq,))


def _switch(write: Writer, target: Target) -> None:
    db = write.connection
    for table in ("events", "aliases"):
        db.execute(
            f"UPDATE {table} SET embedding = (SELECT staged.embedding FROM staged"
            f" WHERE staged.node = {table}.node) WHERE embedding IS NOT NULL AND node IS NOT NULL"
        )
        db.execute(rows.renew_crc_sql(table, "embedding IS NOT NULL"))
    _forget_older_vectors(db)
    schema.drop_staged(db)
    db.execute("DELETE FROM meta WHERE key IN (?, 'embedder_spec')", (META,))
    write.set_meta("embedder", target.embedder)
    write.set_meta("dim", str(target.dim))
    if target.spec is not None:
        write.set_meta("embedder_spec", target.spec)
    # Every index is of the old vectors: this makes those that follow build anew.
    write.journal("erase", [])
    reach("reembed.switching")
