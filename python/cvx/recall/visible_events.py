"""The events that one recall may see: the asker's namespaces and filters, as masks and SQL.

`scope_of` says it as a filter of the index, as SQL and as masks over the corpus; `VisibleEvents` is
what one recall sees.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from cvx.errors import InvalidInputError
from cvx.index import RawIndex, recall_columns
from cvx.recall.corpus import Corpus, Kind
from cvx.recall.corpus_indexes import title_key
from cvx.recall.question import AnyQuestion
from cvx.store.namespaces import check_namespace, narrowed, visible_spaces, visible_sql
from cvx.store.rows import event_context
from cvx.types import DEFAULT_NAMESPACE, Column, Cue, Edge, Filter, IntArray, Mask, Vector


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: namespace, shared namespaces, filters, outcome.

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
    failing : mapping of str to str
        Sources that a filter leaves out unless it names sources or events, each with the reason.
    """

    namespace: str = DEFAULT_NAMESPACE
    also: tuple[str, ...] = ()
    where: tuple[Filter, ...] = (Filter(),)
    outcome: str = "success"
    failing: Mapping[str, str] = field(default_factory=dict)

    def left_out(self, where: Filter) -> Mapping[str, str]:
        """Return the sources that one of the filters leaves out."""
        return self.failing if where.source is None and where.ids is None else {}

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


_ANYTHING = (Filter(),)
_ADVICE = {"success": ["may advise"], "failure": ["may not advise"], "any": []}
_RECALLABLE = {"success": True, "failure": False, "any": None}
_OF_RECORD = ("kind", "source", "metadata", "min_trust")
"""What an index knows nothing of."""


@dataclass(frozen=True, slots=True)
class Scope:
    """An asker's permissions and filters as an index filter and masks.

    Parameters
    ----------
    asker : Asker
        Whose they are; `asker_sql` says them as SQL.
    where : Filter
        For the index; ``ids`` are nodes.
    wide : Filter
        The same without a list of ids that says which sources are left out: for a search whose
        results are held against ``visible`` (rfc 0072).
    readable : ndarray of shape (n,), bool
        Over the rows of the corpus: what the asker may know of.
    visible : ndarray of shape (n,), bool
        What of it passes the filter, and may come back.
    size : int
        How many rows are readable.
    """

    asker: Asker
    where: Filter
    wide: Filter
    readable: Mask
    visible: Mask
    size: int


def scope_of(corpus: Corpus, asker: Asker) -> Scope:
    """Return what an asker may see.

    Raises
    ------
    InvalidInputError
        A namespace that cannot be one, or a range of times or rewards that ends before it starts.
    """
    for name in (asker.namespace, *asker.also):
        check_namespace(name)
    plain = (asker.namespace, *asker.also, asker.outcome, frozenset(asker.failing))
    if asker.where == _ANYTHING and plain in corpus.scopes:
        return corpus.scopes[plain]
    spaces = visible_spaces(asker.namespace, asker.also, corpus.public_namespaces())
    visible = np.zeros(len(corpus), dtype=bool)
    failing = visible[:0]
    for where in asker.where:
        _check_range("since", where.since, "until", where.until)
        _check_range("min_reward", where.min_reward, "max_reward", where.max_reward)
        asked = spaces if where.namespaces is None else narrowed(spaces, where.namespaces)
        which = tuple(asked), _RECALLABLE[where.outcome or asker.outcome]
        base = corpus.base_mask(*which)
        codes = corpus.source_codes
        out = [codes[one] for one in asker.left_out(where) if one in codes]
        if out:
            failing = base & np.isin(corpus.sources, out)
            base = base & ~failing
        if where._replace(namespaces=None, outcome=None) != Filter():
            base = _narrowed(corpus, base, corpus.span(*which), where)
        visible = base if len(asker.where) == 1 else visible | base
    outcomes = {where.outcome or asker.outcome for where in asker.where}
    recallable = _RECALLABLE[outcomes.pop()] if len(outcomes) == 1 else None
    readable = corpus.base_mask(tuple(spaces), recallable)
    simple = len(asker.where) == 1 and all(getattr(where, part) is None for part in _OF_RECORD)
    nodes = None
    if not simple or out or where.ids is not None:
        nodes = corpus.nodes_of(np.flatnonzero(visible))
    inside = wide = Filter(namespaces=spaces, ids=nodes, recallable=recallable)
    if simple:
        ids = None if where.ids is None else nodes
        wide = where._replace(namespaces=asked, ids=ids, recallable=recallable, outcome=None)
        inside = inside if out else wide
    if failing.any() and np.count_nonzero(failing) > np.count_nonzero(visible):
        # Most of what would be found was left out again.
        wide = inside
    size = int(np.count_nonzero(readable))
    found = Scope(asker, inside, wide, readable, visible, size)
    if asker.where == _ANYTHING:
        corpus.scopes[plain] = found
    return found


