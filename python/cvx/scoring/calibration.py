"""Calibration: predicted probabilities compared with outcomes (Brier, ECE, reliability)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.arguments import checked, whole
from cvx.errors import InvalidInputError
from cvx.statistics import Estimate, Floats, bootstrap, wilson
from cvx.store import Record


class ReliabilityBin(NamedTuple):
    """The predictions of one range.

    Attributes
    ----------
    low, high : float
        The range; its upper end is part of it in the last one only.
    n : int
        How many predictions fell into it, at least 1.
    predicted : float
        Their mean.
    happened : Estimate
        The share of successes among them; its interval takes each group for one trial.
    """

    low: float
    high: float
    n: int
    predicted: float
    happened: Estimate


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far predictions can be taken at their word.

    Parameters
    ----------
    n, groups : int
        Predictions, and groups that were resampled together.
    base_rate : float
        The share of successes.
    brier : Estimate
        Mean squared error; always predicting the base rate has base_rate * (1 - base_rate). Its
        interval is by bootstrap over groups: nan with one group, too narrow with fewer than ten.
    ece : Estimate
        Expected calibration error: mean distance of predicted and happened over the bins. It is
        never below its true value on average, least of all on few predictions.
    bins : tuple of ReliabilityBin
        The reliability curve; empty ranges are left out.
    """

    n: int
    groups: int
    base_rate: float
    brier: Estimate
    ece: Estimate
    bins: tuple[ReliabilityBin, ...]

    @property
    def skill(self) -> float:
        """Share of the base rate's squared error that the predictions save; 0 is no better."""
        plain = self.base_rate * (1.0 - self.base_rate)
        return 1.0 - self.brier.value / plain if plain > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain lists and numbers, for JSON; None where a bound is unknown."""
        return {
            "n": self.n,
            "groups": self.groups,
            "base_rate": self.base_rate,
            "brier": _plain(self.brier),
            "brier_skill": self.skill,
            "ece": _plain(self.ece),
            "bins": [{**one._asdict(), "happened": list(one.happened)} for one in self.bins],
        }


@checked(bins=whole(1), resamples=whole(1))
def calibration(
    predicted: npt.ArrayLike,
    happened: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    *,
    bins: int = 10,
    resamples: int = 1000,
    seed: int = 0,
) -> Calibration:
    """Compare predicted chances of success with what happened.

    Parameters
    ----------
    predicted : array of shape (n,)
        Chances in [0, 1].
    happened : array of shape (n,)
        Outcomes in [0, 1]; 1 for success.
    groups : array of shape (n,), optional
        Predictions of one group, such as those of one episode, share an outcome and are
        resampled together; by default each stands for itself.
    bins : int, default 10
        Ranges of equal width of the reliability curve; at least 1.
    resamples : int, default 1000
        Of the bootstrap; at least 1.
    seed : int, default 0
        Of the bootstrap.

    Raises
    ------
    InvalidInputError
        Not one outcome, or group, a prediction.
    InvalidInputError
        No prediction, one outside [0, 1], or a parameter outside its bound.

    References
    ----------
    Brier 1950. Naeini, Cooper & Hauskrecht 2015, Obtaining well calibrated probabilities using
    Bayesian binning. Broecker & Smith 2007, Increasing the reliability of reliability diagrams.

    Examples
    --------
    >>> found = calibration([0.2] * 5 + [0.8] * 5, [1, 0, 0, 0, 0, 1, 1, 1, 1, 0])
    >>> round(found.brier.value, 3), round(found.ece.value, 3), len(found.bins)
    (0.16, 0.0, 2)
    """
    p, y, member = _checked(predicted, happened, groups)
    # Each edge is the number nearest to it, as 0.3 is: a prediction of 0.3 lies in [0.3, 0.4).
    edges = np.arange(bins + 1) / bins
    place = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, len(edges) - 2)
    used, cell = np.unique(place, return_inverse=True)
    n_groups = int(member.max()) + 1

    def sums(values: Floats) -> Floats:
        """By group and bin."""
        flat = np.bincount(member * len(used) + cell, values, minlength=n_groups * len(used))
        return np.asarray(flat, dtype=np.float64).reshape(n_groups, len(used))

    parts = np.stack([sums(np.ones(len(p))), sums(p), sums(y), sums((p - y) ** 2)], axis=1)
    totals = parts.sum(axis=0)
    counts, predicted_sums, wins, _ = totals
    in_bin = (parts[:, 0] > 0).sum(axis=0)
    curve = tuple(
        ReliabilityBin(
            float(edges[used[at]]),
            float(edges[used[at] + 1]),
            int(counts[at]),
            float(predicted_sums[at] / counts[at]),
            wilson(float(wins[at] / counts[at]), int(in_bin[at])),
        )
        for at in range(len(used))
    )
    once = _brier_and_ece(totals[None])[0]
    low, high = bootstrap(parts, _brier_and_ece, resamples=resamples, seed=seed)
    brier, ece = (Estimate(*row) for row in np.stack([once, low, high], axis=1).tolist())
    return Calibration(len(p), n_groups, float(y.mean()), brier, ece, curve)


def _checked(
    predicted: npt.ArrayLike, happened: npt.ArrayLike, groups: npt.ArrayLike | None
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    p, y = np.asarray(predicted, dtype=np.float64), np.asarray(happened, dtype=np.float64)
    named = np.arange(p.size) if groups is None else np.asarray(groups)
    if p.ndim != 1 or not p.shape == y.shape == named.shape:
        raise InvalidInputError(
            f"predictions have shape {p.shape}, outcomes {y.shape}, groups {named.shape}: "
            "give (n,) each"
        )
    if not p.size:
        raise InvalidInputError("there is no prediction to judge: give at least one")
    for name, values in (("prediction", p), ("outcome", y)):
        wrong = values[~((values >= 0) & (values <= 1))]
        if len(wrong):
            raise InvalidInputError(f"{name} {wrong[0]} lies outside [0, 1]: leave it out")
    return p, y, np.unique(named, return_inverse=True)[1].astype(np.int64)


def _brier_and_ece(totals: Floats) -> Floats:
    """Return both, of shape (draws, 2), from totals of shape (draws, 4, bins)."""
    counts, predicted, wins, squares = np.moveaxis(totals, 1, 0)
    n = counts.sum(axis=1)
    ece = np.abs(predicted - wins).sum(axis=1) / n
    return np.column_stack([squares.sum(axis=1) / n, ece])


def _plain(found: Estimate) -> list[float | None]:
    return [None if math.isnan(figure) else figure for figure in found]


_PREDICTED = """
SELECT * FROM (
    SELECT iif(json_valid(record), json_extract(record, '$.predicted'), NULL) AS predicted,
        outcome, ifnull(episode, -1 - decision_id)
    FROM decisions WHERE outcome IS NOT NULL
) WHERE predicted BETWEEN 0 AND 1
"""


def relevance_calibration(record: Record, *, resamples: int = 200) -> Calibration | None:
    """Compare the relevance of what was recalled with the feedback on it.

    Of a decision that helped, what was followed was wanted, and what was shown beside it was not;
    of one that did not, what was followed, or all of it where nothing was, was not wanted.

    Parameters
    ----------
    record : Record
        With the decisions of ``Memory.recall`` and ``context``.
    resamples : int, default 200
        Of the bootstrap for the intervals.

    Returns
    -------
    Calibration or None
        None if there was no feedback on anything with a relevance.
    """
    rows: list[tuple[float, bool, int]] = []
    for told in record.decisions():
        noted = told["record"]
        followed, helped = noted.get("followed") or [], noted.get("helped")
        if helped is None or (helped and not followed):
            continue
        for event, chance in zip(noted.get("shown", ()), noted.get("relevance", ()), strict=False):
            said = helped or not followed or event in followed
            if chance is not None and said:
                rows.append((chance, bool(helped and event in followed), told["decision_id"]))
    return calibration(*zip(*rows, strict=True), resamples=resamples) if rows else None


def logged_calibration(record: Record, *, resamples: int = 200) -> Calibration | None:
    """Compare the predictions of all decisions whose outcome is known with that outcome.

    Decisions of one episode share its outcome, and are resampled together.

    Parameters
    ----------
    record : Record
        With the decisions of ``ActiveMemory``, which keeps the expected success of each.
    resamples : int, default 200
        Of the bootstrap for the intervals.

    Returns
    -------
    Calibration or None
        None if no decision has both a prediction and an outcome.
    """
    rows = record.query(_PREDICTED)
    return calibration(*zip(*rows, strict=True), resamples=resamples) if rows else None
