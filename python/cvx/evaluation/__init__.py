"""Measures how well a memory recalls, and fits its weights to labelled questions.

A labelled file says which events answer which question (`labels`). `measure` asks a ranker every
question and returns recall, nDCG, reciprocal rank, empties, tokens and calibration with intervals;
`baselines` are what to compare with; `tune` fits weights to some groups of questions, so that the
others measure them. The command is ``cvx eval``.
"""

from cvx.evaluation.labels import Label, read_labels
from cvx.evaluation.metrics import (
    AT,
    Answer,
    Interval,
    Ranker,
    Report,
    as_json,
    baselines,
    interval,
    measure,
    recalling,
    resolved,
    table,
)
from cvx.evaluation.tuning import Tuning, cross_validated, tables, tune

__all__ = [
    "AT",
    "Answer",
    "Interval",
    "Label",
    "Ranker",
    "Report",
    "Tuning",
    "as_json",
    "baselines",
    "cross_validated",
    "interval",
    "measure",
    "read_labels",
    "recalling",
    "resolved",
    "table",
    "tables",
    "tune",
]
