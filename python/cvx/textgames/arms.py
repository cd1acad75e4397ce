"""The arms of the experiment: one agent over differently configured memories, and two without.

Every arm but ``none`` sees the same demonstrations, and all play the same games in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cvx.active import ActiveMemory
from cvx.decay import BlindDecay
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidParameterError
from cvx.memory import Memory
from cvx.plans import shape, use_key
from cvx.scoring import Feature, Scorer, ScoringContext, UsageTracker, use_posterior
from cvx.textgames.agent import Agent
from cvx.textgames.controls import (
    FrequencyPlayer,
    FrozenMemory,
    ShuffledAgent,
    ShuffledMemory,
)
from cvx.textgames.game import Player
from cvx.textgames.reader import Policy, Reader
from cvx.types import Hit

DIM = 512


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


def _loop(kind: type[ActiveMemory], memory: Memory, **options: Any) -> ActiveMemory:
    return kind(memory.index, memory.embedder, memory.record, **options, **_COMMON)


def _by_similarity(memory: Memory, kind: type[ActiveMemory] = ActiveMemory) -> ActiveMemory:
    return _loop(kind, memory, scorer=None, **_NO_LEARNING)


def _wins_blind(memory: Memory) -> ActiveMemory:
    """RFC-013's E7d: wins only, every reward recalled in a failure times 0.85."""
    scorer = Scorer({"similarity": 1.0, "reward": 0.5})
    options = {**_NO_LEARNING, "decay": BlindDecay(0.85)}
    return _loop(ActiveMemory, memory, scorer=scorer, **options)


def _full(memory: Memory, kind: type[ActiveMemory] = ActiveMemory) -> ActiveMemory:
    """All of the loop: failures teach, plans are scored by the posterior of following them."""
    usage = UsageTracker(strength=0.3)
    scorer = Scorer({"advice": 1.0}, features={"advice": _advice(usage)})
    return _loop(kind, memory, scorer=scorer, usage=usage, weights=None)


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
    loop : callable, optional
        From a memory to the loop that plays on it; None for what does not remember.
    shown : bool
        Whether it sees the demonstrations.
    agent : mapping
        Parameters of the agent.
    readable : bool
        Whether a language model can play with it.
    """

    name: str
    title: str
    loop: Callable[[Memory], ActiveMemory] | None
    shown: bool = True
    agent: Mapping[str, Any] = field(default_factory=dict)
    readable: bool = True

    def open(self, folder: Path | None, seed: int) -> Memory:
        """Open the memory of a player: in a folder, or in RAM."""
        embedder = LexicalEmbedder(DIM)
        if folder is None:
            return Memory(embedder, seed=seed)
        return Memory.open(folder, embedder, seed=seed)

    def player(self, memory: Memory, seed: int, policy: Policy | None = None) -> Player:
        """Return a player on a memory; a language model takes the agent's place if given."""
        if self.loop is None:
            return FrequencyPlayer(seed)
        loop = self.loop(memory)
        if policy is not None:
            return Reader(loop, policy)
        kind = ShuffledAgent if isinstance(loop, ShuffledMemory) else Agent
        return kind(loop, seed=seed, **self.agent)


ArmName = Literal["none", "shuffled", "frequency", "frozen", "nearest", "wins_blind", "full"]
_ARMS = (
    Arm("full", "full loop", _full),
    # The best of k in (6, 15, 40) with exponents 1 and 2, on 200 tuning games (seeds 100-104);
    # keeping its wins is better than not (the arm "frozen").
    Arm("nearest", "similarity only, keeps its wins", _by_similarity, agent={"exponent": 2.0}),
    Arm("frozen", "demonstrations only", lambda memory: _by_similarity(memory, FrozenMemory)),
    # Fewer plans looked at, fewer undeserved decays: the best of 4, 10 and 64 on the same games.
    Arm("wins_blind", "wins only, blind decay (E7d)", _wins_blind, agent={"plans": 4}),
    Arm(
        "shuffled",
        "full loop on wrong goals",
        lambda memory: _full(memory, ShuffledMemory),
        readable=False,
    ),
    Arm("frequency", "frequencies of actions", None, readable=False),
    Arm("none", "no memory", lambda memory: _by_similarity(memory, FrozenMemory), shown=False),
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
