"""A Gaussian process over states and actions: the expected value of untried actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from cvx.learn.advisor.naming import NAMED, alike
from cvx.learn.transition_counts import Floats, Ints

_START = {
    "everywhere": 0.02, "action": 0.05, "words": 0.25, "near": 0.1, "state": 0.1,
    "own": 0.025, "beta": 5.0, "likeness": 0.5, "named": 0.1, "asked": 0.5,
    "beside": 0.1,
}  # fmt: skip

_OF_NAMES = "named", "asked", "beside"

_LEAST = {"own": math.log(0.02)}
"""Logs below which no weight falls: where nearly all are worth nothing, a rare find is its own."""

_MODESTY = 20.0
"""How much the middle of what is possible weighs in the mean; a pair tried once weighs as much."""

Likeness: TypeAlias = Callable[[Ints, Ints], Floats]
"""From two lists of actions, by their numbers, to how alike they are, in [0, 1]."""

_Pairs = tuple[Floats, Ints, Ints, Floats]
"""Features of states, numbers of actions and of states, how far actions are named."""

_MOST_USUAL = 0.99
"""What two actions have in common at most, that their likeness is counted from."""


@dataclass
class Sample:
    """What a process learns from: pairs of a state and an action with what they were worth.

    Parameters
    ----------
    features : ndarray of shape (n, words + dim)
        Of the states: one column a word, then a vector.
    actions : ndarray of shape (n,), int
        Their numbers.
    states : ndarray of shape (n,), int
        The numbers of the states; below 0 where a state is new.
    named : ndarray of shape (n, 3 + m)
        How far the goal and the state name an action, each in [0, 1]: see `naming`. Then which
        words stand beside its name, of norm 1 or 0: see `beside`.
    worth : ndarray of shape (n,)
    noise : ndarray of shape (n,)
        Variance of each worth, from how often it was counted.
    """

    features: Floats
    actions: Ints
    states: Ints
    named: Floats
    worth: Floats
    noise: Floats

    @property
    def pairs(self) -> _Pairs:
        """What tells the pairs apart."""
        return self.features, self.actions, self.states, self.named


class GaussianProcess:
    """A Gaussian process over (state, action) whose weights follow the evidence.

    The covariance of two pairs adds up what they share: being in this task at all, the action,
    the words of their states (linear, each word with a relevance of its own that is learned),
    being near each other, and being in the very same state; and, whatever the action and the state
    are, that the action is named as far (`naming`). Actions that are not the same share
    what they are alike in, beyond what the actions of the sample have in common on average: what
    is only asked about changes nothing. Where no part explains anything, all that is left is what
    a pair has of its own, and the prediction is broad.

    Parameters
    ----------
    relevance : bool, default True
        Whether each word's relevance is learned; else all weigh alike.

    References
    ----------
    Rasmussen & Williams 2006, Gaussian Processes for Machine Learning, chapters 2, 5.1 and 5.4.2.
    MacKay 1992, Bayesian interpolation (relevance of inputs).
    """

    def __init__(self, *, relevance: bool = True) -> None:
        self._relevance = relevance
        self.logs = {name: float(np.log(value)) for name, value in _START.items()}
        self.lam = self._next = np.ones(1)
        self._names: list[str] = []
        self._sample: Sample | None = None
        self._turn = 0
        self._usual = 0.0
        self.centre, self.scale = 0.0, 1.0
        self._whitener: Floats = np.zeros((0, 0))
        self._alpha: Floats = np.zeros(0)

    def saved(self) -> dict[str, Any]:
        """Return what it has learned but for the features and actions of its sample."""
        sample = self._sample
        return {
            "logs": self.logs,
            "words": [self._names, self.lam, self._next],
            "told": [self._turn, self.centre, self.scale, self._usual],
            "sample": None if sample is None else [sample.worth, sample.noise],
            "solved": [self._whitener, self._alpha],
        }

    def restore(
        self,
        told: Mapping[str, Any],
        features: Floats,
        actions: Ints,
        states: Ints,
        named: Floats,
    ) -> None:
        """Take over what was saved, with what tells the pairs of its sample apart."""
        self.logs = {name: float(told["logs"][name]) for name in _START}
        self._names, self.lam, self._next = told["words"]
        self._turn, self.centre, self.scale, self._usual = told["told"]
        self._whitener, self._alpha = told["solved"]
        # An earlier version could save a relevance that is no number: then nothing else is one.
        if not np.isfinite([*self.lam, *self._next]).all():
            raise ValueError("the relevance of a word is no number")
        if told["sample"] is not None:
            worth, noise = told["sample"]
            n = len(features)
            if self._whitener.shape != (n, n) or {len(worth), len(noise), len(self._alpha)} != {n}:
                raise ValueError(f"a sample of {n} was solved for another one")
            self._sample = Sample(features, actions, states, named, worth, noise)

    @property
    def fitted(self) -> bool:
        """Whether it has learned from anything."""
        return self._sample is not None

    def nearest(self, features: Floats) -> float:
        """Return how much a state has in common with the one most like it, from 0 to 1."""
        if self._sample is None:
            return 0.0
        return float((self._sample.features @ features).max(initial=0.0))

    def _relevances(self, x: Floats) -> Floats:
        """Return the relevance of each column: those of words are learned."""
        return np.concatenate([self.lam, np.ones(x.shape[1] - len(self.lam))])

    def _overlap(self, a: _Pairs, b: _Pairs, like: Likeness) -> tuple[Floats, ...]:
        """Return what pairs share.

        That is the action, likeness of actions, words, distance, state, how far the actions are
        named, and what stands beside their names.
        """
        (xa, aa, sa, na), (xb, ab, sb, nb) = a, b
        same = (aa[:, None] == ab[None, :]).astype(np.float64)
        scaled = xa * self._relevances(xa)
        linear = scaled @ xb.T
        norms_a, norms_b = (scaled * xa).sum(1), (xb * self._relevances(xb) * xb).sum(1)
        away = np.maximum(norms_a[:, None] + norms_b[None, :] - 2.0 * linear, 0.0)
        there = ((sa[:, None] == sb[None, :]) & (sa[:, None] >= 0)).astype(np.float64)
        likeness = np.clip((like(aa, ab) - self._usual) / (1.0 - self._usual), 0.0, 1.0)
        named = beside = np.zeros_like(same)
        if na.any():
            # Mostly nothing is named, and a product of zeros is as slow as any.
            named, beside = alike(na[:, :NAMED], nb[:, :NAMED]), na[:, NAMED:] @ nb[:, NAMED:].T
        return same, likeness, linear, away, there, named, beside

    @staticmethod
    def _kernel(logs: dict[str, float], overlap: tuple[Floats, ...]) -> Floats:
        same, like, linear, away, there, named, beside = overlap
        w = {name: float(np.exp(value)) for name, value in logs.items()}
        shared = w["near"] * np.exp((-0.5 * w["beta"]) * away)
        shared += w["words"] * linear
        asked = w["asked"] * shared
        shared += w["action"]
        shared += w["state"] * there
        shared *= np.maximum(same, min(0.95, w["likeness"]) * like)
        shared += w["everywhere"]
        shared += (w["named"] + asked) * named
        shared += w["beside"] * beside
        return np.asarray(shared)

    def _solve(
        self, logs: dict[str, float], overlap: tuple[Floats, ...],
        noise: Floats, y: Floats,
    ) -> tuple[float, Floats, Floats]:  # fmt: skip
        k = self._kernel(logs, overlap)
        own = float(np.exp(logs["own"]))
        k[np.diag_indices_from(k)] += own + noise + 1e-6
        k, chol = _factored(k, own)
        alpha: Floats = np.asarray(np.linalg.solve(k, y), dtype=np.float64)
        evidence = -0.5 * float(y @ alpha) - float(np.log(np.diag(chol)).sum())
        evidence -= 0.5 * sum(
            ((value - np.log(_START[name])) / 1.5) ** 2 for name, value in logs.items()
        )
        return evidence, chol, alpha

    def fit(
        self,
        sample: Sample,
        names: list[str],
        like: Likeness,
        ends: tuple[float, float],
        tries: int = 2,
    ) -> tuple[Floats, Floats]:
        """Learn from pairs; return the mean and variance of each as the others see it.

        Returns
        -------
        mean, variance : ndarray of shape (n,)
            Leave-one-out, without the noise of counting.
        """
        if names != self._names:
            known = dict(zip(self._names, self._next.tolist(), strict=False))
            self.lam = np.array([known.get(name, 1.0) for name in names] or [1.0])
            self._names = names
        elif len(self._next) == len(self.lam):
            self.lam = self._next
        weight = 1.0 / (sample.noise / (ends[1] - ends[0]) ** 2 + 0.05)
        # One pair's worth in the middle of what is possible: a single win says little of the rest.
        least, most = ends
        told, total = float((weight * sample.worth).sum()), float(weight.sum())
        self.centre = (told + 0.5 * _MODESTY * (least + most)) / (total + _MODESTY)
        spread = sample.worth - self.centre
        self.scale = 0.5 * float(np.abs(spread).max(initial=0.0))
        self.scale = max(self.scale, 0.25 * (most - least))
        y = spread / self.scale
        noise = sample.noise / self.scale**2
        scaled = replace(sample, worth=y, noise=noise)
        x, pairs = sample.features, sample.pairs
        self._usual = _usual(like, sample.actions)
        overlap = self._overlap(pairs, pairs, like)
        found = self._solve(self.logs, overlap, scaled.noise, y)
        names = [name for name in _START if name not in _OF_NAMES or sample.named.any()]
        # Where all are worth the same, evidence would only shrink what parts may explain.
        varied = float(np.ptp(sample.worth)) > 1e-3 * (most - least)
        for _ in range(tries if varied else 0):
            name = names[self._turn % len(names)]
            step = (0.7, -0.7)[(self._turn // len(names)) % 2]
            self._turn += 1
            other = dict(self.logs)
            other[name] = max(other[name] + step, _LEAST.get(name, -math.inf))
            tried = self._solve(other, overlap, scaled.noise, y)
            if tried[0] > found[0]:
                self.logs, found = other, tried
        _, chol, self._alpha = found
        self._sample = scaled
        self._whitener = np.asarray(np.linalg.inv(chol), dtype=np.float64)
        inverse = self._whitener.T @ self._whitener
        if self._relevance and varied:
            self._learn_relevance(x[:, : len(self.lam)], inverse, overlap)
        diagonal = np.diag(inverse)
        mean = y - self._alpha / diagonal
        variance = np.maximum(1.0 / diagonal - scaled.noise, 1e-4)
        return self.centre + self.scale * mean, variance * self.scale**2

    def _learn_relevance(self, x: Floats, inverse: Floats, overlap: tuple[Floats, ...]) -> None:
        """Move each word's relevance to where the evidence draws it; the next fit uses it."""
        same = np.maximum(overlap[0], min(0.95, float(np.exp(self.logs["likeness"]))) * overlap[1])
        w = float(np.exp(self.logs["words"]))
        told = np.outer(self._alpha, self._alpha) * same
        fitted = w * self.lam * ((told @ x) * x).sum(0)
        expected = w * self.lam * (((inverse * same) @ x) * x).sum(0)
        # Both are sums of squares; but where `same` is no covariance they may come out below 0.
        fitted, expected = np.maximum(fitted, 0.0), np.maximum(expected, 0.0)
        self._next = np.clip(self.lam * np.sqrt((fitted + 0.3) / (expected + 0.3)), 0.01, 30.0)

    def predict(
        self, features: Floats, actions: Ints, states: Ints, named: Floats, like: Likeness
    ) -> tuple[Floats, Floats]:
        """Return mean and variance of pairs that were not learned from.

        Parameters
        ----------
        features : ndarray of shape (n, d)
        actions : ndarray of shape (n,), int
        states : ndarray of shape (n,), int
            Below 0 where a state is new.
        named : ndarray of shape (n, 3 + m)
        like : callable
            How alike two lists of actions are, by their numbers, of shape (n, m).
        """
        w = {name: float(np.exp(value)) for name, value in self.logs.items()}
        x = features
        size = (x * self._relevances(x) * x).sum(1)
        own = w["everywhere"] + w["action"] + w["words"] * size + w["near"] + w["state"] + w["own"]
        asked = w["asked"] * (w["words"] * size + w["near"])
        own += (w["named"] + asked) * named[:, :NAMED].any(1)
        own += w["beside"] * np.square(named[:, NAMED:]).sum(1)
        if self._sample is None:
            return np.full(len(x), self.centre), own * self.scale**2
        s = self._sample
        overlap = self._overlap((x, actions, states, named), s.pairs, like)
        k = self._kernel(self.logs, overlap)
        mean = k @ self._alpha
        v = self._whitener @ k.T
        variance = np.maximum(own - np.square(v).sum(0), 1e-4)
        return self.centre + self.scale * mean, variance * self.scale**2


def _usual(like: Likeness, actions: Ints) -> float:
    """Return how alike two of these actions are on average, 0 where there are not two."""
    # In the order of the sample: numbers follow who asked first.
    some = np.array([*dict.fromkeys(actions.tolist())])
    others = len(some) * (len(some) - 1)
    if not others:
        return 0.0
    table = like(some, some)
    return min(_MOST_USUAL, float(table.sum() - table.trace()) / others)


def _factored(k: Floats, own: float) -> tuple[Floats, Floats]:
    """Return a covariance and its Cholesky factor.

    Likenesses of actions are measured two by two, and all together need be no covariance (one
    like two others that are unlike each other). Then each pair is given so much more of its own
    that no combination of them has less than one pair should have.
    """
    try:
        return k, np.asarray(np.linalg.cholesky(k), dtype=np.float64)
    except np.linalg.LinAlgError:
        k = k + (own - float(np.linalg.eigvalsh(k)[0])) * np.eye(len(k))
        return k, np.asarray(np.linalg.cholesky(k), dtype=np.float64)
