"""Pipelines that score by the formulas of the source documents, exactly."""

from __future__ import annotations

from dataclasses import replace

from cvx.recall.floor import Floor
from cvx.recall.formulas import (
    recency,
    region_match,
    reward,
    salience,
    similarity,
    usage_success,
)
from cvx.recall.fusion import by_scale
from cvx.recall.pipeline import Pipeline
from cvx.recall.serving import Serving
from cvx.recall.sources import Causes, Dense
from cvx.recall.weighting import Weighting
from cvx.scoring.formulas import COMPOSITE_WEIGHTS, SEED_WEIGHTS
from cvx.scoring.recency import HALF_LIFE_S, STREAM_DECAY, Clock, Decay

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
    half_life_s: float = HALF_LIFE_S,
    clock: Clock = "microseconds",
) -> Pipeline:
    """Return similarity, recency of last use and salience as a sum, over a net of 30.

    Parameters
    ----------
    weights : tuple of 3 floats, default (0.6, 0.25, 0.15)
        Of similarity, recency, salience. An agent on a long task wants recency high, an assistant
        that keeps preferences wants salience high.
    floor : float, default 0.35
        Scores below it are dropped, before anything is cut.
    least_similarity : float, default 0.0
        So is what is no more similar than this: with these weights something fresh and salient
        scores 0.40 without having anything to do with the cue.
    half_life_s : float, default 7 days
        In seconds.
    clock : {"microseconds", "seconds"}, default "microseconds"
        What the timestamps count.

    References
    ----------
    "Retrieval-augmented memory", the composite score.
    """
    names = ("similarity", "recency", "salience")
    pipeline = _scored(Weighting(dict(zip(names, weights, strict=True))))
    return replace(
        pipeline,
        signals=(similarity(), recency(Decay.of_half_life_s(half_life_s, clock)), salience),
        floor=Floor(similarity=least_similarity, words_pass=False, score=floor),
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
    regions = () if level is None else (region_match(level),)
    return replace(
        _scored(Weighting(chosen, mode="log-product" if log_product else "sum")),
        signals=(
            similarity("exponential"),
            recency(Decay(0.01), since="happened"),
            reward,
            *regions,
            usage_success("ratio"),
        ),
        floor=Floor(similarity=None),
        serving=Serving(refresh="never"),
    )
