"""Temporal-causal memory fusion: what a council is told when a crisis breaks out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cvx.causal.arrays import as_ancestors, as_candidates
from cvx.causal.context import Recalled, TCMFContext
from cvx.causal.council import Citizen, Router, shared_weights
from cvx.causal.events import CausalEvent, EventId
from cvx.causal.graph import CausalGraph
from cvx.causal.presets import PRESETS, TCMF
from cvx.causal.stream import MemoryStream, ScoredMemory
from cvx.causal.vectors import as_vector, unit
from cvx.errors import InvalidKError, InvalidParameterError
from cvx.types import Vector


@dataclass(frozen=True, slots=True)
class _Candidate:
    citizen_id: str
    name: str
    scored: ScoredMemory


@dataclass(frozen=True, slots=True)
class _Precedents:
    crisis: CausalEvent | None
    reached: list[CausalEvent]
    nearby: list[CausalEvent]
    depths: dict[EventId, int]
    weights: dict[EventId, float]
    truncated: bool


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
    InvalidParameterError
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
            raise InvalidParameterError(
                f"there is no preset {settings!r}: give one of {', '.join(PRESETS)}, or a TCMF"
            )
        if not embed_timeout_s > 0:
            raise InvalidParameterError(
                f"embed_timeout_s is {embed_timeout_s}: give a number of seconds above 0"
            )
        self.embed_timeout_s = embed_timeout_s
        self.graph = CausalGraph() if graph is None else graph
        self.settings = PRESETS[settings] if isinstance(settings, str) else settings

    async def retrieve(
        self,
        question: str,
        citizens: Mapping[str, Citizen | MemoryStream],
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
        citizens : mapping of str to Citizen or MemoryStream
            Who may have seen something, by id.
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
        InvalidKError
            k below 1.
        InvalidParameterError
            Streams that weigh differently: they cannot be compared.
        DimensionError
            The question, the memories or the events were embedded by different models.
        """
        if k < 1:
            raise InvalidKError(f"k is {k}: ask for at least 1")
        degraded: list[str] = []
        query = await self._embedded(question, router, degraded)
        present = dict(citizens)

        def found() -> TCMFContext:
            precedents = self._precedents(crisis_event_id, institution_id, tick, degraded)
            pool = self._pool(present, tick, query)
            if not any(one.scored.memory.embedding is not None for one in pool):
                degraded.append("no memory has a vector: causes cannot be matched")
            recalled = self._ranked(pool, precedents, query, shared_weights(present))[:k]
            shown = precedents.nearby if self.settings.chain == "all" else []
            chain = tuple(sorted(precedents.reached + shown, key=lambda event: event.tick))
            return TCMFContext(
                question, tuple(recalled), chain, tuple(degraded), precedents.truncated
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

    def _precedents(
        self, crisis: EventId | None, institution_id: str, tick: int, degraded: list[str]
    ) -> _Precedents:
        graph, settings = self.graph, self.settings
        if not len(graph):
            degraded.append("no graph: nothing is known of causes")
        elif crisis is None:
            degraded.append("no crisis event: only the institution's recent events count")
        elif crisis not in graph:
            degraded.append(f"the graph has no event {crisis!r}")
        walked = None
        if crisis is not None and crisis in graph:
            walked = graph.walk(crisis, settings.max_depth)
        found = walked.found if walked else ()
        events = {reached.id: graph.get_event(reached.id) for reached in found}
        asked = None if crisis is None else graph.get_event(crisis)
        nearby = [
            event for event in self._recent(institution_id, asked, tick) if event.id not in events
        ]
        depths = {reached.id: reached.depth for reached in found}
        weights = {reached.id: reached.weight for reached in found}
        return _Precedents(
            asked,
            [event for event in events.values() if event is not None],
            nearby,
            depths,
            weights,
            bool(walked and walked.truncated),
        )

    def _recent(
        self, institution_id: str, crisis: CausalEvent | None, tick: int
    ) -> list[CausalEvent]:
        """The latest events of an institution that may have led to a crisis."""
        events = self.graph.events_for_institution(institution_id)
        if not self.settings.crisis_counts:
            until, itself = (tick, None) if crisis is None else (crisis.tick, crisis.id)
            events = [event for event in events if event.tick <= until and event.id != itself]
        return (
            events[-self.settings.institution_events :] if self.settings.institution_events else []
        )

    def _pool(
        self, citizens: Mapping[str, Citizen | MemoryStream], tick: int, query: Vector | None
    ) -> list[_Candidate]:
        pool = []
        for citizen_id, citizen in citizens.items():
            stream = citizen.memory if isinstance(citizen, Citizen) else citizen
            name = citizen.name if isinstance(citizen, Citizen) else citizen_id
            most = self.settings.per_citizen or max(len(stream), 1)
            scored = stream.retrieve(
                tick,
                query_embedding=query,
                k=most,
                refresh=False,
                until=None if self.settings.hindsight else tick,
            )
            pool += [_Candidate(citizen_id, name, one) for one in scored]
        return self._deduplicated(pool)

    def _deduplicated(self, pool: list[_Candidate]) -> list[_Candidate]:
        """Keep of each memory the one that its holder scores best."""
        seen: set[Any] = set()
        kept = []
        for one in sorted(pool, key=lambda one: one.scored.score, reverse=True):
            memory = one.scored.memory
            names: set[Any] = {("id", memory.id)}
            if self.settings.dedupe_content:
                names.add(("text", " ".join(memory.text.casefold().split())))
            if not names & seen:
                kept.append(one)
            seen |= names
        return kept

    def _ranked(
        self,
        pool: list[_Candidate],
        precedents: _Precedents,
        query: Vector | None,
        weights: tuple[float, float, float],
    ) -> list[Recalled]:
        if not pool:
            return []
        events = precedents.reached + precedents.nearby
        given = [
            *(one.scored.memory.embedding for one in pool),
            *(event.embedding for event in events),
            query,
        ]
        dim = next((len(vector) for vector in given if vector is not None), 1)
        candidates = as_candidates([one.scored for one in pool], dim)
        reached = as_ancestors(precedents.reached, dim, precedents.depths, precedents.weights)
        distant = dict.fromkeys((e.id for e in precedents.nearby), self.settings.nearby_depth)
        weak = dict.fromkeys(distant, self.settings.nearby_weight)
        nearby = as_ancestors(precedents.nearby, dim, distant, weak)
        crisis = precedents.crisis
        about = query if crisis is None or crisis.embedding is None else crisis.embedding
        ranked = self.settings.rank(
            candidates, reached, nearby, weights, None if about is None else unit(about)
        )
        return [
            Recalled(
                pool[one.candidate].citizen_id,
                pool[one.candidate].name,
                pool[one.candidate].scored.memory,
                one.score,
                one.factors,
                None if event is None else events[event],
                one.arm,
            )
            for one, event in ranked
        ]
