"""The arms of an experiment: one agent over differently configured memories, and two without.

Every arm but ``none`` sees the same demonstrations, and all play the same games in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.learn.edges import ALL_EDGES, HELPFUL, edge_bonus
from cvx.memory import Memory
from experiments.chat import AuditLog
from experiments.harness import loop_settings
from experiments.harness.memories import FrozenMemory, PausableMemory, ShuffledOutcomes
from experiments.textgames.agent import Agent
from experiments.textgames.controls import FrequencyPlayer, ShuffledAgent
from experiments.textgames.game import Player
from experiments.textgames.reader import Policy, Reader
from experiments.textgames.ten_lines import TenLines

DIM = 512
FOCUS = "full"
"""The arm that the others are compared with."""


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
    plans : bool
        Whether the agent plays by plans; else by `TenLines`.
    """

    name: str
    title: str
    loop: loop_settings.Loop | None
    shown: bool = True
    agent: Mapping[str, Any] = field(default_factory=dict)
    readable: bool = True
    plans: bool = True

    def open(self, folder: Path | None, seed: int) -> Memory:
        """Open the memory of a player: in a folder, or in RAM."""
        embedder = LexicalEmbedder(DIM)
        if folder is None:
            return Memory(embedder=embedder, seed=seed)
        return Memory.open(folder, embedder=embedder, seed=seed)

    def loop_on(self, memory: Memory) -> PausableMemory | None:
        """Return the loop on a memory; None for what does not remember."""
        return None if self.loop is None else self.loop(memory)

    def plain(self) -> dict[str, Any]:
        """Return what its games depend on, as JSON can hold it."""
        return {"loop": _plain(self.loop), "shown": self.shown, "agent": _plain(self.agent)}

    def player(
        self,
        loop: PausableMemory | None,
        seed: int,
        policy: Policy | None = None,
        log: AuditLog | None = None,
        max_steps: int = 50,
    ) -> Player:
        """Return a player on a loop; a language model takes the agent's place if given.

        Games are cut off after ``max_steps`` commands.
        """
        if loop is None:
            return FrequencyPlayer(seed)
        if policy is not None:
            return Reader(loop, policy, log=log)
        if not self.plans:
            assert loop.choices is not None
            return TenLines(loop, loop.choices.memory, max_steps)
        kind = ShuffledAgent if isinstance(loop, ShuffledOutcomes) else Agent
        return kind(loop, choices=loop.choices, seed=seed, **self.agent)


def _plain(value: Any) -> Any:
    if isinstance(value, partial):
        return {"of": _plain(value.func), "with": _plain(value.keywords)}
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(one) for one in value), key=str)
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return f"{value.__module__}.{value.__qualname__}" if callable(value) else value


