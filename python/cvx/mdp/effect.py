"""Does an action make a difference? Success with it against success without it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from cvx.mdp.trace import Trace

_Z95 = 1.959963984540054


class ActionEffect(NamedTuple):
    """What an action changes about the chance of success.

    Attributes
    ----------
    effect : float
        P(success with it) - P(success without it), in [-1, 1].
    low, high : float
        95% interval of it.
    with_action, without_action : int
        Episodes counted on either side.
    """

    effect: float
    low: float
    high: float
    with_action: int
    without_action: int


def action_effect(
    traces: Iterable[Trace],
    action: str,
    *,
    task_type: str | None = None,
    region: int | None = None,
    success_above: float = 0.5,
) -> ActionEffect:
    """Compare episodes in which an action was taken with those in which it was not.

    Families of goals are compared one by one and averaged by their size, so that a family in
    which an action is common and success easy does not pass for an effect of the action. Within
    a family both rates are means of Beta(1 + wins, 1 + losses), which also give the interval. It
    is a causal effect as far as nothing but the family steers both the action and the outcome.

    Parameters
    ----------
    traces : iterable of Trace
        Episodes; those without an outcome are left out.
    action : str
        Kind of action.
    task_type : str, optional
        Only this family.
    region : int, optional
        Only episodes that pass through the region, and the action as taken there.
    success_above : float, default 0.5
        A reward above it is a success.

    Returns
    -------
    ActionEffect
        With nothing to compare: effect 0, interval (-1, 1).

    References
    ----------
    Pearl 2009, Causality, section 3.3 (adjustment).
    """
    strata: dict[str | None, list[int]] = {}
    for trace in traces:
        if task_type is not None and trace.task_type != task_type:
            continue
        if region is not None and region not in trace.regions:
            continue
        won = trace.won(success_above)
        if won is None:
            continue
        taken = any(
            kind == action and (region is None or at == region)
            for kind, at in zip(trace.actions, trace.regions, strict=True)
        )
        cell = strata.setdefault(trace.task_type, [0, 0, 0, 0])
        cell[2 * taken] += 1
        cell[2 * taken + 1] += won
    both = [cell for cell in strata.values() if cell[0] and cell[2]]
    total = sum(cell[0] + cell[2] for cell in both)
    if not total:
        return ActionEffect(
            0.0, -1.0, 1.0, sum(c[2] for c in strata.values()), sum(c[0] for c in strata.values())
        )
    effect = variance = 0.0
    for n0, w0, n1, w1 in both:
        share = (n0 + n1) / total
        p0, v0 = _beta(w0, n0)
        p1, v1 = _beta(w1, n1)
        effect += share * (p1 - p0)
        variance += share * share * (v0 + v1)
    margin = _Z95 * math.sqrt(variance)
    return ActionEffect(
        effect,
        max(-1.0, effect - margin),
        min(1.0, effect + margin),
        sum(cell[2] for cell in both),
        sum(cell[0] for cell in both),
    )


def _beta(wins: int, trials: int) -> tuple[float, float]:
    a, b = 1.0 + wins, 1.0 + trials - wins
    mean = a / (a + b)
    return mean, mean * (1.0 - mean) / (a + b + 1.0)
