"""Ways to ask better than the cue does: each takes a pipeline and returns another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvx.errors import InvalidInputError
from cvx.recall.candidates import Candidates, Column
from cvx.recall.formulas import Columns, recency
from cvx.recall.fusion import Fusion
from cvx.recall.pipeline import Pipeline
from cvx.recall.view import Question, View
from cvx.scoring.recency import Decay


def with_synonyms(pipeline: Pipeline, table: Mapping[str, Sequence[str]]) -> Pipeline:
    """Look for other words too.

    Parameters
    ----------
    pipeline : Pipeline
        Any.
    table : mapping of str to sequence of str
        From a word, in lower case, to words that mean the same. The vector stays that of the cue.
    """

    def reader(view: View) -> Question:
        question = pipeline.reader(view)
        asked = question.words or tuple(question.text.casefold().split())
        more = [other for word in asked for other in table.get(word, ())]
        if not more:
            return question
        words = tuple(dict.fromkeys((*question.words, *more))) if question.words else ()
        return _changed(question, text=f"{question.text} {' '.join(more)}", words=words)

    return replace(pipeline, reader=reader)


def with_scene(pipeline: Pipeline, scene: str) -> Pipeline:
    """Ask from where the agent is: the description of the scene is embedded with the cue."""

    def reader(view: View) -> Question:
        question = pipeline.reader(view)
        return _changed(question, bare=f"{question.bare}\n{scene}")

    return replace(pipeline, reader=reader)


def with_recency(pipeline: Pipeline, decay: Decay, weight: float, **how: Any) -> Pipeline:
    """Prefer what happened lately: ``recency`` by a decay, in the unit of the timestamps.

    ``since="used"`` and ``slowed_by_salience=True`` are those of ``cvx.recall.formulas.recency``.
    """
    boosted = recency(decay, **{"since": "happened", **how})
    return _weighing(pipeline, "recency", weight, boosted)


def with_mood(pipeline: Pipeline, mood: Sequence[str], weight: float) -> Pipeline:
    """Prime with an emotion: ``mood`` is the share of its words that an event holds.

    Parameters
    ----------
    pipeline : Pipeline
        Any.
    mood : sequence of str
        The words of the emotion, at least one.
    weight : float
        Of the column.
    """
    words = tuple(dict.fromkeys(word.casefold() for word in mood))
    if not words:
        raise InvalidInputError("mood is empty: give the words of the emotion")

    def signal(_question: Any, table: Candidates, view: View) -> Columns:
        held = np.zeros(len(table))
        for word in words:
            rows = view.postings(word)
            if rows is not None:
                held += np.isin(table.rows, rows)
        return {"mood": held / len(words)}

    return _weighing(pipeline, "mood", weight, signal)


def _weighing(pipeline: Pipeline, name: str, weight: float, signal: Any) -> Pipeline:
    return replace(
        pipeline,
        signals=(*pipeline.signals, signal),
        fusion=Beside(pipeline.fusion, name),
        weighting=pipeline.weighting.with_weights({**pipeline.weighting.weights, name: weight}),
        passages=None,
    )


@dataclass(frozen=True, slots=True)
class Beside:
    """A fusion with one more column, which is taken as it is."""

    fusion: Fusion
    name: str

    def __call__(self, table: Candidates, names: Any) -> Mapping[str, Column]:
        """Fuse all but that column, and join it."""
        return {**self.fusion(table, set(names) - {self.name}), self.name: table[self.name]}


def _changed(question: Question, **parts: Any) -> Question:
    changed: Question = replace(question, **parts)  # type: ignore[type-var]
    return changed
