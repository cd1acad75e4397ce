"""What known pairs of cause and effect teach: which words go together, and where vectors lie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidVectorError

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

    def fits(self, vector: Matrix | None) -> bool:
        """Whether a vector has the dimension of the heads."""
        return vector is not None and len(vector) == self.dim

    def score(self, causes: Matrix, effects: Matrix) -> npt.NDArray[np.float64]:
        """Return how near the heads bring each cause to its effect: cosine / temperature, (n,).

        Raises
        ------
        InvalidVectorError
            Vectors of another space than the heads were trained in.
        """
        for rows in (causes, effects):
            if rows.ndim != 2 or rows.shape[1] != self.dim:
                raise InvalidVectorError(
                    f"vectors have shape {rows.shape}, the heads {self.dim} dimensions: refit "
                    "the judge on the vectors of this embedder"
                )
        left, right = self._placed("cause", causes), self._placed("effect", effects)
        return np.asarray((left * right).sum(axis=1) / TEMPERATURE, np.float64)

    def _placed(self, side: str, rows: Matrix) -> Matrix:
        """Rows as one head places them, of norm 1."""
        weights = self.weights
        hidden = np.maximum(rows @ weights[f"in_{side}"] + weights[f"bias_{side}"], 0)
        moved = rows + hidden @ weights[f"out_{side}"]
        return np.asarray(moved / (np.linalg.norm(moved, axis=1, keepdims=True) + _SMALL))


def _names() -> list[str]:
    return [f"{part}_{side}" for side in ("cause", "effect") for part in ("in", "bias", "out")]


_WORD = re.compile(r"\w+")
_LETTERS = 5


@lru_cache(maxsize=4_096)
def beginnings(text: str) -> tuple[str, ...]:
    """Return the first five letters of every word, each once, in order of appearance.

    Cruder than a stemmer, but in every language that inflects at the end; and on e-CARE it told
    causes from distractors a little better than cutting known endings.

    Examples
    --------
    >>> beginnings("The flooded town; the floods of towns")
    ('the', 'flood', 'town', 'of', 'towns')
    """
    return tuple(dict.fromkeys(word[:_LETTERS] for word in _WORD.findall(text.lower())))


class WordPairs:
    """Pointwise mutual information of (word of the cause, word of the effect).

    Parameters
    ----------
    weights : mapping of (str, str) to float
        log((n + s) / (m + s)) for every pair of beginnings that was seen n times in true pairs of
        texts, where m times would be chance, and s = 0.01.

    Attributes
    ----------
    weights : dict of str to dict of str to float
        The same, by cause and then by effect.

    References
    ----------
    Church & Hanks 1990, Word association norms, mutual information, and lexicography.
    Luo et al. 2016, Commonsense causal reasoning between short texts: the same between cause and
    effect.

    Examples
    --------
    >>> pairs = WordPairs({("rain", "flood"): 2.0, ("spark", "fire"): 1.5})
    >>> pairs.score("heavy rain", "flooding"), pairs.score("rain", "fire")
    (2.0, 0.0)
    """

    def __init__(self, weights: Mapping[tuple[str, str], float]) -> None:
        self.weights: dict[str, dict[str, float]] = {}
        for (cause, effect), weight in weights.items():
            self.weights.setdefault(cause, {})[effect] = weight

    def __len__(self) -> int:
        return sum(len(row) for row in self.weights.values())

    def score(self, cause: str, effect: str) -> float:
        """Add up the weights of all pairs of words; pairs never seen weigh nothing."""
        theirs, total = beginnings(effect), 0.0
        for word in beginnings(cause):
            row = self.weights.get(word)
            if row is not None:
                for other in theirs:
                    total += row.get(other, 0.0)
        return total

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> WordPairs:
        """Return the table that a file of a pair model holds: weights in 1/16, within 8."""
        words = arrays["words"].tobytes().decode().split("\n")
        columns = (arrays[name].tolist() for name in ("causes", "effects", "weights"))
        return cls({(words[a], words[b]): w / 16 for a, b, w in zip(*columns, strict=True)})
