"""Baseline rankers that share nothing with the library: plain arrays over a whole namespace."""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cvx.embed import embed_query
from cvx.evaluation import Label
from cvx.evaluation.metrics import Answer, Ranker, tokens_of
from cvx.memory import Memory
from cvx.recall.sources import RRF_CONSTANT
from cvx.scoring.scorer import scale
from cvx.types import Event

_WORD = re.compile(r"\w+")
Scores = npt.NDArray[np.float64]


def baselines(memory: Memory) -> dict[str, Ranker]:
    """Return the rankers to compare with, by name.

    Parameters
    ----------
    memory : Memory
        Of moderate size: everything is scored for every question.

    Returns
    -------
    dict of str to Ranker
        "dense": similarity of the question as asked. "words of 3": BM25 of windows of three events
        in time, the raw words of the question. "min-max": the sum of both, scaled. "reciprocal
        rank": the places of dense and of BM25 over single events.
    """
    plain = _Plain(memory)

    def ranker(name: str) -> Ranker:
        def rank(label: Label, k: int) -> Answer:
            space = plain.space(label.namespace)
            chosen = getattr(space, name)(plain, label)
            if label.speaker is not None:
                chosen = np.where(space.entities == label.speaker, chosen, -np.inf)
            order = np.argsort(-chosen, kind="stable")[:k]
            found = [space.events[place] for place in order.tolist() if chosen[place] > -np.inf]
            ids = tuple(event.event_id for event in found if event.event_id is not None)
            return Answer(ids, tokens_of([event.text for event in found]))

        return rank

    names = {
        "dense": "dense",
        "words of 3": "windows",
        "min-max": "summed",
        "reciprocal rank": "by_places",
    }
    return {name: ranker(method) for name, method in names.items()}


class _Plain:
    """Namespaces, each read once."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._spaces: dict[str, _Space] = {}

    def space(self, namespace: str) -> _Space:
        if namespace not in self._spaces:
            self._spaces[namespace] = _Space(
                [
                    event
                    for event in self.memory.record.events()
                    if event.namespace == namespace and event.state == "active"
                ]
            )
        return self._spaces[namespace]


class _Space:
    """The events of one namespace, scored without an index."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.entities = np.array([event.entity_id for event in events], dtype=np.int64)

    @cached_property
    def _vectors(self) -> npt.NDArray[np.float64]:
        dim = max((e.vector.size for e in self.events if e.vector is not None), default=0)
        rows = np.zeros((len(self.events), dim))
        for row, event in zip(rows, self.events, strict=True):
            if event.vector is not None:
                row[:] = event.vector
        unit: npt.NDArray[np.float64] = rows / np.maximum(
            np.linalg.norm(rows, axis=1, keepdims=True), 1e-12
        )
        return unit

    @cached_property
    def _single(self) -> sqlite3.Connection:
        return _words([event.text for event in self.events])

    @cached_property
    def _windowed(self) -> sqlite3.Connection:
        texts = [event.text for event in self.events]
        order = sorted(range(len(texts)), key=lambda at: _place(self.events[at]))
        joined = list(texts)
        for before, here in itertools.pairwise(order):
            if _session(self.events[before]) == _session(self.events[here]):
                joined[here] = f"{texts[before]}\n{joined[here]}"
                joined[before] = f"{joined[before]}\n{texts[here]}"
        return _words(joined)

    def dense(self, plain: _Plain, label: Label) -> Scores:
        # The plain way has no idea of names: the question as asked, not the label's own vector.
        asked = np.asarray(embed_query(plain.memory.embedder, label.query), dtype=np.float64)
        if not self._vectors.size:
            return np.zeros(len(self.events))
        scores: Scores = self._vectors @ (asked / max(float(np.linalg.norm(asked)), 1e-12))
        return scores

    def windows(self, plain: _Plain, label: Label) -> Scores:
        del plain
        return _bm25(self._windowed, label.query, len(self.events))

    def summed(self, plain: _Plain, label: Label) -> Scores:
        both = (
            scale(self.dense(plain, label)),
            scale(self.windows(plain, label)),
        )
        return np.asarray(both[0] + both[1])

    def by_places(self, plain: _Plain, label: Label) -> Scores:
        out = np.zeros(len(self.events))
        words = _bm25(self._single, label.query, len(self.events))
        for scores in (self.dense(plain, label), words):
            order = np.argsort(-scores, kind="stable")
            best = order[scores[order] > 0][:100]
            out[best] += 1.0 / (RRF_CONSTANT + np.arange(1, len(best) + 1))
        return out


def _place(event: Event) -> tuple[str, int, int]:
    return _session(event), event.timestamp, event.event_id or 0


def _session(event: Event) -> str:
    return str(event.metadata.get("session", event.episode_id))


def _words(texts: Sequence[str]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize='porter unicode61')")
    db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", enumerate(texts))
    return db


def _bm25(db: sqlite3.Connection, text: str, count: int) -> Scores:
    words = list(dict.fromkeys(_WORD.findall(text.casefold())))
    scores = np.zeros(count)
    if words:
        asked = " OR ".join(f'"{word}"' for word in words)
        for row, score in db.execute(
            "SELECT rowid, -bm25(words) FROM words WHERE words MATCH ?", (asked,)
        ):
            scores[row] = score
    return scores
