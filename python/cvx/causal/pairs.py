"""Scoring a cause and an effect by what many known pairs teach, whatever the embedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cvx.causal.heads import Heads
from cvx.causal.judges.protocol import Pair
from cvx.causal.witnesses import Floats
from cvx.causal.word_pairs import WordPairs, beginnings, overlap
from cvx.errors import InvalidInputError

EVIDENCE = ("words", "heads", "overlap", "length")


class PairScorer:
    """Word pairs, and two heads where there are vectors.

    Parameters
    ----------
    words : WordPairs
        What the words say.
    heads : Heads, optional
        What the vectors say.
    """

    def __init__(self, words: WordPairs, heads: Heads | None = None) -> None:
        self.words = words
        self.heads = heads

    def evidence(self, pairs: Sequence[Pair]) -> Floats:
        """Return what speaks for each pair.

        Parameters
        ----------
        pairs : sequence of Pair
            n pairs; where the scorer has heads, each with both vectors.

        Returns
        -------
        ndarray of shape (n, len(EVIDENCE))
            Sum over word pairs; nearness by the heads (0 without them); share of words in common;
            log(1 + number of word pairs), since longer texts have larger sums.
        """
        rows = np.zeros((len(pairs), len(EVIDENCE)))
        if not len(pairs):
            return rows
        rows[:, 0] = self.words.scores((pair.cause, pair.effect) for pair in pairs)
        if self.heads is not None:
            rows[:, 1] = self.heads.score(
                _stacked([pair.cause_vector for pair in pairs]),
                _stacked([pair.effect_vector for pair in pairs]),
            )
        rows[:, 2] = [overlap(pair.cause, pair.effect) for pair in pairs]
        rows[:, 3] = [
            np.log1p(len(beginnings(pair.cause)) * len(beginnings(pair.effect))) for pair in pairs
        ]
        return rows


def _stacked(rows: Sequence[npt.NDArray[np.float32] | None]) -> npt.NDArray[np.float32]:
    held = [row for row in rows if row is not None]
    if len(held) < len(rows):
        raise InvalidInputError(
            f"{len(rows) - len(held)} of {len(rows)} texts have no vector: the heads need all"
        )
    return np.stack(held)
