"""Ranks memories by similarity and causal evidence together (TCMF, interleaving); plain arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import among, check_fields, number
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.scoring.scorer import score_columns
from cvx.types import Vector

Floats: TypeAlias = npt.NDArray[np.float64]
_EPISODIC = ("similarity", "recency", "importance")


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The memories that may be recalled.

    Attributes
    ----------
    vectors : ndarray of shape (n, dim), float32
        Rows of norm 1; a row of zeros is a memory without a vector.
    similarity : ndarray of shape (n,)
        Cosine to the question, in [0, 1]; 0 where there is none.
    recency, importance : ndarray of shape (n,)
        In [0, 1].
    """

    vectors: Vector
    similarity: npt.NDArray[np.floating]
    recency: npt.NDArray[np.floating]
    importance: npt.NDArray[np.floating]

    def __post_init__(self) -> None:
        columns = {name: getattr(self, name) for name in _EPISODIC}
        _check_rows(self.vectors, columns)
        for name, column in columns.items():
            _check_range(name, column)

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True, kw_only=True)
class Ancestors:
    """Events that led to the event asked about, directly or not.

    Attributes
    ----------
    vectors : ndarray of shape (a, dim), float32
        Rows of norm 1; a row of zeros is an event without a vector, which has no witnesses.
    depths : ndarray of shape (a,), int64
        Steps to the event asked about; 1 is a direct cause.
    weights : ndarray of shape (a,)
        Product of the edge weights along the best path, in [0, 1].
    times : ndarray of shape (a,), int64
        When they happened.
    """

    vectors: Vector
    depths: npt.NDArray[np.int64]
    weights: npt.NDArray[np.floating]
    times: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        columns = {"depths": self.depths, "weights": self.weights, "times": self.times}
        _check_rows(self.vectors, columns)
        _check_range("weights", self.weights)
        if len(self.depths) and self.depths.min() < 1:
            raise InvalidInputError(
                f"a depth is {self.depths.min()}: a direct cause has depth 1, deeper ones more"
            )

    def __len__(self) -> int:
        return len(self.vectors)

    def part(self, places: slice | npt.NDArray[np.int64]) -> Ancestors:
        """Return a subset of the ancestors."""
        return Ancestors(
            vectors=self.vectors[places],
            depths=self.depths[places],
            weights=self.weights[places],
            times=self.times[places],
        )


class Ranked(NamedTuple):
    """A memory's place in a ranking, with the reasons for it.

    Attributes
    ----------
    candidate : int
        Its place among the candidates.
    score : float
        Higher is better.
    factors : tuple of (str, float)
        What the score is made of, where it weighs something; they add up to it.
    ancestor : int or None
        The ancestor that it witnesses, where that mattered: its place among the ancestors, or
        among the fallback's events where ``arm`` is "fallback".
    likeness : float
        Cosine to that ancestor; 0 where there is none.
    arm : {"fused", "causal", "relevance", "fallback"}
        Which evidence put it there; "fused" where one formula weighs all of it.
    """

    candidate: int
    score: float
    factors: tuple[tuple[str, float], ...]
    ancestor: int | None
    likeness: float
    arm: Literal["fused", "causal", "relevance", "fallback"]


def likeness(memories: Vector, events: Vector) -> Floats:
    """Return the cosine of every memory with every event, (n, a); NaN without both vectors.

    Raises
    ------
    InvalidVectorError
        Vectors of two spaces.
    """
    if memories.shape[1] != events.shape[1]:
        raise InvalidVectorError(
            f"memories have {memories.shape[1]} dimensions, events {events.shape[1]}: embed both "
            "with the same model"
        )
    cosines = (memories @ events.T).astype(np.float64)
    cosines[~memories.any(axis=1)] = np.nan
    cosines[:, ~events.any(axis=1)] = np.nan
    return cosines


