"""Named columns over the candidates of one recall: what the fusion weighs.

`read_question` takes a question apart; `all_signals` computes every column in one pass over the
candidates and their neighbours; `DEFAULT_WEIGHTS` says what each counts, `SCALES` how it is scaled
first; `Answerable` says when to answer nothing; `attentive` puts them into a pipeline. Every signal
is a function of a `Scene`, knows nothing of any data set, and costs as much as there are
candidates, never as much as there are events.

| family | columns |
|---|---|
| `dense_signals` | dense, dense_window, dense_wide, dense_pair, dense_neighbour |
| `lexical_signals` | bm25, bm25_window, bm25_wide, coverage, coverage_window, coverage_pair, \
asked_before, coverage_store |
| `speaker_signals`, `date_signals` | speaker; date_near, date_month, date_year |
| `session_signals` | session_best, session_mean, session_coverage |
| `form_signals`, `length_signals` | answers, asks; length |
| `title_signals`, `link_signals` | title; linked, residual |
"""

from __future__ import annotations

from collections.abc import Mapping

from cvx.recall.signals.attentive import attentive
from cvx.recall.signals.content import dense_signals, form_signals, length_signals, lexical_signals
from cvx.recall.signals.context import date_signals, session_signals, speaker_signals
from cvx.recall.signals.floor import (
    FLOOR_FEATURES,
    Answerable,
    Learned,
    calibrated,
    floor_features,
    shipped_floor,
)
from cvx.recall.signals.links import MENTIONS, Mention, Titles, link_signals, title_signals
from cvx.recall.signals.question import Question, read_question
from cvx.recall.signals.scene import Scene, stretched
from cvx.recall.signals.view import Candidates, FloatArray, View
from cvx.recall.signals.weights import COLUMNS, DEFAULT_WEIGHTS, SCALES

__all__ = [
    "COLUMNS",
    "DEFAULT_WEIGHTS",
    "FLOOR_FEATURES",
    "MENTIONS",
    "SCALES",
    "Answerable",
    "Learned",
    "Mention",
    "Question",
    "Scene",
    "Titles",
    "all_signals",
    "attentive",
    "calibrated",
    "floor_features",
    "read_question",
    "shipped_floor",
]

_BY_ITSELF = (
    dense_signals,
    lexical_signals,
    speaker_signals,
    date_signals,
    form_signals,
    length_signals,
    title_signals,
)


def all_signals(question: Question, candidates: Candidates, view: View) -> Mapping[str, FloatArray]:
    """Compute every column.

    Parameters
    ----------
    question : Question
        From ``read_question``.
    candidates : Candidates
        The rows that may answer.
    view : View
        What is visible.

    Returns
    -------
    mapping of str to ndarray of shape (n,)
        By name, unscaled.
    """
    scene = Scene(question, candidates, view)
    columns = dict[str, FloatArray]()
    for signals in _BY_ITSELF:
        columns.update(signals(scene))
    # What stands by its session or its links borrows from others' own content, in equal parts
    # of meaning and words.
    content = (stretched(columns["dense"]) + columns["coverage"]) / 2
    return {
        **columns,
        **session_signals(scene, content),
        **link_signals(scene, content),
    }
