"""TCMF, temporal-causal memory fusion: the context that a council gets in a crisis."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import above_zero, among, check_fields, number, optional, whole, wrong
from cvx.causal.cosine import as_vector, unit
from cvx.causal.fusion import (
    Ancestors,
    Blend,
    Candidates,
    additive,
    interleave,
    multiplicative,
)
from cvx.causal.graph import CausalGraph
from cvx.causal.graph_data import CausalEvent
from cvx.causal.walk import Walk
from cvx.councils.memory_stream import Memory, MemoryStream, ScoredMemory
from cvx.embed import Embedder
from cvx.embed.protocol import aembed
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.escaping import quoted_line
from cvx.types import EventId, Vector

FusionName: TypeAlias = Literal["interleave", "multiplicative", "additive"]
Chain: TypeAlias = Literal["reached", "all"]

_NEARBY_DEPTH, _NEARBY_WEIGHT = 3, 0.3
_OF_EACH, _NEAREST = 8, 24
NO_MEMORIES = "(nobody remembers anything)"
NO_CAUSES = "(nothing is known to have led here)"


class Router(Protocol):
    """Anything that embeds without blocking the event loop."""

    def embed(self, texts: list[str], /) -> Awaitable[Sequence[npt.ArrayLike]]:
        """Return one vector a text."""


@dataclass(frozen=True, slots=True)
class EmbedderRouter:
    """A router over an embedder of cvx; it works in a thread of its own."""

    embedder: Embedder

    async def embed(self, texts: list[str], /) -> Sequence[npt.ArrayLike]:
        """Return one vector a text."""
        return list(await aembed(self.embedder, texts))


@dataclass(frozen=True, slots=True)
class Citizen:
    """Somebody who remembers.

    Parameters
    ----------
    name : str
        As the council knows them.
    memory : MemoryStream
        What they remember.
    """

    name: str
    memory: MemoryStream


@dataclass(frozen=True, kw_only=True)
class TCMF:
    """The settings of a ``TCMFRetriever``.

    Parameters
    ----------
    fusion : {"interleave", "multiplicative", "additive"}, default "interleave"
        The rule that ranks: see ``cvx.causal.fusion``.
    blend : Blend
        Lambda, threshold, how depth and path weights count, for the rules that add or multiply.
        The weights of the episodic score are those of the streams.
    floor : float, default 0.2
        Least similarity of an ancestor's nearest witness, for "interleave".
    fallback : bool, default True
        Whether "interleave" lets the institution's events call witnesses too, in turn with what
        is similar to the question.
    max_depth : int, default 6
        How far back causes are walked.
    per_citizen : int, optional
        How many memories of each citizen are looked at; by default the best eight (or k) by
        themselves, and of all citizens those nearest to the question and to each precedent.
    institution_events : int, default 20
        How many of the institution's latest events count where no link leads, as of depth 3 and
        path weight 0.3; 0 for none.
    crisis_counts : bool, default False
        Whether the crisis itself counts as one of them.
    dedupe_content : bool, default True
        Whether memories of the same words count as one; those of the same id always do.
    hindsight : bool, default False
        Whether memories made after the tick of the question count, as the blueprint has it; a
        replay would see its future.
    chain : {"reached", "all"}, default "reached"
        Whether the chain shows only what links lead to, or the institution's events too.

    Raises
    ------
    InvalidInputError
        A value outside its bounds.
    """

    fusion: FusionName = "interleave"
    blend: Blend = field(default_factory=lambda: Blend(causal_boost=12.0, edge_weights=True))
    floor: float = 0.2
    fallback: bool = True
    max_depth: int = 6
    per_citizen: int | None = None
    institution_events: int = 20
    crisis_counts: bool = False
    dedupe_content: bool = True
    hindsight: bool = False
    chain: Chain = "reached"

    def __post_init__(self) -> None:
        check_fields(
            self,
            fusion=among("interleave", "multiplicative", "additive"),
            floor=number(-1.0, 1.0),
            max_depth=whole(1),
            per_citizen=optional(whole(1)),
            institution_events=whole(0),
            chain=among("reached", "all"),
        )


PRESETS: Mapping[str, TCMF] = MappingProxyType(
    {
        "default": TCMF(),
        "tcmf-seed": TCMF(
            fusion="multiplicative",
            blend=Blend(),
            max_depth=4,
            per_citizen=8,
            crisis_counts=True,
            dedupe_content=False,
            hindsight=True,
            chain="all",
        ),
    }
)
"""By name: what measures best (``benches/causal.py``), and the blueprint as it was published."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory that was recalled.

    Parameters
    ----------
    citizen_id, name : str
        Who remembers it; of several the one who scores it best.
    memory : Memory
        What they remember.
    score : float
        Higher is better.
    factors : tuple of (str, float)
        What the score is made of; they add up to it.
    witness_of : CausalEvent, optional
        The precedent that it is about, where that mattered.
    arm : str
        Which evidence put it in its place: "fused", "causal", "relevance" or "fallback".
    """

    citizen_id: str
    name: str
    memory: Memory
    score: float
    factors: tuple[tuple[str, float], ...]
    witness_of: CausalEvent | None
    arm: str


@dataclass(frozen=True, slots=True)
class TCMFContext:
    """What a council is told; ``str`` of it is the block for a prompt.

    Parameters
    ----------
    question : str
        The crisis.
    recalled : tuple of Recalled
        Best first.
    chain : tuple of CausalEvent
        What led here, in time order.
    degraded : tuple of str
        What was missing, and what that costs; empty where nothing was.
    truncated : bool
        Whether the walk through causes was cut off by its budget.
    """

    question: str
    recalled: tuple[Recalled, ...]
    chain: tuple[CausalEvent, ...]
    degraded: tuple[str, ...] = ()
    truncated: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The block for a prompt; each memory and each event is one line, whatever it holds."""
        evidence = [
            f"- [{quoted_line(one.name)}] {quoted_line(one.memory.text)}"
            f" (importance={one.memory.importance:g})"
            for one in self.recalled
        ]
        chain = [f"[tick {event.tick}] {quoted_line(event.text)}" for event in self.chain]
        return "\n".join(
            [
                f"CRISIS: {quoted_line(self.question)}",
                "",
                "CITIZEN MEMORY EVIDENCE:",
                *(evidence or [NO_MEMORIES]),
                "",
                "CAUSAL CHAIN (temporal-causal precedents):",
                *(chain or [NO_CAUSES]),
            ]
        )


