"""The memory stream of one agent: relevance, recency and importance (generative agents).

References
----------
Park et al. 2023, Generative Agents: Interactive Simulacra of Human Behavior, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cvx.arguments import among, check_fields, number
from cvx.causal.cosine import as_vector, unit
from cvx.causal.reflection import KINDS, Reflector, importance_of, salience_of
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.memory import Memory as Store
from cvx.recall.context import Serving
from cvx.recall.presets import stream
from cvx.recall.sources import Found
from cvx.recall.visible_events import VisibleEvents
from cvx.scoring.formulas import STREAM_DECAY, Decay
from cvx.store.namespaces import visible_spaces
from cvx.types import Cue, Event, Filter, Vector

_USUAL = 5.0
_MOST = 10.0


@dataclass(slots=True)
class Memory:
    """One memory of one agent: an event of a memory, in the blueprint's words.

    Parameters
    ----------
    id : str
        The key of the event, or its number where it has none. Agents that hold the same memory
        hold it under the same key.
    agent_id : str
        Whose it is.
    tick : int
        When it was made.
    text : str
        What it says.
    kind : {"observation", "conversation", "reflection", "event"}, default "observation"
        How it came about; other kinds of event count as "event".
    importance : float, default 5.0
        From 1 to 10: ten times the salience of the event.
    embedding : array_like of shape (dim,), optional
        Where it lies; without one its relevance is 0.
    last_access_tick : int, optional
        When it was last retrieved; starts at ``tick``. In a stream it is never before that.
    sources : tuple of str
        The ids of the memories that it was made from.

    Raises
    ------
    InvalidInputError
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
    embedding: Vector | None = field(default=None, repr=False, compare=False)
    last_access_tick: int | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, kind=among(*KINDS), importance=number(1.0, _MOST))
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
        least = number(0.0)
        check_fields(self, relevance=least, recency=least, importance=least, decay=least)


class ScoredMemory(NamedTuple):
    """A memory with its score and the three parts of it, each in [0, 1] before its weight."""

    memory: Memory
    score: float
    relevance: float
    recency: float
    importance: float


