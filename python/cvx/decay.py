"""What a failure does to the reward of the memories that were recalled for it.

A policy looks at one recalled memory in one failed game and returns the factor for its reward;
1.0 leaves it alone. ``DecayLedger`` applies factors, once a game and memory, and can undo them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cvx.errors import InvalidParameterError


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


class DecayPolicy(Protocol):
    """Anything that says what a failed game does to a reward."""

    def factor(self, case: DecayCase) -> float:
        """Return the factor for the reward, in [0, 1]; 1.0 leaves it alone."""
        ...


class NoDecay:
    """Nothing ever loses reward."""

    def factor(self, case: DecayCase) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0


class BlindDecay:
    """Everything recalled in a failed game loses the same share, whatever it had to do with it.

    Parameters
    ----------
    rate : float, default 0.85
        The factor, in [0, 1].

    References
    ----------
    RFC-013, part E: the baseline.
    """

    def __init__(self, rate: float = 0.85) -> None:
        self.rate = _unit("rate", rate)

    def factor(self, case: DecayCase) -> float:  # noqa: ARG002
        """Return ``rate``."""
        return self.rate


class ContextAwareDecay:
    """Only advice that was taken, for the same family of goals, loses; less in good regions.

    The factor is ``worst + span * region_quality``.

    Parameters
    ----------
    worst : float, default 0.7
        The factor where nothing ever succeeded.
    span : float, default 0.25
        What the best region adds to it.

    References
    ----------
    RFC-013, part E.

    Examples
    --------
    >>> policy = ContextAwareDecay()
    >>> policy.factor(DecayCase("clean", "cool", followed=True))
    1.0
    >>> policy.factor(DecayCase("clean", "clean", followed=True, region_quality=0.0))
    0.7
    """

    def __init__(self, worst: float = 0.7, span: float = 0.25) -> None:
        self.worst = _unit("worst", worst)
        self.span = _unit("span", span)
        _unit("worst + span", worst + span)

    def factor(self, case: DecayCase) -> float:
        """Return the factor of the region, or 1 if the memory had no part in the failure."""
        if case.expert_task_type != case.game_task_type or not case.was_followed:
            return 1.0
        return self.worst + self.span * case.region_quality


class ProportionalDecay:
    """Advice that was taken loses in proportion to 1 - P(success | region, kind of action).

    Parameters
    ----------
    rate : float, default 0.3
        What it loses where that chance is 0.

    References
    ----------
    RFC-013, part E.
    """

    def __init__(self, rate: float = 0.3) -> None:
        self.rate = _unit("rate", rate)

    def factor(self, case: DecayCase) -> float:
        """Return ``1 - rate * (1 - action_success)``, or 1 if it had no part in the failure."""
        if case.expert_task_type != case.game_task_type or not case.was_followed:
            return 1.0
        return 1.0 - self.rate * (1.0 - case.action_success)


class BayesianDecay:
    """The belief that advice is useful, after one more failure of it.

    With a prior of ``strength`` uses at mean ``mean``, the belief after h successes in n uses is
    (h + strength * mean) / (n + strength); one failure more multiplies it by
    (n + strength) / (n + 1 + strength). What has been followed often is barely affected.

    Parameters
    ----------
    strength : float, default 2.0
        How many uses the prior is worth; above 0.

    References
    ----------
    RFC-013, part E. Beta-Bernoulli conjugacy.
    """

    def __init__(self, strength: float = 2.0) -> None:
        if not strength > 0:
            raise InvalidParameterError(f"strength is {strength}: give one above 0")
        self.strength = strength

    def factor(self, case: DecayCase) -> float:
        """Return new belief / old belief, or 1 if it had no part in the failure."""
        if case.expert_task_type != case.game_task_type or not case.was_followed:
            return 1.0
        known = case.uses + self.strength
        return known / (known + 1.0)


class GatedDecay:
    """A policy that holds only where the memory was recalled in its own surroundings.

    Parameters
    ----------
    policy : DecayPolicy
        What holds there.
    max_phase_gap : float, optional
        How far apart the places in the two episodes may be, as shares of their lengths.
    same_region : bool, default False
        Whether the memory must lie in the region in which it was recalled.
    """

    def __init__(
        self,
        policy: DecayPolicy,
        *,
        max_phase_gap: float | None = None,
        same_region: bool = False,
    ) -> None:
        self.policy = policy
        self.max_phase_gap = (
            None if max_phase_gap is None else _unit("max_phase_gap", max_phase_gap)
        )
        self.same_region = same_region

    def factor(self, case: DecayCase) -> float:
        """Return the policy's factor, or 1 outside the gates; an unknown place passes them."""
        if self.same_region and case.same_region is False:
            return 1.0
        if (
            self.max_phase_gap is not None
            and case.expert_place is not None
            and case.game_place is not None
            and abs(case.expert_place - case.game_place) > self.max_phase_gap
        ):
            return 1.0
        return self.policy.factor(case)


