"""Scoring a cause and an effect by what many known pairs teach, whatever the embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.causal.heads import Contrasts, Heads, Training
from cvx.causal.judges.protocol import Pair
from cvx.causal.witnesses import Floats
from cvx.causal.word_pairs import WordPairs, beginnings, overlap
from cvx.errors import InvalidInputError
from cvx.types import Vector

Embed: TypeAlias = Callable[[Sequence[str]], Vector]

# Both count in log-odds; words that go together are seen together, so that their sum says too much.
WORDS_WEIGHT = 0.15
EVIDENCE = ("words", "heads", "overlap", "length")


class Example(NamedTuple):
    """A cause and its effect, and what looks like one of the two but is wrong in its place.

    Attributes
    ----------
    cause, effect : str
        The first led to the second.
    wrong : str
        A text like the one that it stands in for.
    wrong_cause : bool
        Whether it stands in for the cause; otherwise for the effect.
    """

    cause: str
    effect: str
    wrong: str
    wrong_cause: bool

    @property
    def true(self) -> tuple[str, str]:
        """The true pair (cause, effect)."""
        return self.cause, self.effect

    @property
    def false(self) -> tuple[str, str]:
        """The pair with the wrong text in it."""
        return (self.wrong, self.effect) if self.wrong_cause else (self.cause, self.wrong)


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

    @classmethod
    def fit(
        cls,
        examples: Sequence[Example],
        embed: Embed | None = None,
        *,
        training: Training | None = None,
        limit: int | None = None,
    ) -> PairScorer:
        """Learn from examples.

        Parameters
        ----------
        examples : sequence of Example
            At least two.
        embed : callable, optional
            Texts to rows of norm 1; without it only words are counted.
        training : Training, optional
            Of the heads.
        limit : int, optional
            How many word pairs to keep; all by default.

        Raises
        ------
        InvalidInputError
            Fewer than two examples.
        """
        if len(examples) < 2:
            raise InvalidInputError(f"{len(examples)} examples teach nothing: give at least 2")
        causes, effects = [one.cause for one in examples], [one.effect for one in examples]
        words = WordPairs.fit(causes, effects, limit=limit)
        if embed is None:
            return cls(words)
        wrong_cause = np.array([one.wrong_cause for one in examples])
        wrong = embed([one.wrong for one in examples])
        contrasts = Contrasts(embed(causes), embed(effects), wrong, wrong_cause)
        return cls(words, Heads.train(contrasts, training))

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

    def score(self, pairs: Sequence[Pair]) -> Floats:
        """Return one number a pair, to compare candidates by: 0.15 * words + heads, (n,)."""
        rows = self.evidence(pairs)
        return WORDS_WEIGHT * rows[:, 0] + rows[:, 1]


def groups_by_text(examples: Sequence[Example]) -> list[str]:
    """Return for each example the name of its group: examples of two groups share no text.

    Texts recur, so rows that are split at random teach what they are then asked. A group is named
    by the first of its texts in the order of the alphabet.
    """
    parent: dict[str, str] = {}

    def first(text: str) -> str:
        parent.setdefault(text, text)
        while parent[text] != text:
            parent[text] = parent[parent[text]]
            text = parent[text]
        return text

    for one in examples:
        for text in (one.effect, one.wrong):
            a, b = sorted((first(one.cause), first(text)))
            # The smaller stays the root, so that a root is the smallest text of its group.
            parent[b] = a
    return [first(one.cause) for one in examples]


def as_pairs(texts: Sequence[tuple[str, str]], embed: Embed | None) -> list[Pair]:
    """Return pairs of (cause, effect) with vectors where there is an embedder."""
    if embed is None or not texts:
        return [Pair(cause, effect) for cause, effect in texts]
    causes, effects = embed([cause for cause, _ in texts]), embed([effect for _, effect in texts])
    return [
        Pair(cause, effect, a, b)
        for (cause, effect), a, b in zip(texts, causes, effects, strict=True)
    ]


def _stacked(rows: Sequence[npt.NDArray[np.float32] | None]) -> npt.NDArray[np.float32]:
    held = [row for row in rows if row is not None]
    if len(held) < len(rows):
        raise InvalidInputError(
            f"{len(rows) - len(held)} of {len(rows)} texts have no vector: the heads need all"
        )
    return np.stack(held)
