"""Ranks candidates by learned weights over columns that memory provides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from cvx.scoring import LearnedWeights

_FOLDS = 14
Columns = list[list[float]]


class Ranker(Protocol):
    """What can be chosen at a moment."""

    @property
    def names(self) -> Sequence[str]:
        """What the columns are called."""
        ...

    def chosen(self, at: int) -> str | None:
        """Return what was chosen, None where it was no choice of this kind."""
        ...

    def known_without(self, episodes: Collection[int]) -> Ranking:
        """Return what ranks by the memory of all but these episodes."""
        ...


class Ranking(Protocol):
    """The columns of candidates by what is known."""

    def columns(self, at: int) -> tuple[list[str], Columns]:
        """Return the candidates at a moment, and a row of columns for each."""
        ...


def ranked(
    ranker: Ranker, episode_of: Sequence[int], apart: Mapping[int, Sequence[int]]
) -> list[str | None]:
    """Return the best candidate at each moment, by weights that were learned without its fold.

    Episodes that are set apart from one another are in one fold. What a fold's weights are learned
    from knows nothing of the fold; what is ranked knows all but what is set apart from it.

    Parameters
    ----------
    ranker : Ranker
    episode_of : sequence of int
        By moment.
    apart : mapping of int to sequence of int
        By episode, those that it must not know, itself among them.
    """
    everything = ranker.known_without(())
    best: list[str | None] = [None] * len(episode_of)
    for fold in _folds(apart):
        rest = ranker.known_without(fold)
        rows: Columns = []
        labels: list[float] = []
        for at, episode in enumerate(episode_of):
            chosen = ranker.chosen(at)
            if episode in fold or chosen is None:
                continue
            candidates, columns = rest.columns(at)
            if chosen in candidates:
                rows += columns
                labels += [float(candidate == chosen) for candidate in candidates]
        learned = LearnedWeights(ranker.names, window=len(rows)).update(rows, labels)
        for at, episode in enumerate(episode_of):
            if episode in fold:
                candidates, columns = everything.columns(at)
                if candidates:
                    best[at] = candidates[int(learned.predict(columns).argmax())]
    return best


def _folds(apart: Mapping[int, Sequence[int]]) -> list[set[int]]:
    groups: dict[int, list[int]] = {}
    for episode, others in apart.items():
        groups.setdefault(min(others), []).append(episode)
    folds: list[set[int]] = [set() for _ in range(min(_FOLDS, len(groups)))]
    names = list(groups)
    np.random.default_rng(0).shuffle(names)
    for name in names:
        min(folds, key=len).update(groups[name])
    return folds
