"""Moves a store to another embedder; broken off, the same call goes on.

New vectors collect in an embedding cache beside the record, while the store is read and written as
before. When every text has one, a single transaction puts them in the place of the old ones: until
it commits, everybody sees the old vectors, from then on the new ones.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cvx.embed import Embedder
from cvx.embed.cache import CachedEmbedder
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.store import rows, schema
from cvx.store.failpoints import reach
from cvx.store.files import refuse_foreign, regular, sync
from cvx.store.record import Record
from cvx.store.writer import Writer
from cvx.validation import storable_vector

CACHE = "reembed.sqlite"
_NEVER_FULL = 1 << 62
_TEXTS = (
    "SELECT node, text FROM events WHERE embedding IS NOT NULL AND node IS NOT NULL"
    " UNION ALL SELECT node, text FROM aliases WHERE embedding IS NOT NULL"
)
_MOST_NAMED = 5


def reembed(
    record: Record,
    embedder: Embedder,
    *,
    spec: str | None = None,
    batch: int = 256,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Give every text a vector of another embedder, then switch over in one transaction.

    Processes that have the store open with the old embedder go on until the switch, and are
    refused with `SettingsMismatchError` from then on.

    Parameters
    ----------
    record : Record
        One that no index follows.
    embedder : Embedder
        The other one. Texts are embedded as documents.
    spec : str, optional
        How to make it (``cvx.embed.registry``), for the store to remember.
    batch : int, default 256
        Texts a step; so many are embedded again at the most after a crash.
    progress : callable, optional
        Is told (vectors there, of how many).

    Returns
    -------
    int
        How many different texts were embedded in this call; 0 where the store is there already.

    Raises
    ------
    InvalidInputError
        Events with a vector of their own and no text; nothing changes.
    EmbedderError, InvalidVectorError
        The embedder's answer cannot be stored; what was made before stays.
    """
    identity = str(embedder.info()["id"])
    if record.meta("embedder") == identity:
        # Of a process that was killed once it had switched, or of a move that is given up.
        _remove_cache(record)
        return 0
    _check_texts(record)
    total = int(record.query(f"SELECT count(*) FROM ({_TEXTS})")[0][0])
    with _remembering(record, embedder) as cached:
        for done, _ in _embedded(record, cached, batch):
            reach("reembed.embedded")
            if progress is not None:
                progress(min(done, total), total)
        with record.transaction() as write:
            # Another process may have moved it meanwhile.
            if record.meta("embedder") != identity:
                for _, vectors in _embedded(record, cached, batch):
                    _put(write.connection, vectors)
                _switch(write, embedder, spec)
        reach("reembed.switched")
    return cached.misses


@contextmanager
def _remembering(record: Record, embedder: Embedder) -> Iterator[CachedEmbedder]:
    """Yield the embedder with a file of what it made, which goes once the store has moved."""
    with tempfile.TemporaryDirectory(prefix="cvx-reembed-") as scratch:
        path = Path(scratch if record.path == ":memory:" else Path(record.path).parent) / CACHE
        refuse_foreign(path)
        yield CachedEmbedder(embedder, path, max_bytes=_NEVER_FULL)
        _remove_cache(record)


def _remove_cache(record: Record) -> None:
    if record.path == ":memory:":
        return
    beside = [Path(record.path).with_name(f"{CACHE}{end}") for end in ("", ".lock", ".damaged")]
    there = [path for path in beside if regular(path)]
    for path in there:
        path.unlink(missing_ok=True)
    if there:
        sync(there[0].parent)


def _embedded(
    record: Record, embedder: CachedEmbedder, batch: int
) -> Iterator[tuple[int, list[tuple[bytes, int]]]]:
    """Yield how far it is, and the vectors of some nodes, with what was written meanwhile."""
    done, last = 0, -1
    page = f"SELECT node, text FROM ({_TEXTS}) WHERE node > ? ORDER BY node LIMIT ?"
    while todo := record.query(page, (last, batch)):
        vectors = _checked(embedder, todo, record.meta("metric"))
        # What was erased meanwhile does not wait in the cache.
        if gone := {*todo}.difference(record.query(page, (last, batch))):
            embedder.forget(text for _, text in gone)
        done, last = done + len(todo), todo[-1][0]
        yield done, [(raw, node) for (node, _), raw in zip(todo, vectors, strict=True)]


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
    embedder: Embedder, todo: Sequence[tuple[int, str]], metric: str | None
) -> list[bytes]:
    info = embedder.info()
    made = np.asarray(embedder.embed([text for _, text in todo]), dtype="<f4")
    for (node, text), row in zip(todo, made, strict=True):
        try:
            storable_vector("it", row, int(info["dim"]), str(metric))
        except InvalidVectorError as error:
            raise InvalidVectorError(
                f"{info['id']} made a vector of node {node} ({text[:40]!r}) that cannot be stored "
                f"({error}): choose another embedder, or erase the event"
            ) from error
    return [row.tobytes() for row in made]


def _put(db: sqlite3.Connection, vectors: Sequence[tuple[bytes, int]]) -> None:
    for table in ("events", "aliases"):
        db.executemany(f"UPDATE {table} SET embedding = ? WHERE node = ?", vectors)


def _forget_older_vectors(db: sqlite3.Connection) -> None:
    """Leave older versions of events without vectors: theirs are those of the other embedder."""
    for seq, raw in db.execute("SELECT seq, body FROM journal WHERE op = 'version'").fetchall():
        body = [[event, {**told, "embedding": None}, node] for event, told, node in json.loads(raw)]
        # The chain stays: it names the history, which goes on.
        changed = json.dumps(body, separators=(",", ":"))
        rows.update(db, "journal", "seq = ?", (seq,), {"body": changed})


def _switch(write: Writer, embedder: Embedder, spec: str | None) -> None:
    db, info = write.connection, embedder.info()
    for table in ("events", "aliases"):
        db.execute(rows.renew_crc_sql(table, "embedding IS NOT NULL"))
    _forget_older_vectors(db)
    # What a move by an older version left.
    schema.drop_staged(db)
    db.execute("DELETE FROM meta WHERE key IN ('reembed', 'embedder_spec')")
    write.set_meta("embedder", str(info["id"]))
    write.set_meta("dim", str(info["dim"]))
    if spec is not None:
        write.set_meta("embedder_spec", spec)
    # Every index is of the old vectors: this makes those that follow build anew.
    write.journal("erase", [])
    reach("reembed.switching")
