"""Types of the advisor: observation, step, open episode, value of an action."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from cvx.statistics import Beta
from cvx.types import Vector

Basis: TypeAlias = Literal["state", "near", "region", "task", "other tasks", "everywhere"]
NARROWEST: tuple[Basis, ...] = get_args(Basis)
"""What advice can rest on, from the narrowest to the widest."""

MOST_REWARD = 1e100
"""How large a reward can be: squares of larger ones are no numbers any more."""

LEAST_REWARD = 1e-100
"""What is smaller is no reward: its square is 0, and nothing can be divided by that."""

Unit: TypeAlias = Literal["P(success)", "return"]
Key: TypeAlias = Hashable


def digest(*told: object) -> int:
    """Return a 64-bit hash of a value, the same in every process."""
    raw = repr(told).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


def plain(text: str | None) -> str:
    """Return a text without what is no difference: case, and how far words stand apart."""
    return " ".join((text or "").casefold().split())


def goal_alone(goal: str) -> str:
    """Return what a goal that names no task is known by: no task of a user begins like that."""
    return f"\0{plain(goal)}"


def restored_action(told: Any) -> Hashable:
    """Return an action that JSON has kept."""
    return tuple(map(restored_action, told)) if isinstance(told, list) else told


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent sees: a text with its vector, or a vector of numbers alone.

    Parameters
    ----------
    text : str, optional
    vector : ndarray of shape (dim,), float32, optional
        The text's embedding; without a text the raw observation, of any scale.
    """

    text: str | None = None
    vector: Vector | None = None

    @property
    def key(self) -> Key:
        """What observations share that look the same: words, or numbers to four digits."""
        if self.text is not None:
            return plain(self.text)
        if self.vector is None:
            return None
        return np.round(np.asarray(self.vector, dtype=np.float64), 4).tobytes()


@dataclass(frozen=True, slots=True)
class ActionValue:
    """One action with what it is worth from here.

    Parameters
    ----------
    action : hashable
    value, low, high : float
        Expected outcome in the task's unit when the best is done afterwards, with a 90% interval.
    trials : int
        How often it was done in this state.
    basis : str
        The narrowest evidence: this "state", what is "near", its "region", the "task",
        "other tasks", or "everywhere".
    episodes : tuple of str
        The latest episodes that did it here, latest last.
    source : str
        The labelled source that alone tells of it here, other than the asker's; else empty.
    """

    action: Hashable
    value: float
    low: float
    high: float
    trials: int
    basis: Basis
    episodes: tuple[str, ...]
    source: str = ""

    @property
    def known(self) -> bool:
        """Whether any episode tells anything of it."""
        return self.trials > 0 or self.basis != "everywhere"


class Moment(NamedTuple):
    """Where actions are compared: task, goal, state, observation.

    Attributes
    ----------
    task, goal : str
    state : hashable
        What tells it from other states of the task.
    observation : Observation
    """

    task: str
    goal: str
    state: Key
    observation: Observation


Route: TypeAlias = Callable[[Moment, Sequence[Hashable]], Sequence[Beta | None]]
"""From a moment and actions that were never done in its state to the belief in how good each of
them is, from 0 to 1; None where nothing tells."""

NO_ROUTES: Mapping[Basis, Route] = MappingProxyType({})


@dataclass(slots=True)
class Step:
    """One action, what it was done in, its reward and what else could be done."""

    observation: Observation
    action: Hashable
    reward: float
    menu: tuple[Hashable, ...] | None


@dataclass
class Run:
    """An open episode with the steps it has so far."""

    episode: str
    goal: str
    task: str
    trust: float
    source: str
    untasked: bool = False
    """Whether it names no task: see `GoalTasks`."""
    steps: list[Step] = field(default_factory=list)
    outcome: float | None = None
    last: Observation | None = None
    truncated: bool = False
    menu: tuple[Hashable, ...] | None = None
    asked: dict[Hashable, tuple[ActionValue, float]] = field(default_factory=dict)
    behind: dict[Hashable, Hashable] = field(default_factory=dict)
    views: dict[int, Any] = field(default_factory=dict)
    by_history: bool | None = None
    share: float = 1.0
    left_out: bool = False
    doubted: bool = False
    """Whether its source was one beside the asker's when it ended."""
    bare: bool = False
    """Whether it was restored without its steps and outcome."""

    @property
    def named(self) -> str:
        """Its task, or where it names none its goal, which no task is called."""
        return goal_alone(self.goal) if self.untasked else self.task

    @property
    def weight(self) -> float:
        """How much it counts: the trust in who tells it, and its share of what that one reports."""
        return 0.0 if self.left_out else self.trust * self.share

    def forget_view(self) -> None:
        """Drop what only an open episode needs."""
        self.views = {}
        self.asked, self.behind = {}, {}
        self.menu = None
