"""What one recall sees: the visible part of the corpus, and the cue's likeness to any row of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cvx.index import RawIndex
from cvx.recall.corpus import Corpus
from cvx.recall.naming import title_key
from cvx.recall.scope import Mask, Scope
from cvx.store.rows import event_context
from cvx.types import Cue, Edge, Filter, IntArray, Vector

_SAMPLE = 128


class Question(Protocol):
    """What a reader makes of a cue; it may know more than this."""

    @property
    def text(self) -> str:
        """The raw words, for the lexical source."""
        ...

    @property
    def bare(self) -> str:
        """What is embedded."""
        ...

    @property
    def words(self) -> tuple[str, ...]:
        """Its content words, each once; empty where it was not taken apart."""
        ...


class View:
    """One recall's sight of a memory.

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
    question : Question
        What the reader made of the cue; set before any source is asked.
    vector : ndarray of shape (dim,), float32, or None
        Where the cue lies; None where it could not be embedded.
    pending : mapping of int to int
        When events were used, where that is not written down yet.
    """

    question: Question
    vector: Vector | None

    def __init__(
        self, corpus: Corpus, index: RawIndex, scope: Scope, cue: Cue, now: int, k: int
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
        self.pending: Mapping[int, int] = {}
        self.vector = cue.vector
        self.size = int(np.count_nonzero(scope.readable))
        # By row of the corpus; only the pages that are touched ever take memory or time.
        self._similar = np.zeros(len(corpus))
        self._measured = np.zeros(len(corpus), dtype=np.bool_)

    def pool(self, least: int) -> int:
        """Return how many candidates a source looks for: three for each hit, or ``least``."""
        return max(least, 3 * self.k)

    @property
    def visible(self) -> Mask:
        """Which rows of the corpus may come back."""
        return self.scope.visible

    @property
    def readable(self) -> Mask:
        """Which rows the asker may know of, whatever its filter; there are ``size`` of them."""
        return self.scope.readable

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

    @property
    def sessions(self) -> IntArray:
        """Codes of the sessions of all rows; see `Timelines`."""
        return self.corpus.timelines.sessions

    @property
    def lengths(self) -> IntArray:
        """Characters of all rows."""
        return self.corpus.lengths

    @property
    def asks(self) -> Mask:
        """Which of all rows hold a question mark."""
        return self.corpus.asks

    @cached_property
    def names(self) -> Mapping[str, frozenset[int]]:
        """Words, in lower case, that name an entity."""
        return self.corpus.names(tuple(self.scope.where.namespaces or ()))

    @property
    def passages(self) -> bool:
        """Whether what the asker may know of are passages of documents: see `Corpus.passages`."""
        return self.corpus.passages(tuple(self.scope.where.namespaces or ()), self.readable)

    def window(self, rows: IntArray, reach: int) -> IntArray:
        """Return rows with their readable neighbours in time; see `Timelines.window`."""
        around = self.corpus.timelines.window(rows, reach)
        hidden = (around >= 0) & ~self.readable[around]
        hidden[:, reach] = False
        return np.where(hidden, -1, around)

    def postings(self, word: str) -> IntArray | None:
        """Return the readable rows that hold a word, ascending; None where too many do."""
        scope = self.scope.where
        return self.corpus.postings(word, tuple(scope.namespaces or ()), scope.recallable)

    def last_used(self, rows: IntArray) -> IntArray:
        """Return when events were used last; what never was, when it happened."""
        out = self.timestamps[rows].copy()
        events = self.event_ids[rows].tolist()
        for event, (_, last) in self.corpus.record.used(events).items():
            if last is not None:
                at = events.index(event)
                out[at] = max(out[at], last)
        for at, event in enumerate(events) if self.pending else ():
            out[at] = max(out[at], self.pending.get(event, out[at]))
        return out

    def use(self, rows: IntArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return how often events were followed, and how often that helped."""
        places = {
            event_context(event): at for at, event in enumerate(self.event_ids[rows].tolist())
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

    def titles(self, title: str) -> IntArray:
        """Return the readable rows that have a title, compared by its words."""
        known = self.corpus.naming.titles
        rows = np.array(known.get(title_key(title), ()) if known else (), dtype=np.int64)
        return rows[self.readable[rows]]

    def texts(self, rows: IntArray) -> list[str]:
        """Return the texts of these rows."""
        return self.corpus.texts(rows)

    def to_similarity(self, distances: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Turn distances of the index's metric into similarities."""
        far = distances.astype(np.float64)
        return 1.0 / (1.0 + far) if self.index.metric == "l2" else 1.0 - far

    def to_distance(self, similarity: float) -> float:
        """Turn a similarity back into a distance."""
        if self.index.metric != "l2":
            return 1.0 - similarity
        return 1.0 / similarity - 1.0 if similarity > 0.0 else math.inf

    def similarity(self, rows: IntArray) -> npt.NDArray[np.float64]:
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
        missing = rows[~self._measured[rows]]
        if len(missing):
            self._measure(missing)
        return self._similar[rows]

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
            nodes = self.corpus.nodes[self.readable & (self.corpus.nodes >= 0)]
            some = np.random.default_rng(0).permutation(nodes)[:_SAMPLE].tolist()
            vectors = [vector for node in some if (vector := self.index.vector(node)) is not None]
            spread = None
            if len(vectors) >= max(fewest, 2) and self.index.metric != "l2":
                rows = np.array(vectors, dtype=np.float64)
                rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
                pairs = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
                spread = float(pairs.mean()), float(pairs.std())
            known = kept[spaces] = self.size, spread
        return known[1]

    def note_similarity(self, rows: IntArray, similar: npt.NDArray[np.float64]) -> None:
        """Take down similarities that a search has measured, the best of each event."""
        self._similar[rows] = similar
        self._measured[rows] = True

    def _measure(self, rows: IntArray) -> None:
        self.note_similarity(rows, np.full(len(rows), np.nan))
        nodes = self.corpus.nodes_of(rows)
        if len(nodes) and self.vector is not None:
            # The spaces of the scope, whatever else it asks for: neighbours count too.
            near = Filter(ids=nodes, namespaces=self.scope.where.namespaces, recallable=None)
            ids, distances = self.index.search(self.vector, len(nodes), where=near)
            owners = self.corpus.rows_of_nodes(ids)
            # Farthest first, so that of an event's nodes the nearest is written last.
            self._similar[owners[::-1]] = self.to_similarity(distances)[::-1]

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
