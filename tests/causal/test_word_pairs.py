"""Which words of causes go with which words of effects."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.causal.fitting import arrays_of, count_words
from cvx.causal.judges.offline import WordPairs, beginnings
from cvx.errors import InvalidInputError

WORDS = ("rain", "flood", "spark", "fire", "vote", "law", "the", "a")


def texts(seed: int, count: int = 12) -> tuple[list[str], list[str]]:
    rng = random.Random(seed)
    one = [" ".join(rng.choices(WORDS, k=rng.randint(1, 5))) for _ in range(2 * count)]
    return one[:count], one[count:]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_score_is_the_sum_of_counted_pairs(seed: int) -> None:
    causes, effects = texts(seed)
    pairs = count_words(causes, effects)
    asked, answer = texts(seed + 1)
    for cause, effect in zip(asked, answer, strict=True):
        expected = 0.0
        for a in set(cause.split()):
            for b in set(effect.split()):
                n = sum(
                    a in c.split() and b in e.split() for c, e in zip(causes, effects, strict=True)
                )
                ours = sum(a in c.split() for c in causes)
                theirs = sum(b in e.split() for e in effects)
                if n:
                    expected += math.log((n + 0.01) / (ours * theirs / len(causes) + 0.01))
        assert pairs.score(cause, effect) == pytest.approx(expected)


def test_what_goes_together_beats_what_does_not() -> None:
    pairs = count_words(
        ["heavy rain", "rain again", "a spark", "sparks fly"],
        ["the river floods", "flooded fields", "the barn burns", "burning hay"],
    )
    assert pairs.score("rain", "flooding") > 0 == pairs.score("rain", "burning")
    assert pairs.score("rain", "unheard of") == 0.0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_table_survives_being_kept(seed: int) -> None:
    causes, effects = texts(seed)
    pairs = count_words(causes, effects)
    kept = WordPairs.from_arrays(arrays_of(pairs))
    assert len(kept) == len(pairs)
    for cause, effect in zip(causes, effects, strict=True):
        terms = len(set(cause.split())) * len(set(effect.split()))
        assert kept.score(cause, effect) == pytest.approx(
            pairs.score(cause, effect), abs=terms / 32 + 1e-9
        )


def test_a_limit_keeps_the_strongest_pairs() -> None:
    causes, effects = ["rain"] * 5 + ["spark"] * 5, ["flood"] * 5 + ["fire"] * 5
    causes, effects = [*causes, "rain"], [*effects, "fire"]
    pairs = count_words(causes, effects, limit=2)
    assert len(pairs) == 2
    assert pairs.score("rain", "flood") > 0
    assert pairs.score("rain", "fire") == 0.0


def test_words_of_any_script_are_cut_to_their_beginnings() -> None:
    assert beginnings("Übergabe, übergeben") == ("überg",)


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        count_words(["a"], [])
    with pytest.raises(InvalidInputError):
        count_words([], [])
    with pytest.raises(InvalidInputError, match="limit"):
        count_words(["a"], ["b"], limit=0)
