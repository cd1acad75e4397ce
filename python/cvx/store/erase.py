"""Erasing: nothing of an event stays in any file of the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cvx.errors import NestedTransactionError, UnknownEventError
from cvx.store import rows, text
from cvx.store.cached import Index
from cvx.store.failpoints import reach
from cvx.store.learned import event_context
from cvx.store.record import Record
from cvx.store.store import Store
from cvx.store.writer import Writer

_PENDING = "erasing"


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erase did.

    Parameters
    ----------
    events : tuple of int
        Ids that are gone.
    complete : bool
        Whether the write-ahead log could be emptied. A process that was reading meanwhile keeps
        it: close it, and call ``finish`` again.
    """

    events: tuple[int, ...]
    complete: bool


def erase(store: Store[Index], events: Sequence[int]) -> Erased:
    """Erase events: row, text index, vectors, edges, counts, logged decisions, free pages.

    A decision in which an erased event was recalled loses that hit and its rendered text; those
    of the episode that an erased step belonged to are removed, and the episode with its last step.

    Raises
    ------
    UnknownEventError
        One of them does not exist; nothing is erased.
    NestedTransactionError
        Within a transaction, or a block of them: the files could not be cleaned.
    """
    if store.record.writing:
        raise NestedTransactionError(
            "erasing writes the whole store anew, which cannot be part of a transaction: end that "
            "one first"
        )
    wanted = sorted(set(events))
    if not wanted:
        return Erased((), finish(store))
    with store.record.transaction() as write:
        _forget_rows(write, wanted)
        write.set_meta(_PENDING, "1")
    reach("erase.committed")
    return Erased(tuple(wanted), finish(store))


def finish(store: Store[Index]) -> bool:
    """Clean the files after an erase, or after one that was broken off; tell if all is done."""
    if store.record.meta(_PENDING) is None:
        return True
    with store.record.locked():
        if store.snapshots is not None:
            store.snapshots.prune(0)
            store.forget_snapshots()
        reach("erase.snapshots_gone")
    done = store.record.compact()
    if done:
        with store.record.transaction() as write:
            write.connection.execute("DELETE FROM meta WHERE key = ?", (_PENDING,))
    return done


def texts_of(record: Record, events: Sequence[int]) -> list[str]:
    """Return what events and their aliases say, for caches elsewhere.

    Raises
    ------
    UnknownEventError
        One of them does not exist.
    """
    texts = []
    for event in sorted(set(events)):
        found = record.query(
            "SELECT text FROM events WHERE event_id = ?1"
            " UNION ALL SELECT text FROM aliases WHERE event_id = ?1",
            (event,),
        )
        if not found:
            raise _unknown(event)
        texts += [row[0] for row in found]
    return texts


def _unknown(event: int) -> UnknownEventError:
    return UnknownEventError(f"there is no event {event}: it was erased or never given")


def _forget_rows(write: Writer, events: Sequence[int]) -> None:
    db = write.connection
    nodes: set[int] = set()
    owners: set[int] = set()
    for event in events:
        found = db.execute("SELECT node, episode FROM events WHERE event_id = ?", (event,))
        row = found.fetchone()
        if row is None:
            raise _unknown(event)
        aliases = db.execute("SELECT node FROM aliases WHERE event_id = ?", (event,))
        nodes.update(node for (node,) in [row[:1], *aliases] if node is not None)
        owners |= set() if row[1] is None else {row[1]}
        db.execute("DELETE FROM aliases WHERE event_id = ?", (event,))
        db.execute("DELETE FROM events WHERE event_id = ?", (event,))
    for node in nodes:
        db.execute("DELETE FROM links WHERE from_node = ?1 OR to_node = ?1", (node,))
        db.execute("DELETE FROM decays WHERE node = ?", (node,))
        db.execute("DELETE FROM usage WHERE context = ?", (f'["node",{node}]',))
    for event in events:
        db.execute("DELETE FROM usage WHERE context = ?", (event_context(event),))
    for owner in owners:
        db.execute("DELETE FROM decisions WHERE episode = ?", (owner,))
        db.execute(
            "DELETE FROM episodes WHERE episode_id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM events WHERE episode = ?1)",
            (owner,),
        )
    _scrub_decisions(write, nodes)
    _scrub_journal(write, nodes, set(events), owners)
    # Contentless tables keep the words of deleted rows until they are merged away.
    text.refill(db)
    write.journal("erase", sorted(nodes))


def _scrub_decisions(write: Writer, nodes: set[int]) -> None:
    db = write.connection
    for number, hits, followed in db.execute(
        "SELECT decision_id, hits, followed FROM decisions"
    ).fetchall():
        kept = [hit for hit in json.loads(hits) if hit[0] not in nodes]
        if len(kept) == len(json.loads(hits)):
            continue
        taken = [node for node in json.loads(followed) if node not in nodes]
        db.execute(
            "UPDATE decisions SET hits = ?, followed = ?, rendered = '', record = '{}'"
            " WHERE decision_id = ?",
            (json.dumps(kept, separators=(",", ":")), json.dumps(taken), number),
        )
        db.execute(rows.renew_crc_sql("decisions", "decision_id = ?"), (number,))


def _scrub_journal(write: Writer, nodes: set[int], events: set[int], episodes: set[int]) -> None:
    contexts = {event_context(event) for event in events} | {f'["node",{n}]' for n in nodes}

    def mentions(op: str, entry: Any) -> bool:
        if op == "link":
            return entry[0] in nodes or entry[1] in nodes
        if op == "reward":
            return entry[0] in nodes
        if op == "row":
            table, key, before = entry
            return _row_mentions(table, key, before, nodes, episodes, contexts)
        return op in ("metadata", "state", "recallable") and entry[0] in events

    db = write.connection
    for seq, op, raw in db.execute("SELECT seq, op, body FROM journal").fetchall():
        body = json.loads(raw)
        kept = [entry for entry in body if not mentions(op, entry)]
        if len(kept) < len(body):
            # The chain stays: it names the history, which goes on.
            db.execute(
                "UPDATE journal SET body = ? WHERE seq = ?",
                (json.dumps(kept, separators=(",", ":")), seq),
            )
            db.execute(rows.renew_crc_sql("journal", "seq = ?"), (seq,))


def _row_mentions(
    table: str,
    key: list[Any],
    before: list[Any] | None,
    nodes: set[int],
    episodes: set[int],
    contexts: set[str],
) -> bool:
    """Whether a row that was overwritten says something of what is erased."""
    if table == "usage":
        return key[0] in contexts
    if table == "decays":
        return key[1] in nodes
    if table != "decisions" or before is None:
        return False
    row = dict(zip(rows.COLUMNS["decisions"], before, strict=True))
    return row["episode"] in episodes or any(hit[0] in nodes for hit in json.loads(row["hits"]))
