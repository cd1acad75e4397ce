"""What one recall may see: as a filter of the index, as SQL, and as a mask over the corpus."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError
from cvx.recall.corpus import Corpus
from cvx.store.namespaces import check_namespace, narrowed, visible_spaces, visible_sql
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
    where : tuple of Filter
        One of them is enough. Their ``ids`` are events; ``namespaces`` narrow what can be seen.
    outcome : {"success", "failure", "any"}, default "success"
        What may come back where a filter does not say.
    """

    namespace: str = DEFAULT_NAMESPACE
    also: tuple[str, ...] = ()
    where: tuple[Filter, ...] = (Filter(),)
    outcome: str = "success"

    def passed(self) -> list[str]:
        """Say what everything that comes back has passed.

        Examples
        --------
        >>> Asker("ana", ("bob",), (Filter(since=10, tags=("trip",)),)).passed()
        ["visible to 'ana', with what 'bob' shares", 'may advise', 'since 10', "tags ('trip',)"]
        """
        seen = f"visible to {self.namespace!r}"
        if self.also:
            seen += f", with what {', '.join(map(repr, self.also))} shares"
        told = [
            [
                *_ADVICE[where.outcome or self.outcome],
                *(
                    f"{part} {value}"
                    for part, value in where._asdict().items()
                    if part not in ("recallable", "outcome") and value is not None
                ),
            ]
            for where in self.where
        ]
        return [seen, *(told[0] if len(told) == 1 else [" or ".join(map(", ".join, told))])]


