"""Ranking memories by what they say and by what they witnessed: plain arrays in, a ranking out.

Three rules over one pair of inputs: `multiplicative` (TCMF as it was published), `additive`, and
`cvx.causal.interleave.interleave`, which keeps the two kinds of evidence apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.causal.witnesses import Ancestors, Candidates, Floats, Ranked, likeness
from cvx.errors import InvalidParameterError

DepthWeight: TypeAlias = Literal["proximate", "root", "flat"]


@dataclass(frozen=True, kw_only=True)
class Blend:
    """How episodic scores and the causal boost are weighed.

    Parameters
    ----------
    weights : tuple of float, default (1.0, 1.0, 1.0)
        Of similarity, recency and importance in the episodic score; 0 or more.
    causal_boost : float, default 0.6
        Lambda: weight of the boost; 0 or more.
    threshold : float, default 0.45
        Least cosine to an ancestor that counts, in [-1, 1].
    depth_weight : {"proximate", "root", "flat"}, default "proximate"
        Whether direct causes count most, root causes, or all alike. With D the largest depth
        present: 1 - (depth - 1) / D, depth / D, or 1.
    edge_weights : bool, default False
        Multiply by the weight of the path.

    Raises
    ------
    InvalidParameterError
        A value outside its bounds.
    """

    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    causal_boost: float = 0.6
    threshold: float = 0.45
    depth_weight: DepthWeight = "proximate"
    edge_weights: bool = False

    def __post_init__(self) -> None:
        for name, value in (
            *zip(("similarity", "recency", "importance"), self.weights, strict=True),
            ("causal_boost", self.causal_boost),
        ):
            if not (np.isfinite(value) and value >= 0):
                raise InvalidParameterError(f"{name} weighs {value}: give a number >= 0")
        if not -1 <= self.threshold <= 1:
            raise InvalidParameterError(f"threshold is {self.threshold}: give one in [-1, 1]")
        if self.depth_weight not in ("proximate", "root", "flat"):
            raise InvalidParameterError(
                f"depth_weight is {self.depth_weight!r}: give proximate, root or flat"
            )


_ROUNDING = 1e-6  # of a cosine of two rows of f32

SEED = Blend()
"""TCMF as its author published it."""


def causal_boost(
    candidates: Candidates, ancestors: Ancestors, blend: Blend = SEED
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return how strongly each memory is tied to an ancestor, and to which.

    Parameters
    ----------
    candidates : Candidates
        n memories.
    ancestors : Ancestors
        a events.
    blend : Blend
        Threshold, weight of depth, and whether paths are weighed.

    Returns
    -------
    boost : ndarray of shape (n,)
        The best of cosine times weight of depth over the ancestors whose cosine reaches the
        threshold; 0 without one.
    best : ndarray of shape (n,), int64
        That ancestor; -1 without one.
    """
    if not len(ancestors) or not len(candidates):
        return np.zeros(len(candidates)), np.full(len(candidates), -1)
    cosines = likeness(candidates.vectors, ancestors.vectors)
    deepest = int(ancestors.depths.max())
    if blend.depth_weight == "proximate":
        scale = 1.0 - (ancestors.depths - 1) / deepest
    elif blend.depth_weight == "root":
        scale = ancestors.depths / deepest
    else:
        scale = np.ones(len(ancestors))
    if blend.edge_weights:
        scale = scale * ancestors.weights
    # NaN, where either has no vector, compares false; .45 is .44999999 in f32.
    ties = np.where(cosines >= blend.threshold - _ROUNDING, cosines * scale, -np.inf)
    best = ties.argmax(axis=1)
    boost = ties[np.arange(len(candidates)), best]
    return np.where(boost > 0, boost, 0.0), np.where(boost > 0, best, -1)


def multiplicative(
    candidates: Candidates, ancestors: Ancestors, blend: Blend = SEED
) -> list[Ranked]:
    """Rank by episodic score * (1 + lambda * causal boost): TCMF as it was published.

    A memory that is neither similar nor recent nor important stays low whatever it witnessed,
    since the boost multiplies almost nothing: `cvx.causal.interleave` mends that.

    Returns
    -------
    list of Ranked
        Every candidate, best first, equals by their place.

    Examples
    --------
    >>> import numpy as np
    >>> eye = np.eye(2, dtype=np.float32)
    >>> memories = Candidates(vectors=eye, similarity=np.array([0.5, 0.6]),
    ...                       recency=np.zeros(2), importance=np.zeros(2))
    >>> cause = Ancestors(vectors=eye[:1], depths=np.array([1]), weights=np.ones(1),
    ...                   times=np.array([0]))
    >>> [(one.candidate, round(one.score, 3)) for one in multiplicative(memories, cause)]
    [(0, 0.8), (1, 0.6)]
    """
    parts = _episodic(candidates, blend)
    boost, best = causal_boost(candidates, ancestors, blend)
    parts["causal"] = sum(parts.values(), np.zeros(len(candidates))) * blend.causal_boost * boost
    return _ranking(candidates, ancestors, parts, best)


def additive(
    candidates: Candidates, ancestors: Ancestors, blend: Blend | None = None
) -> list[Ranked]:
    """Rank by episodic score + lambda * causal boost.

    Parameters
    ----------
    candidates, ancestors
        As in `multiplicative`.
    blend : Blend, optional
        ``Blend(causal_boost=12.0)`` by default: the episodic score spans 0 to 3, and the boost of
        the deepest of d causes is at most 1 / d.

    Returns
    -------
    list of Ranked
        Every candidate, best first, equals by their place.
    """
    blend = blend or Blend(causal_boost=12.0)
    parts = _episodic(candidates, blend)
    boost, best = causal_boost(candidates, ancestors, blend)
    parts["causal"] = blend.causal_boost * boost
    return _ranking(candidates, ancestors, parts, best)


def _episodic(candidates: Candidates, blend: Blend) -> dict[str, Floats]:
    names = ("similarity", "recency", "importance")
    return {
        name: weight * np.asarray(getattr(candidates, name), np.float64)
        for name, weight in zip(names, blend.weights, strict=True)
    }


def _ranking(
    candidates: Candidates,
    ancestors: Ancestors,
    parts: dict[str, Floats],
    best: npt.NDArray[np.int64],
) -> list[Ranked]:
    scores = sum(parts.values(), np.zeros(len(candidates)))
    ranked = []
    for at in np.argsort(-scores, kind="stable").tolist():
        ancestor = int(best[at]) if best[at] >= 0 else None
        cosine = (
            0.0 if ancestor is None else float(candidates.vectors[at] @ ancestors.vectors[ancestor])
        )
        factors = tuple((name, float(part[at])) for name, part in parts.items())
        ranked.append(Ranked(at, float(scores[at]), factors, ancestor, cosine, "fused"))
    return ranked
