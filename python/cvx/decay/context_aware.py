"""Context-aware decay of one memory, as RFC-013 writes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy.typing as npt

from cvx.arguments import wrong
from cvx.decay.case import DecayCase, DecayPolicy
from cvx.decay.ledger import RewardIndex
from cvx.decay.policies import ContextAwareDecay
from cvx.types import Step, task_of_tags


class ExpertIndex(RewardIndex, Protocol):
    """The part of a temporal index that knows what a memory advised, and in which family."""

    def step(self, node: int) -> Step:
        """Return the columns of a node."""
        ...

    def tags(self, node: int) -> Collection[str]:
        """Return the labels of a node."""
        ...

    def vector(self, node: int) -> Any:
        """Return the vector of a node, None if it has none."""
        ...


class RegionQuality(Protocol):
    """The part of a region model that decay needs."""

    def region_of(self, node: int) -> int | None:
        """Return the region of a node of a learned episode, None for any other node."""
        ...

    def assign(self, vec: npt.NDArray[Any]) -> int:
        """Return the region that a vector lies in."""
        ...

    def region_quality(self, region: int) -> float:
        """Return the chance of success there, in [0, 1]."""
        ...


def context_aware_decay(
    expert_node: int,
    failed_game: Mapping[str, Any],
    index: ExpertIndex,
    mdp: RegionQuality,
    *,
    policy: DecayPolicy | None = None,
) -> float | None:
    """Decay one memory after one failed game, as RFC-013 writes it.

    Parameters
    ----------
    expert_node : int
        The memory that was recalled. Its action, its family of goals and its reward are those that
        it was inserted with (``action=``, ``task_type=``, ``reward=``).
    failed_game : mapping
        ``task_type``, and ``history``: a list of mappings with an ``action`` each.
    index : TemporalIndex
        Holds the node; its reward is lowered there.
    mdp : RegionMDP
        Knows the region of the node and its quality, 0.5 for a node without a vector.
    policy : DecayPolicy, optional
        Default ``ContextAwareDecay()``.

    Returns
    -------
    float or None
        The new reward, or None if it was left alone.

    Raises
    ------
    InvalidParameterError
        A game without ``task_type``, or a step of it without ``action``.
    UnknownNodeError
        No such node.

    References
    ----------
    RFC-013, part E.

    Examples
    --------
    >>> import cvx
    >>> index = cvx.TemporalIndex(dim=2)
    >>> expert = index.insert(1, 0, [1, 0], action="take egg", task_type="heat", reward=1.0)
    >>> game = {"task_type": "heat", "history": [{"action": "take egg"}]}
    >>> mdp = index.transition_model()
    >>> cvx.context_aware_decay(expert, game | {"task_type": "cool"}, index, mdp)
    >>> round(cvx.context_aware_decay(expert, game, index, mdp), 3)
    0.867
    """
    try:
        game_task_type = failed_game["task_type"]
        agent_actions = frozenset(step["action"] for step in failed_game["history"])
    except (LookupError, TypeError) as error:
        wanted = "a mapping with task_type and history, whose steps have an action each"
        raise wrong("failed_game", failed_game, wanted) from error
    region, vector = mdp.region_of(expert_node), index.vector(expert_node)
    if region is None and vector is not None:
        region = mdp.assign(vector)
    case = DecayCase(
        expert_task_type=task_of_tags(index.tags(expert_node)),
        game_task_type=game_task_type,
        expert_action=index.step(expert_node).action,
        agent_actions=agent_actions,
        region_quality=0.5 if region is None else mdp.region_quality(region),
    )
    factor = (policy or ContextAwareDecay()).factor(case)
    before = index.reward(expert_node) if factor < 1.0 else None
    if before is None:
        return None
    index.set_reward(expert_node, before * factor)
    return before * factor
