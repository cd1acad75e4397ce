"""Fits the weights of recall to labelled questions, and measures them on others.

The weights are those of a logistic regression of "answers the question" on the columns of the
candidates. Its strength of regularisation is chosen by leaving out one group of questions after the
other. What comes out are plain floats for a `Weighting`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError
from cvx.evaluation.labels import Label, groups_of
from cvx.evaluation.metrics import (
    AT,
    Answer,
    Ranker,
    Report,
    cue_of,
    measure,
    recall_at,
    recalling,
    table,
    where_of,
)
from cvx.recall import Pipeline
from cvx.recall.ranking_signals import COLUMNS
from cvx.scoring.logistic import fit_logistic

if TYPE_CHECKING:
    from cvx.memory import Memory

STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Values of scikit-learn's C that are tried; smaller is more cautious."""
_DECIMALS = 4


class Table(NamedTuple):
    """The candidate table of one question.

    Attributes
    ----------
    columns : ndarray of shape (n, m), float64
        Scaled as they are weighed.
    events : ndarray of shape (n,), int64
        Their ids.
    gold : frozenset of int
        The events that answer.
    names : tuple of str
        Of the columns.
    """

    columns: npt.NDArray[np.float64]
    events: npt.NDArray[np.int64]
    gold: frozenset[int]
    names: tuple[str, ...] = COLUMNS


@dataclass(frozen=True)
class Tuning:
    """What tuning a memory would bring; `apply` lets it recall so.

    Parameters
    ----------
    before, after : Report
        Of all questions; after: each by weights that were fitted to others.
    weights : mapping of str to float
        By column, fitted to all of them.
    keep : callable
        What ``apply`` hands the weights to.
    """

    before: Report
    after: Report
    weights: Mapping[str, float]
    keep: Callable[[Mapping[str, float]], None] = field(repr=False, compare=False)

    def apply(self) -> None:
        """Let the memory recall with these weights from now on, after it is opened again too."""
        self.keep(self.weights)

    def __str__(self) -> str:
        return table([self.before, self.after])


def cross_validated(
    memory: Memory,
    labels: Sequence[Label],
    gold: Sequence[frozenset[int]],
    folds: int = 5,
    *,
    at: Sequence[int] = AT,
    seed: int = 0,
) -> Tuning:
    """Fit weights to questions, and measure them on those that they were not fitted to.

    Parameters
    ----------
    memory : cvx.Memory
        What is asked. Nothing in it changes.
    labels : sequence of Label
        The questions; those of one group are in one fold.
    gold : sequence of frozenset of int
        The events that answer each.
    folds : int, default 5
        Parts, at least 2 and at most as many as there are groups.
    at : sequence of int, default (5, 10, 20)
        Where rankings are cut.
    seed : int, default 0
        Of the parts and the intervals.

    Raises
    ------
    InvalidInputError
        Fewer groups than folds; no question has its answer among the candidates.
    """
    groups = groups_of(labels)
    known = list(dict.fromkeys(groups))
    if len(known) < 2:
        raise InvalidInputError(
            "tuning needs at least 2 groups of questions, one to measure what the other fits; "
            f"there is {len(known) or 'none'}: give more questions"
        )
    if not 2 <= folds <= len(known):
        raise InvalidInputError(
            f"folds is {folds}: give 2 to {len(known)}, as many as there are groups of questions"
        )
    plan = memory.learning.weighed()
    found = tables(memory, plan, labels, gold)
    order = [known[at] for at in np.random.default_rng(seed).permutation(len(known)).tolist()]
    rankers: dict[str, Ranker] = {}
    for part in (order[at::folds] for at in range(folds)):
        to = [group for group in known if group not in set(part)]
        weights = _sized(tune(found, labels, to), plan)
        rankers |= dict.fromkeys(part, recalling(memory, memory.learning.weighed(weights)))
    group_of = {id(label): group for label, group in zip(labels, groups, strict=True)}

    def tuned(label: Label, k: int) -> Answer:
        return rankers[group_of[id(label)]](label, k)

    before = measure("before", recalling(memory), labels, gold, at=at, seed=seed)
    after = measure("after", tuned, labels, gold, at=at, seed=seed)
    return Tuning(before, after, _sized(tune(found, labels, known), plan), lambda _: None)


