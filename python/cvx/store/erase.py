"""Erases events for good: rows, vectors, counts, logged cues, quotations in other texts."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from cvx.errors import StoreError, UnknownError
from cvx.store import fulltext, rows
from cvx.store.failpoints import reach
from cvx.store.files import (
    HALF_COPIES,
    HALF_LEARNED_STATE,
    HALF_SNAPSHOT,
    LEARNED_STATE,
    LOST_SNAPSHOT,
    SNAPSHOT,
    in_index,
    named_like,
)
from cvx.store.fulltext import UNSPACED
from cvx.store.record import Record
from cvx.store.rows import event_context, whose_use
from cvx.store.schema import version_of
from cvx.store.store import Store
from cvx.store.writer import Writer
from cvx.types import Cue

_TOKEN = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")
_RUN = 4
"""So many words that follow each other are a quotation; a single one only if it can stand alone."""
_SHORTEST = 3
_PART = range(4, 33)
"""A word of so many characters, and no number, is found within a longer one, too."""


class Quotations:
    """Words and four-word phrases of erased texts, without those that also occur elsewhere.

    A word of fewer than three letters, unless it holds a digit, is none by itself; a text of two or
    three words counts as a whole. Scripts without spaces are read by pairs of characters. Case and
    punctuation do not count.

    Parameters
    ----------
    texts : iterable of str
        What is to be erased.

    Examples
    --------
    >>> found = Quotations(["the code of the safe is 4711"])
    >>> found.drop_said_in(["is the code of the door new?", "a safe"])
    >>> [found.quoted_by(said) for said in ("Is it 4711?", "the code", "of the safe is")]
    [True, False, True]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        found: set[str] = set()
        for text in texts:
            tokens = _tokens(text)
            found.update(run for run in _runs(tokens, set(tokens)) if _stands_alone(run))
            if 1 < len(tokens) < _RUN and len(" ".join(tokens)) > _SHORTEST + 1:
                found.add(" ".join(tokens))
        self._keep(found)

    def _keep(self, runs: set[str]) -> None:
        self._runs = runs
        # What may begin a run: most words of most texts need no further look.
        self._heads = {run.partition(" ")[0] for run in runs}
        words = (run for run in runs if " " not in run and not run.isdecimal())
        self._sizes = {len(word) for word in words if len(word) in _PART}

    def __bool__(self) -> bool:
        return bool(self._runs)

    def quoted_by(self, text: str) -> bool:
        """Return whether a text says any of it."""
        return bool(self._runs) and next(self._in(text), None) is not None

    def keep_said_in(self, texts: Iterable[str]) -> None:
        """Forget what none of these texts says."""
        self._keep({run for text in texts for run in self._in(text)})

    def drop_said_in(self, texts: Iterable[str]) -> None:
        """Forget what one of these texts, which are not erased, says as well."""
        left = set(self._runs)
        for text in texts:
            if not left:
                break
            left.difference_update(_runs(_tokens(text), self._heads))
        self._keep(left)

    def _in(self, text: str) -> Iterator[str]:
        tokens = _tokens(text)
        yield from (run for run in _runs(tokens, self._heads) if run in self._runs)
        for token in set(tokens):
            for size in self._sizes:
                parts = (token[at : at + size] for at in range(len(token) - size + 1))
                yield from (part for part in parts if part in self._runs and not part.isdecimal())


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _runs(tokens: list[str], heads: Container[str]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        if token in heads:
            for size in range(1, min(_RUN, len(tokens) - at) + 1):
                yield " ".join(tokens[at : at + size])


def _stands_alone(run: str) -> bool:
    words = run.split(" ")
    if len(words) == 1:
        return len(run) >= _SHORTEST or (len(run) > 1 and any(map(str.isdigit, run)))
    return len(words) == _RUN or all(len(word) == 1 and _UNSPACED.match(word) for word in words)


_UNSPACED = re.compile(f"[{UNSPACED}]")


def strings_of(value: Any, *, numbers: bool = False) -> Iterator[str]:
    """Yield every string of a value, keys and JSON within JSON included; with numbers, if asked.

    Examples
    --------
    >>> sorted(strings_of({"a": [1, "b"], "c": '{"d": 2.5}'}, numbers=True))
    ['1', '2.5', 'a', 'b', 'c', 'd', '{"d": 2.5}']
    """
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
            if part[:1] in ("{", "["):
                waiting.append(rows.parsed(part, object))
        elif isinstance(part, dict):
            for key, inner in part.items():
                waiting += (inner, key)
        elif isinstance(part, list | tuple):
            waiting += part
        elif numbers and isinstance(part, int | float) and not isinstance(part, bool):
            yield str(part)


_PENDING = "erasing"
_TEXTLESS = re.compile(r"weights(:.*)?|recall|unjudged_causes", re.DOTALL)
"""States of models that hold numbers, and names of ours beside them."""
_FEEDBACK = "recall:"
"""So begin the names of states of feedback: numbers, and the words of questions."""
_EVENT = (
    "event_id", "node", "episode", "entity", "text", "action", "key", "source", "tags", "metadata",
)  # fmt: skip
_SAYING = _EVENT[4:]
_SAID_BEFORE = ("text", "action", "tags", "metadata")
_GOAL = "goal, task_type, metadata"
_DECISION = rows.COLUMNS["decisions"]
_AT_ONCE = 1_000

Query: TypeAlias = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]


