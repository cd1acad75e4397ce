"""Measures how well a memory recalls, and fits its weights to labelled questions.

`Memory.learning` has both as ``evaluate`` and ``tune``. These are their parts: `measure` asks a
ranker every question (`Label`) and returns recall, nDCG, reciprocal rank, empties, tokens and
calibration with intervals; `tune` fits weights to some groups, to be measured on the others.
"""

from cvx.evaluation.labels import Label
from cvx.evaluation.metrics import (
    Answer,
    Interval,
    Ranker,
    Report,
    interval,
    measure,
    recalling,
    table,
)
from cvx.evaluation.tuning import FittedWeights, Tuning, tables, tune

__all__ = [
    "Answer",
    "FittedWeights",
    "Interval",
    "Label",
    "Ranker",
    "Report",
    "Tuning",
    "interval",
    "measure",
    "recalling",
    "table",
    "tables",
    "tune",
]
