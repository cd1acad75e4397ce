"""Candidate sources: dense, lexical, graph, causes, aliases, recent, and the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from cvx.arguments import an_event, wrong
from cvx.causal.graph_data import NOT_WALKED, link_of
from cvx.causal.walk import walk
from cvx.errors import InvalidInputError
from cvx.index import recall_columns
from cvx.recall.question import HALF_A_DAY, days_from, holders_of
from cvx.recall.visible_events import VisibleEvents, asker_sql
from cvx.store.fulltext import words_of
from cvx.types import Column, Cue, Edge, EventId, Hit, IntArray, Source

POOL = 100
RRF_CONSTANT = 60.0
_MOST_WORDS = 64
_COMMON = 1_000
"""A word of the raw text in so many events says too little to be ranked by."""
_MOST_RANKED = 2_000
"""Words of the raw text are ranked by, rarest first, until so many events hold them together."""


class Found(NamedTuple):
    """The rows a source returned, with their scores.

    Attributes
    ----------
    rows : ndarray of shape (m,), int64
        Best first, each once.
    scores : ndarray of shape (m,), float64
        Higher is better, in the source's own unit.
    paths : dict of int to tuple of Edge
        By row: what was walked to get there.
    """

    rows: IntArray
    scores: Column
    paths: Mapping[int, tuple[Edge, ...]] = {}


NOTHING = Found(np.zeros(0, dtype=np.int64), np.zeros(0))


class Finder(Protocol):
    """A source that knows the corpus."""

    def find(self, view: VisibleEvents) -> Found:
        """Return what it finds for the view's cue."""


def first_of_each(view: VisibleEvents, rows: IntArray, scores: Column) -> Found:
    """Keep the best place of each row, and drop nodes of no event, and of none that is visible."""
    known = np.flatnonzero(rows >= 0)
    known = known[view.visible[rows[known]]]
    rows, scores = rows[known], scores[known]
    ordered = np.sort(rows)
    if not (ordered[1:] == ordered[:-1]).any():
        return Found(rows, scores)
    _, first = np.unique(rows, return_index=True)
    first.sort()
    return Found(rows[first], scores[first])


@dataclass(frozen=True, slots=True)
class Dense:
    """The events nearest to the cue; its aliases count as the event.

    Parameters
    ----------
    pool : int, default 100
        How many at least; see `VisibleEvents.pool`.
    """

    pool: int = POOL

    def find(self, view: VisibleEvents) -> Found:
        """Search the index under the scope's filter; nothing where the cue has no vector."""
        if view.vector is None:
            return NOTHING
        wanted = pool = view.pool(self.pool)
        while True:
            ids, distances = view.index.search(view.vector, wanted, where=view.scope.wide)
            rows = view.corpus.rows_of_nodes(ids)
            found = first_of_each(view, rows, view.to_similarity(distances))
            # Aliases of one event, what was put away where failures are asked for too, and sources
            # that are left out take places: look further until there are enough.
            if len(found.rows) >= pool or len(ids) < wanted:
                return Found(found.rows[:pool], found.scores[:pool])
            wanted *= 2


@dataclass(frozen=True, slots=True)
class Lexical:
    """The events that hold the rarest words of the raw text; see `Words` for their scores.

    Where all words are common: the newest events that hold them all. What counts as rare or
    common is a matter of what the asker may know of.

    Parameters
    ----------
    pool : int, default 100
        How many at least; see `VisibleEvents.pool`.
    """

    pool: int = POOL

    def find(self, view: VisibleEvents) -> Found:
        """Look up every word of the text, the first 64 of them."""
        words = words_of(view.question.text)[:_MOST_WORDS]
        rare, common = list[IntArray](), list[str]()
        for word in words:
            rows = view.postings(word)
            if rows is None or len(rows) >= _COMMON:
                common.append(word)
            elif len(rows):
                rare.append(rows)
        if rare:
            rare.sort(key=len)
            together = np.cumsum([len(rows) for rows in rare])
            return _by_idf(view, rare[: max(1, int((together <= _MOST_RANKED).sum()))], self.pool)
        return _newest(view, common, self.pool) if common else NOTHING


@dataclass(frozen=True, slots=True)
class Words:
    """The events that hold most of what the question's words say: by idf, the shorter first.

    It reads the same postings as the signals, once for both. Where none of the words can be looked
    up, because all are common or the question was not taken apart, it is `Lexical`. A question for
    nothing but what was at a time finds its newest events.

    Parameters
    ----------
    pool : int, default 100
        How many at least; see `VisibleEvents.pool`.
    """

    pool: int = POOL

    def find(self, view: VisibleEvents) -> Found:
        """Add up the idf of each event's words; the score is the share of the question's."""
        if view.question.of_a_day:
            return _at_named_time(view, self.pool)
        postings = (holders_of(word, view) for word in view.question.words)
        held = [rows for rows in postings if rows is not None and len(rows)]
        return _by_idf(view, held, self.pool) if held else Lexical(self.pool).find(view)