class Erased(list[int]):
    """The ids that an erase removed.

    Parameters
    ----------
    events : iterable of int
        Their ids.
    complete : bool
        Whether the write-ahead log could be emptied and every file be removed. A process that
        was reading meanwhile keeps the log: close it, and call ``finish`` again.
    """

    def __init__(self, events: Iterable[int], complete: bool) -> None:
        super().__init__(events)
        self.complete = complete

    def __repr__(self) -> str:
        return f"Erased({[*self]}, complete={self.complete})"


@dataclass(frozen=True, slots=True)
class _Gone:
    """What is erased, by everything that other rows may call it.

    Parameters
    ----------
    events, nodes, episodes, entities : set of int
        Their own ids; those of their aliases too; those that they were of.
    contexts : set of str
        In which their use was counted.
    texts : list of str
        What was embedded of them.
    quotations : Quotations
        What they say and nothing that is left does.
    """

    events: set[int]
    nodes: set[int] = field(default_factory=set)
    episodes: set[int] = field(default_factory=set)
    entities: set[int] = field(default_factory=set)
    contexts: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    quotations: Quotations = field(default_factory=lambda: Quotations(()))

    def quoted_in(self, *values: Any) -> bool:
        """Whether a string anywhere in these values says some of it."""
        return any(map(self.quotations.quoted_by, strings_of(values)))

    def counted(self, context: str) -> bool:
        """Whether a context of use is theirs, or quotes them."""
        thing, *_ = whose_use(json.loads(context))
        return _json(thing) in self.contexts or any(
            map(self.quotations.quoted_by, _said_in(context))
        )


def erase(store: Store, events: Sequence[int]) -> Erased:
    """Erase events: row, text index, vectors, edges, counts, logged decisions, free pages.

    A decision in which an erased event was recalled loses that hit, its rendered text and the
    words of its cue. The text goes too where a hit is of the same entity: what came next there was
    shown with it. Those of the episode that an erased step belonged to are removed, and the episode
    with its last step. Whatever else was logged or learned (cues, rendered texts, actions said in
    feedback, reasons of links, counts of use, states of models)
    loses what quotes an erased event: a word of it, or four in a row, that no event and no episode
    that is left says. Other events that say the same stay.

    Raises
    ------
    UnknownError
        One of them does not exist; nothing is erased.
    StoreError
        Within a transaction, or a block of them: the files could not be cleaned.
    DamagedStoreError
        The database holds tables or triggers that are none of a record, and may hold copies.
    """
    check_erasable(store.record, events)
    wanted = sorted(set(events))
    if not wanted:
        return Erased((), finish(store))
    with store.record.transaction() as write:
        version_of(write.connection, store.record.path)
        _forget_rows(store.record, write, _gone(store.record.query, wanted))
        write.set_meta(_PENDING, "1")
    reach("erase.committed")
    return Erased(wanted, finish(store))


def check_erasable(record: Record, events: Sequence[int]) -> None:
    """Refuse what ``erase`` would, before anything is written.

    Raises
    ------
    UnknownError, StoreError
        As for ``erase``.
    """
    # While another thread writes, this one waits for it.
    if record.writing and record.database.is_writer:
        raise StoreError(
            "erasing writes the whole store anew, which cannot be part of a transaction: end that "
            "one first"
        )
    for event in events:
        _row_of(record.query, event)


