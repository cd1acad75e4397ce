"""Gymnasium's classic problems as an agent meets them, and when each counts as solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of Gymnasium.

    Parameters
    ----------
    id : str
        By which Gymnasium makes it.
    threshold : float
        The mean return at which it counts as solved.
    bar : int or None
        In how many online steps it must be.
    every, episodes : int
        How many online steps lie between measurements, and how many episodes one has.
    most : int
        Online steps after which a run is given up.
    repeat : int, default 1
        How often an action is repeated; each repetition is an online step.
    see : callable
        From an observation of the environment to one for the memory: text, number or vector.
    published : str
        What others need, with the source.
    """

    id: str
    threshold: float
    bar: int | None
    every: int
    episodes: int
    most: int
    repeat: int = 1
    see: Callable[[Any], Any] = lambda seen: seen
    published: str = ""
    time_limit: int | None = None

    def make(self) -> gymnasium.Env[Any, Any]:
        """Make the environment, with the action repeat."""
        if self.id.startswith("MiniGrid"):
            import_module("minigrid")  # it registers its problems
        env = gymnasium.make(self.id, max_episode_steps=self.time_limit)
        return Repeated(env, self.repeat) if self.repeat > 1 else env


class Repeated(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Does each action several times and adds the rewards up."""

    def __init__(self, env: gymnasium.Env[Any, Any], times: int) -> None:
        super().__init__(env)
        self.times = times

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do an action ``times`` times, or until the episode is over."""
        total = 0.0
        for _ in range(self.times):
            seen, reward, ended, truncated, info = self.env.step(action)
            total += float(reward)
            if ended or truncated:
                break
        return seen, total, bool(ended), bool(truncated), info


def _number(seen: Any) -> str:
    return str(int(seen))


def _hand(seen: Any) -> str:
    return " ".join(str(int(part)) for part in seen)


def _grid(seen: Any) -> Any:
    return np.append(np.ravel(seen["image"]), seen["direction"]).astype(np.float32)


def _vector(seen: Any) -> Any:
    return np.asarray(seen, dtype=np.float32)


_SB3 = "rl-baselines3-zoo, benchmark.md"

PROBLEMS: dict[str, Problem] = {
    "CliffWalking": Problem(
        "CliffWalking-v1", -14.0, 900, 50, 1, 3_000, see=_number, time_limit=5_000,
        published="tuned tabular Q-learning about 1,500 (our measurement of prototypes)",
    ),
    "Taxi": Problem(
        "Taxi-v4", 7.5, 10_000, 500, 500, 20_000, see=_number,
        published="tuned tabular Q-learning about 23,000 (prototypes)",
    ),
    "Blackjack": Problem("Blackjack-v1", -0.06, None, 2_500, 1_000, 10_000, see=_hand),
    "FrozenLake": Problem(
        "FrozenLake8x8-v1", 0.80, 25_000, 2_500, 200, 60_000, see=_number,
        published="tuned tabular Q-learning 103,000 to 135,000 (prototypes)",
    ),
    "DoorKey": Problem(
        "MiniGrid-DoorKey-5x5-v0", 0.9, 16_000, 1_000, 50, 30_000, see=_grid,
        published="tabular Q-learning not by 100,000 (prototypes)",
    ),
    "MountainCar": Problem(
        "MountainCar-v0", -110.0, 13_000, 1_000, 20, 20_000, repeat=5, see=_vector,
        published=f"DQN -101 with 120,000 steps, PPO -111 with 1,000,000 ({_SB3})",
    ),
    "CartPole": Problem(
        "CartPole-v1", 195.0, 7_000, 500, 10, 12_000, see=_vector,
        published=f"DQN 500 with 50,000 steps, PPO 500 with 100,000 ({_SB3})",
    ),
    "Acrobot": Problem(
        "Acrobot-v1", -100.0, 50_000, 5_000, 10, 50_000, repeat=4, see=_vector,
        published=f"DQN -77 with 100,000 steps, PPO -73 with 1,000,000 ({_SB3})",
    ),
}  # fmt: skip
"""From cheap to dear."""
