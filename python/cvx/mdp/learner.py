"""Learning transitions and outcomes by region, in batch and step by step, epoch by epoch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal, Self

from cvx.errors import InvalidParameterError, StaleRegionsError
from cvx.mdp.actions import classify_action, last_kind
from cvx.mdp.book import Book
from cvx.mdp.experience import Phase, Reading, Told
from cvx.mdp.trace import EpisodeLike, RegionIndex, Trace, default_level, read_trace, vector_of

# A slice is bounded by work, never by time, so that two runs are alike (rfc 0016). The bounds were
# set by hand, for closes within 20 ms at 10,000 events.
_COMPARISONS = 300_000
"""Distances to hubs in a slice, but for the steps that ``pace`` asks for."""
_MOST_STEPS = 120
"""Steps in a slice where hubs are few, but for those that ``pace`` asks for."""
_FREED = 10_000
"""Entries of a retired book that an update lets go of: all at once take as long as a slice."""


@dataclass(slots=True)
class _Books:
    """What a model and its views learn together.

    Attributes
    ----------
    now : Book
        Behind the answers.
    next : Book, optional
        Of the epoch in force, while episodes are placed anew.
    retired : Book, optional
        Of the epoch before, while it is let go of.
    away : set of int
        Nodes of steps that are not counted.
    """

    now: Book
    next: Book | None = None
    retired: Book | None = None
    away: set[int] = field(default_factory=set)


class RegionLearner:
    """Counts what episodes did in each region, and keeps the counts true to the regions in force.

    ``RegionMDP`` has the parameters, and the answers.
    """

    def __init__(
        self,
        index: RegionIndex,
        level: int | None = None,
        *,
        score: Literal["beta", "mean"] = "beta",
        prior_strength: float = 2.0,
        success_above: float = 0.5,
        classify: Callable[[str], str] = classify_action,
        phase_of: Phase = last_kind,
        on_stale: Literal["relearn", "gradual", "error"] = "relearn",
        pace: float = 2.5,
    ) -> None:
        if score not in ("beta", "mean"):
            raise InvalidParameterError(f"score is {score!r}: give 'beta' or 'mean'")
        if on_stale not in ("relearn", "gradual", "error"):
            raise InvalidParameterError(
                f"on_stale is {on_stale!r}: give 'relearn', 'gradual' or 'error'"
            )
        if not prior_strength > 0:
            raise InvalidParameterError(f"prior_strength is {prior_strength}: give one above 0")
        if not 2.0 <= pace < math.inf:
            # At 1 the steps to be placed anew would grow as fast as they are placed.
            raise InvalidParameterError(f"pace is {pace}: give at least 2")
        self.index = index
        self.score = score
        self.success_above = success_above
        self.classify = classify
        self.on_stale = on_stale
        self.pace = pace
        self._wanted_level = level
        self._reading = Reading(prior_strength, success_above, phase_of)
        self._readers: tuple[str, ...] | None = None
        away: set[int] = set()
        self._books = _Books(self._blank(away), away=away)

    @property
    def _book(self) -> Book:
        return self._books.now

    @property
    def _told(self) -> Told:
        return self._book.told(self._readers)

    @property
    def prior_strength(self) -> float:
        """How many episodes the more general estimate is worth."""
        return self._reading.prior_strength

    @property
    def epoch(self) -> int:
        """The epoch of regions that the answers are about."""
        return self._book.epoch

    @property
    def level(self) -> int:
        """The level of the regions that the answers are about."""
        return self._book.level

    @property
    def traces(self) -> list[Trace]:
        """The episodes it learned from, as it remembers and counts them, oldest first."""
        return list(self._book.readable(self._readers))

    @property
    def behind(self) -> int:
        """How many episodes are yet to be placed in the regions of the index's epoch."""
        if self._book.current:
            return 0
        coming = self._books.next
        begun = len(coming.traces) if coming is not None and coming.current else 0
        return len(self._book.traces) - begun

    def __len__(self) -> int:
        """Return how many episodes it has learned from."""
        return len(self._told)

    def within(self, readers: Collection[str]) -> Self:
        """Return what it knows of the episodes that an asker may read; both learn together.

        Parameters
        ----------
        readers : collection of str
            Whom the asker goes by, see ``cvx.store.spaces.reads``.
        """
        view = copy.copy(self)
        view._readers = tuple(readers)
        return view

    def leave_out(self, nodes: Iterable[int]) -> None:
        """Count these steps no more, nor what was done there; ``take_back`` counts them again."""
        self._recount(set(nodes) - self._books.away)

    def take_back(self, nodes: Iterable[int]) -> None:
        """Count steps again that were left out."""
        self._recount(set(nodes) & self._books.away)

    def _recount(self, nodes: set[int]) -> None:
        self._books.away ^= nodes
        for book in (self._books.now, self._books.next):
            if book is not None and nodes:
                book.recount(nodes)

    def _blank(self, away: set[int] | None = None) -> Book:
        wanted = self._wanted_level
        if wanted is None:
            level = default_level(self.index)
        else:
            level = max((at for at in self.index.region_levels if at <= wanted), default=0)
        return Book(self.index, level, self._reading, self._books.away if away is None else away)

    def _fresh(self) -> None:
        book = self._book
        gone = self.index.deletions - book.deletions if self.on_stale != "gradual" else 0
        if book.current and not gone:
            return
        if not book.traces:
            self._books.now, self._books.next = self._blank(), None
        elif self.on_stale == "error":
            raise StaleRegionsError(
                f"learned on regions of epoch {self.epoch}, the index is at "
                f"{self.index.region_epoch}, and {gone} nodes were deleted since: call relearn()"
            )
        elif self.on_stale == "relearn" or book.level not in self.index.region_levels:
            self.relearn()

    def relearn(self) -> None:
        """Learn all remembered episodes again on the present regions; deleted nodes drop out."""
        book = self._blank()
        if self._book.traces:
            where = self._assignments(book)
            for trace in self._book.traces:
                book.add(trace.placed(where.get(node) for node in trace.nodes))
        self._books.now, self._books.next = book, None

    def _relearn_some(self, steps: int) -> None:
        """Place about so many steps more in the regions in force; turn to them when all are."""
        books = self._books
        if books.retired is not None and not books.retired.forget(_FREED):
            books.retired = None
        if books.now.current:
            return
        if books.next is None or not books.next.current:
            books.next = self._blank()
        book, traces = books.next, books.now.traces
        while steps > 0 and len(book.traces) < len(traces):
            trace = traces[len(book.traces)]
            vectors = [vector_of(self.index, node) for node in trace.nodes]
            book.add(trace.placed(book.locate(trace.nodes, vectors)))
            steps -= max(len(trace.nodes), 1)
        if len(book.traces) == len(traces):
            books.now, books.next, books.retired = book, None, books.now

    def _slice(self, steps: int) -> int:
        """How many remembered steps to place anew beside so many new ones."""
        hubs = len((self._books.next or self._book).hubs)
        return max(math.ceil(self.pace * steps), min(_MOST_STEPS, _COMPARISONS // max(hubs, 1)))

    def _assignments(self, book: Book) -> dict[int, int]:
        nodes, regions = self.index.region_assignments(book.level)
        return dict(zip(nodes.tolist(), regions.tolist(), strict=True))

    def learn_from_episodes(self, index: RegionIndex, episodes: Iterable[EpisodeLike]) -> None:
        """Add episodes to what is known.

        Parameters
        ----------
        index : TemporalIndex
            Where their nodes are; the one the model was made with.
        episodes : iterable of Episode
            Anything with an ``entity_id``. ``steps`` whose nodes are known are taken as they
            are, rewards of their own included, else the entity's whole timeline is read.
            ``reward`` is the outcome, and the reward of every step that brings none of its own;
            without it, that of each step in the index is both. ``task_type`` and ``namespace`` are
            used if they are there.

        Raises
        ------
        InvalidParameterError
            Another index than the model's.
        StaleRegionsError
            See ``on_stale``.
        """
        if index is not self.index:
            raise InvalidParameterError(
                "this model belongs to another index: make a RegionMDP for this one"
            )
        self._fresh()
        if not self._book.current:
            self.relearn()
        where = self._assignments(self._book)
        for episode in episodes:
            self._book.add(
                read_trace(
                    self.index,
                    episode,
                    self.classify,
                    lambda nodes, _: [where.get(node) for node in nodes],
                )
            )

    def update(self, episode: EpisodeLike) -> None:
        """Add one episode, with the same result as learning it together with all others.

        Raises
        ------
        StaleRegionsError
            See ``on_stale``.
        """
        self._fresh()
        self._relearn_some(self._slice(len(getattr(episode, "steps", ()))))
        self._book.add(read_trace(self.index, episode, self.classify, self._book.locate))

    def phase(self, actions: Iterable[str | None]) -> str:
        """Return where an episode stands after these commands, as ``phase_of`` names it."""
        return self._reading.phase_of([self.classify(a) for a in actions if a is not None])

    def retract(self) -> None:
        """Take back the episode that was learned last."""
        self._book.retract()
        coming = self._books.next
        if coming is not None and len(coming.traces) > len(self._book.traces):
            coming.retract()
