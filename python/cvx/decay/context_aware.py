"""Context-aware decay of one memory, as RFC-013 writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cvx.decay.case import DecayCase, DecayPolicy
from cvx.decay.ledger import RewardIndex
from cvx.decay.policies import ContextAwareDecay


class _QualityOfRegions(Protocol):
    def region_quality(self, region: int) -> float: ...


def context_aware_decay(
    expert_node: int,
    failed_game: Mapping[str, Any],
    index: RewardIndex,
    mdp: _QualityOfRegions,
    *,
    task_type_of: Callable[[int], str | None],
    action_of: Callable[[int], str | None],
    region_of: Callable[[int], int],
    policy: DecayPolicy | None = None,
) -> float | None:
    """Decay one memory after one failed game, as RFC-013 writes it.

    Parameters
    ----------
    expert_node : int
        The memory that was recalled.
    failed_game : mapping
        ``task_type``, and ``history``: a list of mappings with an ``action`` each.
    index : TemporalIndex
        Holds the reward.
    mdp : RegionMDP
        Knows the quality of regions.
    task_type_of, action_of, region_of : callable
        From a node to its family of goals, its action, and its region.
    policy : DecayPolicy, optional
        Default ``ContextAwareDecay()``.

    Returns
    -------
    float or None
        The new reward, or None if it was left alone.

    References
    ----------
    RFC-013, part E.
    """
    case = DecayCase(
        expert_task_type=task_type_of(expert_node),
        game_task_type=failed_game["task_type"],
        expert_action=action_of(expert_node),
        agent_actions=frozenset(step["action"] for step in failed_game["history"]),
        region_quality=mdp.region_quality(region_of(expert_node)),
    )
    factor = (policy or ContextAwareDecay()).factor(case)
    before = index.reward(expert_node) if factor < 1.0 else None
    if before is None:
        return None
    index.set_reward(expert_node, before * factor)
    return before * factor
