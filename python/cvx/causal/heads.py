"""Two heads on frozen sentence vectors: where a text lies as a cause, and where as an effect.

An encoder puts texts near that are alike; what led to a thing is seldom like it. Each head is a
residual network of one hidden layer; ``benches/causal/training.py`` trains them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.errors import DimensionError

Matrix: TypeAlias = npt.NDArray[np.float32]

TEMPERATURE = 0.1
_SMALL = 1e-8


class Heads:
    """Two trained heads.

    Parameters
    ----------
    weights : mapping of str to ndarray
        ``in_cause`` (dim, hidden), ``bias_cause`` (hidden,), ``out_cause`` (hidden, dim), and the
        same for ``effect``; float32.
    """

    def __init__(self, weights: Mapping[str, Matrix]) -> None:
        self.weights = {name: np.asarray(weights[name], np.float32) for name in _names()}
        self.dim = self.weights["in_cause"].shape[0]

    def score(self, causes: Matrix, effects: Matrix) -> npt.NDArray[np.float64]:
        """Return how near the heads bring each cause to its effect: cosine / temperature, (n,).

        Raises
        ------
        DimensionError
            Vectors of another space than the heads were trained in.
        """
        for rows in (causes, effects):
            if rows.ndim != 2 or rows.shape[1] != self.dim:
                raise DimensionError(
                    f"vectors have shape {rows.shape}, the heads {self.dim} dimensions: refit "
                    "the judge on the vectors of this embedder"
                )
        left = applied(self.weights, "cause", causes)[0]
        right = applied(self.weights, "effect", effects)[0]
        return np.asarray((left * right).sum(axis=1) / TEMPERATURE, np.float64)


class Parts(NamedTuple):
    """What a head made on the way, for its gradient."""

    rows: Matrix
    hidden: Matrix
    kept: Matrix | None
    length: Matrix


def applied(
    weights: Mapping[str, Matrix], side: str, rows: Matrix, kept: Matrix | None = None
) -> tuple[Matrix, Parts]:
    """Return rows as one head places them, of norm 1, and what it made on the way.

    Parameters
    ----------
    weights : mapping of str to ndarray
        As in `Heads`.
    side : {"cause", "effect"}
        Which head.
    rows : ndarray of shape (n, dim), float32
        Vectors of norm 1.
    kept : ndarray of shape (m, hidden), float32, optional
        What dropout leaves of the hidden layer, scaled, m at least n; all of it by default.
    """
    hidden = np.maximum(rows @ weights[f"in_{side}"] + weights[f"bias_{side}"], 0)
    if kept is not None:
        kept = kept[: len(rows)]
        hidden = hidden * kept
    moved = rows + hidden @ weights[f"out_{side}"]
    length = np.linalg.norm(moved, axis=1, keepdims=True) + _SMALL
    return moved / length, Parts(rows, hidden, kept, length)


def _names() -> list[str]:
    return [f"{part}_{side}" for side in ("cause", "effect") for part in ("in", "bias", "out")]