class _Held(NamedTuple):
    """A memory, and who holds it."""

    citizen_id: str
    name: str
    scored: ScoredMemory


class _Precedent(NamedTuple):
    """An event that led to the crisis, or may have."""

    event: CausalEvent
    depth: int
    weight: float


class TCMFRetriever:
    """Ranks what citizens remember by the question and by what led to the crisis.

    Parameters
    ----------
    graph : CausalGraph, optional
        What led to what; without one memories are ranked by the question alone.
    settings : TCMF or str, default "default"
        How; or the name of one of ``PRESETS``: "default", "tcmf-seed".
    embed_timeout_s : float, default 2.0
        How long a router is waited for; above 0.

    Raises
    ------
    InvalidInputError
        There is no preset of that name; a time-out that is not above 0.

    Examples
    --------
    >>> import asyncio
    >>> stream = MemoryStream("adisa")
    >>> _ = stream.add("the city refused to fund quarantine", 65, importance=8)
    >>> retriever = TCMFRetriever()
    >>> found = asyncio.run(retriever.retrieve("plague?", {"a": Citizen("Adisa", stream)}, 80,
    ...                                        "health"))
    >>> print(found.text)
    CRISIS: plague?
    <BLANKLINE>
    CITIZEN MEMORY EVIDENCE:
    - [Adisa] the city refused to fund quarantine (importance=8)
    <BLANKLINE>
    CAUSAL CHAIN (temporal-causal precedents):
    (nothing is known to have led here)
    """

    def __init__(
        self,
        graph: CausalGraph | None = None,
        settings: TCMF | str = "default",
        *,
        embed_timeout_s: float = 2.0,
    ) -> None:
        if isinstance(settings, str) and settings not in PRESETS:
            raise InvalidInputError(
                f"there is no preset {settings!r}: give one of {', '.join(PRESETS)}, or a TCMF"
            )
        self.embed_timeout_s = above_zero("embed_timeout_s", embed_timeout_s)
        self.graph = CausalGraph() if graph is None else graph
        self.settings = PRESETS[settings] if isinstance(settings, str) else settings

    async def retrieve(
        self,
        question: str,
        citizens: Mapping[str, Any],
        tick: int,
        institution_id: str,
        crisis_event_id: EventId | None = None,
        k: int = 12,
        router: Router | None = None,
    ) -> TCMFContext:
        """Find what a council should hear.

        Whatever is missing (a router, one that answers in time, a graph, a crisis event, vectors)
        costs its share of the answer, never the answer, and is named in ``degraded``. Memories and
        links are read and ranked in a thread: the event loop goes on.

        Parameters
        ----------
        question : str
            The crisis, in words.
        citizens : mapping of str to Citizen, MemoryStream or object
            Who may have seen something, by id: a stream, or anything with one as its ``memory``,
            and a ``name`` where that is another than the id.
        tick : int
            Now. Memories made later are left out, unless the settings say ``hindsight``; one that
            was looked at later is as fresh as if that were now.
        institution_id : str
            Whose council it is: its recent events count where links do not reach.
        crisis_event_id : str or int, optional
            The crisis, as an event of the graph.
        k : int, default 12
            How many memories, at least 1.
        router : Router, optional
            What embeds the question.

        Returns
        -------
        TCMFContext

        Raises
        ------
        InvalidInputError
            k below 1.
        InvalidInputError
            Streams that weigh differently: they cannot be compared.
        InvalidVectorError
            The question, the memories or the events were embedded by different models.
        """
        if k < 1:
            raise InvalidInputError(f"k is {k}: ask for at least 1")
        degraded: list[str] = []
        query = await self._embedded(question, router, degraded)
        present = {name: _citizen(name, one) for name, one in citizens.items()}

        def found() -> TCMFContext:
            crisis = self._crisis(crisis_event_id, degraded)
            depth = self.settings.max_depth
            walked = Walk((), False) if crisis is None else self.graph.walk(crisis.id, depth)
            reached = [
                _Precedent(event, one.depth, one.weight)
                for one in walked.found
                if (event := self.graph.get_event(one.id)) is not None
            ]
            nearby = self._nearby(institution_id, crisis, tick, {one.event.id for one in reached})
            pool = self._pool(present, tick, query, [*reached, *nearby], k)
            if not any(one.scored.memory.embedding is not None for one in pool):
                degraded.append("no memory has a vector: causes cannot be matched")
            weights = _shared_weights(present.values())
            about = query if crisis is None or crisis.embedding is None else crisis.embedding
            recalled = self._ranked(pool, reached, nearby, weights, query, about, k)
            shown = [*reached, *(nearby if self.settings.chain == "all" else ())]
            chain = sorted((one.event for one in shown), key=lambda event: event.tick)
            return TCMFContext(
                question, tuple(recalled), tuple(chain), tuple(degraded), walked.truncated
            )

        return await asyncio.to_thread(found)

    async def _embedded(
        self, question: str, router: Router | None, degraded: list[str]
    ) -> Vector | None:
        if router is None:
            degraded.append("no router: the question has no vector")
            return None
        try:
            async with asyncio.timeout(self.embed_timeout_s) as limit:
                embedded = await router.embed([question])
            return as_vector(embedded[0])
        except Exception as error:  # whatever a user's router raises
            slow = f"no answer within {self.embed_timeout_s:g} s"
            degraded.append(f"the router failed: {slow if limit.expired() else repr(error)}")
            return None

    def _crisis(self, crisis: EventId | None, degraded: list[str]) -> CausalEvent | None:
        found = None if crisis is None else self.graph.get_event(crisis)
        if not len(self.graph):
            degraded.append("no graph: nothing is known of causes")
        elif crisis is None:
            degraded.append("no crisis event: only the institution's recent events count")
        elif found is None:
            degraded.append(f"the graph has no event {crisis!r}")
        return found

    def _nearby(
        self, institution_id: str, crisis: CausalEvent | None, tick: int, reached: set[EventId]
    ) -> list[_Precedent]:
        """The latest events of an institution that may have led to a crisis, unless links do."""
        settings = self.settings
        events = self.graph.events_for_institution(institution_id)
        if not settings.crisis_counts:
            until, itself = (tick, None) if crisis is None else (crisis.tick, crisis.id)
            events = [event for event in events if event.tick <= until and event.id != itself]
        latest = events[max(0, len(events) - settings.institution_events) :]
        return [
            _Precedent(event, _NEARBY_DEPTH, _NEARBY_WEIGHT)
            for event in latest
            if event.id not in reached
        ]

    def _pool(
        self,
        citizens: Mapping[str, Citizen],
        tick: int,
        query: Vector | None,
        events: Sequence[_Precedent],
        k: int,
    ) -> list[_Held]:
        """What may be told; of each memory the one that its holder scores best.

        Of each citizen the best memories by themselves, and of all those nearest to the question
        and to each event: what lies far from all of them could only be ranked last.
        """
        until = None if self.settings.hindsight else tick
        pool = [
            _Held(citizen_id, citizen.name, scored)
            for citizen_id, citizen in citizens.items()
            for scored in citizen.memory.retrieve(
                tick,
                query_embedding=query,
                k=self.settings.per_citizen or max(k, _OF_EACH),
                refresh=False,
                until=until,
            )
        ]
        if self.settings.per_citizen is None:
            about = [query, *(one.event.embedding for one in events)]
            vectors = [one for one in about if one is not None]
            if query is None and vectors:
                # Nothing is asked: nothing is relevant.
                vectors.insert(0, np.zeros_like(vectors[0]))
            pool += self._near(citizens, tick, vectors, max(2 * k, _NEAREST), until)
        seen: set[tuple[str, str]] = set()
        kept = []
        for one in sorted(pool, key=lambda one: one.scored.score, reverse=True):
            memory = one.scored.memory
            names = {("id", memory.id)}
            if self.settings.dedupe_content:
                names.add(("text", " ".join(memory.text.casefold().split())))
            if not names & seen:
                kept.append(one)
            seen |= names
        return kept

    def _near(
        self,
        citizens: Mapping[str, Citizen],
        tick: int,
        vectors: Sequence[Vector],
        most: int,
        until: int | None,
    ) -> Iterator[_Held]:
        """Yield the memories nearest to some vectors, one search a store."""
        groups: dict[int, dict[str, tuple[str, Citizen]]] = {}
        for citizen_id, citizen in citizens.items():
            if isinstance(citizen.memory, MemoryStream) and len(citizen.memory):
                group = groups.setdefault(id(citizen.memory.memory), {})
                group[citizen.memory.agent_id] = citizen_id, citizen
        for group in groups.values():
            (first, holder), *others = group.values()
            streams = [citizen.memory for _, citizen in others]
            for scored in holder.memory.near(
                vectors, tick, most=most, until=until, streams=streams
            ):
                held, citizen = group.get(scored.memory.agent_id, (first, holder))
                yield _Held(held, citizen.name, scored)

    def _ranked(
        self,
        pool: list[_Held],
        reached: list[_Precedent],
        nearby: list[_Precedent],
        weights: tuple[float, float, float],
        query: Vector | None,
        about: Vector | None,
        k: int,
    ) -> list[Recalled]:
        if not pool:
            return []
        scored, events = [one.scored for one in pool], [*reached, *nearby]
        given = [one.memory.embedding for one in scored] + [one.event.embedding for one in events]
        rows = _rows([*given, query])[:-1]
        candidates = Candidates(
            vectors=rows[: len(pool)],
            similarity=np.array([one.relevance for one in scored]),
            recency=np.array([one.recency for one in scored]),
            importance=np.array([one.importance for one in scored]),
        )
        ancestors = Ancestors(
            vectors=rows[len(pool) :],
            depths=np.array([one.depth for one in events], dtype=np.int64),
            weights=np.array([one.weight for one in events], dtype=np.float64),
            times=np.array([one.event.tick for one in events], dtype=np.int64),
        )
        settings, behind = self.settings, {"fallback": len(reached)}
        if settings.fusion == "interleave":
            ranked = interleave(
                candidates,
                ancestors.part(slice(len(reached))),
                fallback=ancestors.part(slice(len(reached), None)) if settings.fallback else None,
                event=None if about is None else unit(about),
                floor=settings.floor,
                k=k,
            )
        else:
            rule = multiplicative if settings.fusion == "multiplicative" else additive
            ranked = rule(candidates, ancestors, replace(settings.blend, weights=weights))
        return [
            Recalled(
                pool[one.candidate].citizen_id,
                pool[one.candidate].name,
                scored[one.candidate].memory,
                one.score,
                one.factors,
                # Events that no link reaches stand behind those that one does.
                None
                if one.ancestor is None
                else events[one.ancestor + behind.get(one.arm, 0)].event,
                one.arm,
            )
            for one in ranked[:k]
        ]


