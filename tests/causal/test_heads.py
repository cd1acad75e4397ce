"""Two heads on frozen vectors: their gradients, and what they learn."""

from __future__ import annotations

import numpy as np
import pytest

from benches.causal.training import Contrasts, Training, loss_and_gradients, train
from cvx.causal.judges.offline import Heads
from cvx.errors import InvalidInputError, InvalidVectorError


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), rows.dtype)


def drawn(count: int, dim: int, seed: int, dtype: type = np.float64) -> Contrasts:
    rng = np.random.default_rng(seed)
    rows: np.ndarray = unit(rng.normal(size=(3 * count, dim))).astype(dtype)
    rows = rows.reshape(3, count, dim)
    return Contrasts(rows[0], rows[1], rows[2], rng.random(count) < 0.5)


def test_gradients_are_those_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    weights = {
        f"{part}_{side}": rng.normal(size=shape) * 0.3
        for side in ("cause", "effect")
        for part, shape in (("in", (5, 4)), ("bias", (4,)), ("out", (4, 5)))
    }
    batch = drawn(6, 5, 1)
    dropped = (rng.random((2, 12, 4)) < 0.8) / 0.8
    kept = (dropped[0], dropped[1])
    _, gradients = loss_and_gradients(weights, batch, kept)  # type: ignore[arg-type]
    step = 1e-6
    for name, value in weights.items():
        for at in rng.integers(0, value.size, 6):
            losses = []
            for side in (step, -step):
                moved = {key: held.copy() for key, held in weights.items()}
                moved[name].flat[at] += side
                losses.append(loss_and_gradients(moved, batch, kept)[0])  # type: ignore[arg-type]
            slope = (losses[0] - losses[1]) / (2 * step)
            assert gradients[name].flat[at] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def rotated(count: int, seed: int) -> Contrasts:
    """Draw effects that lie where a fixed rotation takes their causes; the wrong lies anywhere."""
    turn, _ = np.linalg.qr(np.random.default_rng(7).normal(size=(16, 16)))
    rng = np.random.default_rng(seed)
    causes = unit(rng.normal(size=(count, 16)))
    effects = unit(causes @ turn + 0.1 * rng.normal(size=causes.shape))
    wrong_cause = rng.random(count) < 0.5
    # The look-alike: as near to the given end as a plain encoder puts anything.
    wrong = unit(np.where(wrong_cause[:, None], effects, causes) + rng.normal(size=causes.shape))
    return Contrasts(
        causes.astype(np.float32), effects.astype(np.float32), wrong.astype(np.float32), wrong_cause
    )


def accuracy(heads: Heads, asked: Contrasts) -> float:
    own = asked.wrong_cause[:, None]
    causes = np.where(own, asked.wrong, asked.causes)
    effects = np.where(own, asked.effects, asked.wrong)
    true = heads.score(asked.causes, asked.effects)
    return float(np.mean(true > heads.score(causes, effects)))


def test_heads_learn_that_effects_lie_elsewhere_than_their_causes() -> None:
    asked = rotated(200, seed=2)
    plain = np.mean(
        (asked.causes * asked.effects).sum(axis=1)
        > (np.where(asked.wrong_cause[:, None], asked.effects, asked.causes) * asked.wrong).sum(
            axis=1
        )
    )
    heads = train(rotated(800, seed=1), Training(hidden=64, epochs=40, batch=64, rate=3e-3))
    assert plain < 0.5 < 0.9 < accuracy(heads, asked)


def test_the_same_seed_gives_the_same_heads() -> None:
    training = Training(hidden=8, epochs=2, batch=16)
    a, b = (train(rotated(64, seed=3), training) for _ in range(2))
    other = train(rotated(64, seed=3), Training(hidden=8, epochs=2, batch=16, seed=1))
    for name, weights in a.weights.items():
        assert np.array_equal(weights, b.weights[name])
    assert any(not np.array_equal(a.weights[name], other.weights[name]) for name in a.weights)


def test_texts_that_recur_in_a_batch_are_no_mistakes() -> None:
    one = drawn(4, 5, 3, np.float32)
    twice = Contrasts(*(np.concatenate([column, column]) for column in one))
    weights = train(one, Training(hidden=4, epochs=1, batch=4)).weights
    once, again = (loss_and_gradients(weights, batch)[0] for batch in (one, twice))
    assert np.isfinite(again)
    # Each row's twin is left out, so that finding the own column is hardly harder than before.
    assert again < once + np.log(2)


def test_what_does_not_fit_is_refused() -> None:
    heads = train(rotated(8, seed=4), Training(hidden=4, epochs=1))
    with pytest.raises(InvalidVectorError, match="refit"):
        heads.score(np.zeros((2, 3), np.float32), np.zeros((2, 16), np.float32))
    with pytest.raises(InvalidInputError):
        train(rotated(1, seed=4))
    one = rotated(8, seed=4)
    with pytest.raises(InvalidInputError):
        train(one._replace(wrong=one.wrong[:3]))