class MemoryStream:
    """The memories of one agent, in the order in which they came: a namespace of a memory.

    Parameters
    ----------
    agent_id : str
        Whose they are: the namespace.
    weights : StreamWeights, optional
    memory : cvx.Memory, optional
        Where they are kept: it embeds what comes without a vector. By default one in RAM for the
        stream alone, which embeds nothing and takes vectors of any one dimension.
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
        memory: Store | None = None,
        rate: Callable[[str, str], float] | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.rate = rate or (lambda _text, _kind: _USUAL)
        self.weights = weights or StreamWeights()
        self._alone = memory is None
        self.memory = Store(dim=1, metric="cosine") if memory is None else memory

    def __bool__(self) -> bool:
        # An empty one is one: ``stream or MemoryStream(name)`` must not make another.
        return True

    def __len__(self) -> int:
        sql = "SELECT count(*) FROM events WHERE namespace = ? AND state = 'active'"
        return int(self.memory.record.query(sql, (self.agent_id,))[0][0])

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._memories(self._events()))

    @property
    def memories(self) -> dict[str, Memory]:
        """All of them by their ids, in the order in which they came."""
        return {one.id: one for one in self}

    def __contains__(self, memory_id: object) -> bool:
        return self._number(memory_id) is not None

    def __getitem__(self, memory_id: str) -> Memory:
        found = self._number(memory_id)
        if found is None:
            raise KeyError(memory_id)
        return self._memories(self.memory.record.events([found]))[0]

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
        count = len(self)
        while (name := f"{self.agent_id}-{count}") in self:
            count += 1
        rated = self.rate(text, kind) if importance is None else importance
        vector: Any = embedding
        made = Memory(name, self.agent_id, tick, text, kind, rated, vector, sources=tuple(sources))
        self.append(made)
        return made

    def saw(self, text: str, tick: int, importance: float | None = None) -> Memory:
        """Remember what the agent saw; see ``add``."""
        return self.add(text, tick, importance=importance)

    def append(self, memory: Memory) -> None:
        """Take in a memory that was made elsewhere.

        Raises
        ------
        InvalidInputError
            Its id is taken.
        InvalidVectorError
            Its embedding has another dimension than those before.
        """
        if memory.id in self:
            raise InvalidInputError(f"memory {memory.id!r} is in the stream: give it another id")
        # Without a direction it is like nothing, as without a vector.
        told = memory.embedding is not None and memory.embedding.any()
        vector = memory.embedding if told else None
        self._fit(vector)
        event = Event(
            entity_id=0,
            timestamp=memory.tick,
            text=memory.text,
            vector=vector,
            kind=memory.kind,
            namespace=self.agent_id,
            metadata={"sources": list(memory.sources)} if memory.sources else {},
            salience=memory.importance / _MOST,
            key=memory.id,
        )
        if vector is None and self._alone:
            with self.memory.record.transaction() as write:
                ids = write.add_events([event], nodes=write.take_nodes(1))
        else:
            ids = self.memory.add_many([event], again=True).tolist()
        if memory.last_access_tick is not None and memory.last_access_tick > memory.tick:
            self._touch(ids, memory.last_access_tick)

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
        10``, with the age counted from the last access and never below 0: the preset "stream" of
        ``cvx.recall``.

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
        InvalidInputError
            k below 1.
        InvalidVectorError
            The query has another dimension than the memories.
        """
        query = None if query_embedding is None else as_vector(query_embedding)
        self._fit(query)
        weights, decay = self.weights, Decay(self.weights.decay)
        plan = replace(
            stream((weights.relevance, weights.recency, weights.importance), decay=weights.decay),
            sources={"everything": _Everything()},
            serving=Serving(refresh="never"),
        )
        hits = self.memory.recall(
            Cue(vector=query if query is not None and query.any() else None, timestamp=int(now)),
            k,
            namespace=self.agent_id,
            where=None if until is None else Filter(until=until + 1),
            pipeline=plan,
        )
        events = [hit.event for hit in hits if hit.event is not None]
        memories = self._memories(events)
        recency = decay([now - (one.last_access_tick or 0) for one in memories]).tolist()
        best = [
            ScoredMemory(one, hit.score, max(0.0, hit.similarity), fresh, one.importance / _MOST)
            for hit, one, fresh in zip(hits, memories, recency, strict=True)
        ]
        if refresh and best:
            self._touch([event.event_id for event in events if event.event_id is not None], now)
            for found in best:
                found.memory.last_access_tick = max(now, found.memory.last_access_tick or now)
        return best

    def near(
        self,
        vectors: Sequence[Vector],
        now: int,
        *,
        most: int,
        until: int | None = None,
        streams: Sequence[MemoryStream] = (),
    ) -> list[ScoredMemory]:
        """Return the memories nearest to each of some vectors, of other streams of the store too.

        Parameters
        ----------
        vectors : sequence of ndarray of shape (dim,)
            The first is the question's, for the relevance of all.
        now, until
            As for ``retrieve``.
        most : int
            How many for each vector, at least 1.
        streams : sequence of MemoryStream
            Further streams of the same memory.
        """
        for vector in vectors:
            self._fit(vector)
        told = [one for one in vectors if one.any()]
        if not told:
            return []
        public = self.memory.record.public_namespaces()
        names = (one.agent_id for one in (self, *streams))
        spaces = dict.fromkeys(one for name in names for one in visible_spaces(name, [], public))
        where = Filter(namespaces=[*spaces], until=None if until is None else until + 1)
        nodes, _ = self.memory.index.search(np.stack(told), most, where=where)
        found = sorted({int(node) for node in nodes.ravel() if node >= 0})
        owners = self.memory.record.events_of_nodes(found, active=True)
        memories = self._memories(self.memory.record.events({*owners.values()}))
        question = unit(vectors[0])
        decay, weights = Decay(self.weights.decay), self.weights
        fresh = decay([now - (one.last_access_tick or 0) for one in memories]).tolist()
        scored = []
        for one, recency in zip(memories, fresh, strict=True):
            alike = 0.0 if one.embedding is None else float(unit(one.embedding) @ question)
            parts = max(0.0, alike), recency, one.importance / _MOST
            three = weights.relevance, weights.recency, weights.importance
            score = sum(weight * part for weight, part in zip(three, parts, strict=True))
            scored.append(ScoredMemory(one, score, *parts))
        return scored

    def reflect(self, tick: int, reflector: Reflector | None = None) -> list[Memory]:
        """Add what is to be learned of the stream, if that is due; see ``Reflector``.

        Returns
        -------
        list of Memory
            Of the kind "reflection", each with its ``sources``; [] where it is not due, or where
            nothing stands out.

        Examples
        --------
        >>> stream = MemoryStream("ana")
        >>> for tick in range(4):
        ...     _ = stream.add(f"the well is dry, day {tick}", tick, importance=8)
        >>> made = stream.reflect(4, Reflector(threshold=30))
        >>> made[0].kind, made[0].sources
        ('reflection', ('ana-0', 'ana-1', 'ana-2', 'ana-3'))
        """
        events = [
            replace(event, salience=salience_of(10.0 * event.salience)) if event.salience else event
            for event in self._events()
        ]
        ids = {event.event_id: _id(event) for event in events}
        return [
            self.add(
                made.text,
                tick,
                kind=made.kind,
                importance=importance_of(made.salience),
                embedding=made.vector,
                sources=tuple(ids[source] for source in made.metadata["sources"]),
            )
            for made in (reflector or Reflector()).reflect(events, tick)
        ]

    def _number(self, memory_id: object) -> int | None:
        """The event of an id: that of the key, or else the one of that number, if it has no key."""
        record, name = self.memory.record, str(memory_id)
        found = record.event_of_key(name, self.agent_id)
        if found is None and name.isdecimal():
            sql = "SELECT event_id FROM events WHERE event_id = ? AND namespace = ? AND key IS NULL"
            found = next((row[0] for row in record.query(sql, (int(name), self.agent_id))), None)
        return found

    def _events(self) -> list[Event]:
        rows = self.memory.record.query(
            "SELECT event_id FROM events WHERE namespace = ? AND state = 'active'"
            " ORDER BY event_id",
            (self.agent_id,),
        )
        return self.memory.record.events(row[0] for row in rows)

    def _memories(self, events: Iterable[Event]) -> list[Memory]:
        listed = list(events)
        numbers = [event.event_id for event in listed if event.event_id is not None]
        used = self.memory.record.used(numbers)
        last = {number: when for number, (_, when) in used.items()}
        return [
            Memory(
                _id(event),
                event.namespace,
                event.timestamp,
                event.text,
                event.kind if event.kind in KINDS else "event",
                min(_MOST, max(1.0, _USUAL if event.importance is None else event.importance)),
                event.vector,
                max(event.timestamp, last.get(event.event_id or 0) or event.timestamp),
                tuple(map(str, event.metadata.get("sources", ()))),
            )
            for event in listed
        ]

    def _touch(self, events: Sequence[int], now: int) -> None:
        with self.memory.record.transaction() as write:
            write.touch(dict.fromkeys(events, int(now)))

    def _fit(self, vector: Vector | None) -> None:
        """Let the memory have the dimension of a vector, where it has none of another."""
        if vector is None or len(vector) == self.memory.dim:
            return
        held = list(self) if self._alone else []
        if not self._alone or any(one.embedding is not None for one in held):
            raise InvalidVectorError(
                f"vectors of {len(vector)} and {self.memory.dim} dimensions cannot be compared: "
                "embed both with the same model"
            )
        self.memory = Store(dim=len(vector), metric="cosine")
        for one in held:
            self.append(one)


class _Everything:
    """The source that finds every event which may be seen."""

    def find(self, view: VisibleEvents) -> Found:
        """Return all rows, in the order of writing."""
        rows = np.flatnonzero(view.visible)
        return Found(rows, np.zeros(len(rows)))


def _id(event: Event) -> str:
    return str(event.event_id) if event.key is None else event.key