def _check_range(low: str, least: Any, high: str, most: Any) -> None:
    if least is not None and most is not None and least > most:
        raise InvalidInputError(f"{low} {least} lies above {high} {most}: give them in order")


def _narrowed(corpus: Corpus, base: Mask, span: slice, where: Filter) -> Mask:
    """Return which rows of a mask, all of which lie in a span, pass a filter."""
    visible = base.copy()
    inside = visible[span]
    # Times of a checked filter are numbers.
    since: Any = where.since
    until: Any = where.until
    for column, least, most in (
        (corpus.timestamps, since, None if until is None else until - 1),
        (corpus.rewards, where.min_reward, where.max_reward),
    ):
        if least is not None:
            inside &= column[span] >= least
        if most is not None:
            inside &= column[span] <= most
    for numbers, chosen in ((corpus.entities, where.entities), (corpus.event_ids, where.ids)):
        if chosen is not None:
            inside &= np.isin(numbers[span], _integers(chosen))
    told = [*_record_conditions(where)]
    if told:
        condition, values = _joined(told)
        mask = np.zeros(len(corpus), dtype=bool)
        found = corpus.record.query(f"SELECT event_id FROM events WHERE {condition}", values)
        mask[corpus.rows_of([event for (event,) in found])] = True
        visible &= mask
    return visible


def _integers(chosen: Any) -> IntArray:
    return np.array([int(number) for number in chosen], dtype=np.int64)


Condition: TypeAlias = tuple[str, list[object]]
"""A condition over the columns of ``events``, and the values for its placeholders."""
_AMONG = "{} IN (SELECT value FROM json_each(?))"


def _joined(conditions: Iterable[Condition]) -> Condition:
    """Return all of some conditions as one."""
    listed = [*conditions]
    return " AND ".join(one for one, _ in listed) or "true", [v for _, own in listed for v in own]


def _record_conditions(where: Filter) -> Iterator[Condition]:
    """Yield what only the record can tell."""
    for tag in () if where.tags is None else where.tags:
        yield "EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", [tag]
    if where.tags is not None and not len(where.tags):
        yield "false", []
    for column, chosen in (("kind", where.kind), ("source", where.source)):
        if chosen is not None:
            yield _AMONG.format(column), [json.dumps(list(chosen))]
    if where.min_trust is not None:
        yield "trust >= ?", [where.min_trust]
    for key, asked in (where.metadata or {}).items():
        for how, limit in (asked if isinstance(asked, Mapping) else {"is": asked}).items():
            condition, wanted = _metadata_sql(how, limit)
            yield condition, [key, *wanted]


_AT_KEY = "EXISTS (SELECT 1 FROM json_each(metadata) AS m WHERE m.key = ?"
_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def _metadata_sql(how: str, limit: Any) -> Condition:
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


def ways_sql(asker: Asker) -> Condition:
    """Return what passes one of the asker's filters, as a condition over ``events``."""
    each = [
        _joined(
            _conditions(where, _RECALLABLE[where.outcome or asker.outcome], asker.left_out(where))
        )
        for where in asker.where
    ]
    ways = " OR ".join(f"({condition})" for condition, _ in each) or "false"
    return f"({ways})", [value for _, some in each for value in some]


def asker_sql(asker: Asker) -> Condition:
    """Return what an asker may see, as a condition over ``events``."""
    sql, values = visible_sql(asker.namespace, asker.also)
    sql += " AND state = 'active' AND node IS NOT NULL"
    ways, more = ways_sql(asker)
    return f"{sql} AND {ways}", [*values, *more]


def _conditions(
    where: Filter, recallable: bool | None, left_out: Collection[str]
) -> Iterator[Condition]:
    """Yield all that a filter asks for."""
    if recallable is not None:
        yield "recallable = ?", [int(recallable)]
    for column, sign, value in (
        ("timestamp", ">=", where.since),
        ("timestamp", "<", where.until),
        ("reward", ">=", where.min_reward),
        ("reward", "<=", where.max_reward),
    ):
        if value is not None:
            yield f"{column} {sign} ?", [value]
    for column, chosen in (("entity", where.entities), ("event_id", where.ids)):
        if chosen is not None:
            yield _AMONG.format(column), [str(_integers(chosen).tolist())]
    if where.namespaces is not None:
        yield _AMONG.format("namespace"), [json.dumps(list(where.namespaces))]
    if left_out:
        yield f"NOT {_AMONG.format('source')}", [json.dumps([*left_out])]
    yield from _record_conditions(where)


