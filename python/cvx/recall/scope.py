"""What one recall may see: as a filter of the index, as SQL, and as a mask over the corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cvx.errors import InvertedRangeError
from cvx.recall.corpus import Corpus
from cvx.store.spaces import check_namespace, narrowed, visible_spaces, visible_sql
from cvx.types import DEFAULT_NAMESPACE, Filter, IntArray

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and for what.

    Parameters
    ----------
    namespace : str, default ""
        Everything of it can come back, and what others made public.
    also : sequence of str
        Further namespaces, of which what is shared can come back.
    where : Filter
        Times, entities, rewards, tags; ``ids`` are events; ``namespaces`` narrow what can be seen.
    recallable : bool or None, default True
        What may advise, what may not, or both.
    """

    namespace: str = DEFAULT_NAMESPACE
    also: tuple[str, ...] = ()
    where: Filter = field(default_factory=Filter)
    recallable: bool | None = True

    def passed(self) -> list[str]:
        """Say what everything that comes back has passed.

        Examples
        --------
        >>> Asker("ana", ("bob",), Filter(since=10, tags=("trip",))).passed()
        ["visible to 'ana', with what 'bob' shares", 'may advise', 'since 10', "tags ('trip',)"]
        """
        seen = f"visible to {self.namespace!r}"
        if self.also:
            seen += f", with what {', '.join(map(repr, self.also))} shares"
        advice = {True: ["may advise"], False: ["may not advise"], None: []}[self.recallable]
        asked = (
            f"{part} {value}"
            for part, value in self.where._asdict().items()
            if part != "recallable" and value is not None
        )
        return [seen, *advice, *asked]


@dataclass(frozen=True, slots=True)
class Scope:
    """The same thing as a filter, as SQL and as masks.

    Parameters
    ----------
    where : Filter
        For the index; ``ids`` are nodes.
    sql : str
        A condition over the columns of ``events``.
    values : list
        For its placeholders.
    readable : ndarray of shape (n,), bool
        Over the rows of the corpus: what the asker may know of.
    visible : ndarray of shape (n,), bool
        What of it passes the filter, and may come back.
    """

    where: Filter
    sql: str
    values: list[object]
    readable: Mask
    visible: Mask


def scope_of(corpus: Corpus, asker: Asker) -> Scope:
    """Return what an asker may see.

    Raises
    ------
    InvalidInputError
        A namespace that cannot be one.
    InvertedRangeError
        A range of times or rewards that ends before it starts.
    """
    where = asker.where
    check_namespace(asker.namespace)
    for name in asker.also:
        check_namespace(name)
    _check_range("since", where.since, "until", where.until)
    _check_range("min_reward", where.min_reward, "max_reward", where.max_reward)
    spaces = visible_spaces(asker.namespace, asker.also, corpus.public_namespaces())
    asked = spaces if where.namespaces is None else narrowed(spaces, where.namespaces)
    sql, values = _sql(asker)
    readable = corpus.base_mask(tuple(spaces), asker.recallable)
    visible = _narrowed(corpus, corpus.base_mask(tuple(asked), asker.recallable), where)
    inside = where._replace(
        namespaces=asked,
        recallable=asker.recallable,
        ids=None if where.ids is None else corpus.nodes_of(np.flatnonzero(visible)),
    )
    return Scope(inside, sql, values, readable, visible)


def _check_range(low: str, least: float | None, high: str, most: float | None) -> None:
    if least is not None and most is not None and least > most:
        raise InvertedRangeError(f"{low} {least} lies above {high} {most}: give them in order")


def _narrowed(corpus: Corpus, visible: Mask, where: Filter) -> Mask:
    for column, least, most in (
        (corpus.timestamps, where.since, None if where.until is None else where.until - 1),
        (corpus.rewards, where.min_reward, where.max_reward),
    ):
        if least is not None:
            visible = visible & (column >= least)
        if most is not None:
            visible = visible & (column <= most)
    for numbers, chosen in ((corpus.entities, where.entities), (corpus.event_ids, where.ids)):
        if chosen is not None:
            visible = visible & np.isin(numbers, _integers(chosen))
    if where.tags is not None:
        visible = visible & _tagged(corpus, where.tags)
    return visible


def _tagged(corpus: Corpus, tags: Sequence[str]) -> Mask:
    """Return which rows carry all of these tags; none do where there are none to carry."""
    mask = np.zeros(len(corpus), dtype=bool)
    if tags:
        each = " AND EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)" * len(tags)
        found = corpus.record.query(f"SELECT event_id FROM events WHERE true{each}", list(tags))
        mask[corpus.rows_of([event for (event,) in found])] = True
    return mask


def _integers(chosen: Sequence[int] | IntArray) -> IntArray:
    return np.array([int(number) for number in chosen], dtype=np.int64)


def _sql(asker: Asker) -> tuple[str, list[object]]:
    where = asker.where
    sql, values = visible_sql(asker.namespace, asker.also)
    sql += " AND state = 'active' AND node IS NOT NULL"
    if asker.recallable is not None:
        sql += " AND recallable = ?"
        values.append(int(asker.recallable))
    for column, sign, value in (
        ("timestamp", ">=", where.since),
        ("timestamp", "<", where.until),
        ("reward", ">=", where.min_reward),
        ("reward", "<=", where.max_reward),
    ):
        if value is not None:
            sql += f" AND {column} {sign} ?"
            values.append(value)
    for column, chosen in (("entity", where.entities), ("event_id", where.ids)):
        if chosen is not None:
            sql += f" AND {column} IN (SELECT value FROM json_each(?))"
            values.append(str(_integers(chosen).tolist()))
    if where.namespaces is not None:
        sql += " AND namespace IN (SELECT value FROM json_each(?))"
        values.append(json.dumps(list(where.namespaces)))
    for tag in where.tags or ():
        sql += " AND EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)"
        values.append(tag)
    if where.tags is not None and not where.tags:
        sql += " AND false"
    return sql, values
