"""Measuring how well a memory recalls, and fitting its weights to labelled questions.

A labelled file says which events answer which question (`labels`). `measure` asks a ranker every
question and returns recall, nDCG, reciprocal rank, empties, tokens and calibration with intervals;
`baselines` are what to compare with; `tune` fits weights on one part of the groups for measuring on
the other; `calibrated_floor` learns when to answer nothing. The command is ``cvx eval``.
"""

from cvx.evaluation.answers import Answer, Ranker, recalling, resolved
from cvx.evaluation.baselines import baselines
from cvx.evaluation.floors import calibrated_floor, foreign_labels
from cvx.evaluation.foreign import foreign_cues
from cvx.evaluation.generated import generated_talk
from cvx.evaluation.intervals import Interval, interval
from cvx.evaluation.labels import Label, read_labels, write_labels
from cvx.evaluation.measuring import Measured, measure
from cvx.evaluation.report import as_json, table
from cvx.evaluation.session import Evaluated, evaluated
from cvx.evaluation.tuning import Tuned, split, tables, tune

__all__ = [
    "Answer",
    "Evaluated",
    "Interval",
    "Label",
    "Measured",
    "Ranker",
    "Tuned",
    "as_json",
    "baselines",
    "calibrated_floor",
    "evaluated",
    "foreign_cues",
    "foreign_labels",
    "generated_talk",
    "interval",
    "measure",
    "read_labels",
    "recalling",
    "resolved",
    "split",
    "table",
    "tables",
    "tune",
    "write_labels",
]
