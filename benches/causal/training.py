"""Trains the two heads of `cvx.causal.judges.offline` on known pairs.

A cause's head is to lie near the head of its effect, and far from those of the other effects in
the batch and of the look-alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.causal.judges.offline import TEMPERATURE, Heads, Matrix
from cvx.errors import InvalidInputError

Indices: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_LOOK_ALIKE = 0.3
_SMALL = 1e-8


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the heads are trained.

    Attributes
    ----------
    hidden : int, default 256
        Width of the hidden layer.
    epochs : int, default 8
        Times every pair is seen.
    batch : int, default 256
        Pairs a step; each is told from all others of its batch.
    rate : float, default 0.001
        Step of Adam at the start; it falls to 0 along a cosine.
    dropout : float, default 0.2
        Share of the hidden layer that is left out at each step.
    seed : int, default 0
        Of the start, the order and the dropout.
    """

    hidden: int = 256
    epochs: int = 8
    batch: int = 256
    rate: float = 1e-3
    dropout: float = 0.2
    seed: int = 0


class Contrasts(NamedTuple):
    """What the heads learn from: n true pairs, each with a look-alike of one of its ends.

    Attributes
    ----------
    causes, effects, wrong : ndarray of shape (n, dim), float32
        Vectors of norm 1.
    wrong_cause : ndarray of shape (n,), bool
        Whether ``wrong`` stands where the cause does, rather than the effect.
    """

    causes: Matrix
    effects: Matrix
    wrong: Matrix
    wrong_cause: Mask

    def rows(self, chosen: Indices) -> Contrasts:
        """Return some of the pairs."""
        return Contrasts(
            self.causes[chosen], self.effects[chosen], self.wrong[chosen], self.wrong_cause[chosen]
        )


class Parts(NamedTuple):
    """What a head made on the way, for its gradient."""

    rows: Matrix
    hidden: Matrix
    kept: Matrix | None
    length: Matrix


def applied(
    weights: Mapping[str, Matrix], side: str, rows: Matrix, kept: Matrix | None = None
) -> tuple[Matrix, Parts]:
    """Return rows as one head places them, of norm 1, and what it made on the way.

    Parameters
    ----------
    weights : mapping of str to ndarray
        As in `Heads`.
    side : {"cause", "effect"}
        Which head.
    rows : ndarray of shape (n, dim), float32
        Vectors of norm 1.
    kept : ndarray of shape (m, hidden), float32, optional
        What dropout leaves of the hidden layer, scaled, m at least n; all of it by default.
    """
    hidden = np.maximum(rows @ weights[f"in_{side}"] + weights[f"bias_{side}"], 0)
    if kept is not None:
        kept = kept[: len(rows)]
        hidden = hidden * kept
    moved = rows + hidden @ weights[f"out_{side}"]
    length = np.linalg.norm(moved, axis=1, keepdims=True) + _SMALL
    return moved / length, Parts(rows, hidden, kept, length)


