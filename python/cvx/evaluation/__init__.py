"""Measures how well a memory recalls, and fits its weights to labelled questions.

A labelled file says which events answer which question (`labels`). `measure` asks a ranker every
question and returns recall, nDCG, reciprocal rank, empties, tokens and calibration with intervals;
`baselines` are what to compare with; `tune` fits weights on one part of the groups for measuring on
the other; `calibrated_floor` learns when to answer nothing. The command is ``cvx eval``.
"""

from cvx.evaluation.labels import Label, read_labels
from cvx.evaluation.metrics import (
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
from cvx.evaluation.tuning import (
    Evaluation,
    FittedWeights,
    calibrated_floor,
    evaluate,
    foreign_cues,
    foreign_labels,
    split,
    tables,
    tune,
)

__all__ = [
    "Answer",
    "Evaluation",
    "FittedWeights",
    "Interval",
    "Label",
    "Ranker",
    "Report",
    "as_json",
    "baselines",
    "calibrated_floor",
    "evaluate",
    "foreign_cues",
    "foreign_labels",
    "interval",
    "measure",
    "read_labels",
    "recalling",
    "resolved",
    "split",
    "table",
    "tables",
    "tune",
]
