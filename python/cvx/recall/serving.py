"""From the head of a ranking to a block for a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from cvx.errors import InvalidInputError
from cvx.recall.compaction import Budget, Fitted, fit
from cvx.recall.dedupe import Dedupe
from cvx.recall.render import Renderer
from cvx.recall.sampling import PlackettLuce
from cvx.recall.trace import Trace
from cvx.types import Hit

Refresh: TypeAlias = Literal["rendered", "retrieved", "used", "never"]
_REFRESH = ("rendered", "retrieved", "used", "never")
_WIDER = 3


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

    def head(self, k: int) -> int:
        """Return how many of a ranking are looked at for k hits: some will be duplicates."""
        return _WIDER * k

    def serve(self, hits: Sequence[Hit], k: int, cue: str, trace: Trace, decision: int) -> Served:
        """Choose, order and render.

        Parameters
        ----------
        hits : sequence of Hit
            The head of the ranking, best first, with events.
        k : int
            How many are to be shown.
        cue : str
            What they were recalled for.
        trace : Trace
            Told what happened.
        decision : int
            The number of the decision, which a sampled order is drawn with.
        """
        sampled = self.sampling is not None
        kept, merged = self.dedupe.choose(hits, len(hits) if sampled else k)
        pool, chances = kept, tuple[float, ...]()
        if self.sampling is not None:
            kept, chances = self.sampling.draw(kept, k, decision)
        events = [hit.event for hit in kept if hit.event is not None]
        fitted = fit(events, cue, self.budget, self.renderer)
        trace.merged = len(merged)
        trace.hits = kept
        trace.beyond_k = trace.candidates - trace.below_floor - len(merged) - len(kept)
        trace.tokens, trace.budget = fitted.tokens, self.budget.tokens
        trace.compacted, trace.left_out = fitted.compacted, len(kept) - len(fitted.shown)
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
