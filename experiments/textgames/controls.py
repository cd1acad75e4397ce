"""Control players without retrieval or with shuffled memory, for comparison."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cvx.index import RawIndex
from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.types import Decision, Episode, Event, Vector
from experiments.plans import PLAN, Demonstrations, complete, shape
from experiments.textgames.agent import Agent
from experiments.textgames.game import Game, Result


class _Goal(NamedTuple):
    goal: str
    task_type: str | None
    vector: Vector


class ShuffledMemory(ActiveMemory):
    """Hangs every plan and every outcome on a wrong goal: a control for what memory contributes.

    The demonstrations trade their goals in a circle. An own episode is filed, with its outcome,
    under the goal of a demonstration of another kind.
    """

    goals: Sequence[_Goal] = ()
    rng: random.Random
    turn: int = 0
    _circle: list[_Goal]
    _pending: dict[int, _Goal]
    _runs: dict[int, OpenEpisode]

    def start(self, goals: Sequence[_Goal], seed: int) -> None:
        """Take the goals to be mixed up, in the order of the demonstrations."""
        self.rng, self.goals = random.Random(seed), goals
        self._pending, self._runs = {}, {}
        self.turn = self.rng.randrange(1, len(goals)) if len(goals) > 1 else 0
        self._circle = [*goals[self.turn :], *goals[: self.turn]]

    def resume(self, turn: int, draws: tuple[Any, ...]) -> None:
        """Go on from a record: the goals of its demonstrations are turned back in their circle."""
        filed = _goals_of(e for e in self.episodes if e.kind == "demonstration")
        self.rng, self.turn, self._circle = random.Random(), turn, []
        self._pending, self._runs = {}, {}
        self.goals = [*filed[len(filed) - turn :], *filed[: len(filed) - turn]]
        self.rng.setstate(draws)

    def _wrong(self, run: OpenEpisode) -> _Goal:
        if run.episode_id not in self._pending:
            if run.kind == "demonstration":
                wrong = self._circle.pop(0)
            else:
                others = [g for g in self.goals if g.task_type != run.task_type]
                wrong = self.rng.choice(others or list(self.goals))
            self._pending[run.episode_id] = wrong
        return self._pending[run.episode_id]

    def begin(self, *args: Any, **options: Any) -> OpenEpisode:
        """Start an episode."""
        run = super().begin(*args, **options)
        self._runs[run.episode_id] = run
        return run

    def act(self, decision: Decision, *args: Any, **options: Any) -> Decision:
        """Record what was done; the start of an episode lies where a wrong goal does."""
        if PLAN in options.get("tags", ()) and decision.episode_id is not None:
            options["vector"] = self._wrong(self._runs[decision.episode_id]).vector
        return super().act(decision, *args, **options)

    def step(
        self,
        run: OpenEpisode,
        text: str,
        action: str | None = None,
        vector: Vector | None = None,
        **options: Any,
    ) -> Event:
        """Record a step; the start of an episode lies where a wrong goal does."""
        if PLAN in options.get("tags", ()):
            vector = self._wrong(run).vector
        return super().step(run, text, action, vector, **options)

    def close(self, run: OpenEpisode, reward: float, *, exposure: float = 1.0) -> Episode:
        """File the episode and its outcome under the wrong goal."""
        wrong = self._wrong(run)
        run.goal, run.task_type = wrong.goal, wrong.task_type
        return super().close(run, reward, exposure=exposure)


class ShuffledAgent(Agent):
    """The same agent; it only hands the goals of the demonstrations to be mixed up."""

    def learn(self, demonstrations: Demonstrations) -> None:
        """Remember won games under each other's goals."""
        demonstrations = list(demonstrations)
        index = RawIndex(self.memory.index.dim)
        plain = Agent(ActiveMemory(index, scorer=None, mdp=None, usage=None))
        plain.learn(demonstrations)
        assert isinstance(self.memory, ShuffledMemory)
        self.memory.start(_goals_of(plain.memory.episodes), self._rng.randrange(2**32))
        super().learn(demonstrations)

    def state(self) -> dict[str, Any]:
        """Return how the next draws will fall, its own and those of the mix-up."""
        assert isinstance(self.memory, ShuffledMemory)
        return {**super().state(), "turn": self.memory.turn, "mix": self.memory.rng.getstate()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with such draws."""
        assert isinstance(self.memory, ShuffledMemory)
        super().restore(state)
        version, numbers, gauss = state["mix"]
        self.memory.resume(state["turn"], (version, tuple(numbers), gauss))


def _goals_of(episodes: Iterable[Episode]) -> list[_Goal]:
    return [
        _Goal(e.goal, e.task_type, e.steps[0].vector)
        for e in episodes
        if e.steps[0].vector is not None
    ]


@dataclass(slots=True)
class FrequencyPlayer:
    """Draws kinds of command as often as the demonstrations used them; there is no retrieval."""

    seed: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def learn(self, demonstrations: Demonstrations) -> None:
        """Count the shapes of the commands."""
        for _, steps in demonstrations:
            self.counts.update(shape(step.command) for step in steps)

    def play(self, game: Game) -> Result:
        """Play one game to its end."""
        rng = random.Random(f"{self.seed} {self.counts.total()}")
        seen, steps, score, over = game.reset(), 0, 0.0, False
        while not over:
            shapes = [shape(c) for c in seen.admissible_commands]
            kinds = sorted({s for s in shapes if self.counts[s]})
            commands = list(seen.admissible_commands)
            if kinds:
                kind = rng.choices(kinds, [self.counts[k] for k in kinds])[0]
                commands = [c for c, s in zip(commands, shapes, strict=True) if s == kind]
            seen, reward, over = game.step(rng.choice(commands))
            steps, score = steps + 1, score + reward
        self.seed += 1_000_003
        return Result(complete(score), steps, 1, 0, 0.0, score)

    def state(self) -> dict[str, Any]:
        """Return the seed of the next game, and what was counted."""
        return {"seed": self.seed, "counts": self.counts}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with the next game."""
        self.seed, self.counts = state["seed"], Counter(state["counts"])
