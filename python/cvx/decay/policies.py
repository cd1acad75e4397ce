"""The policies: what a failure costs a memory, and why."""

from __future__ import annotations

from cvx.decay.case import DecayCase, DecayPolicy, part_in_failure
from cvx.errors import InvalidParameterError


class NoDecay:
    """Nothing ever loses reward."""

    def factor(self, case: DecayCase) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0

    def reason(self, case: DecayCase) -> str:  # noqa: ARG002
        """Say why."""
        return "nothing decays"


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

    def reason(self, case: DecayCase) -> str:  # noqa: ARG002
        """Say why."""
        return "recalled in a failed game"


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
        if part_in_failure(case) is not None:
            return 1.0
        return self.worst + self.span * case.region_quality

    def reason(self, case: DecayCase) -> str:
        """Say why."""
        return part_in_failure(case) or f"followed in a region of quality {case.region_quality:.2f}"


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
        if part_in_failure(case) is not None:
            return 1.0
        return 1.0 - self.rate * (1.0 - case.action_success)

    def reason(self, case: DecayCase) -> str:
        """Say why."""
        return part_in_failure(case) or (
            f"followed where its kind of action wins {case.action_success:.0%}"
        )


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
        if part_in_failure(case) is not None:
            return 1.0
        known = case.uses + self.strength
        return known / (known + 1.0)

    def reason(self, case: DecayCase) -> str:
        """Say why."""
        return part_in_failure(case) or (
            f"followed, as {case.uses:g} times before, of which it helped {case.helped:g}"
        )


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
        return 1.0 if self._outside(case) else self.policy.factor(case)

    def reason(self, case: DecayCase) -> str:
        """Say why."""
        return self._outside(case) or reason_of(self.policy, case)

    def _outside(self, case: DecayCase) -> str | None:
        if self.same_region and case.same_region is False:
            return "another region"
        there, here = case.expert_place, case.game_place
        if self.max_phase_gap is None or there is None or here is None:
            return None
        if abs(there - here) <= self.max_phase_gap:
            return None
        return f"another phase: {there:.0%} into its episode, {here:.0%} into the game"


def reason_of(policy: DecayPolicy, case: DecayCase) -> str:
    """Say why a policy judges so; one of the user's own need not give reasons."""
    give = getattr(policy, "reason", None)
    return str(give(case)) if callable(give) else f"by {type(policy).__name__}"


def _unit(name: str, value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise InvalidParameterError(f"{name} is {value}, outside [0, 1]")
    return value
