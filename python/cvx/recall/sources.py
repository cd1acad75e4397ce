"""Where a recall looks: each source answers a cue with rows of the corpus, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidParameterError
from cvx.recall.view import View
from cvx.types import Edge, Hit, IntArray, Source

POOL = 100


class Found(NamedTuple):
    """What a source found.

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
    scores: npt.NDArray[np.float64]
    paths: Mapping[int, tuple[Edge, ...]] = {}


NOTHING = Found(np.zeros(0, dtype=np.int64), np.zeros(0))


class Finder(Protocol):
    """A source that knows the corpus."""

    def find(self, view: View) -> Found:
        """Return what it finds for the view's cue."""
        ...


def _first_of_each(rows: IntArray, scores: npt.NDArray[np.float64]) -> Found:
    """Keep the best place of each row, and drop nodes of no event."""
    known = rows >= 0
    rows, scores = rows[known], scores[known]
    _, first = np.unique(rows, return_index=True)
    first.sort()
    return Found(rows[first], scores[first])


@dataclass(frozen=True, slots=True)
class Dense:
    """The events nearest to the cue; its aliases count as the event.

    Parameters
    ----------
    pool : int, default 100
        How many at least; see `View.pool`.
    """

    pool: int = POOL

    def find(self, view: View) -> Found:
        """Search the index under the scope's filter; nothing where the cue has no vector."""
        if view.vector is None:
            return NOTHING
        wanted = pool = view.pool(self.pool)
        while True:
            ids, distances = view.index.search(view.vector, wanted, where=view.scope.where)
            found = _first_of_each(view.corpus.rows_of_nodes(ids), view.to_similarity(distances))
            shown = view.visible[found.rows]
            # Aliases of one event, and what was put away where failures are asked for too, take
            # places: look further until there are enough.
            if int(shown.sum()) >= pool or len(ids) < wanted:
                return Found(found.rows[shown][:pool], found.scores[shown][:pool])
            wanted *= 2


@dataclass(frozen=True, slots=True)
class Lexical:
    """The events that hold the rarest words of the question, by BM25.

    Parameters
    ----------
    pool : int, default 100
        How many at least; see `View.pool`.
    """

    pool: int = POOL

    def find(self, view: View) -> Found:
        """Search the full-text index; the score is 1 / place."""
        text = view.question.text
        if not text.strip():
            return NOTHING
        scope = view.scope
        events = view.corpus.record.lexical(text, view.pool(self.pool), scope.sql, scope.values)
        found = _first_of_each(view.corpus.rows_of(events), 1.0 / np.arange(1, len(events) + 1))
        shown = view.visible[found.rows]
        return Found(found.rows[shown], found.scores[shown])


@dataclass(frozen=True, slots=True)
class Words:
    """The events that hold most of what the question's words say: by idf, the shorter first.

    It reads the same postings as the signals, once for both. Where none of the words can be looked
    up, because all are common or the question was not taken apart, it is `Lexical`.

    Parameters
    ----------
    pool : int, default 100
        How many at least; see `View.pool`.
    """

    pool: int = POOL

    def find(self, view: View) -> Found:
        """Add up the idf of each event's words; the score is the share of the question's."""
        held = [(rows, view.idf(len(rows))) for word in view.question.words
                if (rows := view.postings(word)) is not None and len(rows)]  # fmt: skip
        if not held:
            return Lexical(self.pool).find(view)
        rows, owner = np.unique(np.concatenate([rows for rows, _ in held]), return_inverse=True)
        idf = np.repeat([weight for _, weight in held], [len(rows) for rows, _ in held])
        scores = np.bincount(owner, idf) / sum(weight for _, weight in held)
        shown = view.visible[rows]
        rows, scores = rows[shown], scores[shown]
        order = np.lexsort((-rows, view.lengths[rows], -scores))[: view.pool(self.pool)]
        return Found(rows[order], scores[order])


