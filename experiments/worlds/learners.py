"""Agents that play the small worlds: some ask cvx, others are baselines."""

# ruff: noqa: D102, ARG002
# What the methods of an agent do is told once, by Agent.

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

import cvx
from cvx.embed import Embedder, LexicalEmbedder
from cvx.learn.advisor import Advisor, Observation, Parts
from cvx.learn.decay import DecayCase


class View(NamedTuple):
    """What is seen before a command: what is asked for, the text, the commands, the exact state."""

    goal: str
    text: str
    admissible: Sequence[str]
    state: object


class Agent(Protocol):
    """Plays one world, episode after episode."""

    def begin(self, goal: str) -> None:
        """Hear what is asked for."""
        ...

    def act(self, view: View) -> tuple[str, float | None]:
        """Return a command, with the return that is expected of it, if any is."""
        ...

    def saw(self, reward: float) -> None:
        """Take the reward of the last command."""
        ...

    def end(self, view: View, truncated: bool) -> None:
        """Learn from the episode, which ended in this view."""
        ...


class Vectors:
    """Embeds every text once, with the lexical default unless another embedder is given."""

    def __init__(self) -> None:
        self.embedder: Embedder = LexicalEmbedder()
        self._known: dict[str, Any] = {}

    def __call__(self, text: str) -> Any:
        """Return the vector of a text."""
        if text not in self._known:
            self._known[text] = self.embedder.embed([text])[0]
        return self._known[text]


VECTORS = Vectors()


class Remembering:
    """Ask ``episode.advise`` of a memory in RAM, do what it chooses, tell it what came of it."""

    def __init__(self, seed: int) -> None:
        self.memory = cvx.Memory(embedder=VECTORS.embedder, seed=seed)
        self.reward = 0.0

    def begin(self, goal: str) -> None:
        self.episode = self.memory.episode(goal)

    def act(self, view: View) -> tuple[str, float | None]:
        advice = self.episode.advise(view.text, view.admissible)
        self.seen, self.option = view.text, advice.choose(explore=True)
        return str(self.option.action), self.option.value

    def saw(self, reward: float) -> None:
        self.episode.act(self.option.action, reward=reward, observation=self.seen)

    def end(self, view: View, truncated: bool) -> None:
        self.episode.end(observation=view.text, truncated=truncated)


class Advised:
    """The same on the learner alone, without a memory around it: for taking parts out.

    With all parts it does what the memory does, step by step.

    Parameters
    ----------
    seed : int
    parts : Parts
    apart : bool, default False
        Whether each goal is a task of its own.
    shuffled : bool, default False
        Whether every reward is that of a random earlier episode: what is left is luck.
    """

    def __init__(
        self, seed: int, parts: Parts, *, apart: bool = False, shuffled: bool = False
    ) -> None:
        self.advisor = Advisor(seed=seed, parts=parts, embed=VECTORS.embedder.embed)
        self.apart, self.shuffled = apart, shuffled
        self.random = random.Random(seed)
        self.rewards: list[float] = []
        # What is drawn hangs on the name of the episode: a memory numbers them from 0, too.
        self.episode = -1

    def begin(self, goal: str) -> None:
        self.episode += 1
        task = goal if self.apart else None
        self.advisor.begin(str(self.episode), goal=goal, task=task)

    def act(self, view: View) -> tuple[str, float | None]:
        self.seen = Observation(view.text, VECTORS(view.text))
        options = self.advisor.options(str(self.episode), self.seen, view.admissible)
        chosen = self.advisor.choose(str(self.episode), options)
        self.action = str(chosen.action)
        return self.action, chosen.value

    def saw(self, reward: float) -> None:
        if self.shuffled:
            self.rewards.append(reward)
            reward = self.random.choice(self.rewards)
        self.advisor.step(str(self.episode), self.seen, self.action, reward)

    def end(self, view: View, truncated: bool) -> None:
        last = Observation(view.text, VECTORS(view.text))
        self.advisor.end(str(self.episode), observation=last, truncated=truncated)


@dataclass
class Baseline:
    """Acts at random and keeps the steps of the episode; the others build on it."""

    seed: int
    steps: list[tuple[View, str]] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.rng = np.random.default_rng(self.seed)

    def begin(self, goal: str) -> None:
        self.steps, self.total = [], 0.0

    def act(self, view: View) -> tuple[str, float | None]:
        command = self.pick(view)
        self.steps.append((view, command))
        return command, None

    def pick(self, view: View) -> str:
        """Return a command."""
        return self.random.choice(list(view.admissible))

    def saw(self, reward: float) -> None:
        self.total += reward

    def end(self, view: View, truncated: bool) -> None:
        self.learn()

    def learn(self) -> None:
        """Learn from the steps and their total."""


