"""The context for a prompt: removes duplicates, orders hits, packs them into a token budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from cvx.arguments import a_share, among, check_fields, whole
from cvx.errors import InvalidInputError
from cvx.escaping import html_text
from cvx.recall.trace import Trace
from cvx.render.block import Renderer
from cvx.render.packing import CHARACTERS_A_TOKEN, Budget, Fitted, fit
from cvx.scoring.off_policy import PlackettLuce
from cvx.types import Column, Hit, IntArray


class Context(str):
    """Recalled memories within a budget: a text for a prompt that knows how it came about.

    It is empty where nothing fits the cue, or nothing fits the budget.

    Parameters
    ----------
    text : str
        What it says.
    used_tokens : int
        Its size.
    hits : tuple of Hit
        What it shows, in the order in which it was taken: see `Serving.serve`.
    trace : Trace
        What happened.
    decision : int or None
        The number under which the recall is written down, by which ``feedback`` says later what
        became of it; None where the memory cannot be written to.
    """

    __slots__ = ("decision", "hits", "trace", "used_tokens")

    def __new__(
        cls,
        text: str,
        used_tokens: int,
        hits: tuple[Hit, ...],
        trace: Trace,
        decision: int | None,
    ) -> Self:
        """Make a text with what is known of it."""
        made = super().__new__(cls, text)
        made.used_tokens, made.hits, made.trace, made.decision = used_tokens, hits, trace, decision
        return made

    used_tokens: int
    hits: tuple[Hit, ...]
    trace: Trace
    decision: int | None

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.used_tokens, self.hits, self.trace, self.decision

    def _repr_html_(self) -> str:
        size = f"{len(self.hits)} memories, {self.used_tokens} tokens"
        return f"<pre>{html_text(self)}</pre><p><small>{size}</small></p>"

    def message(self, role: str = "user", *, force: bool = False) -> dict[str, str]:
        """Return the block as a chat message.

        Parameters
        ----------
        role : {"user", "tool"}, default "user"
            Evidence comes from the world, not from whoever gives the orders.
        force : bool, default False
            Let role="system" pass.

        Raises
        ------
        InvalidInputError
            ``role="system"`` (or "developer") without ``force``: a recalled and possibly planted
            text would speak with authority.
        InvalidInputError
            Another role.
        """
        if role in ("system", "developer"):
            if not force:
                raise InvalidInputError(
                    f"role is {role!r}: recalled memory is evidence, not policy; use 'user' or "
                    "'tool', or force=True"
                )
        elif role not in ("user", "tool"):
            raise InvalidInputError(f"role is {role!r}: give 'user' or 'tool'")
        return {"role": role, "content": str(self)}


@dataclass(frozen=True, slots=True)
class Dedupe:
    """Which of the best hits are kept.

    Parameters
    ----------
    near : float or None, default 0.97
        Two hits whose vectors have at least this cosine are one memory, and so are two of the same
        text but for case and white space. The better one stays. None merges equal texts only.
    diversity : float, default 0.0
        In [0, 1]: 0 keeps the order of the scores; above, each next hit is the one with the best
        (1 - diversity) * score - diversity * (its highest cosine to those chosen), scores scaled to
        [0, 1].

    Raises
    ------
    InvalidInputError
        A value outside its bounds.

    References
    ----------
    Carbonell & Goldstein 1998, The use of MMR, diversity-based reranking.
    """

    near: float | None = 0.97
    diversity: float = 0.0

    def __post_init__(self) -> None:
        a_share("diversity", self.diversity)
        if self.near is not None and not self.near >= -1.0:
            raise InvalidInputError(f"near is {self.near}: give a cosine, or None")

    def choose(self, hits: Sequence[Hit], k: int) -> tuple[list[Hit], list[tuple[int, int]]]:
        """Return at most k hits, and which ones were merged.

        Parameters
        ----------
        hits : sequence of Hit
            Best first, with their events.
        k : int
            How many.

        Returns
        -------
        kept : list of Hit
        merged : list of (int, int)
            Places in ``hits``: what was dropped, and what says the same.
        """
        cosines = _cosines(hits)
        codes: dict[object, int] = {}
        texts = np.array([codes.setdefault(_plain(hit) or at, at) for at, hit in enumerate(hits)])
        same = texts[:, None] == texts
        if self.near is not None:
            same |= cosines >= self.near
        np.fill_diagonal(same, False)
        if not self.diversity and not same.any():
            return list(hits[:k]), []
        open_places, merged = list(range(len(hits))), list[tuple[int, int]]()
        chosen: list[int] = []
        worth = _scaled([hit.score for hit in hits])
        while open_places and len(chosen) < k:
            best = open_places[0]
            if self.diversity and chosen:
                close = cosines[np.ix_(open_places, chosen)].max(axis=1)
                marginal = (1 - self.diversity) * worth[open_places] - self.diversity * close
                best = open_places[int(np.argmax(marginal))]
            chosen.append(best)
            open_places.remove(best)
            merged += [(place, best) for place in open_places if same[place, best]]
            open_places = [place for place in open_places if not same[place, best]]
        return [hits[place] for place in chosen], merged


def _plain(hit: Hit) -> str:
    return "" if hit.event is None else " ".join(hit.event.text.casefold().split())


def _cosines(hits: Sequence[Hit]) -> Column:
    """Cosines between the hits; that with something without a vector is -1, below every bound."""
    vectors = [None if hit.event is None else hit.event.vector for hit in hits]
    dim = next((len(vector) for vector in vectors if vector is not None), 0)
    rows = np.zeros((len(hits), dim))
    for place, vector in enumerate(vectors):
        if vector is not None:
            rows[place] = vector / (np.linalg.norm(vector) or 1.0)
    out = np.asarray(rows @ rows.T)
    without = ~rows.any(axis=1)
    out[without, :] = out[:, without] = -1.0
    return out


def _scaled(scores: Sequence[float]) -> Column:
    values = np.array(scores, dtype=np.float64)
    reach = np.ptp(values) if len(values) else 0.0
    return np.zeros(len(values)) if reach == 0 else (values - values.min()) / reach


Refresh: TypeAlias = Literal["rendered", "retrieved", "used", "never"]
_REFRESH = ("rendered", "retrieved", "used", "never")
_WIDER = 3
_MOST = 500
_FEWEST = 10
_AS_RANKED, _A_LOG_CHARACTER = 5, 0.03
"""The first five of a block are the first five hits; then the logarithm of the characters of each
takes so much off its score: chosen on three conversations, measured on two others."""


@dataclass(frozen=True, slots=True)
class Serving:
    """How hits become a context block.

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
        check_fields(self, refresh=among(*_REFRESH), stale_after=whole(2))

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
        """Choose, order and render; without a number, from the sixth on the shorter ones first.

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
        elif (
            k is None and not self.dedupe.diversity and None not in (hit.relevance for hit in kept)
        ):
            kept = _shorter_first(kept)
        events = [hit.event for hit in kept if hit.event is not None]
        spanned = tuple(
            place
            for place, hit in enumerate(kept)
            if any(factor.name == "between" and factor.value for factor in hit.factors)
        )
        fitted = fit(events, cue, self.budget, self.renderer, spanned)
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


def _shorter_first(hits: Sequence[Hit]) -> list[Hit]:
    """Take the shorter of two about as good first, from the sixth on: it lets more in.

    By that no labelled source takes more of the first places than it has in the ranking, or half
    of them: the ranking may hold it back on purpose, see ``cvx.recall.poisoning``.
    """
    lengths = [0 if hit.event is None else len(hit.event.text) for hit in hits]
    sources = ["" if hit.event is None else hit.event.source for hit in hits]
    cost = _A_LOG_CHARACTER * np.log1p(lengths) - [hit.score for hit in hits]
    cost[:_AS_RANKED] = -np.inf
    waiting, taken = np.argsort(cost, kind="stable").tolist(), list[int]()
    ranked, counts = Counter[str](), Counter[str]()
    for source in sources if any(sources) else ():
        ranked[source] += 1
        half = len(taken) // 2 + 1
        free = (
            at
            for at in waiting
            if not sources[at] or counts[sources[at]] < max(half, ranked[sources[at]])
        )
        taken.append(next(free))
        waiting.remove(taken[-1])
        counts[sources[taken[-1]]] += 1
    return [hits[place] for place in (*taken, *waiting)]


class Served(NamedTuple):
    """The context block and the hits in it.

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
