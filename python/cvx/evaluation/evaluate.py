"""The evaluation that ``cvx eval`` runs: baselines, the memory, and fitted weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cvx.evaluation.labels import Label, groups_of
from cvx.evaluation.metrics import AT, Report, as_json, baselines, measure, recalling, resolved
from cvx.evaluation.tuning import (
    FOREIGN,
    FittedWeights,
    calibrated_floor,
    foreign_labels,
    split,
    tables,
)
from cvx.evaluation.tuning import tune as fit
from cvx.recall.floor import Answerable
from cvx.recall.presets import default_pipeline
from cvx.recall.ranking_signals import DEFAULT_WEIGHTS

if TYPE_CHECKING:
    from cvx.memory import Memory


@dataclass(frozen=True)
class Evaluation:
    """What one evaluation found.

    Parameters
    ----------
    measured : tuple of Report
        The baselines, the memory as it is, and with what was fitted; the floor upon the weights.
    tuned : FittedWeights, optional
        The weights, where they were fitted.
    answerable : Answerable, optional
        The floor, where it was calibrated.
    trained : tuple of str
        The groups that were fitted to and are not measured; empty where nothing was fitted.
    """

    measured: tuple[Report, ...]
    tuned: FittedWeights | None
    answerable: Answerable | None
    trained: tuple[str, ...]

    def fitted(self) -> dict[str, Any]:
        """Return what was fitted, as JSON can hold it."""
        out: dict[str, Any] = {}
        if self.trained:
            out["fitted to"] = list(self.trained)
        if self.tuned is not None:
            out["weights"] = dict(self.tuned.weights)
        if self.answerable is not None:
            out["floor"] = self.answerable.to_dict()
        return out

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return {"measured": [as_json(one) for one in self.measured], **self.fitted()}


def evaluate(
    memory: Memory,
    labels: Sequence[Label],
    *,
    tune: bool = False,
    floor: bool = False,
    train: Sequence[str] | None = None,
    at: Sequence[int] = AT,
    seed: int = 0,
) -> Evaluation:
    """Measure a memory; what is fitted is fitted to one part of the groups, measured on the other.

    Parameters
    ----------
    memory : cvx.Memory
        What is asked. Nothing in it changes.
    labels : sequence of Label
        The questions.
    tune : bool, default False
        Fit weights.
    floor : bool, default False
        Calibrate when to answer nothing; 200 foreign questions are then measured too.
    train : sequence of str, optional
        Groups to fit to; by default a seeded half.
    at : sequence of int, default (5, 10, 20)
        Where rankings are cut.
    seed : int, default 0
        Of the split, the foreign questions and the intervals.
    """
    groups, gold = groups_of(labels), resolved(memory, labels)
    plan = default_pipeline()
    trained = split(labels, train, seed=seed)[0] if tune or floor else []
    part = [number for number, group in enumerate(groups) if group in set(trained)]
    labelled, answers = [labels[number] for number in part], [gold[number] for number in part]
    weights = fit(tables(memory, plan, labelled, answers), labelled, trained) if tune else None
    answerable = calibrated_floor(memory, plan, labelled, seed=seed) if floor else None

    rest = [number for number, group in enumerate(groups) if group not in set(trained)]
    asked, wanted = [labels[number] for number in rest], [gold[number] for number in rest]
    if floor:
        foreign = foreign_labels(asked, FOREIGN, seed=seed)
        asked, wanted = [*asked, *foreign], [*wanted, *resolved(memory, foreign)]
    rankers = {**baselines(memory), "this memory": recalling(memory)}
    if weights is not None:
        rankers["tuned"] = recalling(memory, default_pipeline(weights.weights))
    if answerable is not None:
        chosen = DEFAULT_WEIGHTS if weights is None else weights.weights
        rankers["with a floor"] = recalling(memory, default_pipeline(chosen, answerable))
    measured = tuple(
        measure(name, ranker, asked, wanted, at=at, seed=seed) for name, ranker in rankers.items()
    )
    return Evaluation(measured, weights, answerable, tuple(trained))
