"""A region model as polars frames: its regions, what was done there, and where that led."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cvx.mdp.trace import FAILURE, SUCCESS, UNKNOWN

if TYPE_CHECKING:
    import polars as pl

    from cvx.mdp.answers import Estimate
    from cvx.mdp.model import RegionMDP

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
    sums: dict[int, list[float]] = {}
    for trace in mdp.traces:
        if task_type is None or trace.task_type == task_type:
            last = max(len(trace.nodes) - 1, 1)
            for place, (region, action) in enumerate(
                zip(trace.regions, trace.actions, strict=True)
            ):
                if action is not None:
                    cell = sums.setdefault(region, [0.0, 0])
                    cell[0] += place / last
                    cell[1] += 1
    return {region: total / n for region, (total, n) in sums.items()}
