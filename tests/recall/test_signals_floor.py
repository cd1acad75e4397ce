from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.recall.floor import FLOOR_FEATURES, Answerable, floor_features

NUMBERS = st.floats(-50, 50, allow_subnormal=False)
STORED = {
    "features": list(FLOOR_FEATURES),
    "coefficients": [1.0, 1.0, 1.0, 1.0],
    "intercept": 0.0,
    "threshold": 0.5,
    "leniency": 0.0,
}


@given(st.tuples(*[NUMBERS] * 4), NUMBERS, st.lists(st.tuples(*[st.floats(0, 1)] * 4), max_size=5))
def test_the_probability_is_the_logistic_of_the_best_values(
    coefficients: tuple[float, ...], intercept: float, rows: list[tuple[float, ...]]
) -> None:
    table = np.array(rows).reshape(len(rows), 4)
    columns = dict(zip(FLOOR_FEATURES, table.T, strict=True))
    best = [max((row[at] for row in rows), default=0.0) for at in range(4)]
    z = sum(c * b for c, b in zip(coefficients, best, strict=True)) + intercept
    expected = 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))
    found = Answerable(coefficients, intercept, 0.5).probability(columns)
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_floor_of_other_features_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="calibrate it again"):
        Answerable.from_dict(STORED | {"features": [*FLOOR_FEATURES[1:], "another"]})
    with pytest.raises(InvalidInputError, match="give 1, for dense"):
        Answerable.from_dict(STORED | {"features": ["dense"]})


def test_a_floor_goes_by_the_columns_that_it_was_calibrated_on() -> None:
    old = Answerable.from_dict(
        STORED | {"features": ["dense", "dense_window", "coverage_store", "coverage_window"]}
    )
    columns = {name: np.zeros(1) for name in (*FLOOR_FEATURES, "dense_window")}
    assert old.probability({**columns, "coverage": np.ones(1)}) == 0.5
    assert old.probability({**columns, "dense_window": np.ones(1)}) > 0.5


@pytest.mark.parametrize(
    ("coefficients", "intercept", "threshold"),
    [
        ((1.0,), 0.0, 0.5),
        ((1.0, 1.0, 1.0, math.nan), 0.0, 0.5),
        ((1.0, 1.0, 1.0, 1.0), math.inf, 0.5),
        ((1.0, 1.0, 1.0, 1.0), 0.0, 1.5),
    ],
)
def test_a_floor_that_cannot_be_is_refused(
    coefficients: tuple[float, ...], intercept: float, threshold: float
) -> None:
    with pytest.raises(InvalidInputError):
        Answerable(coefficients, intercept, threshold)


def test_an_empty_table_has_no_evidence() -> None:
    columns = {name: np.zeros(0) for name in FLOOR_FEATURES}
    assert floor_features(columns).tolist() == [0.0] * 4
