"""Presets: the default pipeline, formulas of the source papers, and ways to widen a cue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from cvx.cue import dense_text, lexical_text, structured
from cvx.errors import InvalidInputError
from cvx.recall.context import Serving
from cvx.recall.floor import Answerable, Floor, RescaledFloor
from cvx.recall.fusion import Candidates, FloatArray, Fusion, Weighting, by_scale
from cvx.recall.pipeline import Pipeline, Signal
from cvx.recall.poisoning import Guard
from cvx.recall.question import AnyQuestion, Question, read_question
from cvx.recall.ranking_signals import (
    DEFAULT_WEIGHTS,
    MENTIONS,
    PASSAGE_WEIGHTS,
    SCALES,
    STATEMENT_WEIGHTS,
    signals_of,
)
from cvx.recall.sources import Causes, Dense, Lexical, Words
from cvx.recall.visible_events import VisibleEvents
from cvx.scoring.formulas import (
    COMPOSITE_WEIGHTS,
    HALF_LIFE_S,
    HALF_LIFE_TURNS,
    NEUTRAL_REWARD,
    SEED_WEIGHTS,
    STREAM_DECAY,
    Decay,
)
from cvx.types import Clock, Column, IntArray, entity_number

Columns = Mapping[str, FloatArray]

NEUTRAL_SALIENCE = 0.5


def similarity(kind: Literal["cosine", "clamped", "exponential"] = "cosine") -> Signal:
    """Return the column ``similarity``: as it is, 0 where negative, or exp(-distance).

    0 without a vector.
    """
    return partial(similarity_column, kind=kind)


def similarity_column(
    _question: Any, table: Candidates, view: VisibleEvents, *, kind: str
) -> Columns:
    """Compute ``similarity``."""
    values = table["dense"]
    if kind == "exponential":
        far = 1.0 / values - 1.0 if view.index.metric == "l2" else 1.0 - values
        values = np.exp(-far)
    elif kind == "clamped":
        values = np.clip(values, 0.0, 1.0)
    return {"similarity": np.nan_to_num(values, nan=0.0)}


def recency(
    decay: Decay,
    since: Literal["used", "happened"] = "used",
    *,
    slowed_by_salience: bool = False,
) -> Signal:
    """Return the column ``recency``: decay since an event was last used, or since it happened.

    Parameters
    ----------
    decay : Decay
        In the unit of the timestamps.
    since : {"used", "happened"}, default "used"
        What was never used was last used when it happened.
    slowed_by_salience : bool, default False
        What matters more fades more slowly; see `Decay.slowed`.
    """
    return partial(recency_column, decay=decay, since=since, slowed=slowed_by_salience)


def recency_column(
    _question: Any,
    table: Candidates,
    view: VisibleEvents,
    *,
    decay: Decay,
    since: str,
    slowed: bool,
) -> Columns:
    """Compute ``recency``."""
    times = view.last_used(table.rows) if since == "used" else view.corpus.timestamps[table.rows]
    age = (view.now - times).astype(np.float64)
    return {"recency": decay.slowed(_salience(table), age) if slowed else decay(age)}


def salience(_question: Any, table: Candidates, _view: VisibleEvents) -> Columns:
    """Return the column ``salience``: how much it mattered; 0.5 where nobody said."""
    return {"salience": _salience(table)}


def _salience(table: Candidates) -> Column:
    return np.nan_to_num(table["salience"], nan=NEUTRAL_SALIENCE)


def reward(_question: Any, table: Candidates, _view: VisibleEvents) -> Columns:
    """Return the column ``reward``: how it ended; 0.5 where that is not known."""
    return {"reward": np.nan_to_num(table["reward"], nan=NEUTRAL_REWARD)}


def usage_column(
    _question: Any,
    table: Candidates,
    view: VisibleEvents,
    *,
    mode: Literal["beta", "ratio"],
    strength: float,
    mean: float,
) -> Columns:
    """Return the column ``usage_success``: how well following it went, from ``feedback``.

    The mean of a Beta posterior, or helped / (helped + followed) as RFC-013 has it.
    """
    followed, helped = view.use(table.rows)
    if mode == "ratio":
        return {"usage_success": helped / np.maximum(helped + followed, 1.0)}
    return {"usage_success": (helped + strength * mean) / (followed + strength)}


def region_column(_question: Any, table: Candidates, view: VisibleEvents, *, level: int) -> Columns:
    """Return the column ``region_match``: 1 where a candidate lies in the region of the cue.

    It reads the regions of all nodes: O(n) a recall.
    """
    nodes, regions = view.index.region_assignments(level)
    if view.vector is None or not len(nodes):
        return {"region_match": np.zeros(len(table))}
    own = int(view.index.assign_region(view.vector.tolist(), level))
    inside: IntArray = nodes[regions == own]
    return {"region_match": np.isin(view.corpus.nodes[table.rows], inside).astype(np.float64)}


WIDE_NET = 30


def _scored(weighting: Weighting) -> Pipeline:
    return Pipeline(
        sources={"dense": Dense(WIDE_NET)},
        fusion=by_scale({}, "none"),
        weighting=replace(weighting, trust=False),
    )


def composite(
    weights: tuple[float, float, float] = COMPOSITE_WEIGHTS,
    *,
    floor: float = 0.35,
    least_similarity: float = 0.0,
    half_life: float | None = None,
    clock: Clock = "microseconds",
) -> Pipeline:
    """Return similarity, recency of last use and salience as a sum, over a net of 30.

    The net is what is nearest to the cue and what holds the raw words, by reciprocal rank.

    Parameters
    ----------
    weights : tuple of 3 floats, default (0.6, 0.25, 0.15)
        Of similarity, recency, salience. An agent on a long task wants recency high, an assistant
        that keeps preferences wants salience high.
    floor : float, default 0.35
        Scores below it are dropped, before anything is cut.
    least_similarity : float, default 0.0
        So is what is no more similar than this and holds none of the words: with these weights
        something fresh and salient scores 0.40 without having anything to do with the cue.
    half_life : float, optional
        Of recency: seconds, by default 7 days; on a clock of turns or ticks so many of these, by
        default 20.
    clock : {"microseconds", "seconds", "turn", "tick"}, default "microseconds"
        What the timestamps count. The preset of a store has the store's.

    References
    ----------
    "Retrieval-augmented memory", the composite score.
    """
    names = ("similarity", "recency", "salience")
    pipeline = _scored(Weighting(dict(zip(names, weights, strict=True))))
    if clock in ("turn", "tick"):
        decay = Decay.of_half_life(HALF_LIFE_TURNS if half_life is None else half_life)
    else:
        decay = Decay.of_half_life_s(HALF_LIFE_S if half_life is None else half_life, clock)
    return replace(
        pipeline,
        sources={**pipeline.sources, "lexical": Lexical(WIDE_NET)},
        net=WIDE_NET,
        signals=(similarity(), recency(decay), salience),
        floor=Floor(similarity=least_similarity, score=floor),
        serving=Serving(refresh="retrieved"),
    )


def stream(
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0), *, decay: float = STREAM_DECAY
) -> Pipeline:
    """Return relevance, recency and importance as a sum: the memory stream, on a clock of ticks.

    Parameters
    ----------
    weights : tuple of 3 floats, default (1.0, 1.0, 1.0)
        Of relevance (cosine, 0 where negative), recency of last use, importance / 10.
    decay : float, default 0.02
        Per tick.

    References
    ----------
    Park et al. 2023, Generative agents.
    """
    names = ("similarity", "recency", "salience")
    return replace(
        _scored(Weighting(dict(zip(names, weights, strict=True)))),
        signals=(similarity("clamped"), recency(Decay(decay)), salience),
        floor=Floor(similarity=None),
        serving=Serving(refresh="retrieved"),
    )


def fused(causal_weight: float = 3.0) -> Pipeline:
    """Return the memory stream with what led to the event of the cue: temporal-causal fusion.

    Parameters
    ----------
    causal_weight : float, default 3.0
        Of a cause, beside relevance, recency and importance with a weight of 1 each.

    References
    ----------
    "Temporal-causal memory fusion", the fused score.
    """
    episodic = stream()
    return replace(
        episodic,
        sources={**episodic.sources, "causes": Causes()},
        weighting=episodic.weighting.with_weights(
            {**episodic.weighting.weights, "causes": causal_weight}
        ),
    )


def posterior(
    weights: tuple[float, float, float, float, float] = SEED_WEIGHTS,
    *,
    level: int | None = None,
    log_product: bool = False,
) -> Pipeline:
    """Return RFC-013's weighted sum: similarity, recency, reward, region match, use.

    Parameters
    ----------
    weights : tuple of 5 floats, default (1.0, 0.3, 0.5, 0.2, 0.4)
        In that order.
    level : int, optional
        Of the regions that are compared; without it none matches.
    log_product : bool, default False
        Multiply powers instead of adding: the logarithm of a product, as the document's prose says.

    References
    ----------
    RFC-013, part C.
    """
    names = ("similarity", "recency", "reward", "region_match", "usage_success")
    chosen = {
        n: w for n, w in zip(names, weights, strict=True) if level is not None or n != names[3]
    }
    regions = () if level is None else (partial(region_column, level=level),)
    return replace(
        _scored(Weighting(chosen, mode="log-product" if log_product else "sum")),
        signals=(
            similarity("exponential"),
            recency(Decay(0.01), since="happened"),
            reward,
            *regions,
            partial(usage_column, mode="ratio", strength=0.3, mean=0.5),
        ),
        floor=Floor(similarity=None),
        serving=Serving(refresh="never"),
    )


POOL = 150
"""Candidates of each source."""


def default_pipeline(
    weights: Mapping[str, float] | None = None,
    answerable: Answerable | RescaledFloor | None = None,
    *,
    pool: int = POOL,
) -> Pipeline:
    """Return a pipeline that weighs the columns of `cvx.recall.ranking_signals`.

    Parameters
    ----------
    weights : mapping of str to float, optional
        By column; by default ``DEFAULT_WEIGHTS``, or in a memory of passages ``PASSAGE_WEIGHTS``,
        and of statements ``STATEMENT_WEIGHTS``.
    answerable : Answerable or RescaledFloor, optional
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
    >>> hits = memory.recall("What did Bob do with the horse?", pipeline=default_pipeline())
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
        statements=Weighting.mean_of(STATEMENT_WEIGHTS) if weights is None else None,
    )
    return pipeline.answering(answerable)


