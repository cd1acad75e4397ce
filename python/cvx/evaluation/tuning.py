"""Weights fitted to labelled questions, on a part of them; the other part measures.

Logistic regression of "answers the question" on the columns of the candidates, over the questions
of the training groups. Its strength of regularisation is chosen by leaving out one training group
after the other. What comes out are plain floats for a `Weighting`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError
from cvx.evaluation.answers import cue_of, where_of
from cvx.evaluation.labels import Label, groups_of
from cvx.evaluation.metrics import recall_at
from cvx.memory import Memory
from cvx.recall import Pipeline
from cvx.recall.signals import COLUMNS
from cvx.scoring.logistic import maximum_likelihood

STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Values of scikit-learn's C that are tried; smaller is more cautious."""
_DECIMALS = 4
_AT = (5, 10, 20)


class Table(NamedTuple):
    """The candidates of one question.

    Attributes
    ----------
    columns : ndarray of shape (n, m), float64
        Scaled as they are weighed.
    events : ndarray of shape (n,), int64
        Their ids.
    gold : frozenset of int
        The events that answer.
    """

    columns: npt.NDArray[np.float64]
    events: npt.NDArray[np.int64]
    gold: frozenset[int]


@dataclass(frozen=True)
class Tuned:
    """What was fitted.

    Parameters
    ----------
    weights : mapping of str to float
        By column, for ``attentive(weights)``.
    strength : float
        The chosen one of ``STRENGTHS``.
    trained, measured : tuple of str
        Groups of either part.
    """

    weights: Mapping[str, float]
    strength: float
    trained: tuple[str, ...]
    measured: tuple[str, ...]


def split(
    labels: Sequence[Label], train: Sequence[str] | None = None, *, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Divide the groups of labels into a training and a measuring part.

    Parameters
    ----------
    labels : sequence of Label
        The questions.
    train : sequence of str, optional
        Groups to train on; by default a seeded half of them.
    seed : int, default 0
        Of the half.

    Raises
    ------
    InvalidInputError
        A group that there is not, or nothing left for one of the parts.
    """
    groups = sorted(set(groups_of(labels)))
    if train is None:
        order = np.random.default_rng(seed).permutation(len(groups))
        chosen = {groups[at] for at in order[: len(groups) // 2].tolist()}
    else:
        chosen = set(train)
        unknown = sorted(chosen - set(groups))
        if unknown:
            raise InvalidInputError(f"there is no group {unknown[0]!r}: there are {groups}")
    rest = [group for group in groups if group not in chosen]
    if not chosen or not rest:
        raise InvalidInputError(
            f"{len(chosen)} groups to train on, {len(rest)} to measure: give labels of at least "
            "two groups, and leave one for measuring"
        )
    return sorted(chosen), rest


def tables(
    memory: Memory, pipeline: Pipeline, labels: Sequence[Label], gold: Sequence[frozenset[int]]
) -> list[Table]:
    """Return the candidates of each question, with the columns that can be weighed."""
    out = []
    for label, wanted in zip(labels, gold, strict=True):
        found = memory.learning.candidates(
            cue_of(label),
            max(_AT),
            namespace=label.namespace,
            where=where_of(label),
            pipeline=pipeline,
        )
        scaled = pipeline.fusion(found, COLUMNS)
        columns = np.column_stack([np.nan_to_num(scaled[name]) for name in COLUMNS])
        out.append(Table(columns, found.event_ids, wanted))
    return out


def tune(
    found: Sequence[Table],
    labels: Sequence[Label],
    train: Sequence[str],
    *,
    strengths: Sequence[float] = STRENGTHS,
) -> Tuned:
    """Fit weights to the questions of some groups.

    Parameters
    ----------
    found : sequence of Table
        From ``tables``; those of the other groups are not looked at.
    labels : sequence of Label
        The questions, in the same order.
    train : sequence of str
        Groups, from ``split``.
    strengths : sequence of float, default ``STRENGTHS``
        What is tried; with a single training group the middle one is taken.

    Returns
    -------
    Tuned

    Raises
    ------
    InvalidInputError
        No question of the training groups has gold among its candidates.
    """
    groups = groups_of(labels)
    chosen = set(train)
    parts: dict[str, list[Table]] = {}
    for table, group in zip(found, groups, strict=True):
        if group in chosen and len(table.events) and _gold(table).any():
            parts.setdefault(group, []).append(table)
    if not parts:
        raise InvalidInputError(
            f"none of the questions of {sorted(chosen)} has its answer among the candidates: "
            "label more of them"
        )
    strength = _best_strength(list(parts.values()), strengths)
    weights = _fit([table for part in parts.values() for table in part], strength)
    rest = tuple(group for group in dict.fromkeys(groups) if group not in chosen)
    named = dict(zip(COLUMNS, np.round(weights, _DECIMALS).tolist(), strict=True))
    return Tuned(named, strength, tuple(sorted(chosen)), rest)


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
            values += [_found(table, weights) for table in left_out]
        found.append(float(np.mean(values)))
    return strengths[int(np.argmax(found))]


def _found(table: Table, weights: npt.NDArray[np.float64]) -> float:
    """Return the mean of recall at 5, 10 and 20."""
    ranked = table.events[np.argsort(-(table.columns @ weights), kind="stable")].tolist()
    return float(np.mean([recall_at(ranked, table.gold, k) for k in _AT]))


def _fit(found: Sequence[Table], strength: float) -> npt.NDArray[np.float64]:
    rows = np.vstack([table.columns for table in found])
    answers = np.concatenate([_gold(table) for table in found])
    spread = rows.std(axis=0)
    spread[spread == 0.0] = 1.0
    standard = (rows - rows.mean(axis=0)) / spread
    coefficients, _ = maximum_likelihood(standard, answers, penalty=1.0 / strength)
    return np.asarray(coefficients / spread)


def _gold(table: Table) -> npt.NDArray[np.bool_]:
    return np.isin(table.events, list(table.gold))
