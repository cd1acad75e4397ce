"""What was measured, as a table to read and as JSON to keep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cvx.evaluation.intervals import Interval
from cvx.evaluation.measuring import Measured

_PERCENT = ("recall@", "ndcg@", "mrr", "empty", "turned away")


def table(measured: Iterable[Measured], metrics: Sequence[str] | None = None) -> str:
    """Return one line a ranker, and below it one a category.

    Parameters
    ----------
    measured : iterable of Measured
        Rankers, in the order of the lines.
    metrics : sequence of str, optional
        Columns; by default every one that any ranker has. Shares are percentages, with their
        interval of 95%, or [?] where all questions are of one group.
    """
    found = list(measured)
    chosen = list(metrics or dict.fromkeys(key for one in found for key in one.metrics))
    lines = [["", *chosen]]
    for one in found:
        lines.append([one.name, *_cells(one.metrics, chosen)])
        for category, values in one.categories.items():
            lines.append([f"  {category}", *_cells(values, chosen)])
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def as_json(measured: Measured) -> dict[str, Any]:
    """Return everything but the answers; bounds that are unknown are None."""
    return {
        "name": measured.name,
        "metrics": _plain(measured.metrics),
        "categories": {kind: _plain(values) for kind, values in measured.categories.items()},
        "calibration": dict(measured.calibration),
    }


def _cells(metrics: Mapping[str, Interval], chosen: Sequence[str]) -> list[str]:
    return [_cell(name, metrics[name]) if name in metrics else "-" for name in chosen]


def _cell(name: str, found: Interval) -> str:
    if name.startswith(_PERCENT):
        known = not math.isnan(found.low)
        reach = f"{100 * found.low:.0f}-{100 * found.high:.0f}" if known else "?"
        return f"{100 * found.mean:.1f} [{reach}]"
    return f"{found.mean:.1f}"


def _plain(metrics: Mapping[str, Interval]) -> dict[str, dict[str, float | None]]:
    return {
        name: {key: None if math.isnan(one) else one for key, one in found._asdict().items()}
        for name, found in metrics.items()
    }
