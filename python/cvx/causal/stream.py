"""What one agent remembers, scored by relevance, recency and importance.

References
----------
Park et al. 2023, Generative Agents: Interactive Simulacra of Human Behavior, section 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.causal.vectors import VectorMatrix, as_vector
from cvx.errors import InvalidInputError, InvalidKError, InvalidParameterError
from cvx.scoring.columns import score_columns
from cvx.scoring.recency import STREAM_DECAY, Decay
from cvx.types import Vector

KINDS = ("observation", "conversation", "reflection", "event")
MOST_IMPORTANT = 10.0
_USUAL = 5.0


@dataclass(slots=True)
class Memory:
    """One memory of one agent.

    Parameters
    ----------
    id : str
        Agents that hold the same memory hold it under the same id.
    agent_id : str
        Whose it is.
    tick : int
        When it was made.
    text : str
        What it says.
    kind : {"observation", "conversation", "reflection", "event"}, default "observation"
        How it came about.
    importance : float, default 5.0
        From 1 to 10.
    embedding : array_like of shape (dim,), optional
        Where it lies; without one its relevance is 0.
    last_access_tick : int, optional
        When it was last retrieved; starts at ``tick``.
    sources : tuple of str
        The ids of the memories that it was made from.

    Raises
    ------
    InvalidParameterError
        An importance outside [1, 10], or an unknown kind.
    InvalidVectorError and its subclasses
        An embedding that is no vector.
    """

    id: str
    agent_id: str
    tick: int
    text: str
    kind: str = "observation"
    importance: float = _USUAL
    embedding: Vector | None = field(default=None, repr=False)
    last_access_tick: int | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidParameterError(f"kind is {self.kind!r}: give one of {', '.join(KINDS)}")
        if not 1.0 <= self.importance <= MOST_IMPORTANT:
            raise InvalidParameterError(f"importance is {self.importance}: give one in [1, 10]")
        if self.last_access_tick is None:
            self.last_access_tick = self.tick
        if self.embedding is not None:
            self.embedding = as_vector(self.embedding)


@dataclass(frozen=True, slots=True)
class StreamWeights:
    """What counts how much.

    Parameters
    ----------
    relevance, recency, importance : float, default 1.0
        At least 0.
    decay : float, default 0.02
        Recency falls by exp(-decay) a tick; at least 0.
    """

    relevance: float = 1.0
    recency: float = 1.0
    importance: float = 1.0
    decay: float = STREAM_DECAY

    def __post_init__(self) -> None:
        for name in ("relevance", "recency", "importance", "decay"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InvalidParameterError(f"{name} is {value}: give a number of at least 0")


class ScoredMemory(NamedTuple):
    """A memory with its score and the three parts of it, each in [0, 1] before its weight."""

    memory: Memory
    score: float
    relevance: float
    recency: float
    importance: float


class MemoryStream:
    """The memories of one agent, in the order in which they came.

    Parameters
    ----------
    agent_id : str
        Whose they are.
    weights : StreamWeights, optional
    rate : callable, optional
        From (text, kind) to an importance from 1 to 10, for memories that come without one, such
        as ``RuleImportance().rate``; by default 5 for all.

    Examples
    --------
    >>> stream = MemoryStream("ana")
    >>> _ = stream.add("the well is dry", tick=10, importance=8)
    >>> _ = stream.add("a quiet morning", tick=11, importance=1)
    >>> [found.memory.text for found in stream.retrieve(12, k=1)]
    ['the well is dry']
    """

    def __init__(
        self,
        agent_id: str,
        weights: StreamWeights | None = None,
        *,
        rate: Callable[[str, str], float] | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.rate = rate or (lambda _text, _kind: _USUAL)
        self.weights = weights or StreamWeights()
        self._memories: dict[str, Memory] = {}
        self._matrix = VectorMatrix()
        self._row_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._memories)

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._memories.values())

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._memories

    def __getitem__(self, memory_id: str) -> Memory:
        return self._memories[memory_id]

    def add(
        self,
        text: str,
        tick: int,
        *,
        kind: str = "observation",
        importance: float | None = None,
        embedding: npt.ArrayLike | None = None,
        sources: tuple[str, ...] = (),
    ) -> Memory:
        """Remember something under an id of its own.

        Parameters
        ----------
        text, tick, kind, embedding, sources
            As for ``Memory``, which also says what is refused.
        importance : float, optional
            From 1 to 10; by default what the stream's ``rate`` says.
        """
        number = len(self._memories)
        while (name := f"{self.agent_id}-{number}") in self._memories:
            number += 1
        vector = None if embedding is None else as_vector(embedding)
        rated = self.rate(text, kind) if importance is None else importance
        memory = Memory(
            name, self.agent_id, tick, text, kind, rated, vector, sources=tuple(sources)
        )
        self.append(memory)
        return memory

    def append(self, memory: Memory) -> None:
        """Take in a memory that was made elsewhere.

        Raises
        ------
        InvalidInputError
            Its id is taken.
        DimensionError
            Its embedding has another dimension than those before.
        """
        if memory.id in self._memories:
            raise InvalidInputError(f"memory {memory.id!r} is in the stream: give it another id")
        if memory.embedding is not None:
            self._row_of[memory.id] = self._matrix.add(memory.embedding)
        self._memories[memory.id] = memory

    def retrieve(
        self,
        now: int,
        *,
        query_embedding: npt.ArrayLike | None = None,
        k: int = 5,
        refresh: bool = True,
        until: int | None = None,
    ) -> list[ScoredMemory]:
        """Return the best memories for a question, best first.

        The score is ``w_rel * max(0, cosine) + w_rec * exp(-decay * age) + w_imp * importance /
        10``, with the age counted from the last access and never below 0.

        Parameters
        ----------
        now : int
            The tick of the question.
        query_embedding : array_like of shape (dim,), optional
            Without one the relevance of everything is 0.
        k : int, default 5
            How many, at least 1.
        refresh : bool, default True
            Whether those returned count as accessed at ``now``.
        until : int, optional
            Leave out what was made after this tick; by default nothing.

        Raises
        ------
        InvalidKError
            k below 1.
        DimensionError
            The query has another dimension than the memories.
        """
        if k < 1:
            raise InvalidKError(f"k is {k}: ask for at least 1")
        # A copy first: another thread may add while this one looks.
        held = list(self._memories.values())
        memories = [memory for memory in held if until is None or memory.tick <= until]
        if not memories:
            return []
        columns = self._columns(memories, now, query_embedding)
        weights = {name: float(getattr(self.weights, name)) for name in columns}
        scores = score_columns(columns, weights).total
        order = np.argsort(-scores, kind="stable")[:k].tolist()
        best = [
            ScoredMemory(
                memories[at], float(scores[at]), *(float(column[at]) for column in columns.values())
            )
            for at in order
        ]
        if refresh:
            for found in best:
                found.memory.last_access_tick = now
        return best

    def _columns(
        self, memories: Sequence[Memory], now: int, query_embedding: npt.ArrayLike | None
    ) -> dict[str, npt.NDArray[np.float64]]:
        """Relevance, recency and importance of each memory, each in [0, 1]."""
        relevance = np.zeros(len(memories))
        if query_embedding is not None:
            likeness = self._matrix.similarities(query_embedding)
            rows = [
                (at, self._row_of[m.id]) for at, m in enumerate(memories) if m.id in self._row_of
            ]
            if rows:
                places, of_matrix = np.array(rows).T
                relevance[places] = np.clip(likeness[of_matrix], 0.0, 1.0)
        accessed = [m.tick if m.last_access_tick is None else m.last_access_tick for m in memories]
        return {
            "relevance": relevance,
            "recency": Decay(self.weights.decay)(now - np.array(accessed, dtype=np.float64)),
            "importance": np.array([m.importance for m in memories]) / MOST_IMPORTANT,
        }