class RewardIndex(Protocol):
    """The part of a temporal index that decay needs."""

    def reward(self, node: int) -> float | None:
        """Return the reward of a node."""
        ...

    def set_reward(self, node: int, reward: float) -> None:
        """Set the reward of a node."""
        ...


class DecayLedger:
    """Applies decay to an index, remembers every change, and can take all of them back.

    Trajectories are never deleted: a decay lowers a reward, and ``reset`` restores it.

    Parameters
    ----------
    index : TemporalIndex
        Whose rewards are changed.
    """

    def __init__(self, index: RewardIndex) -> None:
        self.index = index
        self.original: dict[int, float] = {}
        self._done: set[tuple[int, int]] = set()

    def apply(
        self, game: int, cases: Mapping[int, DecayCase], policy: DecayPolicy
    ) -> list[tuple[int, int, float, float]]:
        """Decay the memories recalled in one failed game, each at most once.

        Parameters
        ----------
        game : int
            Number of the game; a second call for it leaves alone what the first one saw.
        cases : mapping of int to DecayCase
            By node. A node without reward is left alone.
        policy : DecayPolicy
            What each case costs.

        Returns
        -------
        list of (game, node, before, after)
            What changed.

        Raises
        ------
        InvalidParameterError
            The policy returned a factor outside [0, 1]; nothing was changed.
        """
        changes: list[tuple[int, int, float, float]] = []
        for node, case in cases.items():
            if (game, node) in self._done:
                continue
            factor = policy.factor(case)
            if not 0.0 <= factor <= 1.0:
                raise InvalidParameterError(
                    f"{type(policy).__name__} returned the factor {factor}: give one in [0, 1]"
                )
            before = self.index.reward(node) if factor < 1.0 else None
            if before is not None:
                changes.append((game, node, before, before * factor))
        for _, node, before, after in changes:
            self.original.setdefault(node, before)
            self.index.set_reward(node, after)
        self._done.update((game, node) for node in cases)
        return changes

    def revert(self, game: int, changes: Iterable[tuple[int, int, float, float]]) -> None:
        """Take back what ``apply`` did for one game."""
        for _, node, before, _ in changes:
            self.index.set_reward(node, before)
            if self.original.get(node) == before:
                del self.original[node]
        self._done = {pair for pair in self._done if pair[0] != game}

    def load(self, decays: Iterable[tuple[int, int, float, float]]) -> None:
        """Take over decays that a record remembers, oldest first; the index is not changed."""
        for game, node, before, _ in decays:
            self.original.setdefault(node, before)
            self._done.add((game, node))

    def reset(self, nodes: Iterable[int] | None = None) -> dict[int, float]:
        """Restore the rewards as they were before any decay.

        Parameters
        ----------
        nodes : iterable of int, optional
            Only these; by default all that ever changed.

        Returns
        -------
        dict of int to float
            The rewards restored, by node.
        """
        chosen = list(self.original) if nodes is None else [n for n in nodes if n in self.original]
        restored = {node: self.original.pop(node) for node in chosen}
        for node, reward in restored.items():
            self.index.set_reward(node, reward)
        return restored


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


def _unit(name: str, value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise InvalidParameterError(f"{name} is {value}, outside [0, 1]")
    return value