def train(contrasts: Contrasts, training: Training | None = None) -> Heads:
    """Train both heads together; the same seed gives the same heads.

    Raises
    ------
    InvalidInputError
        Columns of different lengths.
    InvalidInputError
        Fewer than two pairs.

    References
    ----------
    van den Oord, Li & Vinyals 2018, Representation learning with contrastive predictive coding:
    the loss over a batch. Kingma & Ba 2015, Adam.
    """
    training = training or Training()
    count = len(contrasts.causes)
    if any(len(column) != count for column in contrasts):
        raise InvalidInputError("causes, effects, wrong and wrong_cause differ in length")
    if count < 2:
        raise InvalidInputError(f"{count} pairs cannot be told apart: give at least 2")
    rng = np.random.default_rng(training.seed)
    weights = _start(contrasts.causes.shape[1], training.hidden, rng)
    size = min(training.batch, count)
    steps = training.epochs * (count // size)
    slopes = {name: np.zeros_like(value) for name, value in weights.items()}
    squares = {name: np.zeros_like(value) for name, value in weights.items()}
    for step, chosen in enumerate(_batches(count, size, training.epochs, rng), start=1):
        kept = _dropped(2 * size, training, rng)
        _, gradients = loss_and_gradients(weights, contrasts.rows(chosen), kept)
        rate = training.rate * 0.5 * (1 + np.cos(np.pi * step / steps))
        for name, gradient in gradients.items():
            slopes[name] += 0.1 * (gradient - slopes[name])
            squares[name] += 0.001 * (gradient**2 - squares[name])
            slope = slopes[name] / (1 - 0.9**step)
            spread = np.sqrt(squares[name] / (1 - 0.999**step))
            weights[name] -= (rate * (slope / (spread + _SMALL) + 0.01 * weights[name])).astype(
                np.float32
            )
    return Heads(weights)


def loss_and_gradients(
    weights: Mapping[str, Matrix], batch: Contrasts, kept: tuple[Matrix, Matrix] | None = None
) -> tuple[float, dict[str, Matrix]]:
    """Return the loss of a batch and its gradient.

    Parameters
    ----------
    weights : mapping of str to ndarray
        As in `Heads`.
    batch : Contrasts
        b pairs.
    kept : pair of ndarray of shape (2 b, hidden), optional
        What dropout leaves of the hidden layers, scaled; all of it by default.

    Returns
    -------
    loss : float
        Mean over the batch of: cross entropy of each cause finding its effect among all effects
        and look-alikes, and the reverse, half each; and 0.3 times the logistic loss of the true
        pair against its own look-alike.
    gradients : dict of str to ndarray
        For each weight.
    """
    size = len(batch.causes)
    causes = np.concatenate([batch.causes, batch.wrong[batch.wrong_cause]])
    effects = np.concatenate([batch.effects, batch.wrong[~batch.wrong_cause]])
    keep_left, keep_right = (None, None) if kept is None else kept
    left, left_parts = applied(weights, "cause", causes, keep_left)
    right, right_parts = applied(weights, "effect", effects, keep_right)
    cosines = left @ right.T
    slope = np.zeros_like(cosines)
    forward, down = _found(cosines[:size], batch.effects, effects)
    slope[:size] += down
    backward, down = _found(cosines[:, :size].T, batch.causes, causes)
    slope[:, :size] += down.T
    rows, columns = np.flatnonzero(batch.wrong_cause), np.flatnonzero(~batch.wrong_cause)
    pairs = np.concatenate([rows, columns])
    own = np.concatenate([size + np.arange(len(rows)), columns])
    other = np.concatenate([rows, size + np.arange(len(columns))])
    margin = (cosines[pairs, pairs] - cosines[own, other]) / TEMPERATURE
    apart = _LOOK_ALIKE * float(np.logaddexp(0, -margin).sum()) / size
    push = -_LOOK_ALIKE / (1 + np.exp(margin)) / TEMPERATURE / size
    np.add.at(slope, (pairs, pairs), push)
    np.add.at(slope, (own, other), -push)
    gradients = {
        **_gradients(weights, "cause", left, left_parts, slope @ right),
        **_gradients(weights, "effect", right, right_parts, slope.T @ left),
    }
    return forward + backward + apart, gradients


def _gradients(
    weights: Mapping[str, Matrix], side: str, unit: Matrix, parts: Parts, slope: Matrix
) -> dict[str, Matrix]:
    moved = (slope - unit * (slope * unit).sum(axis=1, keepdims=True)) / parts.length
    hidden = moved @ weights[f"out_{side}"].T
    if parts.kept is not None:
        hidden = hidden * parts.kept
    # A unit that dropout left out is 0 as well, and its gradient already is.
    hidden = hidden * (parts.hidden > 0)
    return {
        f"in_{side}": parts.rows.T @ hidden,
        f"bias_{side}": hidden.sum(axis=0),
        f"out_{side}": parts.hidden.T @ moved,
    }


def _found(cosines: Matrix, wanted: Matrix, offered: Matrix) -> tuple[float, Matrix]:
    """Return half the cross entropy of finding column i from row i, and its gradient."""
    size = len(cosines)
    logits = cosines / TEMPERATURE
    # The same text twice in a batch is no mistake to find.
    twin = (wanted @ offered.T) > 1 - 1e-5
    twin[np.arange(size), np.arange(size)] = False
    logits = np.where(twin, -np.inf, logits)
    logits = logits - logits.max(axis=1, keepdims=True)
    share = np.exp(logits)
    share /= share.sum(axis=1, keepdims=True)
    at = np.arange(size)
    loss = -float(np.log(share[at, at]).mean()) / 2
    share[at, at] -= 1
    return loss, share / (2 * size * TEMPERATURE)


def _start(dim: int, hidden: int, rng: np.random.Generator) -> dict[str, Matrix]:
    weights = {}
    for side in ("cause", "effect"):
        entrance = rng.normal(size=(dim, hidden)) / np.sqrt(dim)
        weights[f"in_{side}"] = entrance.astype(np.float32)
        weights[f"bias_{side}"] = np.zeros(hidden, np.float32)
        # With nothing added, the heads start as the encoder itself.
        weights[f"out_{side}"] = np.zeros((hidden, dim), np.float32)
    return weights


def _batches(count: int, size: int, epochs: int, rng: np.random.Generator) -> Iterator[Indices]:
    for _ in range(epochs):
        order = rng.permutation(count)
        for start in range(0, count - size + 1, size):
            yield order[start : start + size]


def _dropped(
    rows: int, training: Training, rng: np.random.Generator
) -> tuple[Matrix, Matrix] | None:
    if not training.dropout:
        return None
    shape = (2, rows, training.hidden)
    kept = (rng.random(shape, np.float32) >= training.dropout) / (1 - training.dropout)
    left, right = kept.astype(np.float32)
    return left, right