def _at_named_time(view: VisibleEvents, pool: int) -> Found:
    rows = np.flatnonzero(view.visible)
    days = days_from(view.question.dates, view.corpus.timestamps[rows], longer=True)
    rows = rows[days <= HALF_A_DAY]
    order = np.lexsort((rows, view.corpus.timestamps[rows]))[::-1][: view.pool(pool)]
    return Found(rows[order], 1.0 / np.arange(1, len(order) + 1))


def _by_idf(view: VisibleEvents, held: Sequence[IntArray], pool: int) -> Found:
    """Rank by the share of idf of the words whose holders are given; the shorter first."""
    idf, most = [view.idf(len(rows)) for rows in held], view.pool(pool)
    return Found(*recall_columns.best_by_idf(held, idf, view.visible, view.corpus.lengths, most))


def _newest(view: VisibleEvents, words: Sequence[str], pool: int) -> Found:
    sql, values = asker_sql(view.scope.asker)
    events = view.corpus.record.newest_holding(words, view.pool(pool), sql, values)
    rows = view.corpus.rows_of(np.array(events, dtype=np.int64))
    rows = rows[(rows >= 0) & view.visible[rows]]
    return Found(rows, 1.0 / np.arange(1, len(rows) + 1))


@dataclass(frozen=True, slots=True)
class Graph:
    """What similar events are linked to.

    Parameters
    ----------
    boost : mapping of str to float
        Edge kinds that are followed, and how much of its start's score each hands on.
    pool : int, default 100
        How many at least; see `VisibleEvents.pool`.
    hops : int, default 2
        Edges away at the most.
    """

    boost: Mapping[str, float] = field(
        default_factory=lambda: {"caused": 0.3, "caused_success": 0.3}
    )
    pool: int = POOL
    hops: int = 2

    def find(self, view: VisibleEvents) -> Found:
        """Walk with ``TemporalIndex.graph_search``; kinds the index does not know are left out."""
        boost = {kind: b for kind, b in self.boost.items() if kind in view.index.edge_kinds}
        if view.vector is None or not boost:
            return NOTHING
        hits = view.index.graph_search(
            view.vector, view.pool(self.pool), boost, max_hops=self.hops, where=view.scope.where
        )
        nodes = np.array([hit.node for hit in hits], dtype=np.int64)
        rows = view.corpus.rows_of_nodes(nodes)
        paths = {row: hit.path for row, hit in zip(rows.tolist(), hits, strict=True) if hit.path}
        found = first_of_each(view, rows, np.array([hit.score for hit in hits]))
        return found._replace(paths=paths)


@dataclass(frozen=True, slots=True)
class Causes:
    """What led to the event that the cue names; nearest first, of one depth the surest first.

    Parameters
    ----------
    depth : int, default 6
        Links away at the most.
    """

    depth: int = 6

    def find(self, view: VisibleEvents) -> Found:
        """Walk causal links backwards; nothing where the cue names no event."""
        if view.cue.event is None:
            return NOTHING
        corpus = view.corpus
        (start,) = corpus.rows_of([an_event("cue.event", view.cue.event)]).tolist()
        walked = walk(start, partial(_causal_links, view), max_depth=self.depth)
        found = [one for one in walked.found if view.visible[int(one.id)]]
        ids = corpus.event_ids
        return Found(
            np.array([one.id for one in found], dtype=np.int64),
            np.array([one.weight for one in found], dtype=np.float64),
            {
                int(one.id): tuple(
                    link_of(edge, int(ids[edge.from_node]), int(ids[edge.to_node]))
                    for edge in one.path
                )
                for one in found
            },
        )


def _causal_links(view: VisibleEvents, rows: Sequence[EventId]) -> list[Edge]:
    """Return the causal links that lead to some rows, between rows."""
    into = view.links(np.array(rows, dtype=np.int64), incoming=True)
    return [replace(edge, cause=a, effect=b) for a, b, edge in into if edge.kind not in NOT_WALKED]


@dataclass(frozen=True, slots=True)
class Aliases:
    """The events one of whose aliases is like the cue: canonical questions, other names.

    Parameters
    ----------
    pool : int, default 20
        How many.
    """

    pool: int = 20

    def find(self, view: VisibleEvents) -> Found:
        """Search the vectors of aliases alone."""
        nodes = view.corpus.alias_nodes
        if view.vector is None or not len(nodes):
            return NOTHING
        owners = view.corpus.rows_of_nodes(nodes)
        nodes = nodes[(owners >= 0) & view.visible[owners]]
        if not len(nodes):
            return NOTHING
        where = view.scope.where._replace(ids=nodes)
        ids, distances = view.index.search(view.vector, min(4 * self.pool, len(nodes)), where=where)
        rows = view.corpus.rows_of_nodes(ids)
        found = first_of_each(view, rows, view.to_similarity(distances))
        return Found(found.rows[: self.pool], found.scores[: self.pool])


