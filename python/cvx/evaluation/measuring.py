"""Asking every question of every ranker, and what that says of them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cvx.errors import InvalidInputError
from cvx.evaluation.answers import Answer, Ranker
from cvx.evaluation.intervals import Interval, interval
from cvx.evaluation.labels import Label, groups_of
from cvx.evaluation.metrics import ndcg_at, recall_at, reciprocal_rank
from cvx.scoring import calibration

AT = (5, 10, 20)


@dataclass(frozen=True)
class Measured:
    """What one ranker reached.

    Parameters
    ----------
    name : str
        Which one.
    metrics : mapping of str to Interval
        "recall@k" and "ndcg@k" for each k, "mrr", over the questions that have gold;
        "empty": share of those that came back empty; "turned away": share of the questions
        without gold that did; "tokens" a question; "ms" of processor time a question, which was
        measured once and has no interval.
        Metrics without a question are left out.
    categories : mapping of str to mapping of str to Interval
        The same by category.
    calibration : mapping of str to float
        "brier" and "ece" of the probability that there is an answer; empty where the ranker
        gives none.
    answers : tuple of Answer
        In the order of the labels.
    """

    name: str
    metrics: Mapping[str, Interval]
    categories: Mapping[str, Mapping[str, Interval]]
    calibration: Mapping[str, float]
    answers: tuple[Answer, ...]


def measure(
    name: str,
    ranker: Ranker,
    labels: Sequence[Label],
    gold: Sequence[frozenset[int]],
    *,
    at: Sequence[int] = AT,
    seed: int = 0,
) -> Measured:
    """Ask a ranker every question.

    Parameters
    ----------
    name : str
        What it is called.
    ranker : Ranker
        Is asked for as many events as the largest of ``at``.
    labels : sequence of Label
        The questions.
    gold : sequence of frozenset of int
        The events that answer each, see ``resolved``.
    at : sequence of int, default (5, 10, 20)
        Where rankings are cut, each at least 1.
    seed : int, default 0
        Of the intervals.

    Raises
    ------
    InvalidInputError
        No questions, or no cut.
    """
    if not labels or not at:
        raise InvalidInputError(f"{len(labels)} labels, cut at {list(at)}: give some of both")
    begun = time.process_time()
    answers = tuple(ranker(label, max(at)) for label in labels)
    spent = (time.process_time() - begun) * 1e3 / len(labels)
    values = _values(answers, gold, at)
    groups = groups_of(labels)
    kinds = sorted({label.category for label in labels} - {""})
    metrics = _means(values, groups, seed)
    metrics["ms"] = Interval(spent, math.nan, math.nan, len(labels))
    return Measured(
        name,
        metrics,
        {
            kind: _means(
                {
                    key: {n: v for n, v in column.items() if labels[n].category == kind}
                    for key, column in values.items()
                },
                groups,
                seed,
            )
            for kind in kinds
        },
        _calibration(answers, gold),
        answers,
    )


def _values(
    answers: Sequence[Answer], gold: Sequence[frozenset[int]], at: Sequence[int]
) -> dict[str, dict[int, float]]:
    """Return each metric by the number of the question."""
    out: dict[str, dict[int, float]] = {}

    def note(key: str, number: int, value: float) -> None:
        out.setdefault(key, {})[number] = value

    for number, (answer, wanted) in enumerate(zip(answers, gold, strict=True)):
        if wanted:
            for k in at:
                note(f"recall@{k}", number, recall_at(answer.ranked, wanted, k))
            for k in at:
                note(f"ndcg@{k}", number, ndcg_at(answer.ranked, wanted, k))
            note("mrr", number, reciprocal_rank(answer.ranked, wanted))
        note("empty" if wanted else "turned away", number, float(not answer.ranked))
        note("tokens", number, float(answer.tokens))
    return out


def _means(
    values: Mapping[str, Mapping[int, float]], groups: Sequence[str], seed: int
) -> dict[str, Interval]:
    return {
        key: interval(list(column.values()), [groups[n] for n in column], seed=seed)
        for key, column in values.items()
        if column
    }


def _calibration(answers: Sequence[Answer], gold: Sequence[frozenset[int]]) -> dict[str, float]:
    told = [
        (answer.answerable, bool(wanted))
        for answer, wanted in zip(answers, gold, strict=True)
        if answer.answerable is not None
    ]
    if not told:
        return {}
    chances, happened = np.array(told, dtype=np.float64).T
    found = calibration(chances, happened, resamples=1)
    return {"brier": found.brier.value, "ece": found.ece.value}
