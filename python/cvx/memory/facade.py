"""The facade: one class over all parts of the memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Self

from cvx.active import ActiveMemory
from cvx.arguments import Check, a_callable, a_flag, checked, one_of, optional, whole, wrong
from cvx.embed import Embedder
from cvx.errors import (
    EmbedderMismatchError,
    InvalidParameterError,
    RewardRangeError,
    UnknownMetricError,
)
from cvx.learn.episodes import OpenEpisode
from cvx.memory.awaiting import Awaiting
from cvx.memory.causes import Causes
from cvx.memory.outcomes import Outcomes
from cvx.memory.preparing import Preparing
from cvx.memory.reflecting import Reflecting
from cvx.memory.tables import Tables
from cvx.store.erase import finish
from cvx.store.past import as_of
from cvx.types import Episode

EXACT_BELOW = 10_000


def _embedder(name: str, value: Any) -> Any:
    if not all(callable(getattr(value, method, None)) for method in ("embed", "info")):
        raise wrong(name, value, "an Embedder, such as those of cvx.embed")
    return value


def _metric(name: str, value: Any) -> Any:
    if value not in ("cosine", "l2", "ip"):
        raise wrong(name, value, "cosine, l2 or ip", UnknownMetricError)
    return value


_OPENING: Mapping[str, Check] = {
    "embedder": optional(_embedder),
    "metric": _metric,
    "seed": whole(0),
    "exact_below": whole(0),
    "clock": optional(a_callable),
}


class Memory(Awaiting, Outcomes, Preparing, Causes, Tables, Reflecting):
    """What an agent remembers: in RAM, or with ``Memory.open`` in a folder that survives.

    Every change is durable when its call returns. Threads may share a memory; processes open the
    same folder, and each sees what the others committed at its next call. After a fork, the child
    opens its own.

    Parameters
    ----------
    embedder : Embedder, optional
        From text to vectors; the default needs no model and no network, and knows spelling only.
    metric : {"cosine", "l2", "ip"}, default "cosine"
        How vectors are compared.
    seed : int, default 0
        Of the index: it decides which events become the hubs of regions.
    exact_below : int, default 10_000
        Up to so many vectors a search compares with all of them, instead of walking a graph.
    clock : callable, optional
        Time of recording in microseconds since 1970-01-01 UTC; the system's by default.

    Examples
    --------
    >>> from cvx.embed import LexicalEmbedder
    >>> memory = Memory(LexicalEmbedder())
    >>> rain = memory.add("it rained all night")
    >>> flood = memory.add("the cellar is under water")
    >>> memory.link(rain, flood, "caused", why="the drain is too small")
    >>> [(step.event.text, step.edge.why) for step in memory.why(flood)]
    [('it rained all night', 'the drain is too small')]
    """

    @checked(**_OPENING)
    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        metric: str = "cosine",
        seed: int = 0,
        exact_below: int = EXACT_BELOW,
        clock: Callable[[], int] | None = None,
    ) -> None:
        settings = {"seed": seed, "exact_below": exact_below}
        super().__init__(None, embedder, metric=metric, settings=settings, clock=clock)
        self._loop: ActiveMemory | None = None

    @classmethod
    @checked(
        **_OPENING,
        path=one_of(str, os.PathLike, called="the path of a folder"),
        create=a_flag,
        read_only=a_flag,
        accept_lost_tail=a_flag,
    )
    def open(
        cls,
        path: str | os.PathLike[str],
        embedder: Embedder | None = None,
        *,
        metric: str = "cosine",
        seed: int = 0,
        exact_below: int = EXACT_BELOW,
        create: bool = True,
        read_only: bool = False,
        accept_lost_tail: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> Self:
        """Open a memory in a folder, making it if there is none.

        Parameters
        ----------
        path : str or path
            The folder: ``memory.db`` is the record, ``LOCK`` keeps writers apart, ``index`` holds
            snapshots, which may be deleted at any time.
        embedder : Embedder, optional
            The one that the store was made with; another one is refused.
        metric : {"cosine", "l2", "ip"}, default "cosine"
            As it was made with.
        seed, exact_below : int
            Of a store that is made; one that is there keeps its own.
        create : bool, default True
            Whether a new store may be made.
        read_only : bool, default False
            Only read a store that is there: nothing is written, so that it also works on a
            read-only disk. What others commit is seen where SQLite's shared memory is there or
            can be made; elsewhere the store must have been closed, and a change to it is an error.
        accept_lost_tail : bool, default False
            Go on although the newest changes are known to be missing.
        clock : callable, optional
            As for the class.

        Raises
        ------
        StoreNotFoundError
            There is no store, and none may be made.
        EmbedderMismatchError
            The vectors in the store are those of another embedder, dimension or metric.
        LostTailError
            The record ends before something that was written.
        RecordVersionError, DamagedRecordError, RecordIOError
            The record cannot be read.
        """
        memory = cls.__new__(cls)
        memory._loop = None
        super(Memory, memory).__init__(
            Path(path),
            embedder,
            metric=metric,
            settings={"seed": seed, "exact_below": exact_below},
            create=create,
            read_only=read_only,
            accept_lost_tail=accept_lost_tail,
            clock=clock,
        )
        if not read_only:
            finish(memory._store)
        return memory

    @checked(recorded=whole())
    def as_of(self, recorded: int) -> Memory:
        """Return the memory as it was at a time of recording.

        No later event, link, reward, count, decision or weight is known to it; what was erased
        since is gone from it too. The answer is a memory of its own in RAM that refuses writes.
        Making it copies the record.

        Parameters
        ----------
        recorded : int
            In microseconds since 1970-01-01 UTC, as in ``Event.recorded``.

        Raises
        ------
        PastNotKeptError
            An older version of cvx kept the store then, and overwrote what it knew.
        InvalidParameterError
            No whole number, or none of 64 bits.
        """
        past = type(self).__new__(type(self))
        past._loop = None
        super(Memory, past).__init__(
            None, self.embedder, metric=self.metric, record=as_of(self.record, recorded)
        )
        return past

    def loop(self, **options: Any) -> ActiveMemory:
        """Return a loop (recall, act, close, learn) that runs on this memory.

        Parameters
        ----------
        **options
            As for ``ActiveMemory``; ``clock`` is by default the memory's own, so that steps lie
            among the events that were added.
        """
        self._store.refresh()
        options = {"clock": self.record.now, **options}
        made = ActiveMemory(self._store.index, self.embedder, self.record, **options)
        made.on_render = self._remember_rendering
        return made

    def together(self) -> AbstractContextManager[None]:
        """Make everything that is written in a ``with`` block durable at its end, or none of it.

        See ``cvx.store.Record.together``: other threads and processes wait until then, so that
        nothing may be awaited inside. Erasing and snapshots are refused there.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> memory = Memory(LexicalEmbedder())
        >>> with memory.together():
        ...     rain = memory.add("it rained all night")
        ...     memory.link(rain, memory.add("the cellar is under water"))
        >>> len(memory)
        2
        """
        return self.record.together()

    def begin(self, goal: str = "", task_type: str | None = None, **options: Any) -> OpenEpisode:
        """Start an episode of the memory's own loop; see ``ActiveMemory.begin``."""
        return self.active.begin(goal, task_type, **options)

    @property
    def active(self) -> ActiveMemory:
        """The memory's own loop, made at its first use."""
        if self._loop is None:
            self._loop = self.loop()
        return self._loop

    @checked(episode=optional(one_of(OpenEpisode, called="what begin returned")))
    def close(self, episode: OpenEpisode | None = None, reward: float | None = None) -> Any:
        """Close the memory; or give one of its episodes the outcome and learn from it.

        Parameters
        ----------
        episode : OpenEpisode, optional
            One that ``begin`` started.
        reward : float, optional
            Its outcome in [0, 1]; only with an episode.

        Returns
        -------
        Episode or None
            The closed episode.

        Raises
        ------
        InvalidParameterError
            A reward without an episode, or something that is none; the memory stays open.
        RewardRangeError, EpisodeClosedError, ForeignEpisodeError
            As for ``ActiveMemory.close``.
        NestedTransactionError
            The memory is to be closed while this thread is writing to it.
        """
        if episode is not None:
            return self._close_episode(episode, reward)
        if reward is not None:
            raise InvalidParameterError(
                f"episode is None, but reward is {reward!r}: give what begin returned, or no "
                "reward to close the memory itself"
            )
        try:
            if not self.record.closed and not self.record.frozen and self._noted:
                # Moved to another embedder meanwhile, the store takes nothing from here any more.
                with suppress(EmbedderMismatchError):
                    self._flush()
        finally:
            self._store.close()
        return None

    def _close_episode(self, episode: OpenEpisode, reward: float | None) -> Episode:
        if reward is None:
            raise RewardRangeError("no reward: give the outcome of the episode in [0, 1]")
        return self.active.close(episode, reward)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "in RAM" if self.folder is None else f"at {self.folder}"
        return f"<Memory {where}>"
