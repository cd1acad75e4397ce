"""The regression of outcomes by scikit-learn's own rules."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped]
from sklearn.model_selection import GridSearchCV  # type: ignore[import-untyped]
from sklearn.utils.estimator_checks import check_estimator  # type: ignore[import-untyped]

from cvx.errors import (
    InvalidInputError,
    LearningWarning,
)
from cvx.scoring import LearnedWeights
from cvx.scoring.estimator import OutcomeClassifier

NEEDS_A_SETTING = {"check_array_api_input": "runs only with SCIPY_ARRAY_API set"}


def samples(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) * [0.1, 10.0] + [5.0, -3.0]
    p = 1 / (1 + np.exp(-20 * (x[:, 0] - 5.0)))
    return x, (rng.random(n) < p).astype(int)


@pytest.mark.requirement("V12")
@pytest.mark.filterwarnings("ignore::cvx.errors.LearningWarning")
@pytest.mark.filterwarnings("ignore::cvx.errors.LearningWarning")
def test_scikit_learn_finds_nothing_to_object_to() -> None:
    results = check_estimator(OutcomeClassifier(), on_fail=None, on_skip=None)
    assert len(results) > 50
    others = {one["check_name"]: one["exception"] for one in results if one["status"] != "passed"}
    assert others.keys() <= NEEDS_A_SETTING.keys(), others


@pytest.mark.requirement("V12")
def test_it_gives_the_probabilities_of_the_weights_that_recall_uses() -> None:
    x, y = samples(300)
    model, weights = OutcomeClassifier().fit(x, y), LearnedWeights(["a", "b"]).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], weights.predict(x), atol=1e-12)
    np.testing.assert_allclose(model.coef_[0], list(weights.weights().values()))
    own = 1 / (1 + np.exp(-(x @ model.coef_[0] + model.intercept_)))
    np.testing.assert_allclose(own, weights.predict(x), atol=1e-9)


@pytest.mark.requirement("V12")
def test_pieces_end_where_the_whole_does_and_the_window_forgets() -> None:
    x, y = samples(200)
    pieces = OutcomeClassifier()
    for start in range(0, 200, 20):
        pieces.partial_fit(x[start : start + 20], y[start : start + 20], classes=[0, 1])
    np.testing.assert_allclose(pieces.coef_, OutcomeClassifier().fit(x, y).coef_, atol=1e-9)
    short = OutcomeClassifier(window=50).fit(x[:150], 1 - y[:150]).partial_fit(x[150:], y[150:])
    np.testing.assert_allclose(short.coef_, OutcomeClassifier().fit(x[150:], y[150:]).coef_)


@pytest.mark.requirement("V12")
@pytest.mark.parametrize("label", [0, 1])
def test_one_outcome_only_is_warned_of_and_is_no_certainty(label: int) -> None:
    x, _ = samples(30)
    with pytest.warns(LearningWarning, match="all 30 outcomes are alike"):
        model = OutcomeClassifier().fit(x, np.full(30, label))
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(model.predict_proba(x)[:, label], 31 / 32)
    assert (model.predict(x) == label).all()


def test_a_constant_feature_is_warned_of_by_name() -> None:
    import polars as pl

    x, y = samples(30)
    frame = pl.DataFrame({"moves": x[:, 0], "stuck": np.full(30, 0.1 + 0.2)})
    with pytest.warns(LearningWarning, match=r"\['stuck'\] never vary"):
        model = OutcomeClassifier().fit(frame, y)
    assert model.standard_coef_[1] == 0.0


def test_it_can_be_cloned_and_searched_over() -> None:
    x, y = samples(120)
    search = GridSearchCV(OutcomeClassifier(), {"strength": [0.1, 1e4]}, cv=3).fit(x, y)
    assert search.best_params_ == {"strength": 0.1}
    assert clone(OutcomeClassifier(bound=2.0)).bound == 2.0
    with pytest.raises(NotFittedError):
        OutcomeClassifier().predict(x)


@pytest.mark.parametrize("kw", [{"strength": 0.0}, {"bound": -1.0}, {"window": 1}])
def test_a_parameter_out_of_bounds_is_refused_by_fit(kw: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match="give strength > 0"):
        OutcomeClassifier(**kw).fit(*samples(10))  # type: ignore[arg-type]


def test_a_label_that_the_first_batch_did_not_announce_is_refused() -> None:
    x, y = samples(40)
    words = np.where(y == 1, "won", "lost")
    begun = OutcomeClassifier().partial_fit(x[y == 1], words[y == 1])
    with pytest.raises(InvalidInputError, match="give both classes in the first call"):
        begun.partial_fit(x, words)
