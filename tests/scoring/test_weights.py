"""Learned weights: they find what matters, stay bounded, and travel as plain floats."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import (
    InvalidInputError,
    LearningWarning,
)
from cvx.scoring import LearnedWeights
from cvx.scoring.logistic import maximum_likelihood

NAMES = ("similarity", "reward", "noise")


def samples(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((n, 3)) * [0.1, 1.0, 10.0]
    p = 1 / (1 + np.exp(-(40 * (x[:, 0] - 0.05) + 2 * (x[:, 1] - 0.5))))
    return x, (rng.random(n) < p).astype(float)


@pytest.mark.requirement("V12", "V22")
def test_what_matters_gets_weight_and_noise_does_not() -> None:
    learned = LearnedWeights(NAMES).fit(*samples(3000))
    weights = learned.weights()
    assert weights["similarity"] > 10 * weights["reward"] > 0
    assert abs(learned.coefficients[2]) < 0.15 < learned.coefficients[1]


@pytest.mark.requirement("V12")
def test_predictions_are_those_of_scikit_learn_on_standardised_features() -> None:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
    from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

    x, y = samples(400)
    twin = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=500)).fit(x, y)
    mine = LearnedWeights(NAMES).fit(x, y).predict(x)
    np.testing.assert_allclose(mine, twin.predict_proba(x)[:, 1], atol=1e-3)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("separable", [False, True])
def test_the_likeliest_coefficients_are_those_of_scikit_learn(
    penalty: float, separable: bool
) -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 5))
    y = (x @ [2.0, -1.0, 0.0, 0.5, 0.0] + (0.0 if separable else rng.logistic(size=300)) > 1) * 1
    weight = rng.random(300) * 3
    twin = LogisticRegression(C=1.0 / penalty, tol=1e-12, solver="newton-cholesky", max_iter=500)
    twin.fit(x, y, weight)
    coefficients, intercept = maximum_likelihood(x, y, weight, penalty=penalty)
    np.testing.assert_allclose(coefficients, twin.coef_[0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(intercept, twin.intercept_[0], rtol=1e-6)


@pytest.mark.requirement("V12")
def test_learning_in_pieces_ends_where_learning_at_once_does() -> None:
    x, y = samples(300)
    online = LearnedWeights(NAMES)
    for start in range(0, 300, 30):
        online.update(x[start : start + 30], y[start : start + 30])
    batch = LearnedWeights(NAMES).fit(x, y)
    np.testing.assert_allclose(online.coefficients, batch.coefficients, atol=1e-9)
    assert online.samples == batch.samples == 300


@pytest.mark.requirement("V12")
def test_updates_forget_what_fell_out_of_the_window() -> None:
    x, y = samples(100)
    online = LearnedWeights(NAMES, window=50).update(x[:50], 1 - y[:50]).update(x[50:], y[50:])
    np.testing.assert_allclose(
        online.coefficients, LearnedWeights(NAMES).fit(x[50:], y[50:]).coefficients
    )


@pytest.mark.requirement("V12")
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_outcomes_of_one_kind_only_move_the_intercept_alone(label: float) -> None:
    x, _ = samples(40)
    with pytest.warns(LearningWarning, match="all 40 outcomes are alike"):
        learned = LearnedWeights(NAMES).fit(x, np.full(40, label))
    assert learned.coefficients == [0.0, 0.0, 0.0]
    assert abs(learned.intercept) <= learned.bound
    p = learned.predict(x)
    assert ((p > 0.9) if label else (p < 0.1)).all()
    assert learned.blend({"similarity": 1.0, "reward": 0.5}) == {"similarity": 1.0, "reward": 0.5}


@pytest.mark.requirement("V12")
def test_weights_stay_bounded_when_outcomes_are_separable() -> None:
    x = np.array([[0.0, 0.5, 0.5], [1.0, 0.5, 0.5]] * 500)
    with pytest.warns(LearningWarning, match=r"\['reward', 'noise'\] never vary"):
        learned = LearnedWeights(NAMES, strength=1e-6, bound=2.0).fit(x, x[:, 0])
    assert learned.coefficients[0] == 2.0
    assert learned.coefficients[1] == 0.0
    assert np.isfinite(list(learned.weights().values())).all()


@pytest.mark.requirement("V12")
def test_blending_moves_from_the_prior_to_what_was_learned() -> None:
    prior = {"similarity": 1.0, "reward": 0.5, "recency": 0.3}
    learned = LearnedWeights(("similarity", "reward"))
    assert learned.blend(prior) == prior
    learned.coefficients, learned.samples = [0.0, 1.0], 500
    assert learned.blend(prior) == pytest.approx(
        {"similarity": 0.5, "reward": 0.25 + 0.75, "recency": 0.3}
    )
    learned.coefficients = [-1.0, 2.0]
    assert min(learned.blend(prior).values()) >= 0


@pytest.mark.requirement("V12")
def test_it_travels_as_plain_floats_and_predicts_without_scikit_learn() -> None:
    x, y = samples(200)
    learned = LearnedWeights(NAMES).fit(x, y)
    text = json.dumps(learned.to_dict())
    back = LearnedWeights.from_dict(json.loads(text))
    np.testing.assert_array_equal(back.predict(x), learned.predict(x))
    assert back.weights() == learned.weights()
    code = (
        "import sys, json; from cvx.scoring import LearnedWeights\n"
        f"LearnedWeights.from_dict(json.loads({text!r})).predict([[0.1, 0.2, 0.3]])\n"
        "print('sklearn' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


@pytest.mark.requirement("V12")
@given(
    st.integers(2, 40),
    st.sampled_from(["won", "lost", "either", "contradictory"]),
    st.sampled_from([0.0, 1e-12, 1.0, 1e9]),
    st.integers(0, 1000),
)
def test_whatever_comes_in_weights_stay_bounded_and_predictions_are_probabilities(
    n: int, outcomes: str, size: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) * size
    y = {"won": np.ones(n), "lost": np.zeros(n)}.get(outcomes, rng.integers(0, 2, n).astype(float))
    if outcomes == "contradictory":
        x, y = np.concatenate([x, x]), np.concatenate([y, 1 - y])
    learned = LearnedWeights(NAMES).update(x, y)
    assert np.abs([*learned.coefficients, learned.intercept]).max() <= learned.bound
    assert np.isfinite(list(learned.weights().values())).all()
    p = learned.predict(rng.normal(size=(5, 3)) * size)
    assert ((p >= 0) & (p <= 1)).all()
    if outcomes == "contradictory":
        np.testing.assert_allclose(learned.coefficients, 0.0, atol=1e-6)
        np.testing.assert_allclose(learned.predict(x), 0.5, atol=1e-6)


def test_outcomes_of_one_kind_in_a_stream_are_no_reason_to_warn() -> None:
    x, y = samples(20)
    learned = LearnedWeights(NAMES).update(x, np.ones(20))
    assert learned.coefficients == [0.0, 0.0, 0.0]
    assert any(learned.update(x, y).coefficients)


def test_nothing_to_learn_from_changes_nothing() -> None:
    learned = LearnedWeights(NAMES).update([], [])
    assert learned.predict([[1.0, 1.0, 1.0]])[0] == 0.5


@pytest.mark.parametrize(
    ("features", "labels", "error"),
    [
        ([[1.0, 2.0]], [1.0], InvalidInputError),
        ([[1.0, 2.0, 3.0]], [1.0, 0.0], InvalidInputError),
        ([[1.0, 2.0, float("nan")]], [1.0], InvalidInputError),
        ([[1.0, 2.0, 3.0]], [0.5], InvalidInputError),
    ],
)
def test_bad_samples_are_typed_errors(
    features: list[list[float]], labels: list[float], error: type[Exception]
) -> None:
    with pytest.raises(error):
        LearnedWeights(NAMES).fit(features, labels)


@pytest.mark.parametrize("kw", [{"strength": 0.0}, {"bound": 0.0}, {"window": 1}])
def test_a_parameter_out_of_bounds_is_a_typed_error(kw: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        LearnedWeights(NAMES, **kw)  # type: ignore[arg-type]


@pytest.mark.parametrize("names", ["similarity", (), ("reward", "reward")])
def test_names_are_a_sequence_with_each_once(names: str | tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError, match="names is"):
        LearnedWeights(names)


@pytest.mark.parametrize("shape", [(3,), (2, 1), (2, 4), (0,), (1, 2, 3)])
def test_features_of_another_shape_are_not_predicted_from(shape: tuple[int, ...]) -> None:
    learned = LearnedWeights(NAMES).fit(*samples(50))
    with pytest.raises(InvalidInputError, match=r"give \(n, 3\)"):
        learned.predict(np.zeros(shape))
    assert learned.predict(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("features", "labels", "named"),
    [
        ([[1.0, 2.0], [1.0]], [0, 1], "features is"),
        ([["a", "b"], ["c", "d"]], [0, 1], "features is"),
        ([[1.0, 2.0], [3.0, 4.0]], ["won", "lost"], "labels is"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused_by_name(
    features: Any, labels: Any, named: str
) -> None:
    learned = LearnedWeights(["a", "b"])
    for call in (learned.fit, learned.update, learned.refill):
        with pytest.raises(InvalidInputError, match=named):
            call(features, labels)
    if named == "features is":
        with pytest.raises(InvalidInputError, match=named):
            learned.predict(features)
    assert learned.samples == 0


@pytest.mark.parametrize(
    "change",
    [
        {"names": None},
        {"mean": [0.0]},
        {"scale": "ab"},
        {"coefficients": None},
        {"samples": "many"},
        {"selection": [1]},
    ],
)
def test_what_to_dict_did_not_return_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"data is .*: give what to_dict\(\) returned"):
        LearnedWeights.from_dict({**LearnedWeights(["a", "b"]).to_dict(), **change})
    with pytest.raises(InvalidInputError, match="KeyError"):
        LearnedWeights.from_dict({})
