"""Predicted chances against what happened: Brier, ECE, the reliability curve."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve  # type: ignore[import-untyped]
from sklearn.metrics import brier_score_loss  # type: ignore[import-untyped]

from cvx.errors import InvalidInputError
from cvx.scoring import calibration

predictions = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


@pytest.mark.requirement("B6")
@given(predictions, st.integers(1, 12))
def test_brier_and_ece_are_what_their_definitions_say(
    pairs: list[tuple[float, bool]], bins: int
) -> None:
    p, y = np.array([one for one, _ in pairs]), np.array([float(won) for _, won in pairs])
    found = calibration(p, y, bins=bins, resamples=20)
    place = np.array([max(i for i in range(bins) if q >= i / bins) for q in p])
    naive = sum(
        abs(p[place == i].mean() - y[place == i].mean()) * (place == i).mean() for i in set(place)
    )
    assert found.ece.value == pytest.approx(naive, abs=1e-9)
    assert found.brier.value == pytest.approx(brier_score_loss(y, p, pos_label=1.0), abs=1e-9)
    assert sum(one.n for one in found.bins) == len(p) == found.n
    for one in found.bins:
        assert one.low <= one.predicted + 1e-9
        assert one.predicted <= one.high + 1e-9
        assert one.happened.low <= one.happened.value <= one.happened.high


@pytest.mark.requirement("B6")
def test_honest_predictions_are_near_the_diagonal_and_boasting_ones_are_not() -> None:
    within = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        chance = rng.beta(2, 2, 4000)
        y = (rng.random(4000) < chance).astype(float)
        honest = calibration(chance, y)
        boasting = calibration(np.clip(chance * 3 - 1, 0, 1), y)
        assert honest.ece.value < 0.03 < 0.1 < boasting.ece.low
        assert honest.skill > 0.15 > boasting.skill
        within += [one.happened.low <= one.predicted <= one.happened.high for one in honest.bins]
    assert np.mean(within) > 0.85


@pytest.mark.requirement("B6")
def test_predictions_that_share_an_outcome_make_the_interval_wider() -> None:
    rng = np.random.default_rng(1)
    chance = np.repeat(rng.random(40), 25)
    y = np.repeat((rng.random(40) < chance[::25]).astype(float), 25)
    grouped = calibration(chance, y, np.repeat(np.arange(40), 25))
    apart = calibration(chance, y)
    assert grouped.brier.value == pytest.approx(apart.brier.value)
    assert grouped.brier.high - grouped.brier.low > 2 * (apart.brier.high - apart.brier.low)
    assert grouped.groups == 40


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_one_outcome_only_has_no_skill_to_speak_of(value: float) -> None:
    found = calibration([0.5] * 8, [value] * 8)
    assert (found.base_rate, found.skill, found.ece.value) == (value, 0.0, 0.5)
    assert found.bins[0].happened.low < found.bins[0].happened.high


def test_the_same_seed_gives_the_same_intervals_as_plain_numbers() -> None:
    rng = np.random.default_rng(3)
    p, y = rng.random(100), rng.integers(0, 2, 100)
    first, again = calibration(p, y, seed=5).to_dict(), calibration(p, y, seed=5).to_dict()
    assert json.dumps(first) == json.dumps(again)
    assert first["brier"] != calibration(p, y, seed=6).to_dict()["brier"]


@given(predictions, st.integers(1, 15))
def test_the_calibration_error_is_that_of_the_bins_of_scikit_learn(
    told: list[tuple[float, bool]], bins: int
) -> None:
    # scikit-learn puts a border into the lower bin; away from borders both agree.
    told = [(p, y) for p, y in told if abs(p * bins - round(p * bins)) > 1e-9]
    assume(told)
    chances, happened = (np.array(column) for column in zip(*told, strict=True))
    share, mean = calibration_curve(happened, chances, n_bins=bins)
    sizes = np.bincount((chances * bins).astype(int), minlength=bins)
    sizes = sizes[sizes > 0]
    expected = float(np.sum(sizes * np.abs(share - mean)) / len(told))
    found = calibration(chances, happened, bins=bins, resamples=1)
    assert found.ece.value == pytest.approx(expected)


@pytest.mark.parametrize("tenths", range(10))
def test_a_prediction_on_a_border_belongs_to_the_upper_bin(tenths: int) -> None:
    assert calibration([float(f"0.{tenths}")], [1.0]).bins[0].low == tenths / 10


def test_predictions_of_one_group_have_no_interval() -> None:
    found = calibration([0.2, 0.6, 0.9], [0.0, 1.0, 1.0], ["one"] * 3)
    assert np.isnan([found.brier.low, found.brier.high, found.ece.low, found.ece.high]).all()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["brier"] == [pytest.approx(0.07), None, None]


@pytest.mark.parametrize(
    ("predicted", "happened", "kw", "error"),
    [
        ([], [], {}, InvalidInputError),
        ([1.1], [1], {}, InvalidInputError),
        ([float("nan")], [1], {}, InvalidInputError),
        ([0.5], [2], {}, InvalidInputError),
        ([0.5], [1, 0], {}, InvalidInputError),
        ([0.5], [1], {"groups": [1, 2]}, InvalidInputError),
        ([0.5], [1], {"bins": 0}, InvalidInputError),
        ([0.5], [1], {"resamples": 0}, InvalidInputError),
    ],
)
def test_what_cannot_be_judged_is_refused(
    predicted: list[float], happened: list[float], kw: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        calibration(predicted, happened, **kw)  # type: ignore[arg-type]
