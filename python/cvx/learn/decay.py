"""Reward decay: how much reward a memory loses when advice from it was followed and failed.

A policy looks at one recalled memory in one failed game and returns the factor for its reward;
1.0 leaves it alone. ``DecayLedger`` tells what a failure costs, once a game and memory, and what
there was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cvx.arguments import a_share, above_zero, wrong
from cvx.errors import InvalidInputError
from cvx.types import task_of_tags

if TYPE_CHECKING:
    from cvx.index import RawIndex
    from cvx.learn.region_mdp import RegionMDP


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

    @property
    def had_part(self) -> bool:
        """Whether it had a part in the failure: advice taken, for the same family of goals."""
        return self.expert_task_type == self.game_task_type and self.was_followed


@runtime_checkable
class DecayPolicy(Protocol):
    """Anything that says what a failed game does to a reward."""

    def factor(self, case: DecayCase) -> float:
        """Return the factor for the reward, in [0, 1]; 1.0 leaves it alone."""
        ...


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
        self.rate: float = a_share("rate", rate)

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
        self.worst: float = a_share("worst", worst)
        self.span: float = a_share("span", span)
        a_share("worst + span", worst + span)

    def factor(self, case: DecayCase) -> float:
        """Return the factor of the region, or 1 if the memory had no part in the failure."""
        return self.worst + self.span * case.region_quality if case.had_part else 1.0


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
        self.rate: float = a_share("rate", rate)

    def factor(self, case: DecayCase) -> float:
        """Return ``1 - rate * (1 - action_success)``, or 1 if it had no part in the failure."""
        return 1.0 - self.rate * (1.0 - case.action_success) if case.had_part else 1.0


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
        self.strength = above_zero("strength", strength)

    def factor(self, case: DecayCase) -> float:
        """Return new belief / old belief, or 1 if it had no part in the failure."""
        known = case.uses + self.strength
        return known / (known + 1.0) if case.had_part else 1.0


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
            None if max_phase_gap is None else a_share("max_phase_gap", max_phase_gap)
        )
        self.same_region = same_region

    def factor(self, case: DecayCase) -> float:
        """Return the policy's factor, or 1 outside the gates; an unknown place passes them."""
        return 1.0 if self._outside(case) else self.policy.factor(case)

    def _outside(self, case: DecayCase) -> bool:
        if self.same_region and case.same_region is False:
            return True
        there, here = case.expert_place, case.game_place
        if self.max_phase_gap is None or there is None or here is None:
            return False
        return bool(abs(there - here) > self.max_phase_gap)


class DecayLedger:
    """Tells what failures cost, once a game and memory, and remembers what there was before.

    Trajectories are never deleted: a decay lowers a reward, and ``undecayed`` is what restores it.

    Attributes
    ----------
    original : dict of int to float
        Rewards before any decay, of what decayed.
    """

    def __init__(self) -> None:
        self.original: dict[int, float] = {}
        self._done: set[tuple[int, int]] = set()

    def changes(
        self,
        game: int,
        cases: Mapping[int, DecayCase],
        policy: DecayPolicy,
        reward_of: Callable[[int], float | None],
    ) -> list[tuple[int, int, float, float]]:
        """Return what one failed game costs the memories recalled in it; ``note`` what was done.

        Parameters
        ----------
        game : int
            Number of the game; what was noted for it already is left alone.
        cases : mapping of int to DecayCase
            By node. A node without reward is left alone.
        policy : DecayPolicy
            What each case costs.
        reward_of : callable
            From a node to its reward.

        Returns
        -------
        list of (game, node, before, after)
            Rewards.

        Raises
        ------
        InvalidInputError
            The policy returned a factor outside [0, 1].
        """
        found: list[tuple[int, int, float, float]] = []
        for node, case in cases.items():
            if (game, node) in self._done:
                continue
            factor = policy.factor(case)
            if not 0.0 <= factor <= 1.0:
                raise InvalidInputError(
                    f"{type(policy).__name__} returned the factor {factor}: give one in [0, 1]"
                )
            before = reward_of(node) if factor < 1.0 else None
            if before is not None:
                found.append((game, node, before, before * factor))
        return found

    def note(
        self,
        game: int,
        cases: Iterable[int],
        changes: Iterable[tuple[int, int, float, float]],
    ) -> None:
        """Remember which nodes a failed game was held against, and what that changed."""
        self._done.update((game, node) for node in cases)
        self.load(changes)

    def load(self, decays: Iterable[tuple[int, int, float, float]]) -> None:
        """Take over decays that a record remembers, oldest first."""
        for game, node, before, _ in decays:
            self.original.setdefault(node, before)
            self._done.add((game, node))

    def undecayed(self, nodes: Iterable[int] | None = None) -> dict[int, float]:
        """Return the rewards before any decay, of these nodes or of all that ever changed."""
        chosen = self.original if nodes is None else dict.fromkeys(nodes)
        return {n: self.original[n] for n in chosen if n in self.original}

    def forget(self, nodes: Iterable[int]) -> None:
        """Forget the decays of nodes whose rewards were restored."""
        for node in nodes:
            self.original.pop(node, None)


def context_aware_decay(
    expert_node: int,
    failed_game: Mapping[str, Any],
    index: RawIndex,
    mdp: RegionMDP,
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
    index : RawIndex
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
    InvalidInputError
        A game without ``task_type``, a step of it without ``action``, or a policy whose factor
        is not in [0, 1].
    UnknownError
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
    cost = DecayLedger().changes(
        0, {expert_node: case}, policy or ContextAwareDecay(), index.reward
    )
    for _, node, _, after in cost:
        index.set_reward(node, after)
    return cost[0][-1] if cost else None
