"""Tasks tried several times, and an index that recalls trials of similar tasks."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cvx.embed import LexicalEmbedder
from cvx.scoring.logistic import Floats
from cvx.temporal_index import TemporalIndex
from cvx.types import Filter, Vector

DIM = 2048
_LEAST_USED = 5
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)")
_CONDITIONS = frozenset(["if", "unless", "otherwise", "only", "but", "except", "instead"])
_DENIALS = frozenset(["not", "no", "never", "don't", "without", "cannot"])
_MORE = frozenset(["and", "also", "then", "both", "all", "each", "any"])


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks with the outcomes of their trials.

    Parameters
    ----------
    texts : sequence of str
        What each asks for.
    outcomes : ndarray of shape (tasks, trials)
        1 for success.
    index : TemporalIndex
        A node a trial: the entity is the task, the timestamp the trial, the reward the outcome.
    vectors : ndarray of shape (tasks, dim), float32
        Of the texts.
    """

    texts: Sequence[str]
    outcomes: Floats
    index: TemporalIndex
    vectors: Vector

    @classmethod
    def load(cls, path: Path) -> Tasks:
        """Read episodes, a JSON line each."""
        episodes = [json.loads(line) for line in path.read_text().splitlines()]
        texts = {one["task_id"]: one["instruction"] for one in episodes}
        trials = {one["trial"] for one in episodes}
        outcomes = np.zeros((len(texts), len(trials)))
        for one in episodes:
            outcomes[one["task_id"], one["trial"]] = one["success"]
        return cls.of([texts[task] for task in sorted(texts)], outcomes)

    @classmethod
    def of(cls, texts: Sequence[str], outcomes: Floats) -> Tasks:
        """Put tasks into an index of their own."""
        vectors = LexicalEmbedder(dim=DIM).embed(texts)
        n, trials = outcomes.shape
        index = TemporalIndex(DIM, seed=0)
        index.bulk_insert(
            np.repeat(np.arange(n), trials),
            np.tile(np.arange(trials), n),
            np.repeat(vectors, trials, axis=0),
            rewards=outcomes.ravel().tolist(),
        )
        return cls(texts, outcomes, index, vectors)

    def shuffled(self, seed: int) -> Tasks:
        """Return the tasks with the outcomes of others: whatever predicts these knows nothing."""
        order = np.random.default_rng(seed).permutation(len(self.texts))
        return Tasks.of(self.texts, self.outcomes[order])

    @property
    def trials(self) -> int:
        """How often each task was tried."""
        return int(self.outcomes.shape[1])

    def recall(self, task: int, known: Sequence[int], k: int) -> tuple[Floats, Floats]:
        """Return rewards and similarities of the trials of known tasks nearest to a task.

        Those of one task come in the order of its trials.
        """
        ids, distances = self.index.search(
            self.vectors[task], k, where=Filter(entities=np.asarray(known))
        )
        rewards = [self.index.reward(node) for node in ids.tolist()]
        # Rounding of float32 must not rank tasks with equal evidence.
        similarities = np.round(1.0 - distances.astype(np.float64), 6)
        return np.array(rewards, dtype=np.float64), similarities


def complexity(text: str) -> list[float]:
    """Return how long and involved a text is: logarithms of six counts.

    Words, sentences, conditions, numbers, denials, and words that ask for more.
    """
    words = re.findall(r"[a-z']+", text.lower())
    counts = [
        len(words),
        len(_SENTENCE_END.findall(text)),
        sum(word in _CONDITIONS for word in words),
        len(re.findall(r"\d+", text)),
        sum(word in _DENIALS for word in words),
        sum(word in _MORE for word in words),
    ]
    return [math.log1p(count) for count in counts]


def known_words(texts: Sequence[str], known: Sequence[int]) -> Floats:
    """Return which texts have which of the words that several of the known ones use."""
    sets = [set(re.findall(r"[a-z]{3,}", text.lower())) for text in texts]
    counts = Counter(word for task in known for word in sets[task])
    words = sorted(word for word, n in counts.items() if n >= _LEAST_USED)
    return np.array([[float(word in has) for word in words] for has in sets])