def finish(store: Store) -> bool:
    """Clean the files after an erase, or after one that was broken off; tell if all is done."""
    if store.record.meta(_PENDING) is None:
        return True
    with store.record.locked():
        if store.snapshots is not None:
            store.snapshots.prune(0)
            store.forget_snapshots()
        removed = store.folder is None or _remove_copies(store.folder)
        reach("erase.snapshots_gone")
    done = store.record.compact() and removed
    if done:
        with store.record.transaction() as write:
            write.connection.execute("DELETE FROM meta WHERE key = ?", (_PENDING,))
    return done


def _remove_copies(folder: Path) -> bool:
    """Remove what exports, imports and snapshots left aside; tell whether no copy is there.

    Nobody can say which events are in such a file.
    """
    kinds = SNAPSHOT, HALF_SNAPSHOT, LOST_SNAPSHOT, LEARNED_STATE, HALF_LEARNED_STATE
    copies = named_like(folder, *HALF_COPIES) + in_index(folder, *kinds)
    for path in copies:
        with suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    return not any(map(os.path.lexists, copies))


def told_of(record: Record, events: Sequence[int]) -> tuple[list[str], list[Cue]]:
    """Return the texts of events and the logged cues that quote them, to clean caches.

    Raises
    ------
    UnknownError
        One of them does not exist.
    """
    with record.reading():
        gone = _gone(record.query, sorted(set(events)))
        cues = []
        for row in record.query(f"SELECT {', '.join(_DECISION)} FROM decisions", ()):
            decision = dict(zip(_DECISION, row, strict=True))
            if "cue" in _changed(decision, gone):
                asked = json.loads(decision["cue"])
                cues.append(
                    Cue(
                        asked["text"],
                        goal=asked["goal"],
                        step=asked["step"],
                        questions=tuple(asked["questions"]),
                    )
                )
    return gone.texts, cues


def _gone(query: Query, events: Sequence[int]) -> _Gone:
    """Look up what is to be erased.

    Raises
    ------
    UnknownError
        One of them does not exist.
    """
    gone = _Gone(set(events))
    said: list[str] = []
    for event in events:
        row = _row_of(query, event)
        gone.episodes.update(_whole(row["episode"]))
        gone.entities.update(_whole(row["entity"]))
        said += strings_of([row[name] for name in _SAYING], numbers=True)
        aliases = query("SELECT node, text FROM aliases WHERE event_id = ?", (event,))
        for node, words in [*aliases, (row["node"], row["text"])]:
            gone.nodes.update(_whole(node))
            gone.texts.extend(strings_of(words))
    said += gone.texts
    for op, body in query("SELECT op, body FROM journal WHERE op IN ('metadata', 'version')", ()):
        told = [entry[1] for entry in json.loads(body) if entry[0] in gone.events]
        if op == "version":
            gone.nodes.update(node for one in told for node in _whole(one["node"]))
            gone.texts.extend(one["text"] for one in told)
            told = [[one[name] for name in _SAID_BEFORE] for one in told]
        said += strings_of(told, numbers=True)
    for owner in _emptied(query, gone):
        found = query(f"SELECT {_GOAL} FROM episodes WHERE episode_id = ?", (owner,))
        said += strings_of(found, numbers=True)
    gone.contexts.update(event_context(event) for event in gone.events)
    gone.contexts.update(f'["node",{node}]' for node in gone.nodes)
    quotations = Quotations(said)
    quotations.keep_said_in(_derived(query))
    if quotations:
        quotations.drop_said_in(_left(query, gone))
    return replace(gone, quotations=quotations)


def _whole(value: object) -> list[int]:
    """Return an id as a list; nothing where there is none, or a damaged row has no number."""
    return [value] if isinstance(value, int) else []


def _row_of(query: Query, event: int) -> dict[str, Any]:
    """Return what the row of an event says.

    Raises
    ------
    UnknownError
        There is none.
    """
    found = query(f"SELECT {', '.join(_EVENT)} FROM events WHERE event_id = ?", (event,))
    if not found:
        raise UnknownError(f"there is no event {event}: it was erased or never given")
    return dict(zip(_EVENT, found[0], strict=True))


def _emptied(query: Query, gone: _Gone) -> list[int]:
    """Return the episodes that go with the last of their steps."""
    found = query(
        "SELECT value FROM json_each(?1) WHERE NOT EXISTS (SELECT 1 FROM events WHERE"
        " episode = value AND event_id NOT IN (SELECT value FROM json_each(?2)))",
        (str(sorted(gone.episodes)), str(sorted(gone.events))),
    )
    return [row[0] for row in found]