def _sized(fitted: Mapping[str, float], plan: Pipeline) -> dict[str, float]:
    """Return weights of the size of those of a pipeline, which its floor of scores is for."""
    size = sum(map(abs, plan.weighting.weights.values()))
    whole = sum(map(abs, fitted.values())) or 1.0
    return {name: round(size * one / whole, _DECIMALS) for name, one in fitted.items()}


def tables(
    memory: Memory,
    pipeline: Pipeline,
    labels: Sequence[Label],
    gold: Sequence[frozenset[int]],
) -> list[Table]:
    """Return the candidates of each question, with the columns that can be weighed.

    Those of the signals, or what another formula adds up.
    """
    own = tuple(pipeline.weighting.weights)
    names, out = COLUMNS if {*own} <= {*COLUMNS} else own, []
    for label, wanted in zip(labels, gold, strict=True):
        found = memory.learning.candidates(
            cue_of(label),
            max(AT),
            namespace=label.namespace,
            where=where_of(label),
            pipeline=pipeline,
        )
        scaled = pipeline.fusion(found, names)
        columns = np.column_stack([np.nan_to_num(scaled[name]) for name in names])
        out.append(Table(columns, found.event_ids, wanted, names))
    return out


def tune(
    found: Sequence[Table],
    labels: Sequence[Label],
    train: Sequence[str],
    *,
    strengths: Sequence[float] = STRENGTHS,
) -> dict[str, float]:
    """Fit weights to the questions of some groups.

    Parameters
    ----------
    found : sequence of Table
        From ``tables``; those of the other groups are not looked at.
    labels : sequence of Label
        The questions, in the same order.
    train : sequence of str
        Groups.
    strengths : sequence of float, default ``STRENGTHS``
        What is tried; with a single training group the middle one is taken.

    Returns
    -------
    dict of str to float
        By column, for ``default_pipeline(weights)``, or for the formula that was fitted.

    Raises
    ------
    InvalidInputError
        No question of the training groups has gold among its candidates.
    """
    groups = groups_of(labels)
    chosen = set(train)
    parts: dict[str, list[Table]] = {}
    for one, group in zip(found, groups, strict=True):
        if group in chosen and len(one.events) and _gold(one).any():
            parts.setdefault(group, []).append(one)
    if not parts:
        raise InvalidInputError(
            f"none of the questions of {sorted(chosen)} has its answer among the candidates: "
            "label more of them"
        )
    strength = _best_strength(list(parts.values()), strengths)
    weights = _fit([one for part in parts.values() for one in part], strength)
    return dict(zip(found[0].names, np.round(weights, _DECIMALS).tolist(), strict=True))


def _best_strength(parts: Sequence[Sequence[Table]], strengths: Sequence[float]) -> float:
    """Leave out one group after the other, and take what finds most in those left out."""
    if len(parts) < 2:
        return strengths[len(strengths) // 2]
    found = []
    for strength in strengths:
        values = []
        for out, left_out in enumerate(parts):
            weights = _fit(
                [t for at, part in enumerate(parts) if at != out for t in part], strength
            )
            values += [_found(one, weights) for one in left_out]
        found.append(float(np.mean(values)))
    return strengths[int(np.argmax(found))]


def _found(table: Table, weights: npt.NDArray[np.float64]) -> float:
    """Return the mean of recall at 5, 10 and 20."""
    ranked = table.events[np.argsort(-(table.columns @ weights), kind="stable")].tolist()
    return float(np.mean([recall_at(ranked, table.gold, k) for k in AT]))


def _fit(found: Sequence[Table], strength: float) -> npt.NDArray[np.float64]:
    rows = np.vstack([table.columns for table in found])
    answers = np.concatenate([_gold(table) for table in found]).astype(np.float64)
    fit = fit_logistic(rows, answers, np.ones(len(rows)), strength=1.0 / strength, bound=math.inf)
    return np.asarray(fit.coefficients / fit.scale)


def _gold(table: Table) -> npt.NDArray[np.bool_]:
    return np.isin(table.events, list(table.gold))
