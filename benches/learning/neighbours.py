"""Finds the nearest situations in other episodes, and counts their votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from benches.learning.states import State
from cvx.temporal_index import TemporalIndex
from cvx.types import Filter

Near = Sequence[tuple[State, float]]
Vectors = npt.NDArray[np.float32]
_MOST = 80


class Neighbours:
    """The nearest states of episodes that are not set apart.

    Parameters
    ----------
    rows : sequence of State
    vectors : ndarray of shape (n, dim), float32
        Of the states.
    apart : mapping of int to sequence of int
        By episode, those that it must not know, itself among them.
    """

    def __init__(
        self, rows: Sequence[State], vectors: Vectors, apart: Mapping[int, Sequence[int]]
    ) -> None:
        index = TemporalIndex(vectors.shape[1], seed=0)
        index.bulk_insert([row.episode for row in rows], list(range(len(rows))), vectors)
        self._near: list[list[tuple[State, float]]] = []
        for row, vector in zip(rows, vectors, strict=True):
            others = [episode for episode in apart if episode not in apart[row.episode]]
            ids, distances = index.search(vector, _MOST, where=Filter(entities=others))
            similarities = (1.0 - distances).tolist()
            near = zip(ids.tolist(), similarities, strict=True)
            self._near.append([(rows[node], similarity) for node, similarity in near])

    def of(self, at: int, without: Collection[int] = ()) -> Near:
        """Return (state, similarity), nearest first, less those of some more episodes."""
        near = self._near[at]
        return [one for one in near if one[0].episode not in without] if without else near


def votes(
    near: Iterable[tuple[State, float]], exponent: float, of: Callable[[State], str]
) -> Counter[str]:
    """Return what neighbours say, each with its similarity to a power; the sum is 1."""
    said: Counter[str] = Counter()
    for state, similarity in near:
        said[of(state)] += max(similarity, 0.0) ** exponent
    whole = sum(said.values()) or 1.0
    return Counter({name: value / whole for name, value in said.items()})
