"""Generates crisis plots: who remembers what, before words or vectors.

A crisis stands at the end of an authored chain of causes. Somebody witnessed each cause. Others
remember things that sound like the crisis and are loud about it (distractors), a few remember
something about the crisis that no logged cause leads to (semantic evidence), most remember
everyday things (noise). What a council needs is the witnesses and the semantic evidence: the gold.

The layout follows the published description of the problem (CivilizationOS, "TCMF benchmark":
pools of about 80, 20 distractors, 55 noise, 3 causal and 2 semantic gold, missing edges, spurious
edges into the crisis). The code, the times, the importances and the texts are this project's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError

NOW = 200
OLDEST = 20


class Role(StrEnum):
    """What an event or a memory is in the plot."""

    CRISIS = "crisis"
    CAUSE = "cause"
    SEMANTIC = "semantic"
    DISTRACTOR = "distractor"
    NOISE = "noise"
    DECOY = "decoy"
    ECHO = "echo"
    STRANGER = "stranger"


GOLD = (Role.CAUSE, Role.SEMANTIC)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How many of what, and what is wrong with the graph.

    Attributes
    ----------
    causes : int, default 3
        Length of the chain before the crisis, 1 to 5, of stories in words 1 to 4; each cause has
        one witness.
    semantic : int, default 2
        Memories about the crisis itself that no logged cause leads to.
    distractors : int, default 20
        Look-alikes of the crisis, of high importance.
    noise : int, default 55
        Memories of something else.
    missing : float, default 0.0
        Chance of each edge of the chain to be absent from the graph.
    echo : float, default 0.0
        Chance of one spurious edge into the crisis from an event that sounds like it and that
        nobody remembers apart from what resembles the crisis anyway (the published kind).
    stranger : float, default 0.0
        Chance of one spurious edge into the crisis from an event of another subject that
        somebody does remember: a false witness no rule can tell from a true one.
    decoys : int, default 0
        Events of the crisis's institution, each remembered, that led nowhere.
    """

    causes: int = 3
    semantic: int = 2
    distractors: int = 20
    noise: int = 55
    missing: float = 0.0
    echo: float = 0.0
    stranger: float = 0.0
    decoys: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.causes <= 5:
            raise InvalidInputError(f"causes is {self.causes}: give 1 to 5")
        for name in ("semantic", "distractors", "noise", "decoys"):
            if getattr(self, name) < 0:
                raise InvalidInputError(f"{name} is {getattr(self, name)}: give 0 or more")
        for name in ("missing", "echo", "stranger"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInputError(f"{name} is {getattr(self, name)}: give 0 to 1")


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A scenario without words.

    Attributes
    ----------
    event_roles : tuple of Role
        Causes first, the root at place 0, each the cause of the next; then the crisis; then decoys
        and the spurious events.
    event_times : ndarray of shape (e,), int64
        Ticks; the crisis is the last.
    edges : tuple of (int, int)
        (cause, effect), places in `event_roles`: what the graph holds.
    logged : tuple of int
        Places of the events that the crisis's institution logged before the crisis.
    memory_roles : tuple of Role
        In an order that says nothing.
    about : tuple of int
        The event that a memory witnesses, or -1.
    memory_times : ndarray of shape (n,), int64
        Ticks.
    importance : ndarray of shape (n,), float64
        1 to 10.
    """

    event_roles: tuple[Role, ...]
    event_times: npt.NDArray[np.int64]
    edges: tuple[tuple[int, int], ...]
    logged: tuple[int, ...]
    memory_roles: tuple[Role, ...]
    about: tuple[int, ...]
    memory_times: npt.NDArray[np.int64]
    importance: npt.NDArray[np.float64]

    @property
    def crisis(self) -> int:
        """Place of the crisis among the events."""
        return self.event_roles.index(Role.CRISIS)

    @property
    def gold(self) -> frozenset[int]:
        """Places of the memories that should be found."""
        return frozenset(at for at, role in enumerate(self.memory_roles) if role in GOLD)

    @property
    def root(self) -> int:
        """Place of the memory that witnesses the first cause of all."""
        return next(
            at
            for at, (role, event) in enumerate(zip(self.memory_roles, self.about, strict=True))
            if role is Role.CAUSE and event == 0
        )


# Importance by role, lowest and highest: what is loud is not what matters.
_LOUDNESS = {
    Role.CAUSE: (3, 7),
    Role.SEMANTIC: (3, 7),
    Role.DISTRACTOR: (8, 10),
    Role.NOISE: (1, 8),
    Role.DECOY: (3, 7),
    Role.STRANGER: (3, 7),
}


def drawn(recipe: Recipe, rng: np.random.Generator) -> Plot:
    """Draw the plot of one scenario.

    Parameters
    ----------
    recipe : Recipe
        How many of what.
    rng : numpy.random.Generator
        Where every draw comes from.

    Returns
    -------
    Plot
        The memories in random order.
    """
    causes = recipe.causes
    ticks = np.sort(rng.choice(np.arange(OLDEST, NOW - 10), size=causes, replace=False))
    roles = [Role.CAUSE] * causes + [Role.CRISIS]
    times = [*ticks.tolist(), NOW - 1]
    edges = [(at, at + 1) for at in range(causes) if rng.random() >= recipe.missing]
    logged = list(range(causes))
    for _ in range(recipe.decoys):
        logged.append(len(roles))
        roles.append(Role.DECOY)
        times.append(int(rng.integers(OLDEST, NOW - 10)))
    for role, chance in ((Role.ECHO, recipe.echo), (Role.STRANGER, recipe.stranger)):
        if rng.random() < chance:
            edges.append((len(roles), causes))
            roles.append(role)
            times.append(int(rng.integers(OLDEST, NOW - 10)))
    memories: list[tuple[Role, int]] = [
        (role, at)
        for at, role in enumerate(roles)
        if role in (Role.CAUSE, Role.DECOY, Role.STRANGER)
    ]
    memories += [(Role.SEMANTIC, -1)] * recipe.semantic
    memories += [(Role.DISTRACTOR, -1)] * recipe.distractors
    memories += [(Role.NOISE, -1)] * recipe.noise
    memories = [memories[at] for at in rng.permutation(len(memories))]
    return Plot(
        event_roles=tuple(roles),
        event_times=np.asarray(times, np.int64),
        edges=tuple(edges),
        logged=tuple(logged),
        memory_roles=tuple(role for role, _ in memories),
        about=tuple(event for _, event in memories),
        memory_times=np.asarray([_remembered(role, at, times, rng) for role, at in memories]),
        importance=np.asarray(
            [rng.integers(_LOUDNESS[role][0], _LOUDNESS[role][1] + 1) for role, _ in memories],
            np.float64,
        ),
    )


def _remembered(role: Role, event: int, times: list[int], rng: np.random.Generator) -> int:
    if event >= 0:
        return min(times[event] + int(rng.integers(0, 4)), NOW - 1)
    if role is Role.DISTRACTOR:  # symptoms are fresh
        return int(rng.integers(NOW - 20, NOW))
    return int(rng.integers(OLDEST, NOW))