@dataclass(frozen=True, slots=True)
class Graph:
    """What similar events are linked to.

    Parameters
    ----------
    boost : mapping of str to float
        Edge kinds that are followed, and how much of its start's score each hands on.
    pool : int, default 100
        How many at least; see `View.pool`.
    hops : int, default 2
        Edges away at the most.
    """

    boost: Mapping[str, float] = field(
        default_factory=lambda: {"caused": 0.3, "caused_success": 0.3}
    )
    pool: int = POOL
    hops: int = 2

    def find(self, view: View) -> Found:
        """Walk with ``TemporalIndex.graph_search``; kinds the index does not know are left out."""
        boost = {kind: b for kind, b in self.boost.items() if kind in view.index.edge_kinds}
        if view.vector is None or not boost:
            return NOTHING
        hits = view.index.graph_search(
            view.vector, view.pool(self.pool), boost, max_hops=self.hops, where=view.scope.where
        )
        nodes = np.array([hit.node for hit in hits], dtype=np.int64)
        rows = view.corpus.rows_of_nodes(nodes)
        found = _first_of_each(rows, np.array([hit.score for hit in hits]))
        shown = view.visible[found.rows]
        paths = {row: hit.path for row, hit in zip(rows.tolist(), hits, strict=True) if hit.path}
        return Found(found.rows[shown], found.scores[shown], paths)


@dataclass(frozen=True, slots=True)
class Aliases:
    """The events one of whose aliases is like the cue: canonical questions, other names.

    Parameters
    ----------
    pool : int, default 20
        How many.
    """

    pool: int = 20

    def find(self, view: View) -> Found:
        """Search the vectors of aliases alone."""
        nodes = view.corpus.alias_nodes
        if view.vector is None or not len(nodes):
            return NOTHING
        owners = view.corpus.rows_of_nodes(nodes)
        nodes = nodes[(owners >= 0) & view.visible[owners]]
        if not len(nodes):
            return NOTHING
        where = replace(view.scope.where, ids=nodes)
        ids, distances = view.index.search(view.vector, min(4 * self.pool, len(nodes)), where=where)
        found = _first_of_each(view.corpus.rows_of_nodes(ids), view.to_similarity(distances))
        return Found(found.rows[: self.pool], found.scores[: self.pool])


@dataclass(frozen=True, slots=True)
class Recent:
    """The newest events, whatever they say.

    Parameters
    ----------
    pool : int, default 20
        How many.
    """

    pool: int = 20

    def find(self, view: View) -> Found:
        """Take the latest by timestamp, up to the time of the cue."""
        rows = np.flatnonzero(view.visible & (view.timestamps <= view.now))
        times = view.timestamps[rows]
        if len(rows) > self.pool:
            newest = np.argpartition(times, -self.pool)[-self.pool :]
            rows, times = rows[newest], times[newest]
        order = np.lexsort((rows, times))[::-1]
        return Found(rows[order], 1.0 / np.arange(1, len(order) + 1))


@dataclass(frozen=True, slots=True)
class Given:
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

    def find(self, view: View) -> Found:
        """Ask it and look up what it says."""
        return self.resolve(view, self.ask(view.cue))

    def resolve(self, view: View, hits: Sequence[Hit]) -> Found:
        """Look up hits in the corpus."""
        corpus = view.corpus
        by_node = corpus.rows_of_nodes(np.array([hit.node for hit in hits], dtype=np.int64))
        named = [
            -1 if hit.event is None or hit.event.event_id is None else hit.event.event_id
            for hit in hits
        ]
        by_event = corpus.rows_of(named)
        rows = np.where(by_event >= 0, by_event, by_node)
        found = _first_of_each(rows, np.array([hit.score for hit in hits], dtype=np.float64))
        shown = view.visible[found.rows]
        return Found(found.rows[shown], found.scores[shown])


BUILT_IN: Mapping[str, Finder] = {
    "dense": Dense(),
    "lexical": Lexical(),
    "words": Words(),
    "graph": Graph(),
    "aliases": Aliases(),
    "recent": Recent(),
}


def finder_of(name: str, source: Finder | Source | None = None) -> Finder:
    """Return a source as a `Finder`: a built-in one by its name, or a callable of the user's.

    Raises
    ------
    InvalidParameterError
        No such source, or something that cannot be asked.
    """
    if source is None:
        if name not in BUILT_IN:
            raise InvalidParameterError(
                f"sources name {name!r}: give some of {', '.join(BUILT_IN)}, or a callable"
            )
        return BUILT_IN[name]
    if hasattr(source, "find"):
        return source
    if callable(source):
        return Given(source)
    raise InvalidParameterError(
        f"source {name!r} is {source!r}: give a callable from a Cue to a list of hits"
    )
