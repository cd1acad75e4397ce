"""Estimates of the region model: success rates with evidence, effects of actions, frames."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from cvx.extras import needs
from cvx.learn.region_mdp.trajectories import FAILURE, SUCCESS, UNKNOWN, Trajectory
from cvx.statistics import Beta

if TYPE_CHECKING:
    import polars as pl

    from cvx.learn.region_mdp.model import RegionMDP


Place: TypeAlias = Literal["region", "around", "anywhere", "nowhere"]


class Basis(NamedTuple):
    """What an answer rests on.

    Attributes
    ----------
    place : {"region", "around", "anywhere", "nowhere"}
        The smallest place with evidence: the very region, a larger one around it, the whole
        memory; "nowhere" if there is none at all, and the answer is the prior.
    task_type : str or None
        The family of goals whose evidence it is; ``None`` if that of all families, be it that
        none was asked for or that the one asked for was never seen.
    trials : float
        Moves with an outcome that were counted there, each by the trust in its episode: a whole
        number where all are trusted fully.
    """

    place: Place
    task_type: str | None
    trials: float


NOTHING = Basis("nowhere", None, 0)


class Estimate(NamedTuple):
    """A chance of success, how sure it is, and what it rests on.

    Attributes
    ----------
    posterior : Beta
        The belief; without any evidence the prior, Beta(s / 2, s / 2) for a prior strength s.
    basis : Basis
        The smallest place with evidence.
    trials, wins : float
        Counted by trust in exactly the region and family asked for: 0 means that the answer is
        borrowed.
    """

    posterior: Beta
    basis: Basis
    trials: float
    wins: float

    @property
    def probability(self) -> float:
        """The chance to expect, in [0, 1]."""
        return self.posterior.mean


class Ranking(list[tuple[str, float]]):
    """Kinds of action with their chance of success, best first, and what the list rests on.

    Attributes
    ----------
    basis : Basis
        Where these kinds of action were seen.
    """

    def __init__(self, actions: Iterable[tuple[str, float]], basis: Basis) -> None:
        super().__init__(actions)
        self.basis = basis


class Strategy(tuple[str, ...]):
    """A sequence of kinds of action, and what it rests on.

    Attributes
    ----------
    basis : Basis
        Which episodes it was chosen from: those through the region, or whole ones from anywhere.
    """

    basis: Basis

    def __new__(cls, actions: Iterable[str], basis: Basis) -> Strategy:
        """Make it of its actions."""
        made = super().__new__(cls, actions)
        made.basis = basis
        return made


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
    trajectories: Iterable[Trajectory],
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
    trajectories : iterable of Trajectory
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
    for trajectory in trajectories:
        won, family = trajectory.won(success_above), trajectory.task_type
        elsewhere = region is not None and region not in trajectory.regions
        if won is None or elsewhere or task_type not in (None, family):
            continue
        taken = any(
            kind == action and (region is None or at == region)
            for kind, at in zip(trajectory.actions, trajectory.regions, strict=True)
        )
        cell = strata.setdefault(family, [0, 0, 0, 0])
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


ENDS = {SUCCESS: "success", FAILURE: "failure", UNKNOWN: "unknown"}


class Frames(NamedTuple):
    """What a region model has counted, each move by the trust in its episode, and believes.

    Attributes
    ----------
    regions : polars.DataFrame
        A row for each region that was visited: ``region``, ``moves`` (made there), ``trials``
        (with a known outcome), ``wins``, ``quality``, ``low``, ``high`` (chance of success and
        its 95 % interval), ``when`` (the mean place of its moves in their episodes, 0 the first
        step and 1 the last).
    actions : polars.DataFrame
        A row for each kind of action done in a region: ``region``, ``action``, ``moves``,
        ``trials``, ``wins``, ``success``, ``low``, ``high``.
    moves : polars.DataFrame
        A row for each place that such an action led to: ``region``, ``action``, ``to`` (a region,
        null for the end of an episode), ``end`` ("success", "failure" or "unknown"; null for a
        region), ``count``, ``share`` (of the action's moves there).
    """

    regions: pl.DataFrame
    actions: pl.DataFrame
    moves: pl.DataFrame


def frames_of(mdp: RegionMDP, task_type: str | None = None) -> Frames:
    """Return the frames of a model; see ``RegionMDP.frames``."""
    with needs("frames"):
        import polars as pl

    moves = mdp.moves(task_type)
    made: Counter[int] = Counter()
    for (region, _), counts in moves.items():
        made[region] += counts.total()
    when = _places(mdp, task_type)
    regions = [
        (region, n, *_believed(mdp.estimate(region, None, task_type)), when[region])
        for region, n in sorted(made.items())
    ]
    actions = [
        (*pair, counts.total(), *_believed(mdp.estimate(*pair, task_type)))
        for pair, counts in sorted(moves.items())
    ]
    led = [
        (*pair, there if there >= 0 else None, ENDS.get(there), n, n / counts.total())
        for pair, counts in sorted(moves.items())
        for there, n in sorted(counts.items())
    ]
    return Frames(
        pl.DataFrame(
            regions,
            orient="row",
            schema={
                "region": pl.Int64,
                "moves": pl.Float64,
                "trials": pl.Float64,
                "wins": pl.Float64,
                "quality": pl.Float64,
                "low": pl.Float64,
                "high": pl.Float64,
                "when": pl.Float64,
            },
        ),
        pl.DataFrame(
            actions,
            orient="row",
            schema={
                "region": pl.Int64,
                "action": pl.String,
                "moves": pl.Float64,
                "trials": pl.Float64,
                "wins": pl.Float64,
                "success": pl.Float64,
                "low": pl.Float64,
                "high": pl.Float64,
            },
        ),
        pl.DataFrame(
            led,
            orient="row",
            schema={
                "region": pl.Int64,
                "action": pl.String,
                "to": pl.Int64,
                "end": pl.String,
                "count": pl.Float64,
                "share": pl.Float64,
            },
        ),
    )


def _believed(estimate: Estimate) -> tuple[float, float, float, float, float]:
    return estimate.trials, estimate.wins, estimate.probability, *estimate.posterior.interval()


def _places(mdp: RegionMDP, task_type: str | None) -> dict[int, float]:
    when: defaultdict[int, list[float]] = defaultdict(list)
    for trajectory in mdp.trajectories:
        if task_type is None or trajectory.task_type == task_type:
            last = max(len(trajectory.nodes) - 1, 1)
            for place, (region, action) in enumerate(
                zip(trajectory.regions, trajectory.actions, strict=True)
            ):
                if action is not None:
                    when[region].append(place / last)
    return {region: sum(places) / len(places) for region, places in when.items()}
