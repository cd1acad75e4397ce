"""One recalled memory in one failed game, and what anything that judges it must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class DecayCase:
    """One recalled memory in one failed game.

    Parameters
    ----------
    expert_task_type, game_task_type : str or None
        Which family of goals the memory, and the game, belong to.
    expert_action : str or None
        What the memory advised.
    agent_actions : frozenset of str
        What the agent did in the game.
    followed : bool, optional
        Whether the agent took the advice; ``None`` where only the actions tell.
    region_quality : float, default 0.5
        Chance of success in the memory's region.
    action_success : float, default 0.5
        Chance of success of the memory's kind of action in its region.
    helped, uses : float, default 0
        How often following it succeeded, and how often it was followed, before this game.
    expert_place, game_place : float, optional
        How far into its episode either of them was, from 0 to 1.
    same_region : bool, optional
        Whether the memory lies in the region in which it was recalled.
    """

    expert_task_type: str | None = None
    game_task_type: str | None = None
    expert_action: str | None = None
    agent_actions: frozenset[str] = frozenset()
    followed: bool | None = None
    region_quality: float = 0.5
    action_success: float = 0.5
    helped: float = 0.0
    uses: float = 0.0
    expert_place: float | None = None
    game_place: float | None = None
    same_region: bool | None = None

    @property
    def was_followed(self) -> bool:
        """Whether the advice was taken, as far as is known."""
        if self.followed is not None:
            return self.followed
        return self.expert_action in self.agent_actions


@runtime_checkable
class DecayPolicy(Protocol):
    """Anything that says what a failed game does to a reward."""

    def factor(self, case: DecayCase) -> float:
        """Return the factor for the reward, in [0, 1]; 1.0 leaves it alone."""
        ...


def part_in_failure(case: DecayCase) -> str | None:
    """Return why a memory had no part in the failure, None if it had one."""
    if case.expert_task_type != case.game_task_type:
        return f"another family of goals: {case.expert_task_type}, not {case.game_task_type}"
    if not case.was_followed:
        return "its advice was not followed"
    return None
