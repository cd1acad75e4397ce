"""Metrics of a ranker over labelled questions, with intervals, and a table of them.

Relevance is binary: an event answers, or does not. Questions about one conversation resemble each
other, so whole groups are drawn for an interval, not questions: with one group nothing is known of
the spread, and with fewer than about ten the interval is too narrow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import whole
from cvx.errors import InvalidInputError
from cvx.evaluation.labels import Label, groups_of
from cvx.recall import Floor, Pipeline
from cvx.scoring import calibration
from cvx.statistics import bootstrap, ratio
from cvx.types import Cue, Filter

if TYPE_CHECKING:
    from cvx.memory import Memory


def recall_at(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return the share of the gold that is among the first k.

    Parameters
    ----------
    ranked : sequence
        Best first, each once.
    gold : collection
        What answers, not empty.
    k : int
        How many count, at least 1.

    Examples
    --------
    >>> recall_at([3, 1, 2], {1, 9}, 2)
    0.5
    """
    _check_cut(gold, k)
    return len(set(ranked[:k]) & set(gold)) / len(set(gold))


def ndcg_at(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return the discounted gain of the first k as a share of the best one possible.

    References
    ----------
    Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques; log base 2.

    Examples
    --------
    >>> ndcg_at([3, 1], {3}, 2), round(ndcg_at([1, 3], {3}, 2), 3)
    (1.0, 0.631)
    """
    _check_cut(gold, k)
    wanted = set(gold)
    gain = sum(
        1.0 / math.log2(place + 2) for place, item in enumerate(ranked[:k]) if item in wanted
    )
    best = sum(1.0 / math.log2(place + 2) for place in range(min(k, len(wanted))))
    return gain / best


def reciprocal_rank(ranked: Sequence[Hashable], gold: Collection[Hashable]) -> float:
    """Return 1 / place of the first that answers, 0 if none does.

    Examples
    --------
    >>> reciprocal_rank([4, 7], {7})
    0.5
    """
    _check_cut(gold, 1)
    wanted = set(gold)
    return next((1.0 / at for at, item in enumerate(ranked, start=1) if item in wanted), 0.0)


def _check_cut(gold: Collection[Hashable], k: int) -> None:
    if not gold:
        raise InvalidInputError("gold is empty: such a question has no ranking to measure")
    whole(1)("k", k)


class Interval(NamedTuple):
    """A mean with its confidence interval.

    Attributes
    ----------
    mean : float
        Of all values.
    low, high : float
        Percentile bounds; nan where all values are of one group.
    n : int
        Values.
    """

    mean: float
    low: float
    high: float
    n: int


def interval(
    values: npt.ArrayLike,
    groups: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the mean of values with a percentile interval, groups drawn with replacement.

    Parameters
    ----------
    values : array-like of shape (n,)
        One a question, at least one.
    groups : sequence of str
        What each belongs to.
    level : float, default 0.95
        Share of the resampled means within the bounds, in (0, 1).
    resamples : int, default 2000
        How often groups are drawn, at least 1.
    seed : int, default 0
        The same seed gives the same bounds.

    References
    ----------
    Field & Welsh 2007, Bootstrapping clustered data.

    Examples
    --------
    >>> interval([1.0, 1.0, 0.0, 1.0], ["a", "a", "b", "b"]).mean
    0.75
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 1 or not rows.size or len(groups) != rows.size:
        raise InvalidInputError(
            f"{rows.size} values, {len(groups)} groups: give a group for each value, at least one"
        )
    if not 0.0 < level < 1.0 or resamples < 1:
        raise InvalidInputError(
            f"level is {level}, resamples {resamples}: give a level in (0, 1), at least 1 resample"
        )
    group = np.unique(np.asarray(groups), return_inverse=True)[1]
    sums = np.column_stack([np.bincount(group, weights=rows), np.bincount(group)])
    low, high = bootstrap(sums, ratio, resamples=resamples, seed=seed, level=level)
    return Interval(float(rows.mean()), low.item(), high.item(), rows.size)


CHARACTERS_A_TOKEN = 4
"""A rule of thumb for English and subword vocabularies; counts compare, and are not exact."""


@dataclass(frozen=True)
class Answer:
    """The ranking that a ranker returned for one question.

    Parameters
    ----------
    ranked : tuple of int
        Event ids, best first, each once; empty where it says nothing.
    tokens : int
        Estimated size of the texts of ``ranked``.
    answerable : float, optional
        Probability that the memory holds an answer at all, in [0, 1].
    """

    ranked: tuple[int, ...]
    tokens: int = 0
    answerable: float | None = None


Ranker: TypeAlias = Callable[[Label, int], Answer]
"""From a question and how many events may come back to an answer."""


def tokens_of(texts: Sequence[str]) -> int:
    """Estimate how many tokens some texts are.

    Examples
    --------
    >>> tokens_of(["abcd", "ef"])
    2
    """
    return sum(-(-len(text) // CHARACTERS_A_TOKEN) for text in texts)


def cue_of(label: Label) -> Cue:
    """Return what is asked."""
    return label.cue or Cue(text=label.query, vector=label.vector, timestamp=label.time)


def where_of(label: Label) -> Filter | None:
    """Return whose events may answer."""
    return None if label.speaker is None else Filter(entities=[str(label.speaker)])


def recalling(memory: Memory, pipeline: Pipeline | None = None) -> Ranker:
    """Return a ranker that recalls, without counting that it did.

    Parameters
    ----------
    memory : cvx.Memory
        What is asked.
    pipeline : Pipeline, optional
        How; default that of the memory.
    """
    plan = pipeline or memory.learning.pipeline

    def rank(label: Label, k: int) -> Answer:
        asked, where = cue_of(label), where_of(label)
        hits = memory.learning.ranked(
            asked, k, namespace=label.namespace, where=where, pipeline=plan
        )
        events = [hit.event for hit in hits if hit.event is not None]
        return Answer(
            tuple(event.event_id for event in events if event.event_id is not None),
            tokens_of([event.text for event in events]),
            hits.trace.answerable,
        )

    return rank


def baselines(memory: Memory) -> dict[str, Ranker]:
    """Return plain ways to recall, to compare with: "dense", "lexical", and both by "rank".

    Each looks into the sources it names, drops nothing, and weighs nothing but their places.
    """
    everything = Pipeline(floor=Floor(similarity=None))
    sources = {"dense": ["dense"], "lexical": ["lexical"], "rank": ["dense", "lexical"]}
    return {
        name: recalling(memory, everything.looking_in(looked_in))
        for name, looked_in in sources.items()
    }


def resolved(memory: Memory, labels: Sequence[Label]) -> list[frozenset[int]]:
    """Return the gold of each label as event ids.

    Raises
    ------
    InvalidInputError, UnknownError
        An id, or a key, that the memory does not know.
    """
    known = {event for (event,) in memory.record.query("SELECT event_id FROM events")}
    out = []
    for number, label in enumerate(labels, start=1):
        ids = set[int]()
        for item in label.gold:
            event = item
            if isinstance(item, str):
                event = memory.get(key=item, namespace=label.namespace).event_id or 0
            if event not in known:
                raise InvalidInputError(
                    f"label {number} names the event {item!r}, which the memory does not hold: "
                    "label the events of this store"
                )
            ids.add(int(event))
        out.append(frozenset(ids))
    return out


AT = (5, 10, 20)


@dataclass(frozen=True)
class Report:
    """The metrics of one ranker.

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
    answers: tuple[Answer, ...] = field(repr=False)

    def __str__(self) -> str:
        return table([self])


def measure(
    name: str,
    ranker: Ranker,
    labels: Sequence[Label],
    gold: Sequence[frozenset[int]],
    *,
    at: Sequence[int] = AT,
    seed: int = 0,
) -> Report:
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
    return Report(
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


_PERCENT = ("recall@", "ndcg@", "mrr", "empty", "turned away")


def table(measured: Iterable[Report], metrics: Sequence[str] | None = None) -> str:
    """Return one line a ranker, and below it one a category.

    Parameters
    ----------
    measured : iterable of Report
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


def as_json(measured: Report) -> dict[str, Any]:
    """Return everything but the answers; bounds that are unknown are None."""
    return {
        "name": measured.name,
        "metrics": _without_nan(measured.metrics),
        "categories": {kind: _without_nan(values) for kind, values in measured.categories.items()},
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


def _without_nan(metrics: Mapping[str, Interval]) -> dict[str, dict[str, float | None]]:
    return {
        name: {key: None if math.isnan(one) else one for key, one in found._asdict().items()}
        for name, found in metrics.items()
    }
