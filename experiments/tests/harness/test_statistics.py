"""Intervals cover what they should, pairs are clustered, many comparisons are paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

pytest.importorskip("statsmodels")

from cvx.errors import InvalidInputError
from experiments.harness.statistics import Pairs, area_weights, corrected, paired_difference


def test_a_paired_difference_has_its_mean_inside_its_interval() -> None:
    rng = np.random.default_rng(0)
    second = rng.integers(0, 2, 200).astype(float)
    first = np.maximum(second, rng.integers(0, 2, 200))
    games = list(range(200))
    found = paired_difference(Pairs(first.tolist(), second.tolist(), [0] * 200, games))
    assert found.mean == pytest.approx(float((first - second).mean()))
    assert 0 < found.low < found.mean < found.high
    assert found.p < 0.001


def test_arms_that_play_alike_do_not_differ() -> None:
    same = paired_difference(Pairs([1.0, 0.0], [1.0, 0.0], [0, 1], ["a", "b"]))
    assert tuple(same) == (0.0, 0.0, 0.0, 1.0)


def _width(
    first: Sequence[float], second: Sequence[float], seeds: list[int], games: list[int]
) -> float:
    found = paired_difference(Pairs(first, second, seeds, games))
    return found.high - found.low


def test_the_same_game_or_the_same_seed_again_is_less_evidence_than_another() -> None:
    first, second = [1.0, 1.0, 1.0, 0.0] * 6, [0.0, 1.0, 0.0, 0.0] * 6
    one_seed, own = [0] * 24, list(range(24))
    alone = _width(first, second, one_seed, own)
    assert _width(first, second, one_seed, [0, 1, 2, 3] * 6) > alone
    by_seed = [0.0] * 12 + [1.0] * 12
    assert _width(by_seed, [0.0] * 24, [0] * 12 + [1] * 12, own) > _width(
        by_seed, [0.0] * 24, one_seed, own
    )


def test_what_only_one_of_five_seeds_shows_is_not_called_sure() -> None:
    seeds = [s for s in range(5) for _ in range(40)]
    games = list(range(40)) * 5
    first = [1.0 if s == 0 and g % 4 == 0 else 0.0 for s, g in zip(seeds, games, strict=True)]
    assert paired_difference(Pairs(first, [0.0] * 200, seeds, games)).p > 0.05
    everywhere = [1.0 if g % 4 == 0 else 0.0 for g in games]
    assert paired_difference(Pairs(everywhere, [0.0] * 200, seeds, games)).p < 0.01


@given(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=8), st.integers(1, 4))
@settings(deadline=None, max_examples=50)
def test_no_finding_is_surer_than_a_t_test_over_the_means_of_seeds(
    means: list[float], games: int
) -> None:
    first = [mean for mean in means for _ in range(games)]
    seeds = [seed for seed in range(len(means)) for _ in range(games)]
    pairs = Pairs(first, [0.0] * len(first), seeds, list(range(games)) * len(means))
    found = paired_difference(pairs, draws=100)
    assume(np.ptp(means) > 1e-6)
    theirs = stats.ttest_1samp(means, 0.0)
    bounds = theirs.confidence_interval(0.95)
    assert found.p >= theirs.pvalue - 1e-9
    assert found.low <= bounds.low + 1e-9
    assert found.high >= bounds.high - 1e-9


@pytest.mark.parametrize(
    ("seeds", "seed_sd"), [(2, 0.15), (3, 0.15), (5, 0.0), (5, 0.05), (5, 0.15)]
)
def test_intervals_cover_and_p_errs_as_often_as_they_say(seeds: int, seed_sd: float) -> None:
    # Arms that do not differ: seeds, games and the games of a seed do, by chance.
    repeats, games = 200, 40
    rng = np.random.default_rng(0)
    of_seed = [seed for seed in range(seeds) for _ in range(games)]
    found = []
    for repeat in range(repeats):
        spread = rng.normal(0, seed_sd, (seeds, 1)) + rng.normal(0, 0.2, games)
        first = (spread + rng.normal(0, 0.3, (seeds, games))).ravel().tolist()
        pairs = Pairs(first, [0.0] * len(first), of_seed, list(range(games)) * seeds)
        found.append(paired_difference(pairs, draws=400, seed=repeat))
    noise = 3 * math.sqrt(0.05 * 0.95 / repeats)
    assert np.mean([one.low <= 0 <= one.high for one in found]) >= 0.95 - noise
    assert np.mean([one.p < 0.05 for one in found]) <= 0.05 + noise


def test_weights_decide_what_a_pair_counts() -> None:
    found = paired_difference(Pairs([1.0, 1.0], [0.0, 1.0], [0, 0], ["a", "b"], [3.0, 1.0]))
    assert found.mean == 0.75


@pytest.mark.parametrize(("first", "second", "games"), [([], [], []), ([1.0], [], ["a"])])
def test_unequal_or_no_pairs_are_refused(
    first: list[float], second: list[float], games: list[str]
) -> None:
    with pytest.raises(InvalidInputError, match="equally many"):
        Pairs(first, second, [0] * len(first), games)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(deadline=None)
def test_a_correction_never_makes_a_finding_surer_nor_changes_the_order(p: list[float]) -> None:
    found = corrected(p)
    assert all(after >= before for before, after in zip(p, found, strict=True))
    assert max(found) <= 1
    order = sorted(range(len(p)), key=p.__getitem__)
    assert sorted(found) == [found[i] for i in order]
    assert min(found) == pytest.approx(min(1.0, len(p) * min(p)))


def test_no_comparison_needs_no_correction() -> None:
    assert corrected([]) == []


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9, unique=True))
def test_the_area_is_that_of_the_trapezoid_rule(rounds: list[int]) -> None:
    rounds.sort()
    weights = area_weights(rounds)
    assert sum(weights.values()) == pytest.approx(1.0)
    if len(rounds) > 1:
        curve = [math.sin(n) for n in rounds]
        expected = float(np.trapezoid(curve, rounds)) / (rounds[-1] - rounds[0])
        area = sum(weights[n] * y for n, y in zip(rounds, curve, strict=True))
        assert area == pytest.approx(expected)
