"""What weights speak of: everything that could be recalled, or what one score let through."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.scoring import LearnedWeights, LoggedChoice, plackett_luce
from cvx.scoring.weights import selected

NAMES = ("similarity", "reward")


def chance(x: np.ndarray) -> np.ndarray:
    """Reward decides where similarity is low, and hardly where it is high: no linear truth."""
    odds = np.exp(4 * x[:, 1] * (1 - x[:, 0]) + 1.5 * x[:, 0] - 1.5)
    return np.asarray(odds / (1 + odds))


def recalls(n: int, temperature: float, seed: int = 0) -> list[LoggedChoice]:
    """Recalls of 12 candidates by similarity, which is all that the logging score looks at."""
    rng = np.random.default_rng(seed)
    policy = plackett_luce([1.0, 0.0], temperature)
    log = []
    for number in range(n):
        x = rng.random((12, 2))
        odds = policy(x)
        first = int(rng.choice(12, p=odds))
        won = float(rng.random() < chance(x[first : first + 1])[0])
        log.append(LoggedChoice(x, first, float(odds[first]), won, number))
    return log


@pytest.mark.requirement("V12")
def test_sampled_recalls_teach_what_knowing_every_outcome_would() -> None:
    log = recalls(6000, temperature=0.3)
    rng = np.random.default_rng(9)
    everything = np.concatenate([one.features for one in log])
    outcomes = (rng.random(len(everything)) < chance(everything)).astype(float)
    truth = np.array(LearnedWeights(NAMES).fit(everything, outcomes).coefficients)

    weighted = LearnedWeights(NAMES).fit_choices(log)
    taken = np.stack([one.features[one.chosen] for one in log])
    naive = LearnedWeights(NAMES).fit(taken, [one.reward for one in log])
    # Compared in the features' own units: what was retrieved has another spread.
    own = truth / everything.std(axis=0)

    def error(learned: LearnedWeights) -> float:
        return float(np.abs(np.array(list(learned.weights().values())) - own).max())

    assert error(weighted) < 0.35 < 0.8 < error(naive)
    assert weighted.selection.kind == "sampled"
    assert 0.1 * len(log) < weighted.selection.effective < len(log)
    assert naive.selection.kind == "retrieved only"


@pytest.mark.requirement("V12")
def test_the_result_says_of_what_it_speaks() -> None:
    learned = LearnedWeights(NAMES)
    assert str(learned.selection) == "nothing was learned"
    learned.update([[0.1, 0.2], [0.3, 0.4]], [0, 1])
    assert "says nothing of what was not retrieved" in str(learned.selection)
    learned.refill([], [])
    learned.update([[0.1, 0.2], [0.3, 0.4]], [0, 1], [0.5, 0.25])
    assert "all candidates that were drawn from" in str(learned.selection)
    assert LearnedWeights.from_dict(learned.to_dict()).selection == learned.selection


def test_one_sample_without_its_chance_makes_all_count_alike() -> None:
    x, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 1, 0]
    mixed = LearnedWeights(NAMES).fit(x, y, [0.1, 0.2, 0.3, float("nan")])
    plain = LearnedWeights(NAMES).fit(x, y)
    assert mixed.selection.kind == "retrieved only"
    assert mixed.coefficients == plain.coefficients


@given(st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=50))
def test_no_sample_outweighs_fifty_certain_ones(propensities: list[float]) -> None:
    selection, weights = selected(np.array(propensities))
    assert weights.mean() == pytest.approx(1.0)
    assert weights.max() <= 50.0 * weights.min() * (1 + 1e-9)
    assert 1.0 - 1e-9 <= selection.effective <= len(propensities) + 1e-9


@pytest.mark.parametrize("chance", [0.0, -0.1, 1.5, float("inf")])
def test_what_is_no_chance_is_refused_and_changes_nothing(chance: float) -> None:
    learned = LearnedWeights(NAMES).update([[0.1, 0.2], [0.3, 0.4]], [0, 1])
    before = learned.to_dict()
    with pytest.raises(InvalidInputError, match="the chance of each draw"):
        learned.update([[0.1, 0.2]], [1], [chance])
    with pytest.raises(InvalidInputError, match="give one each"):
        learned.update([[0.1, 0.2]], [1], [0.5, 0.5])
    assert learned.to_dict() == before
