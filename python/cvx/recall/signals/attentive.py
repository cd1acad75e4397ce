"""The pipeline that reads the question and weighs every signal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cvx.cue import dense_text, lexical_text, structured
from cvx.errors import InvalidInputError
from cvx.recall.candidates import Candidates
from cvx.recall.fusion import by_scale
from cvx.recall.guard import Guard
from cvx.recall.pipeline import Pipeline
from cvx.recall.signals.floor import Answerable, Learned
from cvx.recall.signals.links import MENTIONS
from cvx.recall.signals.question import Question, read_question
from cvx.recall.signals.view import FloatArray
from cvx.recall.signals.weights import DEFAULT_WEIGHTS, PASSAGE_WEIGHTS, SCALES
from cvx.recall.sources import Dense, Words
from cvx.recall.view import Question as AnyQuestion
from cvx.recall.view import View
from cvx.recall.weighting import Weighting
from cvx.types import entity_number

POOL = 150
"""Candidates of each source."""


def attentive(
    weights: Mapping[str, float] | None = None,
    answerable: Answerable | Learned | None = None,
    *,
    pool: int = POOL,
) -> Pipeline:
    """Return a pipeline that weighs the columns of `cvx.recall.signals`.

    Parameters
    ----------
    weights : mapping of str to float, optional
        By column; by default ``DEFAULT_WEIGHTS``, or in a memory of passages ``PASSAGE_WEIGHTS``.
    answerable : Answerable or Learned, optional
        When to answer nothing; by default there is always an answer where anything is similar or
        holds a word.
    pool : int, default 150
        Candidates by vector, before their neighbours join; by words two thirds of it, since those
        beyond hold a single common word.

    Examples
    --------
    >>> from cvx.embed import LexicalEmbedder
    >>> from cvx.memory import Memory
    >>> memory = Memory(embedder=LexicalEmbedder())
    >>> _ = memory.add("I sold the horse.", entity="1", metadata={"speaker": "Ann"})
    >>> _ = memory.add("I bought a horse.", entity="2", metadata={"speaker": "Bob"})
    >>> _ = memory.add("It rained all night.", entity="1", metadata={"speaker": "Ann"})
    >>> hits = memory.recall("What did Bob do with the horse?", pipeline=attentive())
    >>> hits[0].event.text
    'I bought a horse.'
    """
    pipeline = Pipeline(
        reader=read_cue,
        sources={"dense": Dense(pool), "words": Words(2 * pool // 3)},
        reach=1,
        follow=(MENTIONS,),
        signals=(signals_of,),
        fusion=by_scale(SCALES, default="none"),
        guard=Guard(),
        weighting=Weighting.mean_of(DEFAULT_WEIGHTS if weights is None else weights),
        passages=Weighting.mean_of(PASSAGE_WEIGHTS) if weights is None else None,
    )
    return pipeline.answering(answerable)


def read_cue(view: View) -> Question:
    """Read the words of a recall's cue; one that describes a state is embedded whole."""
    question = read_question(lexical_text(view.cue), view)
    if view.cue.entity is not None:
        named = question.entities | {entity_number(view.cue.entity)}
        question = replace(question, entities=named)
    return replace(question, bare=dense_text(view.cue)) if structured(view.cue) else question


def signals_of(
    question: AnyQuestion, candidates: Candidates, view: View
) -> Mapping[str, FloatArray]:
    """Compute every column, see ``all_signals``.

    Raises
    ------
    InvalidInputError
        The question was read by another reader.
    """
    from cvx.recall.signals import all_signals

    if not isinstance(question, Question):
        raise InvalidInputError(
            f"the question is a {type(question).__name__}: set the pipeline's reader to read_cue"
        )
    return all_signals(question, candidates, view)