_SAMPLE, _MANY = 128, 10_000


def drawn(among: IntArray, most: int) -> IntArray:
    """Return at most so many of some numbers, drawn at random by a fixed seed."""
    random = np.random.default_rng(0)
    if len(among) > _MANY:
        # To shuffle a million of them would take longer than the recall.
        among = among[random.choice(len(among), most, replace=False, shuffle=False)]
    return random.permutation(among)[:most]


class VisibleEvents:
    """The events that one recall may see, with their columns, texts and similarities.

    Parameters
    ----------
    corpus : Corpus
        All events, as columns.
    index : RawIndex
        Their vectors.
    scope : Scope
        Which of them may come back.
    cue : Cue
        What is asked.
    now : int
        In the unit of the timestamps.
    k : int
        How many hits are wanted.

    Attributes
    ----------
    question : Question or PlainQuestion
        What the reader made of the cue; set before any source is asked.
    vector : ndarray of shape (dim,), float32, or None
        Where the cue lies; None where it could not be embedded.
    pending : mapping of int to int
        When events were used, where that is not written down yet.
    """

    question: AnyQuestion

    def __init__(
        self,
        corpus: Corpus,
        index: RawIndex,
        scope: Scope,
        cue: Cue,
        now: int,
        k: int,
        pending: Mapping[int, int],
    ) -> None:
        self.corpus = corpus
        self.index = index
        if cue.event is not None:
            # What led to it is wanted, not the event itself.
            visible = scope.visible & (corpus.event_ids != cue.event)
            scope = replace(scope, visible=visible)
        self.scope = scope
        self.cue = cue
        self.now = now
        self.k = k
        self.pending = pending
        self.vector: Vector | None = cue.vector
        # Which rows may come back; which the asker may know of, whatever its filter; how many.
        self.visible, self.readable = scope.visible, scope.readable
        self.size = scope.size
        # The rows that hold a word, by each word that was looked up; see `holders_of`.
        self.held: dict[str, IntArray | None] = {}

    @property
    def event_ids(self) -> IntArray:
        """Of all rows."""
        return self.corpus.event_ids

    @property
    def entities(self) -> IntArray:
        """Of all rows."""
        return self.corpus.entities

    @property
    def timestamps(self) -> IntArray:
        """Of all rows."""
        return self.corpus.timestamps

    def texts(self, rows: IntArray) -> list[str]:
        """Return the texts of these rows."""
        return self.corpus.texts(rows)

    def pool(self, least: int) -> int:
        """Return how many candidates a source looks for: three for each hit, or ``least``."""
        return max(least, 3 * self.k)

    @cached_property
    def names(self) -> Mapping[str, frozenset[int]]:
        """Words, in lower case, that name an entity."""
        return self.corpus.names(tuple(self.scope.where.namespaces or ()))

    @property
    def kind(self) -> Kind:
        """What the asker may know of; see `Corpus.kind`."""
        return self.corpus.kind(tuple(self.scope.where.namespaces or ()), self.readable)

    def window(self, rows: IntArray, reach: int) -> IntArray:
        """Return rows with their readable neighbours in time.

        Parameters
        ----------
        rows : ndarray of shape (n,), int64
        reach : int
            How many on either side.

        Returns
        -------
        ndarray of shape (n, 2 * reach + 1), int64
            In order of time; -1 beyond the ends of the session, and for what is not readable.
        """
        times = self.corpus.timelines
        return recall_columns.window(rows, times.before, times.after, self.readable, reach)

    def neighbourhood(self, rows: IntArray, reach: int) -> tuple[IntArray, IntArray]:
        """Return rows and their neighbours as one list, and where in it each ``window`` stands.

        Returns
        -------
        near : ndarray of shape (e,), int64
            Ascending, each once.
        places : ndarray of shape (n, 2 * reach + 1), int64
            ``e`` for what is not there.
        """
        times = self.corpus.timelines
        return recall_columns.neighbourhood(rows, times.before, times.after, self.readable, reach)

    def postings(self, word: str) -> IntArray | None:
        """Return the readable rows that hold a word, ascending; None where too many do."""
        scope = self.scope.where
        return self.corpus.postings(word, tuple(scope.namespaces or ()), scope.recallable)

    def last_used(self, rows: IntArray) -> IntArray:
        """Return when events were used last; what never was, when it happened."""
        out = self.corpus.timestamps[rows].copy()
        events = self.corpus.event_ids[rows].tolist()
        for event, (_, last) in self.corpus.record.used(events).items():
            if last is not None:
                at = events.index(event)
                out[at] = max(out[at], last)
        for at, event in enumerate(events) if self.pending else ():
            out[at] = max(out[at], self.pending.get(event, out[at]))
        return out

    def use(self, rows: IntArray) -> tuple[Column, Column]:
        """Return how often events were followed, and how often that helped."""
        places = {
            event_context(event): at
            for at, event in enumerate(self.corpus.event_ids[rows].tolist())
        }
        followed, helped = np.zeros(len(rows)), np.zeros(len(rows))
        for context, taken, paid in self.corpus.record.query(
            "SELECT context, followed, helped FROM usage"
            " WHERE context IN (SELECT value FROM json_each(?))",
            (json.dumps(list(places)),),
        ):
            followed[places[context]], helped[places[context]] = taken, paid
        return followed, helped

    def idf(self, holders: int) -> float:
        """Return how much a word says that so many of the readable events hold."""
        return math.log1p((self.size - holders + 0.5) / (holders + 0.5))

    @property
    def titled(self) -> bool:
        """Whether any row has a title."""
        return len(self.corpus.naming.titles) > 0

    def titles(self, title: str) -> IntArray:
        """Return the readable rows that have a title, compared by its words."""
        rows = np.array(self.corpus.naming.titles.numbers(title_key(title)), dtype=np.int64)
        return rows[self.readable[rows]]

    def to_similarity(self, distances: Vector) -> Column:
        """Turn distances of the index's metric into similarities."""
        far = distances.astype(np.float64)
        return 1.0 / (1.0 + far) if self.index.metric == "l2" else 1.0 - far

    def to_distance(self, similarity: Column) -> Column:
        """Turn similarities back into distances; inf for NaN."""
        if self.index.metric != "l2":
            return np.where(np.isnan(similarity), np.inf, 1.0 - similarity)
        far = np.full(similarity.shape, np.inf)
        return np.asarray(np.divide(1.0, similarity, out=far, where=similarity > 0.0) - 1.0)

    def similarity(self, rows: IntArray) -> Column:
        """Return how similar rows are to the cue, exactly.

        Parameters
        ----------
        rows : ndarray of shape (n,), int64
            At least 0.

        Returns
        -------
        ndarray of shape (n,), float64
            The best over an event and its aliases; NaN without a vector.
        """
        if self.vector is None:
            return np.full(len(rows), np.nan)
        corpus, distances = self.corpus, partial(self.index.distances, self.vector)
        similar = self.to_similarity(distances(corpus.nodes[rows]))
        names = corpus.alias_nodes
        if len(names):
            owners = corpus.rows_of_nodes(names)
            own, order = np.isin(owners, rows), np.argsort(rows)
            places = order[np.searchsorted(rows, owners[own], sorter=order)]
            np.fmax.at(similar, places, self.to_similarity(distances(names[own])))
        return similar

    def background(self, fewest: int) -> tuple[float, float] | None:
        """Return mean and standard deviation of the similarity of two readable events at random.

        Parameters
        ----------
        fewest : int
            With fewer events that have a vector, nothing is known: None.
        """
        kept, spaces = self.corpus.backgrounds, tuple(self.scope.where.namespaces or ())
        known = kept.get(spaces)
        if known is None or self.size > 2 * known[0]:
            rows = self.index.vectors(drawn(self.corpus.nodes[self.readable], _SAMPLE))
            rows = rows[rows.any(axis=1)].astype(np.float64)
            spread = None
            if len(rows) >= max(fewest, 2) and self.index.metric != "l2":
                rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
                pairs = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
                spread = float(pairs.mean()), float(pairs.std())
            known = kept[spaces] = self.size, spread
        return known[1]

    def links(self, rows: IntArray, *, incoming: bool = False) -> list[tuple[int, int, Edge]]:
        """Return the links that start at these rows, or end there: (from row, to row, edge).

        Those whose other end is not readable are left out.
        """
        if not self.corpus.linked or not len(rows):
            return []
        nodes = self.corpus.nodes_of(rows).tolist()
        edges = self.corpus.record.links_of(nodes, incoming=incoming)
        ends = np.array([(e.from_node, e.to_node) for e in edges], dtype=np.int64).reshape(-1, 2)
        owners = self.corpus.rows_of_nodes(ends.ravel()).reshape(-1, 2)
        seen = np.all((owners >= 0) & self.readable[owners], axis=1)
        return [
            (a, b, edge)
            for (a, b), edge, shown in zip(owners.tolist(), edges, seen, strict=True)
            if shown
        ]