_ADVICE = {"success": ["may advise"], "failure": ["may not advise"], "any": []}
_RECALLABLE = {"success": True, "failure": False, "any": None}
_OF_RECORD = ("kind", "source", "metadata", "min_trust")
"""What an index knows nothing of."""


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
    InvalidInputError
        A range of times or rewards that ends before it starts.
    """
    check_namespace(asker.namespace)
    for name in asker.also:
        check_namespace(name)
    spaces = visible_spaces(asker.namespace, asker.also, corpus.public_namespaces())
    visible = np.zeros(len(corpus), dtype=bool)
    for where in asker.where:
        _check_range("since", _time(where.since), "until", _time(where.until))
        _check_range("min_reward", where.min_reward, "max_reward", where.max_reward)
        asked = spaces if where.namespaces is None else narrowed(spaces, where.namespaces)
        base = corpus.base_mask(tuple(asked), _RECALLABLE[where.outcome or asker.outcome])
        visible = visible | _narrowed(corpus, base, where)
    sql, values = _sql(asker)
    outcomes = {where.outcome or asker.outcome for where in asker.where}
    recallable = _RECALLABLE[outcomes.pop()] if len(outcomes) == 1 else None
    readable = corpus.base_mask(tuple(spaces), recallable)
    if len(asker.where) == 1 and all(getattr(where, part) is None for part in _OF_RECORD):
        inside = where._replace(
            namespaces=asked,
            ids=None if where.ids is None else corpus.nodes_of(np.flatnonzero(visible)),
        )
    else:
        inside = Filter(namespaces=spaces, ids=corpus.nodes_of(np.flatnonzero(visible)))
    inside = inside._replace(recallable=recallable, outcome=None)
    return Scope(inside, sql, values, readable, visible)


def _check_range(low: str, least: float | None, high: str, most: float | None) -> None:
    if least is not None and most is not None and least > most:
        raise InvalidInputError(f"{low} {least} lies above {high} {most}: give them in order")


def _narrowed(corpus: Corpus, visible: Mask, where: Filter) -> Mask:
    until = _time(where.until)
    for column, least, most in (
        (corpus.timestamps, _time(where.since), None if until is None else until - 1),
        (corpus.rewards, where.min_reward, where.max_reward),
    ):
        if least is not None:
            visible = visible & (column >= least)
        if most is not None:
            visible = visible & (column <= most)
    for numbers, chosen in ((corpus.entities, where.entities), (corpus.event_ids, where.ids)):
        if chosen is not None:
            visible = visible & np.isin(numbers, _integers(chosen))
    condition, values = _record_sql(where)
    if condition:
        mask = np.zeros(len(corpus), dtype=bool)
        found = corpus.record.query(f"SELECT event_id FROM events WHERE {condition}", values)
        mask[corpus.rows_of([event for (event,) in found])] = True
        visible = visible & mask
    return visible


def _time(value: int | datetime | None) -> int | None:
    """Return a time of a checked filter, in which datetimes are numbers."""
    assert not isinstance(value, datetime)
    return value


def _integers(chosen: Any) -> IntArray:
    return np.array([int(number) for number in chosen], dtype=np.int64)


def _record_sql(where: Filter) -> tuple[str, list[object]]:
    """Return what only the record can tell, as a condition over the columns of ``events``."""
    parts, values = list[str](), list[object]()
    if where.tags is not None:
        parts += ["EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)"] * len(where.tags)
        values += where.tags
        if not len(where.tags):
            parts.append("false")
    for column, chosen in (("kind", where.kind), ("source", where.source)):
        if chosen is not None:
            parts.append(f"{column} IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(list(chosen)))
    if where.min_trust is not None:
        parts.append("trust >= ?")
        values.append(where.min_trust)
    for key, asked in (where.metadata or {}).items():
        conditions = asked if isinstance(asked, Mapping) else {"is": asked}
        for how, limit in conditions.items():
            part, wanted = _metadata_sql(how, limit)
            parts.append(part)
            values += [key, *wanted]
    return " AND ".join(parts), values


_AT_KEY = "EXISTS (SELECT 1 FROM json_each(metadata) AS m WHERE m.key = ?"
_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def _metadata_sql(how: str, limit: Any) -> tuple[str, list[object]]:
    """Return one condition on the value under a key, which comes first among its placeholders.

    What is of another type than a limit is neither above nor below it.
    """
    if how == "exists":
        return f"{'' if limit else 'NOT '}{_AT_KEY})", []
    if how in _SIGNS:
        kinds = "('text')" if isinstance(limit, str) else "('integer', 'real')"
        return f"{_AT_KEY} AND m.type IN {kinds} AND m.value {_SIGNS[how]} ?)", [limit]
    listed = list(limit) if how == "in" else [limit]
    # Compared as JSON, in which true, 1 and "1" are told apart, but not 1 and 1.0.
    same = (
        f"EXISTS (SELECT 1 FROM json_each(?) AS w WHERE {_KIND.format('w')} = {_KIND.format('m')}"
    )
    return (
        f"{'NOT ' if how == 'ne' else ''}{_AT_KEY} AND {same} AND w.value IS m.value))",
        [json.dumps(listed)],
    )


_KIND = "CASE {0}.type WHEN 'integer' THEN 'real' ELSE {0}.type END"


def ways_sql(asker: Asker) -> tuple[str, list[object]]:
    """Return what passes one of the asker's filters, as a condition over ``events``."""
    each = [
        _filter_sql(where, _RECALLABLE[where.outcome or asker.outcome]) for where in asker.where
    ]
    ways = " OR ".join(f"({condition})" for condition, _ in each) or "false"
    return f"({ways})", [value for _, some in each for value in some]


def _sql(asker: Asker) -> tuple[str, list[object]]:
    sql, values = visible_sql(asker.namespace, asker.also)
    sql += " AND state = 'active' AND node IS NOT NULL"
    ways, more = ways_sql(asker)
    return f"{sql} AND {ways}", [*values, *more]


def _filter_sql(where: Filter, recallable: bool | None) -> tuple[str, list[object]]:
    parts, values = ["true"], list[object]()
    if recallable is not None:
        parts.append("recallable = ?")
        values.append(int(recallable))
    for column, sign, value in (
        ("timestamp", ">=", where.since),
        ("timestamp", "<", where.until),
        ("reward", ">=", where.min_reward),
        ("reward", "<=", where.max_reward),
    ):
        if value is not None:
            parts.append(f"{column} {sign} ?")
            values.append(value)
    for column, chosen in (("entity", where.entities), ("event_id", where.ids)):
        if chosen is not None:
            parts.append(f"{column} IN (SELECT value FROM json_each(?))")
            values.append(str(_integers(chosen).tolist()))
    if where.namespaces is not None:
        parts.append("namespace IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(where.namespaces)))
    condition, told = _record_sql(where)
    return " AND ".join([*parts, *filter(None, [condition])]), [*values, *told]
