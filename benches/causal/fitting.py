"""Fitting the statistical judge of `cvx.causal.judges.statistical` on known pairs."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from benches.causal.training import Contrasts, Training, train
from cvx.causal.fusion import Floats
from cvx.causal.judges.protocol import Pair
from cvx.causal.judges.statistical import (
    PairScorer,
    StatisticalJudge,
    WordPairs,
    beginnings,
)
from cvx.errors import InvalidInputError
from cvx.types import Vector

Embed: TypeAlias = Callable[[Sequence[str]], Vector]

_SMOOTHING = 0.01
_HELD_BACK = 0.15
_FEWEST = 40


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


def count_words(
    causes: Sequence[str], effects: Sequence[str], *, limit: int | None = None
) -> WordPairs:
    """Return what the words of causes and effects weigh, counted over pairs that are true.

    Parameters
    ----------
    causes, effects : sequence of str
        Text i of one led to text i of the other.
    limit : int, optional
        Keep only so many pairs of words: those with the largest |weight| * sqrt(count).

    Raises
    ------
    InvalidInputError
        As many causes as effects are needed.
    InvalidInputError
        No texts.
    """
    if len(causes) != len(effects):
        raise InvalidInputError(f"{len(causes)} causes and {len(effects)} effects: pair them")
    if not causes:
        raise InvalidInputError("no pair of texts to count: give some")
    if limit is not None and limit < 1:
        raise InvalidInputError(f"limit is {limit}: give at least 1")
    left, right, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for cause, effect in zip(causes, effects, strict=True):
        ours, theirs = beginnings(cause), beginnings(effect)
        left.update(ours)
        right.update(theirs)
        both.update((a, b) for a in ours for b in theirs)
    weights = {
        (a, b): math.log((n + _SMOOTHING) / (left[a] * right[b] / len(causes) + _SMOOTHING))
        for (a, b), n in both.items()
    }
    if limit is not None and limit < len(weights):
        order = sorted(weights, key=lambda at: (-abs(weights[at]) * math.sqrt(both[at]), at))
        weights = {pair: weights[pair] for pair in order[:limit]}
    return WordPairs(weights)


def fit_scorer(
    examples: Sequence[Example],
    embed: Embed | None = None,
    *,
    training: Training | None = None,
    limit: int | None = None,
) -> PairScorer:
    """Return word pairs, and heads where there is an embedder, learned from examples.

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
    words = count_words(causes, effects, limit=limit)
    if embed is None:
        return PairScorer(words)
    wrong_cause = np.array([one.wrong_cause for one in examples])
    wrong = embed([one.wrong for one in examples])
    contrasts = Contrasts(embed(causes), embed(effects), wrong, wrong_cause)
    return PairScorer(words, train(contrasts, training))


def fit_judge(
    examples: Sequence[Example],
    embed: Embed | None = None,
    *,
    training: Training | None = None,
    limit: int | None = None,
) -> StatisticalJudge:
    """Fit a judge on examples, and calibrate it on texts that it did not see.

    A scorer is fitted on 85% of the examples, its evidence on the others (true pairs, look-
    alikes, and effects of other causes; half of the weight on the true ones) calibrates the
    probability, and the scorer is then fitted again on everything. Examples that share a text
    stay together.

    Parameters
    ----------
    examples : sequence of Example
        At least 40, of many different texts.
    embed : callable, optional
        Texts to rows of norm 1; the judge then needs vectors of the same embedder.
    training : Training, optional
        Of the heads.
    limit : int, optional
        How many word pairs to keep.

    Raises
    ------
    InvalidInputError
        Too few examples, or examples that all share texts.
    """
    held = np.array([_place(group) < _HELD_BACK for group in groups_by_text(examples)], bool)
    if len(examples) < _FEWEST or not held.any() or held.all():
        raise InvalidInputError(
            f"{len(examples)} examples, {int(held.sum())} of them apart from the others: give "
            f"at least {_FEWEST} with different texts"
        )
    shown = [one for one, out in zip(examples, held, strict=True) if not out]
    asked = [one for one, out in zip(examples, held, strict=True) if out]
    first = fit_scorer(shown, embed, training=training, limit=limit)
    weights, bias = _calibrated(first, asked, embed)
    scorer = fit_scorer(examples, embed, training=training, limit=limit)
    return StatisticalJudge(scorer, weights, bias)


def probabilities(judge: StatisticalJudge, pairs: Sequence[Pair]) -> Floats:
    """Return the probability of each pair, (n,), in whatever order the two happened."""
    odds = judge.parts(pairs).sum(axis=1) + judge.bias
    return np.asarray(1 / (1 + np.exp(-odds - np.log(judge.prior / (1 - judge.prior)))))


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


def _calibrated(
    scorer: PairScorer, asked: Sequence[Example], embed: Embed | None
) -> tuple[list[float], float]:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    true = [one.true for one in asked]
    alike = [one.false for one in asked]
    # Shifted by one: effects of other causes.
    strange = [(one.cause, asked[at - 1].effect) for at, one in enumerate(asked)]
    rows = scorer.evidence(as_pairs([*true, *alike, *strange], embed))
    labels = np.repeat([1, 0, 0], len(asked))
    shares = np.repeat([2.0, 1.0, 1.0], len(asked))
    spread = rows.std(axis=0) + 1e-9
    model = LogisticRegression(max_iter=1000).fit(rows / spread, labels, sample_weight=shares)
    return (model.coef_[0] / spread).tolist(), float(model.intercept_[0])


def _place(group: str) -> float:
    """Return a number in [0, 1) that depends on the text alone."""
    text = group.encode("utf-8", "surrogatepass")
    # Salted, so that it has nothing to do with another split by the hash of the same text.
    code = hashlib.blake2b(text, digest_size=8, salt=b"held back").digest()
    return int.from_bytes(code, "little") / 2**64