@dataclass(frozen=True, slots=True)
class Recent:
    """The newest events, whatever they say.

    Parameters
    ----------
    pool : int, default 20
        How many.
    least_salience : float, default 0.0
        Only those that matter at least so much; where nobody said how much, it is 0.
    """

    pool: int = 20
    least_salience: float = 0.0

    def find(self, view: VisibleEvents) -> Found:
        """Take the latest by timestamp, up to the time of the cue."""
        rows = np.flatnonzero(view.visible)
        rows = rows[view.corpus.timestamps[rows] <= view.now]
        if self.least_salience > 0.0:
            salience = np.nan_to_num(view.corpus.salience[rows], nan=0.0)
            rows = rows[salience >= self.least_salience]
        times = view.corpus.timestamps[rows]
        if len(rows) > self.pool:
            newest = np.argpartition(times, -self.pool)[-self.pool :]
            rows, times = rows[newest], times[newest]
        order = np.lexsort((rows, times))[::-1]
        return Found(rows[order], 1.0 / np.arange(1, len(order) + 1))


NEIGHBOURED, STARTS = 50, 20
"""Of how many of the best so far the neighbours are taken, and the links followed."""


def joined(
    view: VisibleEvents,
    found: Sequence[Found],
    net: int,
    reach: int,
    kinds: Sequence[str],
) -> tuple[IntArray, Column]:
    """Return what sources found, and what stands beside it, with what each says of it.

    Parameters
    ----------
    view : VisibleEvents
        What may come back.
    found : sequence of Found
        By source.
    net : int
        How many of the best by reciprocal rank over the sources are taken.
    reach : int
        How many neighbours in time of the best 50, on either side and within the session.
    kinds : sequence of str
        Kinds of links that are followed one step, in their direction, from the best 20.

    Returns
    -------
    rows : ndarray of shape (m,), int64
        Ascending, each once.
    columns : ndarray of shape (2 * sources + 1, m), float64
        Of each source the place of a row, from 1, and its score, NaN where it did not find it; then
        the reciprocal ranks together.
    """
    ends = NOTHING.rows
    if kinds and view.corpus.linked:
        best, _ = recall_columns.votes([one.rows for one in found], RRF_CONSTANT)
        links = view.links(best[:net][:STARTS])
        ends = np.array([end for _, end, edge in links if edge.kind in kinds], dtype=np.int64)
    times = view.corpus.timelines
    return recall_columns.candidates(
        [one[:2] for one in found],
        RRF_CONSTANT,
        net,
        NEIGHBOURED,
        reach,
        ends,
        times.before,
        times.after,
        view.readable,
        view.visible,
    )


@dataclass(frozen=True, slots=True)
class UserSource:
    """A source of the user's own, any ``Callable[[Cue], list[Hit]]``.

    What it returns is looked up in the corpus, so that nothing comes back which the asker may not
    see.

    Parameters
    ----------
    ask : callable
        From a cue to hits, best first. Their events are told by ``event.event_id``, or else by
        ``node``.
    """

    ask: Source

    def find(self, view: VisibleEvents) -> Found:
        """Ask it and look up what it says."""
        return self.resolve(view, self.hits(view.cue))

    def hits(self, cue: Cue) -> list[Hit]:
        """Ask it.

        Raises
        ------
        TypeError
            What it returned are no hits.
        """
        hits = list(self.ask(cue))
        for hit in hits:
            if not isinstance(hit, Hit):
                raise TypeError(f"the source returned {hit!r}: it must return hits")
        return hits

    def resolve(self, view: VisibleEvents, hits: Sequence[Hit]) -> Found:
        """Look up hits in the corpus."""
        corpus = view.corpus
        by_node = corpus.rows_of_nodes(np.array([hit.node for hit in hits], dtype=np.int64))
        named = [
            -1 if hit.event is None or hit.event.event_id is None else hit.event.event_id
            for hit in hits
        ]
        by_event = corpus.rows_of(named)
        rows = np.where(by_event >= 0, by_event, by_node)
        return first_of_each(view, rows, np.array([hit.score for hit in hits], dtype=np.float64))


BUILT_IN: Mapping[str, Finder] = {
    "dense": Dense(),
    "lexical": Lexical(),
    "words": Words(),
    "graph": Graph(),
    "causes": Causes(),
    "aliases": Aliases(),
    "recent": Recent(),
}


def finder_of(name: str, source: Finder | Source | None = None) -> Finder:
    """Return a source as a `Finder`: a built-in one by its name, or a callable of the user's.

    Raises
    ------
    InvalidInputError
        No such source, or something that cannot be asked.
    """
    if source is None:
        if name not in BUILT_IN:
            raise InvalidInputError(
                f"sources name {name!r}: give some of {', '.join(BUILT_IN)}, or a callable"
            )
        return BUILT_IN[name]
    if hasattr(source, "find"):
        return source
    if callable(source):
        return UserSource(source)
    raise wrong(f"source {name!r}", source, "a callable from a Cue to a list of hits")
