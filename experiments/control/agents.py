"""Agents for the control problems: memory, its advisor alone, tabular Q-learning."""

# ruff: noqa: D102
# What the methods of an agent do is told once, by Agent.

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np

import cvx
from cvx.embed import LexicalEmbedder
from cvx.learn.advisor import Advisor, Observation


class Agent(Protocol):
    """Plays a problem, learning or only measured."""

    def begin(self, *, learning: bool) -> None:
        """Begin an episode; what is not learning leaves no trace."""
        ...

    def act(self, seen: Any) -> int:
        """Return an action."""
        ...

    def saw(self, reward: float) -> None:
        """Take the reward of the last action."""
        ...

    def end(self, seen: Any, *, truncated: bool) -> None:
        """Learn from the episode, unless it was only measured."""
        ...


class Learning:
    """The learner of cvx, called directly."""

    def __init__(self, seed: int, actions: int) -> None:
        self.advisor = Advisor(seed=seed)
        self.actions, self.number = tuple(range(actions)), 0

    def _observed(self, seen: Any) -> Observation:
        return Observation(seen) if isinstance(seen, str) else Observation(None, seen)

    def begin(self, *, learning: bool) -> None:
        self.learning, self.number = learning, self.number + 1
        self.advisor.begin(str(self.number), goal="", task="control")

    def act(self, seen: Any) -> int:
        self.seen = self._observed(seen)
        options = self.advisor.options(str(self.number), self.seen, self.actions)
        option = self.advisor.choose(str(self.number), options, explore=self.learning)
        self.action = option.action
        return int(str(self.action))

    def saw(self, reward: float) -> None:
        self.advisor.step(str(self.number), self.seen, self.action, reward)

    def end(self, seen: Any, *, truncated: bool) -> None:
        if self.learning:
            last = self._observed(seen)
            self.advisor.end(str(self.number), observation=last, truncated=truncated)
        else:
            self.advisor.discard(str(self.number))


class Remembering:
    """A memory in RAM whose advice is followed."""

    def __init__(self, seed: int, actions: int) -> None:
        self.memory = cvx.Memory(embedder=LexicalEmbedder(), seed=seed)
        self.actions = list(range(actions))

    def begin(self, *, learning: bool) -> None:
        self.learning = learning
        self.episode = self.memory.episode("solve it", task="control")

    def act(self, seen: Any) -> int:
        self.seen = seen
        advice = self.episode.advise(seen, self.actions)
        self.option = advice.choose(explore=self.learning)
        return int(str(self.option.action))

    def saw(self, reward: float) -> None:
        self.episode.act(self.option.action, reward=reward, observation=self.seen)

    def end(self, seen: Any, *, truncated: bool) -> None:
        if self.learning:
            self.episode.end(observation=seen, truncated=truncated)
        else:
            self.episode.discard()


class QTable:
    """Tabular Q-learning, rate .5 falling to .1, epsilon from 1 to .05 over 5,000 steps.

    Vectors are cut into eight bins a number, over the range seen so far.
    """

    def __init__(self, seed: int, actions: int) -> None:
        self.random, self.actions, self.steps = random.Random(seed), actions, 0
        self.worth: dict[Hashable, list[float]] = defaultdict(lambda: [0.0] * actions)
        self.low: Any = None
        self.high: Any = None

    def _state(self, seen: Any) -> Hashable:
        if isinstance(seen, str):
            return seen
        if len(seen) > 8:
            return bytes(seen.tobytes())
        if self.low is None:
            self.low = self.high = seen
        self.low, self.high = np.minimum(self.low, seen), np.maximum(self.high, seen)
        cut = (seen - self.low) / np.maximum(self.high - self.low, 1e-6)
        return tuple((cut * 8).astype(int).tolist())

    def begin(self, *, learning: bool) -> None:
        self.learning = learning
        self.before: tuple[Hashable, int] | None = None

    def _learn(self, state: Hashable | None) -> None:
        if self.before is not None and self.learning:
            old, action = self.before
            ahead = 0.0 if state is None else 0.99 * max(self.worth[state])
            rate = max(0.1, 0.5 - self.steps / 20_000)
            self.worth[old][action] += rate * (self.reward + ahead - self.worth[old][action])

    def act(self, seen: Any) -> int:
        state = self._state(seen)
        self._learn(state)
        self.steps += self.learning
        worth = self.worth[state]
        if self.learning and self.random.random() < max(0.05, 1.0 - self.steps / 5_000):
            action = self.random.randrange(self.actions)
        else:
            best = max(worth)
            action = self.random.choice([at for at, one in enumerate(worth) if one == best])
        self.before = (state, action)
        return action

    def saw(self, reward: float) -> None:
        self.reward = reward

    def end(self, seen: Any, *, truncated: bool) -> None:
        self._learn(self._state(seen) if truncated else None)


AGENTS: dict[str, Callable[[int, int], Agent]] = {
    "learner": Learning,
    "memory": Remembering,
    "Q-learning": QTable,
}
"""By name, from a seed and the number of actions."""
