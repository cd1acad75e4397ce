"""Erasing: nothing of an event stays in any file of the store."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True, slots=True)
class _Gone:
    """What is erased, by everything that other rows may call it.

    Parameters
    ----------
    events, nodes, episodes, entities : set of int
        Their own ids; those of their aliases too; those that they were of.
    contexts : set of str
        In which their use was counted.
    """

    events: set[int]
    nodes: set[int]
    episodes: set[int]
    entities: set[int]
    contexts: set[str]

    def may_be_shown_with(self, hits: Sequence[Sequence[Any]]) -> bool:
        """Whether a text that shows these hits of a decision may show, too, what is gone.

        A hit is shown with what came next, which is of the same entity.
        """
        return any(hit[1] in self.entities for hit in hits)


def erase(store: Store[Index], events: Sequence[int]) -> Erased:
    """Erase events: row, text index, vectors, edges, counts, logged decisions, free pages.

    A decision in which an erased event was recalled loses that hit and its rendered text. The text
    goes too where a hit is of the same entity: what came next there was shown with it. Those of the
    episode that an erased step belonged to are removed, and the episode with its last step. Counts
    of use go that are kept under the words of an event, if no other event says them.

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
    gone = _Gone(set(events), set(), set(), set(), set())
    words: set[str] = set()
    for event in events:
        found = db.execute(
            "SELECT node, episode, entity, text, action FROM events WHERE event_id = ?", (event,)
        )
        row = found.fetchone()
        if row is None:
            raise _unknown(event)
        aliases = db.execute("SELECT node FROM aliases WHERE event_id = ?", (event,))
        gone.nodes.update(node for (node,) in [row[:1], *aliases] if node is not None)
        if row[1] is not None:
            gone.episodes.add(row[1])
        gone.entities.add(row[2])
        words.update(said for said in row[3:] if said)
        db.execute("DELETE FROM aliases WHERE event_id = ?", (event,))
        db.execute("DELETE FROM events WHERE event_id = ?", (event,))
    gone.contexts.update(event_context(event) for event in events)
    gone.contexts.update(f'["node",{node}]' for node in gone.nodes)
    gone.contexts.update(_contexts_of_words(db, words))
    for node in gone.nodes:
        db.execute("DELETE FROM links WHERE from_node = ?1 OR to_node = ?1", (node,))
        db.execute("DELETE FROM decays WHERE node = ?", (node,))
    for context in gone.contexts:
        db.execute("DELETE FROM usage WHERE context = ?", (context,))
    for owner in gone.episodes:
        db.execute("DELETE FROM decisions WHERE episode = ?", (owner,))
        db.execute(
            "DELETE FROM episodes WHERE episode_id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM events WHERE episode = ?1)",
            (owner,),
        )
    _scrub_decisions(write, gone)
    _scrub_journal(write, gone)
    # Contentless tables keep the words of deleted rows until they are merged away.
    text.refill(db)
    write.journal("erase", sorted(gone.nodes))


def _contexts_of_words(db: sqlite3.Connection, words: set[str]) -> set[str]:
    """Return the contexts of use that quote words which nothing that is left says."""
    contexts = [context for (context,) in db.execute("SELECT context FROM usage")]
    said_in = {context: "\n".join(_quoted(json.loads(context))) for context in contexts}
    everything = "\n".join(said_in.values())
    found: set[str] = set()
    for said in words:
        # Most words are in no context: the events need not be looked through for them.
        if said not in everything or _said_elsewhere(db, said):
            continue
        quoted = re.compile(rf"(?<!\w){re.escape(said)}(?!\w)")
        found.update(context for context, strings in said_in.items() if quoted.search(strings))
    return found


def _quoted(context: Any) -> Iterator[str]:
    """Yield the strings of a context but the first, which names what kind of context it is."""
    waiting = list(context[1:]) if isinstance(context, list) else [context]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list):
            waiting += part


def _said_elsewhere(db: sqlite3.Connection, said: str) -> bool:
    found = db.execute(
        "SELECT EXISTS (SELECT 1 FROM events WHERE instr(text, ?1) OR instr(action, ?1))"
        " OR EXISTS (SELECT 1 FROM episodes WHERE instr(goal, ?1) OR instr(task_type, ?1))",
        (said,),
    )
    return bool(found.fetchone()[0])


def _scrub_decisions(write: Writer, gone: _Gone) -> None:
    db = write.connection
    for number, hits, followed, rendered in db.execute(
        "SELECT decision_id, hits, followed, rendered FROM decisions"
    ).fetchall():
        listed = json.loads(hits)
        kept = [hit for hit in listed if hit[0] not in gone.nodes]
        taken = [node for node in json.loads(followed) if node not in gone.nodes]
        if len(kept) < len(listed):
            db.execute(
                "UPDATE decisions SET hits = ?, followed = ?, rendered = '', record = '{}'"
                " WHERE decision_id = ?",
                (json.dumps(kept, separators=(",", ":")), json.dumps(taken), number),
            )
        elif rendered and gone.may_be_shown_with(listed):
            db.execute("UPDATE decisions SET rendered = '' WHERE decision_id = ?", (number,))
        else:
            continue
        db.execute(rows.renew_crc_sql("decisions", "decision_id = ?"), (number,))


def _scrub_journal(write: Writer, gone: _Gone) -> None:
    def mentions(op: str, entry: Any) -> bool:
        if op == "link":
            return entry[0] in gone.nodes or entry[1] in gone.nodes
        if op == "reward":
            return entry[0] in gone.nodes
        if op == "row":
            table, key, before = entry
            return _row_mentions(table, key, before, gone)
        return op in ("metadata", "state", "recallable") and entry[0] in gone.events

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


def _row_mentions(table: str, key: list[Any], before: list[Any] | None, gone: _Gone) -> bool:
    """Whether a row that was overwritten says something of what is erased."""
    if table == "usage":
        return key[0] in gone.contexts
    if table == "decays":
        return key[1] in gone.nodes
    if table != "decisions" or before is None:
        return False
    row = dict(zip(rows.COLUMNS["decisions"], before, strict=True))
    hits = json.loads(row["hits"])
    return (
        row["episode"] in gone.episodes
        or any(hit[0] in gone.nodes for hit in hits)
        or (row["rendered"] != "" and gone.may_be_shown_with(hits))
    )
