"""Precision of links that a memory draws without a language model.

Pairs are gathered as ``memory.causes.propose`` gathers them and weighed by a model that was fitted
on other stories, other texts of e-CARE and other topics of EventStoryLine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benches.causal import narratives, pairing
from benches.causal.narratives import Judged
from benches.causal.passages import Passage
from benches.causal.report import Figure, Report
from cvx.causal.cause_probability import NAMES, PairModel
from cvx.causal.fusion import Floats
from cvx.causal.judges.offline import WordPairs

BINS = (0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)
COUNT = 16
MUST_PRECISION, MUST_SHARE, MUST_FALSE = 0.5, 0.2, 0.1


def run(report: Report, data: Path, spaces: Mapping[str, Any]) -> None:
    """Measure with the default embedder ("lexical"), and with MiniLM ("semantic") where it is."""
    examples, news = pairing.read(data)
    for family, embedder in spaces.items():
        passages = news(embedder.embed)
        given = pairing.Given(embedder.embed, embedder.info())
        folder, heads = data / "eventstoryline", family == "semantic"
        rows = pairing.fold_rows(examples, passages, folder, given, heads=heads, count=COUNT)
        told: dict[str, list[tuple[Floats, pairing.Rows]]] = {}
        places: dict[str, list[list[float]]] = {}
        for fold in range(pairing.FOLDS):
            judge = PairModel(WordPairs({}), {})
            pairing.add_weights(judge, family, rows, passages, held=fold)
            for own, kind, one in rows:
                if own == fold and kind != pairing.ALONE:
                    told.setdefault(kind, []).append((judge.parts(one.evidence, family)[1], one))
            held = [one for one in passages if pairing.fold_of(one.topic) == fold]
            _news(judge, family, held, places)
        _table(report, family, told)
        tales = [
            Judged(one.log, one.pairs, chances)
            for chances, one in told["stories"]
            if one.log is not None
        ]
        narratives.run(report, family, tales)
        report.section(
            f"EventStoryLine as memory.causes ranks it, {family} embedder",
            "events of a document told at one time; weights of other topics",
        )
        for name, found in places.items():
            at5, at10 = np.mean(found, axis=0).tolist()
            report.row(name, Figure("@5", at5), Figure("@10", at10))


def _table(report: Report, family: str, told: dict[str, list[tuple[Floats, pairing.Rows]]]) -> None:
    report.section(
        f"links without a language model, {family} embedder",
        "precision of what is told at .5 and more, share of the true links drawn, false links an "
        "event",
    )
    for kind, parts in told.items():
        chances = np.concatenate([chance for chance, _ in parts])
        labels = np.concatenate([one.labels for _, one in parts])
        drawn = chances >= 0.5
        found, effects = int(labels[drawn].sum()), sum(one.asked for _, one in parts)
        false = (int(drawn.sum()) - found) / effects
        report.row(
            kind,
            Figure("drawn", float(drawn.sum())),
            Figure(
                "precision",
                found / max(1, int(drawn.sum())),
                MUST_PRECISION if drawn.any() else None,
            ),
            Figure(
                "share",
                found / max(1, sum(one.true for _, one in parts)),
                MUST_SHARE if kind == "stories" else None,
            ),
            Figure("false", false, MUST_FALSE if kind == "crowded" else None, lower=True),
        )
        report.row("  of those told at", *_reliability(chances, labels))


def _reliability(chances: Floats, labels: npt.NDArray[np.bool_]) -> Sequence[Figure]:
    figures = []
    for low, high in pairwise(BINS):
        inside = (chances >= low) & (chances < high)
        if inside.any():
            share = float(labels[inside].mean())
            figures.append(Figure(f"{low:g}+ (n {inside.sum()})", share))
    return figures


def _news(
    judge: PairModel,
    family: str,
    passages: Sequence[Passage],
    places: dict[str, list[list[float]]],
) -> None:
    """Add recall@5 and @10 of every effect: by nearness, and with known links of the topic."""
    if not passages:
        return
    evidence, labels, effects = pairing.together(passages)
    weights = judge.weights[f"{family} together"].weights
    columns = weights[[NAMES.index(name) for name in pairing.TOGETHER]]
    scores = {
        "without known links": evidence[:, 0] * columns[0],
        "with known links of the topic": evidence @ columns,
    }
    for effect in np.unique(effects):
        own = np.flatnonzero(effects == effect)
        for name, score in scores.items():
            order = own[np.argsort(-score[own], kind="stable")]
            hit = [float(labels[order[:k]].sum() / labels[own].sum()) for k in (5, 10)]
            places.setdefault(name, []).append(hit)
