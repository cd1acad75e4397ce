"""Recall weights learned from outcomes by logistic regression, blended with a prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.arguments import wrong
from cvx.errors import (
    InvalidInputError,
)
from cvx.scoring.logistic import (
    Floats,
    LogisticFit,
    fit_logistic,
    sigmoid,
    warn_of,
)
from cvx.scoring.off_policy import LoggedChoice

SMALLEST_PROPENSITY = 0.02
"""Rarer draws count as if they had this chance: no sample outweighs fifty certain ones."""


class Selection(NamedTuple):
    """How samples were selected, and how many equally weighted ones they are worth.

    Only what was retrieved and followed has an outcome. A ranking by one fixed score never shows
    what it ranks low, so weights learned from it compare what that score let through: a feature
    that all of it has in common looks useless. Where the order was sampled and the chance of each
    sample is known, weighting by its inverse makes up for that, within the candidates drawn from.
    Whom the agent follows is its own choice, and stays uncorrected.

    Attributes
    ----------
    kind : {"nothing", "retrieved only", "sampled"}
        What the samples allow.
    samples : int
        How many there are in the window.
    effective : float
        How many equally weighted ones they are worth (Kish); far below ``samples`` the
        correction rests on few of them.
    """

    kind: Literal["nothing", "retrieved only", "sampled"]
    samples: int
    effective: float

    def __str__(self) -> str:
        if self.kind == "nothing":
            return "nothing was learned"
        if self.kind == "sampled":
            return (
                f"compared with all candidates that were drawn from: {self.samples} samples, "
                f"weighted by inverse propensity, worth {self.effective:.0f}"
            )
        return (
            f"compared only among what was retrieved and followed ({self.samples} samples): says "
            "nothing of what was not retrieved; sample the order to learn that"
        )


def selected(propensities: Floats) -> tuple[Selection, Floats]:
    """Return how samples were selected, and their weights, with a mean of 1.

    Samples whose order was not sampled cannot be weighted beside those whose was: a single one
    makes all of them count alike.

    Parameters
    ----------
    propensities : ndarray of shape (n,)
        NaN where it is not known.

    References
    ----------
    Horvitz & Thompson 1952. Kish 1965, Survey sampling, 11.7.

    Examples
    --------
    >>> selection, weights = selected(np.array([0.1, 0.9]))
    >>> selection.kind, weights.round(2).tolist()
    ('sampled', [1.8, 0.2])
    """
    n = len(propensities)
    if not n:
        return Selection("nothing", 0, 0.0), np.ones(0)
    if np.isnan(propensities).any():
        return Selection("retrieved only", n, float(n)), np.ones(n)
    weights = 1.0 / np.maximum(propensities, SMALLEST_PROPENSITY)
    weights /= weights.mean()
    return Selection("sampled", n, float(n**2 / (weights**2).sum())), weights


def floats(name: str, value: npt.ArrayLike) -> Floats:
    """Return numbers as an array of float64.

    Raises
    ------
    InvalidInputError
        Something else than numbers, or rows of different lengths.
    """
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong(name, value, f"numbers, in rows of one length ({error})") from error


class Samples(NamedTuple):
    """Rows of features with their outcomes.

    Attributes
    ----------
    features : ndarray of shape (n, d)
    labels : ndarray of shape (n,)
        1 for success, 0 for failure.
    propensities : ndarray of shape (n,)
        The chance each had to be put where it was; NaN where the order was not sampled.
    """

    features: Floats
    labels: Floats
    propensities: Floats

    @classmethod
    def none(cls, d: int) -> Samples:
        """Return no sample of d features."""
        return cls(np.zeros((0, d)), np.zeros(0), np.zeros(0))

    @classmethod
    def checked(
        cls,
        features: npt.ArrayLike,
        labels: npt.ArrayLike,
        propensities: npt.ArrayLike | None,
        d: int,
    ) -> Samples:
        """Return samples of d features, or refuse them.

        Raises
        ------
        InvalidInputError
            Shapes that do not fit together.
        InvalidInputError
            Rows of different lengths, something else than numbers, a value that is not finite, a
            label other than 0 and 1, a propensity outside (0, 1].
        """
        x = floats("features", features)
        y = floats("labels", labels)
        if x.size == 0 and y.size == 0:
            return cls.none(d)
        if x.ndim != 2 or y.ndim != 1 or x.shape != (len(y), d):
            raise InvalidInputError(
                f"features have shape {x.shape} and labels {y.shape}: give (n, {d}) and (n,)"
            )
        if not np.isfinite(x).all():
            raise InvalidInputError("a feature is NaN or infinite: give finite numbers")
        if not np.isin(y, (0.0, 1.0)).all():
            raise InvalidInputError("a label is neither 0 nor 1: threshold outcomes first")
        if propensities is None:
            return cls(x, y, np.full(len(y), np.nan))
        p = floats("propensities", propensities)
        if p.shape != y.shape:
            raise InvalidInputError(
                f"propensities have shape {p.shape} and labels {y.shape}: give one each"
            )
        bad = p[~(np.isnan(p) | ((p > 0) & (p <= 1)))]
        if len(bad):
            raise InvalidInputError(
                f"propensity is {bad[0]}: give the chance of each draw, in (0, 1], or NaN where "
                "the order was not sampled"
            )
        return cls(x, y, p)

    def then(self, more: Samples, window: int) -> Samples:
        """Return the latest ``window`` of these and more."""
        pairs = zip(self, more, strict=True)
        return Samples(*(np.concatenate(pair)[-window:] for pair in pairs))


class LearnedWeights:
    """P(success | features of what was recalled), by regularised logistic regression.

    Features are standardised before the fit, coefficients bounded after it, and an intercept
    takes up the base rate. While all outcomes are alike there is nothing to weigh: the
    coefficients stay 0, and only the intercept moves. scikit-learn is imported for fitting only;
    ``cvx.scoring.estimator.OutcomeClassifier`` is the same regression by its conventions.

    Only what was retrieved and followed has an outcome. ``selection`` tells whether the weights
    compare that with all it was drawn from, or only within what was retrieved.

    Parameters
    ----------
    names : sequence of str
        The features, each once, in the order of the columns.
    strength : float, default 1.0
        L2 regularisation, the inverse of scikit-learn's C; above 0.
    bound : float, default 5.0
        No standardised coefficient leaves [-bound, bound].
    window : int, default 4096
        How many of the latest samples ``update`` fits on.

    Examples
    --------
    >>> learned = LearnedWeights(["similarity", "reward"])
    >>> learned.predict([[0.5, 0.5]]).tolist()
    [0.5]
    >>> _ = learned.fit([[0.1, 0.0], [0.9, 1.0]] * 20, [0, 1] * 20)
    >>> print(learned.selection)
    compared only among what was retrieved and followed (40 samples): says nothing of what was \