def read_cue(view: VisibleEvents) -> Question:
    """Read the words of a recall's cue; one that describes a state is embedded whole."""
    question = read_question(lexical_text(view.cue), view)
    if view.cue.entity is not None:
        named = question.entities | {entity_number(view.cue.entity)}
        question = replace(question, entities=named)
    return replace(question, bare=dense_text(view.cue)) if structured(view.cue) else question


def with_synonyms(pipeline: Pipeline, table: Mapping[str, Sequence[str]]) -> Pipeline:
    """Look for other words too.

    Parameters
    ----------
    pipeline : Pipeline
        Any.
    table : mapping of str to sequence of str
        From a word, in lower case, to words that mean the same. The vector stays that of the cue.
    """

    def reader(view: VisibleEvents) -> AnyQuestion:
        question = pipeline.reader(view)
        asked = question.words or tuple(question.text.casefold().split())
        more = [other for word in asked for other in table.get(word, ())]
        if not more:
            return question
        words = tuple(dict.fromkeys((*question.words, *more))) if question.words else ()
        return replace(question, text=f"{question.text} {' '.join(more)}", words=words)

    return replace(pipeline, reader=reader)


def with_scene(pipeline: Pipeline, scene: str) -> Pipeline:
    """Ask from where the agent is: the description of the scene is embedded with the cue."""

    def reader(view: VisibleEvents) -> AnyQuestion:
        question = pipeline.reader(view)
        return replace(question, bare=f"{question.bare}\n{scene}")

    return replace(pipeline, reader=reader)


def with_recency(pipeline: Pipeline, decay: Decay, weight: float, **how: Any) -> Pipeline:
    """Prefer what happened lately: ``recency`` by a decay, in the unit of the timestamps.

    ``since="used"`` and ``slowed_by_salience=True`` are those of ``recency``.
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

    def signal(_question: Any, table: Candidates, view: VisibleEvents) -> Columns:
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
        fusion=FusionWithColumn(pipeline.fusion, name),
        weighting=pipeline.weighting.with_weights({**pipeline.weighting.weights, name: weight}),
        passages=None,
        statements=None,
    )


@dataclass(frozen=True, slots=True)
class FusionWithColumn:
    """A fusion with one more column, which is taken as it is."""

    fusion: Fusion
    name: str

    def __call__(self, table: Candidates, names: Any) -> Mapping[str, Column]:
        """Fuse all but that column, and join it."""
        return {**self.fusion(table, set(names) - {self.name}), self.name: table[self.name]}
