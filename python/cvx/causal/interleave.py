"""The rule that keeps two kinds of evidence apart: witnesses of the causes, then what resembles.

A sum or a product weighs a witness of the root cause, who says nothing of the crisis, against a
loud memory that sounds like it, and no weight suits both. Here each cause calls its own witnesses,
the root first, and similarity ranks the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.causal.witnesses import Ancestors, Candidates, Floats, Ranked, likeness
from cvx.errors import DimensionError, InvalidParameterError
from cvx.types import Vector


class _Call(NamedTuple):
    candidate: int
    event: int | None
    likeness: float
    arm: Literal["causal", "relevance", "fallback"]


def interleave(
    candidates: Candidates,
    ancestors: Ancestors,
    *,
    fallback: Ancestors | None = None,
    event: Vector | None = None,
    floor: float = 0.2,
) -> list[Ranked]:
    """Rank the witnesses of each ancestor, root first, then by similarity alone.

    The witnesses of an ancestor are the memories above the largest gap in similarity to it. Each
    ancestor calls its nearest witness in turn, deepest first, then its second, until all are
    called. Whatever is left follows by similarity to the question: importance has no say, since
    what is loudest about a crisis is seldom what explains it. How many causes there are to find
    is not asked.

    A graph that misses edges cannot reach every cause. With ``fallback`` the witnesses of events
    that the graph does not reach take turns with the order of similarity: they go first where the
    graph reached nothing at all, second where it did.

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

    Returns
    -------
    list of Ranked
        Every candidate; the score of place p is 1 / p, since only the order means something.

    Raises
    ------
    InvalidParameterError
        A floor outside its bounds.
    DimensionError
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
    if not -1 <= floor <= 1:
        raise InvalidParameterError(f"floor is {floor}: give one in [-1, 1]")
    root_first = np.lexsort((ancestors.times, -ancestors.weights, -ancestors.depths))
    calls = _called(candidates, ancestors, root_first.tolist(), floor, "causal")
    similar = _by_relevance(candidates)
    if fallback is None:
        return _placed([*calls, *similar])
    order = likely_links(fallback, ancestors, event)
    spare = _called(candidates, fallback, order, floor, "fallback")
    first, second = (similar, spare) if len(ancestors) else (spare, similar)
    taken = {call.candidate for call in calls}
    return _placed([*calls, *_alternating(first, second, taken)])


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
            raise DimensionError(
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
) -> list[_Call]:
    """Let each event call one witness in turn, until all are called."""
    cosines = likeness(candidates.vectors, events.vectors)
    own = [[(at, event) for at in witnesses(cosines[:, event], floor)] for event in order]
    turns = (call for turn in zip_longest(*own) for call in turn if call is not None)
    return [_Call(at, event, float(cosines[at, event]), arm) for at, event in turns]


def _by_relevance(candidates: Candidates) -> list[_Call]:
    # Without a question nothing is similar; what is recent and important is the best that is left.
    order = np.lexsort((-(candidates.recency + candidates.importance), -candidates.similarity))
    return [_Call(at, None, 0.0, "relevance") for at in order.tolist()]


def _alternating(first: list[_Call], second: list[_Call], taken: set[int]) -> Iterator[_Call]:
    """Take turns; a side whose next call is taken already goes on to one that is not."""
    sides, taken = [iter(first), iter(second)], set(taken)
    while sides:
        side = sides.pop(0)
        call = next((one for one in side if one.candidate not in taken), None)
        if call is not None:
            taken.add(call.candidate)
            sides.append(side)
            yield call


def _placed(calls: Sequence[_Call]) -> list[Ranked]:
    ranked: dict[int, Ranked] = {}
    for call in calls:
        if call.candidate not in ranked:
            score = 1.0 / (len(ranked) + 1)
            ranked[call.candidate] = Ranked(
                call.candidate, score, ((call.arm, score),), call.event, call.likeness, call.arm
            )
    return list(ranked.values())


def _tighten(tie: Floats, events: Ancestors, vector: Vector, time: int) -> None:
    """Raise the tie of every event that may have led to this one."""
    cosines: npt.NDArray[np.float64] = likeness(events.vectors, vector[None])[:, 0]
    np.fmax(tie, np.where(events.times <= time, cosines, np.nan), out=tie)
