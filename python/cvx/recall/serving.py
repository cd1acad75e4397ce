"""From the head of a ranking to a block for a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from cvx.errors import InvalidInputError
from cvx.recall.dedupe import Dedupe
from cvx.recall.packing import CHARACTERS_A_TOKEN, Budget, Fitted, fit
from cvx.recall.render import Renderer
from cvx.recall.trace import Trace
from cvx.scoring.sampling import PlackettLuce
from cvx.types import Hit, IntArray

Refresh: TypeAlias = Literal["rendered", "retrieved", "used", "never"]
_REFRESH = ("rendered", "retrieved", "used", "never")
_WIDER = 3
_MOST = 500
_FEWEST = 10


@dataclass(frozen=True, slots=True)
class Serving:
    """How hits become a block.

    Parameters
    ----------
    dedupe : Dedupe
        What counts as the same, and how much difference is worth.
    sampling : PlackettLuce, optional
        Draws the order, with logged propensities; by default the best comes first.
    budget : Budget
        How much room there is.
    renderer : Renderer
        How a memory is shown.
    refresh : {"rendered", "retrieved", "used", "never"}, default "rendered"
        When a memory counts as used at this moment: when it was shown, when it was among the hits,
        when feedback says that it was followed, or never.
    stale_after : int, default 3
        How many turns in a row may ask with the same cue before that is said; at least 2.

    Raises
    ------
    InvalidInputError
        An unknown ``refresh``, or ``stale_after`` below 2.
    """

    dedupe: Dedupe = field(default_factory=Dedupe)
    sampling: PlackettLuce | None = None
    budget: Budget = field(default_factory=Budget)
    renderer: Renderer = field(default_factory=Renderer)
    refresh: Refresh = "rendered"
    stale_after: int = 3

    def __post_init__(self) -> None:
        if self.refresh not in _REFRESH:
            raise InvalidInputError(
                f"refresh is {self.refresh!r}: give one of {', '.join(_REFRESH)}"
            )
        if self.stale_after < 2:
            raise InvalidInputError(f"stale_after is {self.stale_after}: give at least 2 turns")

    def head(self, lengths: IntArray, k: int | None) -> int:
        """Return how many of a ranking are looked at for k hits: some will be duplicates.

        Parameters
        ----------
        lengths : ndarray of shape (n,), int64
            Characters of each, best first.
        k : int or None
            None for as many as may have room.
        """
        if k is not None:
            return _WIDER * k
        room = CHARACTERS_A_TOKEN * self.budget.tokens
        enough = int(np.searchsorted(np.cumsum(lengths), room)) + 1
        return min(max(enough, _WIDER * _FEWEST), _MOST)

    def serve(
        self, hits: Sequence[Hit], k: int | None, cue: str, trace: Trace, decision: int
    ) -> Served:
        """Choose, order and render.

        Parameters
        ----------
        hits : sequence of Hit
            The head of the ranking, best first, with events.
        k : int or None
            How many are to be shown at the most; None for as many as there is room for.
        cue : str
            What they were recalled for.
        trace : Trace
            Told what happened.
        decision : int
            The number of the decision, which a sampled order is drawn with.
        """
        sampled = self.sampling is not None
        most = k or (_FEWEST if self.budget.summarise else len(hits))
        kept, merged = self.dedupe.choose(hits, len(hits) if sampled else most)
        pool, chances = kept, tuple[float, ...]()
        if self.sampling is not None:
            kept, chances = self.sampling.draw(kept, most, decision)
        events = [hit.event for hit in kept if hit.event is not None]
        fitted = fit(events, cue, self.budget, self.renderer)
        if k is None:
            kept, chances = kept[: fitted.tried], chances[: fitted.tried]
        trace.merged = len(merged)
        trace.hits = kept
        trace.beyond_k = trace.candidates - trace.below_floor - len(merged) - len(kept)
        trace.tokens, trace.budget = fitted.tokens, self.budget.tokens
        trace.compacted, trace.left_out = fitted.compacted, len(kept) - len(fitted.shown)
        trace.omitted = {
            event_of(hits[place]): f"says the same as event {event_of(hits[better])}"
            for place, better in merged
        }
        for place in set(range(len(kept))) - set(fitted.shown):
            trace.omitted[event_of(kept[place])] = "no room"
        if fitted.problem:
            trace.problems.append(fitted.problem)
        shown = [kept[place] for place in fitted.shown]
        return Served(kept, shown, chances, pool if sampled else [], fitted)


class Served(NamedTuple):
    """What is shown.

    Attributes
    ----------
    hits : list of Hit
        What was chosen.
    shown : list of Hit
        What of it is in the block.
    chances : tuple of float
        The propensity of each of the hits, where the order was sampled.
    pool : list of Hit
        What was drawn from, where the order was sampled.
    fitted : Fitted
        The block.
    """

    hits: list[Hit]
    shown: list[Hit]
    chances: tuple[float, ...]
    pool: list[Hit]
    fitted: Fitted


def event_of(hit: Hit) -> int:
    """Return the id of the event of a hit.

    Raises
    ------
    InvalidInputError
        The hit does not know its event.
    """
    if hit.event is None or hit.event.event_id is None:
        raise InvalidInputError(f"the hit of node {hit.node} has no event: give its id")
    return hit.event.event_id


def events_of(hits: Iterable[Hit]) -> list[int]:
    """Return the ids of the events of hits."""
    return [event_of(hit) for hit in hits]
