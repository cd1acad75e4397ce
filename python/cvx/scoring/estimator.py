"""A scikit-learn estimator around the logistic regression of outcomes.

Importing this module imports scikit-learn, which takes a second; recall needs only
``LearnedWeights``, which holds the same numbers.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cvx.errors import (
    InvalidInputError,
)
from cvx.extras import needs
from cvx.scoring.logistic import Floats, fit_logistic, sigmoid, warn_of

with needs("learn"):
    from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
    from sklearn.utils.multiclass import (  # type: ignore[import-untyped]
        check_classification_targets,
        type_of_target,
    )
    from sklearn.utils.validation import (  # type: ignore[import-untyped]
        check_is_fitted,
        validate_data,
    )


class OutcomeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """P(success | features) by logistic regression: standardised, bounded, with an intercept.

    Follows scikit-learn's conventions: it can be cloned, searched over, put in pipelines and
    cross-validated. Two classes at the most.

    Parameters
    ----------
    strength : float, default 1.0
        L2 penalty, the inverse of scikit-learn's C; above 0.
    bound : float, default 5.0
        No coefficient per standard deviation of its feature leaves [-bound, bound]; above 0.
    window : int, default 4096
        How many of the latest samples ``partial_fit`` fits on; at least 2.

    Attributes
    ----------
    classes_ : ndarray
        The labels; both 0 and 1 as soon as one of them was seen.
    coef_ : ndarray of shape (1, d)
        By feature, in its own unit.
    intercept_ : ndarray of shape (1,)
        Log odds where all features are 0.
    standard_coef_ : ndarray of shape (d,)
        Per standard deviation of the feature.
    n_features_in_ : int

    Examples
    --------
    >>> x = [[0.1], [0.4], [0.6], [0.9]]
    >>> model = OutcomeClassifier().fit(x, [0, 0, 1, 1])
    >>> model.predict([[0.0], [1.0]]).tolist()
    [0, 1]
    """

    def __init__(self, strength: float = 1.0, bound: float = 5.0, window: int = 4096) -> None:
        self.strength = strength
        self.bound = bound
        self.window = window

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn from these samples alone.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,)
            Two classes at the most.

        Warns
        -----
        LearningWarning
            All outcomes are alike: no feature gets a weight.
        LearningWarning
            A feature never varies: it gets no weight.
        """
        self._check_parameters()
        x, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_ = _classes(labels)
        self._learn(x, self._coded(labels))
        names = getattr(self, "feature_names_in_", np.arange(x.shape[1]))
        warn_of(self._fit, len(labels), np.asarray(names).tolist())
        return self

    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from these samples and the latest ones before them, at most ``window`` together.

        As long as nothing falls out of the window, it ends where ``fit`` on everything does.
        Batches of one outcome are what a stream begins with: nothing is warned of.

        Parameters
        ----------
        X, y
            As for ``fit``.
        classes : array of shape (2,), optional
            Both labels, in the first call, if its batch has one of them only.
        """
        self._check_parameters()
        first = not hasattr(self, "classes_")
        x, labels = validate_data(self, X, y, dtype=np.float64, reset=first)
        if first:
            self.classes_ = _classes(labels if classes is None else np.asarray(classes))
            self._latest = np.zeros((0, x.shape[1])), np.zeros(0)
        both = zip(self._latest, (x, self._coded(labels)), strict=True)
        self._learn(*(np.concatenate(pair)[-self.window :] for pair in both))
        return self

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """Return the log odds of ``classes_[1]``, of shape (n,)."""
        check_is_fitted(self)
        x = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return self._fit.log_odds(x)

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Return the probability of each class, of shape (n, len(classes_))."""
        chance = sigmoid(self.decision_function(X))
        if len(self.classes_) == 1:
            return np.ones((len(chance), 1))
        return np.column_stack([1.0 - chance, chance])

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the likelier class of each row, of shape (n,)."""
        likelier = (self.decision_function(X) > 0).astype(int)
        return np.asarray(self.classes_[np.minimum(likelier, len(self.classes_) - 1)])

    def _check_parameters(self) -> None:
        if not (self.strength > 0 and self.bound > 0 and self.window >= 2):
            raise InvalidInputError(
                f"strength {self.strength}, bound {self.bound}, window {self.window}: "
                "give strength > 0, bound > 0, window >= 2"
            )

    def _coded(self, labels: npt.NDArray[Any]) -> Floats:
        check_classification_targets(labels)
        strange = np.setdiff1d(labels, self.classes_)
        if len(strange):
            raise InvalidInputError(
                f"label {strange[0]!r} is new: this was begun with {self.classes_.tolist()}; give "
                "both classes in the first call"
            )
        return np.asarray(labels == self.classes_[-1], dtype=np.float64)

    def _learn(self, x: Floats, y: Floats) -> None:
        fit = fit_logistic(x, y, np.ones(len(y)), strength=self.strength, bound=self.bound)
        own = fit.coefficients / fit.scale
        self._fit = fit
        self._latest = x[-self.window :], y[-self.window :]
        self.standard_coef_ = fit.coefficients
        self.coef_ = own[None, :]
        self.intercept_ = np.array([fit.intercept - own @ fit.mean])


def _classes(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    kind = type_of_target(labels, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise InvalidInputError(
            "Only binary classification is supported. "
            f"The type of the target is {kind}: threshold outcomes first"
        )
    known = np.unique(labels)
    if len(known) == 1 and known.dtype.kind in "iufb" and known[0] in (0, 1):
        return np.array([0, 1], dtype=known.dtype)
    return known
