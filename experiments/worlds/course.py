"""Plays the small worlds with agents and computes figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.harness.statistics import Difference, Pairs, corrected, paired_difference
from experiments.worlds.arms import ARMS
from experiments.worlds.learners import View
from experiments.worlds.untuned_worlds import HELD_OUT, MORE
from experiments.worlds.worlds import WORLDS, ChangingErrands, World

ALL: dict[str, tuple[type[World], int]] = {**WORLDS, **MORE, **HELD_OUT}


@dataclass(frozen=True, slots=True)
class Played:
    """One arm in one world with one seed.

    Parameters
    ----------
    world, arm : str
    seed : int
    regret : tuple of float
        Of each episode: the optimum less what was won.
    told : tuple of (float, float)
        Of each step of the last third: what was expected of what was done, and the return.
    seconds : float
    """

    world: str
    arm: str
    seed: int
    regret: tuple[float, ...]
    told: tuple[tuple[float, float], ...]
    seconds: float


def play(name: str, arm: str, seed: int, episodes: int | None = None) -> Played:
    """Play all episodes of a world."""
    make, usual = ALL[name]
    world: World = make()
    agent = ARMS[arm].make(seed)
    episodes = usual if episodes is None else episodes
    regret, told = [], []
    start = time.perf_counter()
    for number in range(episodes):
        text, info = world.reset(seed=seed if not number else None)
        agent.begin(info["goal"])
        total, expected, over = 0.0, [], False
        truncated = False
        while not over:
            view = View(info["goal"], text, info["admissible"], world.state)
            command, value = agent.act(view)
            if value is not None:
                expected.append(value)
            text, reward, ended, truncated, info = world.step(command)
            agent.saw(reward)
            total += reward
            over = ended or truncated
        agent.end(View(info["goal"], text, info["admissible"], world.state), truncated)
        regret.append(world.optimum - total)
        if number >= episodes - episodes // 3:
            told += [(value, total) for value in expected]
    return Played(name, arm, seed, tuple(regret), tuple(told), time.perf_counter() - start)


def calibration(told: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the calibration error over ten bins and the Brier score, nan without forecasts."""
    if not told:
        return float("nan"), float("nan")
    value, won = np.clip(np.array(told, dtype=np.float64), 0.0, 1.0).T
    bins = np.minimum((value * 10).astype(int), 9)
    error = sum(
        abs(float(value[bins == at].mean() - won[bins == at].mean())) * float((bins == at).mean())
        for at in set(bins.tolist())
    )
    return error, float(np.square(value - won).mean())


def figures(played: Sequence[Played]) -> list[dict[str, Any]]:
    """Return a row for each world and arm, with its difference from the learner with all parts."""
    rows: list[dict[str, Any]] = []
    by: dict[tuple[str, str], list[Played]] = {}
    for one in played:
        by.setdefault((one.world, one.arm), []).append(one)
    for (world, arm), some in by.items():
        regret = np.array([one.regret for one in some])
        optimum = ALL[world][0].optimum
        late = regret[:, -(regret.shape[1] // 3) :]
        told = [pair for one in some for pair in one.told]
        error, brier = calibration(told)
        won = np.array([pair[1] for pair in told])
        base = float(won.var()) if len(won) else 0.0
        row = {
            "world": world,
            "arm": arm,
            "seeds": len(some),
            "regret": float(regret.sum(1).mean()),
            "spread": float(regret.sum(1).std()),
            "late": 1.0 - float(late.mean()) / optimum,
            "calibration": error,
            "skill": 1.0 - brier / base if base > 1e-9 else float("nan"),
            "ms": 1000.0 * sum(one.seconds for one in some) / regret.size,
        }
        if world == "changing errands":
            row["after"] = float(regret[:, ChangingErrands.CHANGE :].sum(1).mean())
        rows.append(row)
    compared = [row for row in rows if row["arm"] != "learner" and (row["world"], "learner") in by]
    found = [
        _against(by[row["world"], row["arm"]], by[row["world"], "learner"]) for row in compared
    ]
    for row, difference, p in zip(
        compared, found, corrected([one.p for one in found]), strict=True
    ):
        row |= {"more": difference.mean, "low": difference.low, "high": difference.high, "p": p}
    return rows


def _against(some: Sequence[Played], others: Sequence[Played]) -> Difference:
    """Return how much more one arm regrets than another, seed by seed and fifth by fifth."""
    regret = {one.seed: _fifths(one) for one in others}
    pairs = [
        (mine, theirs, one.seed, (one.seed, at))
        for one in some
        if one.seed in regret
        for at, (mine, theirs) in enumerate(zip(_fifths(one), regret[one.seed], strict=True))
    ]
    mean, low, high, p = paired_difference(Pairs(*zip(*pairs, strict=True)))
    return Difference(5 * mean, 5 * low, 5 * high, p)


def _fifths(played: Played) -> list[float]:
    """Return the regret of each fifth of a run."""
    return [float(part.sum()) for part in np.array_split(np.array(played.regret), 5)]