def _check_rows(vectors: Vector, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    if vectors.ndim != 2:
        raise InvalidVectorError(f"vectors have shape {vectors.shape}: give a matrix, a row each")
    for name, column in columns.items():
        if column.shape != (len(vectors),):
            raise InvalidInputError(
                f"{name} has shape {column.shape}, vectors have {len(vectors)} rows: give one "
                "value a row"
            )


def _check_range(name: str, column: npt.NDArray[np.floating]) -> None:
    # Written so that NaN is refused too.
    if not np.all((column >= 0) & (column <= 1)):
        raise InvalidInputError(f"{name} holds values outside [0, 1]: scale or clamp them")


DepthWeight: TypeAlias = Literal["proximate", "root", "flat"]


@dataclass(frozen=True, kw_only=True)
class Blend:
    """Weights of the episodic score and of the causal boost.

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
    InvalidInputError
        A value outside its bounds.
    """

    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    causal_boost: float = 0.6
    threshold: float = 0.45
    depth_weight: DepthWeight = "proximate"
    edge_weights: bool = False

    def __post_init__(self) -> None:
        least = number(0.0)
        for name, weight in zip(_EPISODIC, self.weights, strict=True):
            least(name, weight)
        check_fields(
            self,
            causal_boost=least,
            threshold=number(-1.0, 1.0),
            depth_weight=among("proximate", "root", "flat"),
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
    since the boost multiplies almost nothing: `cvx.causal.fusion` mends that.

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
    return _blended(candidates, ancestors, blend, multiply=True)


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
    return _blended(candidates, ancestors, blend or Blend(causal_boost=12.0), multiply=False)


def _blended(
    candidates: Candidates, ancestors: Ancestors, blend: Blend, *, multiply: bool
) -> list[Ranked]:
    columns = {name: np.asarray(getattr(candidates, name), np.float64) for name in _EPISODIC}
    weights = dict(zip(_EPISODIC, blend.weights, strict=True))
    boost, best = causal_boost(candidates, ancestors, blend)
    columns["causal"] = boost * score_columns(columns, weights).total if multiply else boost
    scored = score_columns(columns, {**weights, "causal": blend.causal_boost})
    scores, shares = scored.total, scored.shares.tolist()
    ranked = []
    for at in np.argsort(-scores, kind="stable").tolist():
        ancestor = int(best[at]) if best[at] >= 0 else None
        cosine = (
            0.0 if ancestor is None else float(candidates.vectors[at] @ ancestors.vectors[ancestor])
        )
        factors = tuple(zip(scored.names, shares[at], strict=True))
        ranked.append(Ranked(at, float(scores[at]), factors, ancestor, cosine, "fused"))
    return ranked


def interleave(
    candidates: Candidates,
    ancestors: Ancestors,
    *,
    fallback: Ancestors | None = None,
    event: Vector | None = None,
    floor: float = 0.2,
    k: int | None = None,
) -> list[Ranked]:
    """Rank the witnesses of each ancestor, the surest and deepest first, then by similarity alone.

    The witnesses of an ancestor are the memories above the largest gap in similarity to it. Each
    ancestor calls its nearest witness in turn, by path weight and then by depth, then its second,
    until all are called; one of path weight 0 calls nobody. Of the first five places one is the
    strongest direct cause's, and one the likest memory's, however many ancestors there are.
    Whatever is left follows by similarity to the question: importance has no say, since what is
    loudest about a crisis is seldom what explains it. How many causes there are to find is not
    asked.

    A graph that misses edges cannot reach every cause. With ``fallback`` the witnesses of events
    that the graph does not reach take turns with the order of similarity, the later the more the
    graph reached.

    Parameters
    ----------
    candidates : Candidates
        n memories.
    ancestors : Ancestors
        What the graph reaches, against the edges.
    fallback : Ancestors, optional
        Events that may belong to the chain though no edge says so, the recent ones of the same
        institution for example, all of them before the event asked about; depths and weights are
        not read. See `likely_links` for their order.
    event : ndarray of shape (dim,), float32, optional
        The event asked about, for the order of the fallback.
    floor : float, default 0.2
        Least cosine of an ancestor's nearest witness, in [-1, 1]; below it nobody witnessed it.
    k : int, optional
        Rank only so many; by default all.

    Returns
    -------
    list of Ranked
        The first k candidates; the score of place p is 1 / p, since only the order means something.

    Raises
    ------
    InvalidInputError
        A floor outside its bounds.
    InvalidVectorError
        Vectors of two spaces.

    Examples
    --------
    >>> rows = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
    >>> memories = Candidates(vectors=rows, similarity=np.array([1.0, 0.6, 0.0]),
    ...                       recency=np.zeros(3), importance=np.array([0.9, 0.9, 0.1]))
    >>> root = Ancestors(vectors=rows[2:], depths=np.array([1]), weights=np.ones(1),
    ...                  times=np.array([0]))
    >>> [(one.candidate, one.arm) for one in interleave(memories, root)]
    [(2, 'causal'), (1, 'causal'), (0, 'relevance')]
    """
    number(-1.0, 1.0)("floor", floor)
    most = len(candidates) if k is None else k
    live = np.flatnonzero(ancestors.weights > 0)
    surest_first = live[
        np.lexsort((ancestors.times[live], -ancestors.depths[live], -ancestors.weights[live]))
    ]
    direct = surest_first[ancestors.depths[surest_first] == 1][:1]
    asked = dict.fromkeys([*surest_first.tolist()[:most], *direct.tolist()])
    calls = _called(candidates, ancestors, [*asked], floor, "causal")
    similar = _by_relevance(candidates)
    spare: list[Ranked] = []
    if fallback is not None and len(fallback):
        order = likely_links(fallback, ancestors.part(live), event)
        likely = sorted(order[:_CHAIN], key=lambda at: int(fallback.times[at]))
        spare = _called(candidates, fallback, [*likely, *order[_CHAIN:most]], floor, "fallback")
    return _placed(_in_places(calls, similar, spare, ancestors), most)


_FIRST, _CHAIN = 5, 3
"""Among so many places likeness and a direct cause have one each; so many events make a chain."""


def _in_places(
    calls: Sequence[Ranked], similar: Sequence[Ranked], spare: Sequence[Ranked], known: Ancestors
) -> Iterator[Ranked]:
    """Yield calls in the order of places; a candidate may come more than once.

    What the graph reaches comes first, but of the first five places one is the strongest direct
    cause's and the last is the likest memory's. After that the order of likeness takes turns with
    what else was called. The fewer events the graph reached, the earlier those come that it did
    not reach.
    """
    direct = next((one for one in calls if known.depths[one.ancestor or 0] == 1), None)
    first = list(calls[: _FIRST - 1])
    if direct is not None and len(calls) >= _FIRST and direct not in first:
        first[-1] = direct
    yield from first
    reached = len({one.ancestor for one in calls})
    alike, rest, others = iter(similar), iter(calls[len(first) :]), iter(spare)
    if len(calls) >= _FIRST:
        yield from islice(alike, 1)
        yield from chain.from_iterable(zip(rest, alike, strict=False))
    yield from islice(alike, max(0, reached - 1) if spare else 0)
    yield from (one for turn in zip_longest(others, alike) for one in turn if one is not None)
    yield from rest


def likely_links(events: Ancestors, known: Ancestors, event: Vector | None = None) -> list[int]:
    """Order events by how likely each belongs to the chain, the likeliest link first.

    A chain is grown back from what is known of it: the next event is always the one that lies
    nearest to something that is in the chain already and happened no earlier. Events that cannot
    be compared follow in the order of time.

    Parameters
    ----------
    events : Ancestors
        The events to order, all of them before the event asked about.
    known : Ancestors
        What is in the chain for certain.
    event : ndarray of shape (dim,), float32, optional
        The event asked about.

    Returns
    -------
    list of int
        Every place of ``events`` once.

    References
    ----------
    Prim 1957, Shortest connection networks and some generalizations: the same greedy growth.
    """
    chain = [*known.vectors]
    times = known.times.tolist()
    if event is not None:
        if event.shape != (events.vectors.shape[1],):
            raise InvalidVectorError(
                f"event has shape {event.shape}, the fallback {events.vectors.shape[1]} "
                "dimensions: embed both with the same model"
            )
        chain.append(event)
        times.append(np.iinfo(np.int64).max)
    tie = np.full(len(events), -np.inf)
    for vector, time in zip(chain, times, strict=True):
        _tighten(tie, events, vector, time)
    left = np.argsort(events.times, kind="stable").tolist()
    order = []
    while left:
        # max() keeps the first of equals, which is the earliest.
        nearest = max(left, key=lambda at: tie[at])
        left.remove(nearest)
        order.append(nearest)
        _tighten(tie, events, events.vectors[nearest], int(events.times[nearest]))
    return order


def witnesses(cosines: Floats, floor: float) -> list[int]:
    """Return who witnessed an event: the memories above the largest gap in likeness to it.

    Parameters
    ----------
    cosines : ndarray of shape (n,)
        Likeness of each memory to the event; NaN where there is none.
    floor : float
        Least likeness of the nearest; below it there is no witness.

    Returns
    -------
    list of int
        Nearest first.

    Examples
    --------
    >>> witnesses(np.array([0.1, 0.8, 0.2, 0.7, np.nan]), floor=0.2)
    [1, 3]
    """
    order: npt.NDArray[np.intp] = np.argsort(-cosines, kind="stable")
    ranked = cosines[order]
    ranked = ranked[~np.isnan(ranked)]
    if not len(ranked) or ranked[0] < floor:
        return []
    last = int(np.argmax(ranked[:-1] - ranked[1:])) if len(ranked) > 1 else 0
    return [int(at) for at in order[: last + 1]]


def _called(
    candidates: Candidates,
    events: Ancestors,
    order: Sequence[int],
    floor: float,
    arm: Literal["causal", "fallback"],
) -> list[Ranked]:
    """Let each event call one witness in turn, until all are called."""
    cosines = likeness(candidates.vectors, events.vectors)
    own = [[(at, event) for at in witnesses(cosines[:, event], floor)] for event in order]
    turns = (call for turn in zip_longest(*own) for call in turn if call is not None)
    return [Ranked(at, 0.0, (), event, float(cosines[at, event]), arm) for at, event in turns]


def _by_relevance(candidates: Candidates) -> list[Ranked]:
    # Without a question nothing is similar; what is recent and important is the best that is left.
    order = np.lexsort((-(candidates.recency + candidates.importance), -candidates.similarity))
    return [Ranked(at, 0.0, (), None, 0.0, "relevance") for at in order.tolist()]


def _placed(calls: Iterable[Ranked], most: int) -> list[Ranked]:
    first: dict[int, Ranked] = {}
    for call in calls:
        first.setdefault(call.candidate, call)
        if len(first) == most:
            break
    return [
        call._replace(score=1.0 / place, factors=((call.arm, 1.0 / place),))
        for place, call in enumerate(first.values(), start=1)
    ]


def _tighten(tie: Floats, events: Ancestors, vector: Vector, time: int) -> None:
    """Raise the tie of every event that may have led to this one."""
    cosines: npt.NDArray[np.float64] = likeness(events.vectors, vector[None])[:, 0]
    np.fmax(tie, np.where(events.times <= time, cosines, np.nan), out=tie)