def _derived(query: Query) -> Iterator[str]:
    """Yield everything that was logged or learned and may quote an event."""
    for sql in (
        "SELECT cue, action_scores, rendered, action FROM decisions",
        "SELECT why, evidence FROM links",
        "SELECT body FROM journal WHERE op IN ('row', 'link')",
    ):
        yield from strings_of(query(sql, ()))
    for name, value in query("SELECT name, value FROM model_state", ()):
        if name.startswith(_FEEDBACK):
            yield from strings_of(_asked(value))
        elif not _TEXTLESS.fullmatch(name):
            yield from strings_of(value)
    for (context,) in query("SELECT context FROM usage", ()):
        yield from _said_in(context)


def _said_in(context: str) -> Iterator[str]:
    """Yield the strings of a context of use, but for its kind and whoever may read it."""
    thing, _, source = whose_use(json.loads(context))
    return strings_of([source, thing[1:] if isinstance(thing, list) else thing])


def _left(query: Query, gone: _Gone) -> Iterator[str]:
    """Yield what the events, aliases and episodes say that are not erased."""
    kept = "NOT IN (SELECT value FROM json_each(?))"
    for table, key, names, erased in (
        ("events", "event_id", ", ".join(_SAYING), gone.events),
        ("aliases", "node", "text", gone.nodes),
        ("episodes", "episode_id", _GOAL, _emptied(query, gone)),
    ):
        last = -(2**63)
        while found := query(
            f"SELECT {key}, {names} FROM {table} WHERE {key} > ? AND {key} {kept}"
            f" ORDER BY {key} LIMIT {_AT_ONCE}",
            (last, str(sorted(erased))),
        ):
            last = found[-1][0]
            yield from strings_of([row[1:] for row in found], numbers=True)


def _forget_rows(record: Record, write: Writer, gone: _Gone) -> None:
    db = write.connection
    # A damaged row may say another text than the one that it is found by.
    changed = [event for event in gone.events if not _is_whole(record, event)]
    if not changed:
        fulltext.forget(db, gone.events)
    for event in gone.events:
        db.execute("DELETE FROM aliases WHERE event_id = ?", (event,))
        db.execute("DELETE FROM events WHERE event_id = ?", (event,))
    for node in gone.nodes:
        db.execute("DELETE FROM links WHERE from_node = ?1 OR to_node = ?1", (node,))
        db.execute("DELETE FROM decays WHERE node = ?", (node,))
    for owner in gone.episodes:
        db.execute("DELETE FROM decisions WHERE episode = ?", (owner,))
        db.execute(
            "DELETE FROM episodes WHERE episode_id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM events WHERE episode = ?1)",
            (owner,),
        )
    _scrub_learned(db, gone)
    _scrub_decisions(db, gone)
    _scrub_journal(db, gone)
    # Rows that a repair by an older version took out: nobody can say whose they are.
    db.execute("DROP TABLE IF EXISTS set_aside")
    if changed:
        fulltext.refill(db)
    write.journal("erase", sorted(gone.nodes))


def _is_whole(record: Record, event: int) -> bool:
    """Return whether the row of an event and those of its aliases are as they were written."""
    where = "WHERE event_id = ?", (event,)
    (aliases,) = record.query(f"SELECT count(*) FROM aliases {where[0]}", where[1])[0]
    found = len(record.whole("events", *where)), len(record.whole("aliases", *where))
    return found == (1, aliases)


def _scrub_learned(db: sqlite3.Connection, gone: _Gone) -> None:
    for (context,) in db.execute("SELECT context FROM usage").fetchall():
        if gone.counted(context):
            db.execute("DELETE FROM usage WHERE context = ?", (context,))
    for name, value in db.execute("SELECT name, value FROM model_state").fetchall():
        left = _state_left(name, value, gone)
        if left is None:
            db.execute("DELETE FROM model_state WHERE name = ?", (name,))
        elif left != value:
            rows.update(db, "model_state", "name = ?", (name,), {"value": left})
    where = "from_node = ? AND to_node = ? AND kind = ?"
    for *ends, why, evidence in db.execute(
        "SELECT from_node, to_node, kind, why, evidence FROM links"
    ).fetchall():
        if gone.quoted_in(why, evidence):
            rows.update(db, "links", where, ends, {"why": "", "evidence": ""})


def _state_left(name: str, value: str, gone: _Gone) -> str | None:
    """Return what is left of the state of a model, None for nothing."""
    if not name.startswith(_FEEDBACK):
        return None if not _TEXTLESS.fullmatch(name) and gone.quoted_in(value) else value
    asked = _asked(value)
    erased = {str(event) for event in gone.events}
    kept = [
        one
        for one in asked
        if not gone.quoted_in(one) and erased.isdisjoint(strings_of(one, numbers=True))
    ]
    return value if len(kept) == len(asked) else _json({**json.loads(value), "asked": kept})


