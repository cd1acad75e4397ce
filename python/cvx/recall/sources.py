"""Where a recall looks: each source answers a cue with rows of the corpus, best first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cvx.recall.view import View
from cvx.types import Edge, IntArray

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


def first_of_each(rows: IntArray, scores: npt.NDArray[np.float64]) -> Found:
    """Keep the best place of each row, and drop nodes of no event."""
    known = rows >= 0
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
            found = first_of_each(view.corpus.rows_of_nodes(ids), view.to_similarity(distances))
            view.note_similarity(*found[:2])
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
        found = first_of_each(view.corpus.rows_of(events), 1.0 / np.arange(1, len(events) + 1))
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
        found = first_of_each(rows, np.array([hit.score for hit in hits]))
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
        found = first_of_each(view.corpus.rows_of_nodes(ids), view.to_similarity(distances))
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

    def find(self, view: View) -> Found:
        """Take the latest by timestamp, up to the time of the cue."""
        mask = view.visible & (view.timestamps <= view.now)
        if self.least_salience > 0.0:
            mask &= np.nan_to_num(view.corpus.salience, nan=0.0) >= self.least_salience
        rows = np.flatnonzero(mask)
        times = view.timestamps[rows]
        if len(rows) > self.pool:
            newest = np.argpartition(times, -self.pool)[-self.pool :]
            rows, times = rows[newest], times[newest]
        order = np.lexsort((rows, times))[::-1]
        return Found(rows[order], 1.0 / np.arange(1, len(order) + 1))