class CopyWins(Baseline):
    """Does what was done in the most similar step of an episode of this goal that was won."""

    def learn(self) -> None:
        if self.total > 0:
            known = self.__dict__.setdefault("wins", defaultdict(list))
            for view, command in self.steps:
                known[view.goal].append((VECTORS(view.text), command))

    def pick(self, view: View) -> str:
        known = self.__dict__.get("wins", {}).get(view.goal, [])
        able = [(vector, command) for vector, command in known if command in view.admissible]
        if not able:
            return super().pick(view)
        near = np.array([vector for vector, _ in able]) @ VECTORS(view.text)
        return str(able[int(near.argmax())][1])


class LinUCB(Baseline):
    """Ridge regression on the vector, one for each goal and command; 1 deviation of optimism."""

    def learn(self) -> None:
        models = self.__dict__.setdefault("models", {})
        for view, command in self.steps:
            x = np.append(VECTORS(view.text), 1.0).astype(np.float64)
            inverse, b = models.get((view.goal, command), (np.eye(len(x)), np.zeros(len(x))))
            u = inverse @ x
            models[view.goal, command] = (
                inverse - np.outer(u, u) / (1.0 + x @ u),
                b + self.total * x,
            )

    def pick(self, view: View) -> str:
        models = self.__dict__.get("models", {})
        x = np.append(VECTORS(view.text), 1.0).astype(np.float64)

        def worth(command: str) -> float:
            held = models.get((view.goal, command))
            if held is None:
                return math.sqrt(2.0) + 1e-6 * self.random.random()
            u = held[0] @ x
            return float(u @ held[1] + math.sqrt(x @ u) + 1e-6 * self.random.random())

        return max(view.admissible, key=worth)


class KernelPosterior(Baseline):
    """Thompson sampling of a Beta whose counts are episodes weighted by nearness of their text."""

    def learn(self) -> None:
        known = self.__dict__.setdefault("known", defaultdict(list))
        won = min(1.0, max(0.0, self.total))
        for view, command in self.steps:
            known[view.goal, command].append((VECTORS(view.text), won))

    def pick(self, view: View) -> str:
        known = self.__dict__.get("known", {})
        x = VECTORS(view.text)

        def drawn(command: str) -> float:
            held = known.get((view.goal, command), [])
            if not held:
                return float(self.rng.beta(1.0, 1.0))
            near = np.exp(-20.0 * (1.0 - np.array([vector for vector, _ in held]) @ x))
            wins = float(near @ np.array([won for _, won in held]))
            return float(self.rng.beta(1.0 + wins, 1.0 + float(near.sum()) - wins))

        return max(view.admissible, key=drawn)


class Table(Baseline):
    """Reads the exact state: posterior sampling of moves and outcomes, and planning, a goal each.

    Strens 2000, A Bayesian framework for reinforcement learning.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.moves: dict[Any, dict[Any, float]] = defaultdict(lambda: defaultdict(float))
        self.commands: dict[Any, tuple[str, ...]] = {}
        self.worth: dict[Any, float] = {}

    def saw(self, reward: float) -> None:
        super().saw(reward)
        self.__dict__.setdefault("rewards", []).append(reward)

    def begin(self, goal: str) -> None:
        super().begin(goal)
        self.__dict__["rewards"] = []
        drawn = {}
        for pair, outcomes in self.moves.items():
            weights = self.rng.dirichlet([*outcomes.values(), 1.0])
            drawn[pair] = dict(zip(outcomes, weights, strict=False)), weights[-1], self.rng.random()
        values: dict[Any, float] = defaultdict(lambda: 1.0)
        fresh = {
            (state, command): self.rng.random()
            for state, commands in self.commands.items()
            for command in commands
        }
        for _ in range(30):
            self.worth = {}
            for pair in fresh:
                if pair in drawn:
                    shares, rest, prior = drawn[pair]
                    self.worth[pair] = rest * prior + sum(
                        share * (reward + (0.95 * values[to] if to is not None else 0.0))
                        for (to, reward), share in shares.items()
                    )
                else:
                    self.worth[pair] = fresh[pair]
            for state, commands in self.commands.items():
                values[state] = max(self.worth[state, command] for command in commands)

    def pick(self, view: View) -> str:
        state = view.goal, view.state
        self.commands[state] = tuple(view.admissible)
        return max(
            view.admissible,
            key=lambda command: self.worth.get((state, command), self.rng.random()),
        )

    def end(self, view: View, truncated: bool) -> None:
        states = [(step.goal, step.state) for step, _ in self.steps]
        after = [*states[1:], (view.goal, view.state) if truncated else None]
        rewards = self.__dict__["rewards"]
        for state, (_, command), to, reward in zip(states, self.steps, after, rewards, strict=True):
            self.moves[state, command][to, reward] += 1.0


class BlameNear:
    """Blames everything of the task that failed, done or not."""

    def factor(self, case: DecayCase) -> float:
        """Return .85 for everything of the failed task."""
        return 0.85 if case.expert_task_type == case.game_task_type else 1.0