# What plans are chosen by where their scores are what is studied, and where nothing is learned.
_SCORED = {"advised": False}
_FULL = Arm(FOCUS, "full loop", loop_settings.full)
_CONTROLS = (
    # Keeping its wins is better than not (the arm "frozen"): on 200 tuning games, seeds 100-104.
    Arm("nearest", "wins only, by similarity", loop_settings.by_similarity, agent=_SCORED),
    Arm(
        "frozen",
        "demonstrations only",
        partial(loop_settings.by_similarity, kind=FrozenMemory),
        agent=_SCORED,
    ),
    Arm(
        "shuffled",
        "full loop on wrong goals",
        partial(loop_settings.full, kind=ShuffledOutcomes),
        # Searches hang on no goal, nor do steps that goals name: they would stay true in it.
        agent={"searching": False, "lending": False, "returning": False},
        readable=False,
    ),
    Arm(
        "ten_lines",
        "memory.episode and advise alone",
        loop_settings.by_similarity,
        readable=False,
        plans=False,
    ),
    Arm("frequency", "frequencies of actions", None, readable=False),
    Arm(
        "none",
        "no memory",
        partial(loop_settings.by_similarity, kind=FrozenMemory),
        shown=False,
        agent=_SCORED,
    ),
)
# Fewer plans looked at, fewer undeserved decays: the best of 4, 10 and 64 on the same games.
_FEW = {"looked_at": 4, **_SCORED}
_PUBLISHED = (
    Arm("e7c", "everything advises, blind decay (E7c)", loop_settings.everything, agent=_FEW),
    Arm("e7d", "wins only, blind decay (E7d)", loop_settings.wins_blind, agent=_FEW),
    Arm("e7e", "wins only, context-aware decay (E7e)", loop_settings.wins_aware, agent=_FEW),
    Arm("e8", "region model, blind decay (E8)", loop_settings.region_model, agent=_FEW),
)
_WINS = Arm("wins", "full without failures", partial(loop_settings.full, learn_from_failures=False))
_WITHOUT = (
    _WINS,
    Arm("scored", "full, plans by the loop's score", loop_settings.full, agent=_SCORED),
    Arm(
        "no_posterior",
        "scored, by similarity alone",
        partial(loop_settings.full, scorer=None, usage=None),
        agent=_SCORED,
    ),
    Arm(
        "no_search",
        "full, nothing remembered of searches",
        loop_settings.full,
        agent={"searching": False},
    ),
    Arm(
        "no_lending", "full, no parts of other plans", loop_settings.full, agent={"lending": False}
    ),
    Arm(
        "no_returns",
        "full, plans also where rewards come by the way",
        loop_settings.full,
        agent={"returning": False},
    ),
    Arm(
        "no_edges",
        "scored, no typed edges",
        partial(loop_settings.full, edges=False),
        agent=_SCORED,
    ),
    Arm("no_decay", "scored, no decay", partial(loop_settings.full, decay=None), agent=_SCORED),
)
# What was found along an edge ranks higher too: without that, edges only change who is considered.
_ALONG_EDGES: Mapping[str, Any] = {
    "besides": {"edge_bonus": 1.0},
    "features": {"edge_bonus": edge_bonus},
}
_WITH = (
    Arm(
        "decayed",
        "scored, by decaying rewards too",
        partial(loop_settings.full, besides={"reward": 0.5}),
        agent=_SCORED,
    ),
    Arm(
        "weighted",
        "scored, by learned weights",
        partial(
            loop_settings.full,
            besides={"reward": 0.5, "region_match": 0.2, "action_success": 0.3},
            weights="default",
        ),
        agent=_SCORED,
    ),
    Arm("by_edges", "scored, posterior of typed edges", loop_settings.by_edges, agent=_SCORED),
    Arm(
        "graph",
        "scored, recalled by graph_search",
        partial(loop_settings.full, edge_boost=HELPFUL, **_ALONG_EDGES),
        agent=_SCORED,
    ),
    Arm(
        "graph_all",
        "scored, graph_search over all kinds of edges",
        partial(loop_settings.full, edge_boost=HELPFUL, edges=ALL_EDGES, **_ALONG_EDGES),
        agent=_SCORED,
    ),
)
_ALL = (_FULL, _WINS, *_CONTROLS, *_PUBLISHED, *_WITHOUT[1:], *_WITH)
ARMS: Mapping[str, Arm] = {arm.name: arm for arm in _ALL}
GROUPS: Mapping[str, Sequence[str]] = {
    "protocols": [arm.name for arm in (_FULL, _WINS, *_CONTROLS, *_PUBLISHED)],
    "ablations": [arm.name for arm in (_FULL, *_WITHOUT, *_WITH)],
    "all": list(ARMS),
}


def arm_of(name: str) -> Arm:
    """Return an arm by its name.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    if name not in ARMS:
        raise InvalidInputError(f"there is no arm {name!r}: {_CHOICES}")
    return ARMS[name]


def chosen(words: str) -> tuple[str, ...]:
    """Return the arms that are named by words joined by commas: names, or groups of them.

    Raises
    ------
    InvalidInputError
        A word that is neither.

    Examples
    --------
    >>> chosen("frozen,full,frozen")
    ('frozen', 'full')
    """
    names: dict[str, None] = {}
    for word in words.split(","):
        if word not in GROUPS:
            arm_of(word)
        names.update(dict.fromkeys(GROUPS.get(word, [word])))
    return tuple(names)


_CHOICES = f"choose from {', '.join(ARMS)}, or the groups {', '.join(GROUPS)}"