def _citizen(name: str, one: Any) -> Citizen:
    """Return whoever remembers: a stream, or anything with a ``memory`` that is one."""
    if isinstance(one, Citizen):
        return one
    memory = one if isinstance(one, MemoryStream) else getattr(one, "memory", None)
    if not isinstance(memory, MemoryStream):
        raise wrong(f"citizens[{name!r}]", one, "a MemoryStream, or what has one as its ``memory``")
    return Citizen(name if one is memory else str(getattr(one, "name", name)), memory)


def _shared_weights(citizens: Iterable[Citizen]) -> tuple[float, float, float]:
    """How all streams weigh relevance, recency and importance."""
    each = [citizen.memory.weights for citizen in citizens]
    found = {(one.relevance, one.recency, one.importance) for one in each}
    if len(found) > 1:
        raise InvalidInputError(
            f"the streams weigh relevance, recency and importance differently ({sorted(found)}): "
            "give all of them the same weights"
        )
    return found.pop() if found else (1.0, 1.0, 1.0)


def _rows(vectors: Sequence[Vector | None]) -> Vector:
    """Vectors as rows of length 1; zeros where there is none."""
    lengths = {len(vector) for vector in vectors if vector is not None}
    if len(lengths) > 1:
        raise InvalidVectorError(
            f"vectors of {sorted(lengths)} dimensions cannot be compared: embed all with one model"
        )
    none = np.zeros(max(lengths, default=1), np.float32)
    return np.stack([none if vector is None else unit(vector) for vector in vectors])