def _asked(value: str) -> list[Any]:
    """Return the questions of which feedback keeps the words, each with the events that helped."""
    asked = (rows.parsed(value, dict) or {}).get("asked")
    return asked if isinstance(asked, list) else []


def _scrub_decisions(db: sqlite3.Connection, gone: _Gone) -> None:
    for row in db.execute(f"SELECT {', '.join(_DECISION)} FROM decisions").fetchall():
        decision = dict(zip(_DECISION, row, strict=True))
        if changed := _changed(decision, gone):
            rows.update(db, "decisions", "decision_id = ?", (decision["decision_id"],), changed)


def _changed(decision: dict[str, Any], gone: _Gone) -> dict[str, Any]:
    """Return the columns of a decision that are to be others, as they are to be."""
    new: dict[str, Any] = {}
    listed = json.loads(decision["hits"])
    kept = [hit for hit in listed if hit[0] not in gone.nodes]
    followed = json.loads(decision["followed"])
    taken = [node for node in followed if node not in gone.nodes]
    # What was nearest in an empty answer may be followed, and is no hit.
    shown = len(kept) < len(listed) or len(taken) < len(followed)
    if shown:
        new = {"hits": _json(kept), "followed": json.dumps(taken), "record": "{}"}
    cue = json.loads(decision["cue"])
    if shown or gone.quoted_in(cue):
        silent = {"goal": "", "step": "", "questions": [], "text": ""}
        family = None if gone.quoted_in(cue["task_type"]) else cue["task_type"]
        new["cue"] = _json({**cue, **silent, "task_type": family})
        told = json.loads(decision["record"])
        if not shown and "cue_hash" in told:
            # Whoever can guess the words could tell by their hash.
            new["record"] = _json({**told, "cue_hash": ""})
    rendered = decision["rendered"]
    # A hit is shown with what came next, which is of the same entity.
    beside = any(hit[1] in gone.entities for hit in listed)
    if shown or (rendered and (beside or gone.quoted_in(rendered))):
        new["rendered"] = ""
    scores = json.loads(decision["action_scores"])
    fewer = [score for score in scores if not gone.quoted_in(score[0])]
    if len(fewer) < len(scores):
        new["action_scores"] = _json(fewer)
    if gone.quoted_in(decision["action"]):
        new["action"] = None
    return {name: value for name, value in new.items() if value != decision[name]}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _scrub_journal(db: sqlite3.Connection, gone: _Gone) -> None:
    for seq, op, raw in db.execute("SELECT seq, op, body FROM journal").fetchall():
        body = json.loads(raw)
        kept = [left for entry in body if (left := _entry_left(op, entry, gone)) is not None]
        if kept != body:
            # The chain stays: it names the history, which goes on.
            rows.update(db, "journal", "seq = ?", (seq,), {"body": _json(kept)})


def _entry_left(op: str, entry: Any, gone: _Gone) -> Any:
    """Return what is left of an entry of the journal, None for nothing."""
    if op == "link":
        if entry[0] in gone.nodes or entry[1] in gone.nodes:
            return None
        return [*entry[:3], *(_link_left(version, gone) for version in entry[3:])]
    if op == "reward":
        return None if entry[0] in gone.nodes else entry
    if op in ("metadata", "state", "recallable", "step_kind", "version"):
        return None if entry[0] in gone.events else entry
    return _row_left(entry, gone) if op == "row" else entry


def _link_left(version: Any, gone: _Gone) -> Any:
    if version is None or not gone.quoted_in(version):
        return version
    return [version[0], "", "", version[3]]


def _row_left(entry: list[Any], gone: _Gone) -> Any:
    """Return what is left of a row that was overwritten."""
    table, key, before = entry
    if table == "usage":
        return None if gone.counted(key[0]) else entry
    if table == "decays":
        return None if key[1] in gone.nodes else entry
    if table == "model_state" and before is not None:
        name, value, recorded = before
        left = _state_left(name, value, gone)
        return None if left is None else [table, key, [name, left, recorded]]
    if table == "episodes":
        return None if gone.quoted_in(before) else entry
    if table != "decisions" or before is None:
        return entry
    decision = dict(zip(_DECISION, before, strict=True))
    if decision["episode"] in gone.episodes:
        return None
    return [table, key, [*(decision | _changed(decision, gone)).values()]]
