"""The arms of the experiment: one agent over differently configured memories, and two without.

Every arm but ``none`` sees the same demonstrations, and all play the same games in the same order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from cvx.active import ActiveMemory
from cvx.alfworld.agent import Agent
from cvx.alfworld.language import shape
from cvx.alfworld.reader import Reader
from cvx.alfworld.sight import PLAN, Game, Result, use_key
from cvx.decay import BlindDecay
from cvx.episodes import OpenEpisode
from cvx.errors import InvalidParameterError
from cvx.scoring import Feature, Scorer, ScoringContext, UsageTracker, use_posterior
from cvx.temporal_index import TemporalIndex
from cvx.types import Decision, Episode, Event, Hit, Vector

if TYPE_CHECKING:
    from cvx.alfworld.demonstrations import Played
    from cvx.alfworld.llm import LLMPolicy

DIM = 512
Demonstrations = Sequence[tuple[str, "Sequence[Played]"]]


class Player(Protocol):
    """What plays in an arm."""

    def learn(self, demonstrations: Demonstrations) -> None:
        """Remember won games that somebody else played."""
        ...

    def play(self, game: Game) -> Result:
        """Play one game to its end."""
        ...


class FrozenMemory(ActiveMemory):
    """Keeps demonstrations, and nothing of its own experience."""

    def close(self, run: OpenEpisode, reward: float) -> Episode:
        """Keep a demonstration, forget anything else."""
        if run.kind == "demonstration":
            return super().close(run, reward)
        episode = self.recorder.outcome(run, reward)
        self.discard(run)
        return episode


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
    _pending: dict[int, _Goal]

    def start(self, goals: Sequence[_Goal], seed: int) -> None:
        """Take the goals to be mixed up, in the order of the demonstrations."""
        self.rng, self.goals, self._pending = random.Random(seed), goals, {}
        turn = self.rng.randrange(1, len(goals)) if len(goals) > 1 else 0
        self._circle = [*goals[turn:], *goals[:turn]]

    def _wrong(self, run: OpenEpisode) -> _Goal:
        if run.episode_id not in self._pending:
            if run.kind == "demonstration":
                wrong = self._circle.pop(0)
            else:
                others = [g for g in self.goals if g.task_type != run.task_type]
                wrong = self.rng.choice(others or list(self.goals))
            self._pending[run.episode_id] = wrong
        return self._pending[run.episode_id]

    def step(
        self,
        run: OpenEpisode,
        text: str,
        action: str | None = None,
        vector: Vector | None = None,
        *,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Event:
        """Record a step; the start of an episode lies where a wrong goal does."""
        tags = tuple(tags)
        if PLAN in tags:
            vector = self._wrong(run).vector
        return super().step(run, text, action, vector, tags=tags, metadata=metadata)

    def act(
        self,
        decision: Decision,
        action: str | None,
        followed: Hit | Iterable[Hit] | None = None,
        *,
        vector: Vector | None = None,
        tags: Iterable[str] = (),
        rendered: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Record an action; the start of an episode lies where a wrong goal does."""
        tags = tuple(tags)
        if PLAN in tags and self._current is not None:
            vector = self._wrong(self._current).vector
        return super().act(
            decision,
            action,
            followed,
            vector=vector,
            tags=tags,
            rendered=rendered,
            metadata=metadata,
        )

    def close(self, run: OpenEpisode, reward: float) -> Episode:
        """File the episode and its outcome under the wrong goal."""
        wrong = self._wrong(run)
        run.goal, run.task_type = wrong.goal, wrong.task_type
        return super().close(run, reward)


class _ShuffledAgent(Agent):
    """The same agent; it only hands the goals of the demonstrations to be mixed up."""

    def learn(self, demonstrations: Demonstrations) -> None:
        demonstrations = list(demonstrations)
        plain = Agent(_by_similarity(seed=0))
        plain.learn(demonstrations)
        goals = [
            _Goal(e.goal, e.task_type, e.steps[0].vector)
            for e in plain.memory.episodes
            if e.steps[0].vector is not None
        ]
        assert isinstance(self.memory, ShuffledMemory)
        self.memory.start(goals, self._rng.randrange(2**32))
        super().learn(demonstrations)


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
        seen, steps, reward, over = game.reset(), 0, 0.0, False
        while not over:
            shapes = [shape(c) for c in seen.admissible_commands]
            kinds = sorted({s for s in shapes if self.counts[s]})
            commands = list(seen.admissible_commands)
            if kinds:
                kind = rng.choices(kinds, [self.counts[k] for k in kinds])[0]
                commands = [c for c, s in zip(commands, shapes, strict=True) if s == kind]
            seen, reward, over = game.step(rng.choice(commands))
            steps += 1
        self.seed += 1_000_003
        return Result(reward > 0, steps, 1, 0, 0.0)


