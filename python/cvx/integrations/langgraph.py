"""A store for LangGraph that keeps its items in a memory.

It needs the package ``langgraph``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cvx.errors import InvalidInputError
from cvx.extras import needs
from cvx.integrations import a_memory, by_key
from cvx.memory import Memory
from cvx.types import Event, Filter

with needs("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        tokenize_path,
    )

Path = tuple[str, ...]
_KIND = "langgraph item"
_ITEM = "langgraph"
"""Where in the metadata of an event its item stands, as ``Item`` takes it."""
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, other: bool(value == other),
    "$ne": lambda value, other: bool(value != other),
    "$gt": lambda value, other: float(value) > float(other),
    "$gte": lambda value, other: float(value) >= float(other),
    "$lt": lambda value, other: float(value) < float(other),
    "$lte": lambda value, other: float(value) <= float(other),
}


class MemoryStore(BaseStore):
    """A LangGraph store whose items are events of a memory.

    Give it to ``graph.compile(store=...)``. It keeps what every LangGraph store promises: items by
    namespace and key, search with filters and in words, and the asynchronous twins. Beside that
    the memory does with items what it does with all events: several processes may use one folder,
    each version of an item is kept, and ``memory.recall`` finds items too.

    Parameters
    ----------
    memory : Memory
        Whose namespace all items are in; give ``memory.within("team")`` to keep two stores apart.
    fields : sequence of str, default ("$",)
        Which parts of a value are its text, where ``put`` does not say, as paths of LangGraph:
        "title", "parts[*].text"; "$" is all of it.

    Notes
    -----
    Items do not expire. ``delete`` takes an item out of every search and keeps its row, as
    ``Memory.forget`` does; ``memory.erase`` removes what it said for good.

    Examples
    --------
    >>> store = MemoryStore(Memory(embedder="lexical"))
    >>> store.put(("users", "ana"), "food", {"text": "Ana is allergic to peanuts"})
    >>> [item.value["text"] for item in store.search(("users",), query="peanut allergy")]
    ['Ana is allergic to peanuts']
    """

    supports_ttl = False

    def __init__(self, memory: Memory, *, fields: Sequence[str] = ("$",)) -> None:
        self.memory = a_memory("memory", memory)
        self.fields = tuple(fields)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several things in order; all that they put is written, or none of it.

        Reads see the store as it was before the batch, and of two puts to one key the last counts,
        as in LangGraph's own stores.

        Raises
        ------
        InvalidInputError
            A value that JSON cannot hold, or an operator of a filter that is not known.
        """
        asked, puts = list(ops), dict[str, PutOp]()
        results: list[Result] = [self._answer(op) for op in asked]
        for op in asked:
            if isinstance(op, PutOp):
                puts[_key(op.namespace, op.key)] = op
        if puts:
            there = by_key(self.memory, puts)
            kept = [
                self._row(key, op, there.get(key))
                for key, op in puts.items()
                if op.value is not None
            ]
            self.memory.add_many(kept)
            gone = [there[key] for key, op in puts.items() if op.value is None and key in there]
            if gone:
                self.memory.forget(gone)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same in a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = by_key(self.memory, [_key(op.namespace, op.key)])
            return Item(**next(iter(found.values())).metadata[_ITEM]) if found else None
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise InvalidInputError(f"the operation is {op!r:.100}: give one of langgraph.store.base")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        where = Filter(kind=_KIND, tags=[_prefix(op.namespace_prefix)], outcome="any")
        most = op.offset + op.limit
        every: list[Event] | None = None
        if op.filter:
            every = [
                one
                for one in self.memory.events(where)
                if _passes(one.metadata[_ITEM]["value"], op.filter)
            ]
            where = where._replace(ids=[one.id for one in every])
        order: list[Event] = []
        scores: dict[int, float] = {}
        if op.query and (every is None or every):
            searched = where._replace(metadata={"searched": True})
            # As stores of LangGraph do: the likest, even where none is much like the query.
            hits = self.memory.recall(op.query, max(1, most), where=searched, floor=-1.0)
            order = [hit.event for hit in hits]
            scores = {hit.event.id: hit.score for hit in hits}
        if len(order) < most:
            rest = self.memory.events(where) if every is None else every
            order += [one for one in rest if one.id not in scores]
        return [
            SearchItem(score=scores.get(one.id), **one.metadata[_ITEM])
            for one in order[op.offset : most]
        ]

    def _namespaces(self, op: ListNamespacesOp) -> list[Path]:
        events = self.memory.events(Filter(kind=_KIND, outcome="any"))
        found = {tuple(one.metadata[_ITEM]["namespace"]) for one in events}
        asked = op.match_conditions or ()
        kept = {one for one in found if all(_matches(one, condition) for condition in asked)}
        return sorted({one[: op.max_depth] for one in kept})[op.offset : op.offset + op.limit]

    def _row(self, key: str, op: PutOp, before: Event | None) -> dict[str, Any]:
        """Return an item as ``Memory.add_many`` takes it."""
        path, value = tuple(op.namespace), dict(op.value or {})
        paths = self.fields if op.index is None else op.index or ()
        texts = [text for one in paths for text in _texts(value, one)]
        text = "\n".join(texts)
        now = datetime.now(UTC).isoformat()
        item = {
            "namespace": [*path],
            "key": op.key,
            "value": value,
            "created_at": now if before is None else before.metadata[_ITEM]["created_at"],
            "updated_at": now,
        }
        return {
            "key": key,
            # Its key stands for what is not to be searched: a text once given is not taken back.
            "text": text if text.strip() else op.key,
            "kind": _KIND,
            "tags": [_prefix(path[:length]) for length in range(len(path) + 1)],
            "metadata": {_ITEM: item, "searched": bool(text.strip())},
        }


def _texts(value: dict[str, Any], path: str) -> list[str]:
    try:
        return get_text_at_path(value, path if path == "$" else tokenize_path(path))
    except TypeError as error:
        raise InvalidInputError(f"the value of an item is {value!r:.100}: {error}") from error


def _key(namespace: Sequence[str], key: str) -> str:
    return json.dumps([_KIND, *namespace, key], ensure_ascii=False)


def _prefix(path: Sequence[str]) -> str:
    return json.dumps([_KIND, *path], ensure_ascii=False)


def _matches(path: Path, condition: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, as asked; "*" stands for any one part."""
    asked = condition.path
    part = path[: len(asked)] if condition.match_type == "prefix" else path[-len(asked) :]
    return len(path) >= len(asked) and all(
        one in ("*", own) for one, own in zip(asked, part, strict=True)
    )


def _passes(value: Any, asked: Any) -> bool:
    """Whether a value is as a filter of LangGraph asks, parts of mappings and lists included."""
    if isinstance(asked, Mapping):
        if any(name.startswith("$") for name in asked):
            return all(_compared(value, name, other) for name, other in asked.items())
        return isinstance(value, Mapping) and all(
            _passes(value.get(name), other) for name, other in asked.items()
        )
    if isinstance(asked, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(asked)
        return same and all(_passes(one, other) for one, other in zip(value, asked, strict=True))
    return bool(value == asked)


def _compared(value: Any, name: str, other: Any) -> bool:
    if name not in _COMPARED:
        raise InvalidInputError(f"the operator of a filter is {name!r}: give one of {[*_COMPARED]}")
    try:
        return _COMPARED[name](value, other)
    except (TypeError, ValueError):
        return False