not retrieved; sample the order to learn that
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        strength: float = 1.0,
        bound: float = 5.0,
        window: int = 4096,
    ) -> None:
        if not names:
            raise InvalidInputError("names is empty: give at least one feature")
        if isinstance(names, str) or len(set(names)) < len(names):
            raise InvalidInputError(f"names is {names!r}: give a sequence, each name once")
        if not strength > 0 or not bound > 0 or window < 2:
            raise InvalidInputError(
                f"strength {strength}, bound {bound}, window {window}: "
                "give strength > 0, bound > 0, window >= 2"
            )
        self.names = tuple(names)
        self.strength = strength
        self.bound = bound
        self.window = window
        n = len(self.names)
        self.mean: list[float] = [0.0] * n
        self.scale: list[float] = [1.0] * n
        self.coefficients: list[float] = [0.0] * n
        self.intercept = 0.0
        self.samples = 0
        self.selection = Selection("nothing", 0, 0.0)
        self._samples = Samples.none(n)

    def fit(
        self,
        features: npt.ArrayLike,
        labels: npt.ArrayLike,
        propensities: npt.ArrayLike | None = None,
    ) -> LearnedWeights:
        """Learn from these samples alone.

        Parameters
        ----------
        features : array of shape (n, len(names))
        labels : array of shape (n,)
            1 for success, 0 for failure.
        propensities : array of shape (n,), optional
            The chance each had to be put where it was, where the order was sampled; samples then
            count by its inverse. One that is NaN, or none at all: they count alike.

        Raises
        ------
        InvalidInputError
            Shapes that do not fit together.
        InvalidInputError
            A value that is not finite, a label other than 0 and 1, a propensity outside (0, 1].

        Warns
        -----
        LearningWarning
            All outcomes are alike: no feature gets a weight.
        LearningWarning
            A feature never varies: it gets no weight.
        """
        new = Samples.checked(features, labels, propensities, len(self.names))
        self._samples, self.samples = new, len(new.labels)
        warn_of(self._fit(), self.samples, self.names)
        return self

    def fit_choices(self, log: Sequence[LoggedChoice], above: float = 0.5) -> LearnedWeights:
        """Learn from recalls whose order was sampled, compared with all that was drawn from.

        Parameters
        ----------
        log : sequence of LoggedChoice
            With features in the order of ``names``, as ``Memory.logged_choices`` has them.
        above : float, default 0.5
            A reward above it is a success.

        Raises, Warns
        -------------
        As ``fit``.
        """
        most = max((len(one.features) for one in log), default=1)
        return self.fit(
            [one.features[one.chosen] for one in log],
            [float(one.reward > above) for one in log],
            # Beside an even draw: every recall counts alike, however many it was drawn from.
            [one.propensity * len(one.features) / most for one in log],
        )

    def update(
        self,
        features: npt.ArrayLike,
        labels: npt.ArrayLike,
        propensities: npt.ArrayLike | None = None,
    ) -> LearnedWeights:
        """Learn from these samples and the latest ones before them, at most ``window`` together.

        A stream begins with outcomes of one kind, so nothing is warned of. Parameters and errors
        are those of ``fit``.
        """
        new = Samples.checked(features, labels, propensities, len(self.names))
        self._samples = self._samples.then(new, self.window)
        self.samples += len(new.labels)
        self._fit()
        return self

    def refill(
        self,
        features: npt.ArrayLike,
        labels: npt.ArrayLike,
        propensities: npt.ArrayLike | None = None,
    ) -> LearnedWeights:
        """Put samples that were learned from before back into the window; nothing is fitted.

        ``to_dict`` leaves them out, since a record has them with its decisions.

        Parameters and errors are those of ``fit``.
        """
        new = Samples.checked(features, labels, propensities, len(self.names))
        self._samples = Samples.none(len(self.names)).then(new, self.window)
        return self

    def _fit(self) -> LogisticFit:
        x, y, propensities = self._samples
        self.selection, each = selected(propensities)
        fit = fit_logistic(x, y, each, strength=self.strength, bound=self.bound)
        self.mean, self.scale = fit.mean.tolist(), fit.scale.tolist()
        self.coefficients = fit.coefficients.tolist()
        self.intercept = fit.intercept
        return fit

    def weights(self) -> dict[str, float]:
        """Return the weight of each feature in its own unit: coefficient / spread."""
        return {
            name: c / s
            for name, c, s in zip(self.names, self.coefficients, self.scale, strict=True)
        }

    def blend(self, prior: Mapping[str, float], trust_after: float = 500.0) -> dict[str, float]:
        """Return weights that move from ``prior`` to the learned ones as samples come in.

        ``(1 - t) * prior + t * learned`` with ``t = samples / (samples + trust_after)``. Learned
        weights are cut at 0, since every feature is made so that higher is better, and scaled to
        the sum of the prior. Nothing learned: the prior.

        Parameters
        ----------
        prior : mapping of str to float
            By feature.
        trust_after : float, default 500.0
            Number of samples at which both count alike.
        """
        learned = {name: max(0.0, w) for name, w in self.weights().items() if name in prior}
        total = sum(learned.values())
        if not total:
            return dict(prior)
        t = self.samples / (self.samples + trust_after)
        size = sum(abs(prior[name]) for name in learned) / total
        return {
            name: (1 - t) * w + t * size * learned[name] if name in learned else w
            for name, w in prior.items()
        }

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Return the probability of success.

        Parameters
        ----------
        features : array of shape (n, len(names))

        Returns
        -------
        ndarray of shape (n,), float64

        Raises
        ------
        InvalidInputError
            Features of another shape.
        InvalidInputError
            Something else than numbers, or rows of different lengths.
        """
        x = floats("features", features)
        if x.ndim != 2 or x.shape[1] != len(self.names):
            raise InvalidInputError(
                f"features have shape {x.shape}: give (n, {len(self.names)}), "
                f"the columns {', '.join(self.names)}"
            )
        z = (x - np.array(self.mean)) / np.array(self.scale) @ np.array(self.coefficients)
        return sigmoid(z + self.intercept)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted state as plain numbers, without the samples of the window."""
        return {
            "names": list(self.names),
            "strength": self.strength,
            "bound": self.bound,
            "window": self.window,
            "mean": list(self.mean),
            "scale": list(self.scale),
            "coefficients": list(self.coefficients),
            "intercept": self.intercept,
            "samples": self.samples,
            "selection": list(self.selection),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LearnedWeights:
        """Rebuild it from ``to_dict``: it predicts the same; ``refill`` gives it its samples.

        Raises
        ------
        InvalidInputError
            Something else than what ``to_dict`` returns.
        """
        try:
            made = cls(
                data["names"],
                strength=data["strength"],
                bound=data["bound"],
                window=data["window"],
            )
            made.mean, made.scale, made.coefficients = (
                [float(one) for _, one in zip(made.names, data[part], strict=True)]
                for part in ("mean", "scale", "coefficients")
            )
            made.intercept = float(data["intercept"])
            made.samples = int(data["samples"])
            if "selection" in data:
                made.selection = Selection(*data["selection"])
            elif made.samples:
                # Weights that say nothing of their selection were fitted without propensities.
                made.selection = Selection("retrieved only", made.samples, float(made.samples))
        except (LookupError, TypeError, ValueError) as error:
            raise wrong("data", data, f"what to_dict() returned ({error!r})") from error
        return made