# A plan is all that follows the start of an episode: 128 is more than any of them has.
_COMMON: dict[str, Any] = {
    "action_type": shape,
    "usage_key": use_key,
    "temporal_context": 128,
}
_NO_LEARNING: dict[str, Any] = {
    "decay": None, "mdp": None, "usage": None, "weights": None,
    "learn_from_failures": False, "edges": False,
}  # fmt: skip


def _by_similarity(seed: int, kind: type[ActiveMemory] = ActiveMemory) -> ActiveMemory:
    return kind(TemporalIndex(DIM, seed=seed), scorer=None, **_NO_LEARNING, **_COMMON)


def _wins_blind(seed: int) -> ActiveMemory:
    """RFC-013's E7d: wins only, every reward recalled in a failure times 0.85."""
    scorer = Scorer({"similarity": 1.0, "reward": 0.5})
    options = {**_NO_LEARNING, "decay": BlindDecay(0.85)}
    return ActiveMemory(TemporalIndex(DIM, seed=seed), scorer=scorer, **options, **_COMMON)


def _full(seed: int, kind: type[ActiveMemory] = ActiveMemory) -> ActiveMemory:
    """All of the loop: failures teach, plans are scored by the posterior of following them."""
    usage = UsageTracker(strength=0.3)
    scorer = Scorer({"advice": 1.0}, features={"advice": _advice(usage)})
    return kind(TemporalIndex(DIM, seed=seed), scorer=scorer, usage=usage, weights=None, **_COMMON)


def _advice(usage: UsageTracker) -> Feature:
    posterior = use_posterior(usage, use_key)

    def advice(hit: Hit, context: ScoringContext) -> float:
        return posterior(hit, context) if hit.action is None else max(hit.similarity, 0.0)

    return advice


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of the experiment.

    Attributes
    ----------
    name, title : str
        As it is chosen, and as it is shown.
    memory : callable, optional
        From a seed to the memory; None for what has no memory.
    shown : bool
        Whether it sees the demonstrations.
    agent : mapping
        Parameters of the agent.
    readable : bool
        Whether a language model can play with it.
    """

    name: str
    title: str
    memory: Callable[[int], ActiveMemory] | None
    shown: bool = True
    agent: Mapping[str, Any] = field(default_factory=dict)
    readable: bool = True

    def player(self, seed: int, policy: LLMPolicy | None = None) -> Player:
        """Return a new player; a language model takes the agent's place where one is given."""
        if self.memory is None:
            return FrequencyPlayer(seed)
        memory = self.memory(seed)
        if policy is not None:
            return Reader(memory, policy)
        kind = _ShuffledAgent if isinstance(memory, ShuffledMemory) else Agent
        return kind(memory, seed=seed, **self.agent)


ArmName = Literal["none", "shuffled", "frequency", "frozen", "nearest", "wins_blind", "full"]
_ARMS = (
    Arm("full", "full loop", _full),
    # The best of k in (6, 15, 40) with exponents 1 and 2, on 200 tuning games (seeds 100-104);
    # keeping its wins is better than not (the arm "frozen").
    Arm("nearest", "similarity only, keeps its wins", _by_similarity, agent={"exponent": 2.0}),
    Arm("frozen", "demonstrations only", lambda seed: _by_similarity(seed, FrozenMemory)),
    # Fewer plans looked at, fewer undeserved decays: the best of 4, 10 and 64 on the same games.
    Arm("wins_blind", "wins only, blind decay (E7d)", _wins_blind, agent={"plans": 4}),
    Arm(
        "shuffled",
        "full loop on wrong goals",
        lambda seed: _full(seed, ShuffledMemory),
        readable=False,
    ),
    Arm("frequency", "frequencies of actions", None, readable=False),
    Arm("none", "no memory", lambda seed: _by_similarity(seed, FrozenMemory), shown=False),
)
ARMS: Mapping[str, Arm] = {arm.name: arm for arm in _ARMS}


def arm_of(name: str) -> Arm:
    """Return an arm by its name.

    Raises
    ------
    InvalidParameterError
        There is none.
    """
    if name not in ARMS:
        raise InvalidParameterError(f"there is no arm {name!r}: choose from {', '.join(ARMS)}")
    return ARMS[name]
