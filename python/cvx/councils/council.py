"""A council: logs decisions and crises with their causes, asks citizens for what they saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from cvx.arguments import an_event, some_events, wrong
from cvx.councils.crisis_context import TCMF, EmbedderRouter, TCMFContext, TCMFRetriever
from cvx.councils.memory_stream import MemoryStream, StreamWeights
from cvx.errors import UnknownError
from cvx.memory import Memory
from cvx.types import DEFAULT_NAMESPACE, AnEvent, Event

Events: TypeAlias = Sequence[AnEvent]


class Council:
    """The events of a society, its citizens, and what it should hear in a crisis.

    Events stand in the memory's own namespace, each citizen is a namespace: ``council["ana"]``.

    Parameters
    ----------
    memory : cvx.Memory
        Its timestamps are ticks.
    settings : TCMF or str, default "default"
        As for ``TCMFRetriever``.
    weights : StreamWeights, optional
        Of the citizens' memories.
    window_ticks : int, default 48
        0: an event that names no cause is linked to nothing. Otherwise ``memory.causes.propose``
        links it to what is likely; in the preset "tcmf-seed" it is linked to all that happened so
        many ticks before and reads alike.

    Examples
    --------
    >>> import asyncio
    >>> from cvx.embed import LexicalEmbedder
    >>> council = Council(Memory(embedder=LexicalEmbedder()))
    >>> cuts = council.decision("Budget cuts passed", 60, "senate")
    >>> plague = council.crisis("Plague outbreak", 80, "health", causes=[cuts])
    >>> _ = council["ana"].saw("They cut the budget for doctors", 61, importance=8)
    >>> found = asyncio.run(council.context("Plague outbreak", crisis=plague))
    >>> [(one.name, one.memory.text) for one in found.recalled]
    [('ana', 'They cut the budget for doctors')]
    >>> [event.text for event in found.chain]
    ['Budget cuts passed']
    """

    def __init__(
        self,
        memory: Memory,
        settings: TCMF | str = "default",
        *,
        weights: StreamWeights | None = None,
        window_ticks: int = 48,
    ) -> None:
        self.memory = memory
        self.weights = weights
        self.window_ticks = window_ticks
        self.graph = memory.causes.graph()
        self.retriever = TCMFRetriever(self.graph, settings)
        self._as_published = settings == "tcmf-seed"

    def __getitem__(self, name: str) -> MemoryStream:
        """Return what a citizen remembers; whoever is named is one.

        Raises
        ------
        InvalidInputError
            The name is no text, or empty: the memory's own namespace is the world's.
        """
        if not isinstance(name, str) or not name:
            raise wrong("the name of a citizen", name, "a text that is not empty")
        return MemoryStream(name, self.weights, memory=self.memory)

    def __iter__(self) -> Iterator[str]:
        """Go through the names of everybody who remembers something."""
        return iter(self.citizens())

    def citizens(self) -> dict[str, MemoryStream]:
        """Return everybody who remembers something, by name."""
        names = self.memory.record.query(
            "SELECT DISTINCT namespace FROM events WHERE namespace <> ? ORDER BY namespace",
            (DEFAULT_NAMESPACE,),
        )
        return {name: self[name] for (name,) in names}

    def decision(self, text: str, tick: int, institution: str, *, causes: Events = ()) -> int:
        """Log a decision; see ``log``."""
        return self.log("decision", text, tick, institution, causes=causes)

    def crisis(self, text: str, tick: int, institution: str, *, causes: Events = ()) -> int:
        """Log a crisis; see ``log``."""
        return self.log("crisis", text, tick, institution, causes=causes)

    def outcome(self, text: str, tick: int, institution: str, *, causes: Events = ()) -> int:
        """Log what came of a decision; see ``log``."""
        return self.log("outcome", text, tick, institution, causes=causes)

    def log(self, kind: str, text: str, tick: int, institution: str, *, causes: Events = ()) -> int:
        """Add an event with its causes, and return its id.

        Parameters
        ----------
        kind, text : str
            What it is, and what happened.
        tick : int
            When.
        institution : str
            Who did it, or whom it happened to.
        causes : sequence of Event, Hit or int
            Events that led to it; without any it is linked to what is likely, see ``window_ticks``.

        Raises
        ------
        UnknownError
            A cause that does not exist; nothing is added.
        InvalidInputError
            A cause that happened later; nothing is added.
        """
        known = some_events("causes", causes)
        for cause in known:
            if cause not in self.graph:
                raise UnknownError(f"there is no event {cause!r} in the graph: log it first")
        made = Event(
            entity_id=0, timestamp=tick, text=text, kind=kind, metadata={"institution": institution}
        )
        with self.memory.record.together():
            event = int(self.memory.add_many([made], again=True)[0])
            for cause in known:
                self.graph.link(cause, event)
            if not known and self.window_ticks and self._as_published:
                self.graph.auto_link_predecessors(event, self.window_ticks)
        if not known and self.window_ticks and not self._as_published:
            self.memory.causes.propose(event)
        return event

    async def context(
        self,
        question: str,
        crisis: AnEvent | None = None,
        k: int = 12,
        *,
        tick: int | None = None,
        institution: str | None = None,
    ) -> TCMFContext:
        """Find what the council should hear; see ``TCMFRetriever.retrieve``.

        Parameters
        ----------
        question : str
            The crisis, in words.
        crisis : Event, Hit or int, optional
            The event that it is.
        k : int, default 12
            How many memories.
        tick : int, optional
            Now; by default when the crisis happened, or the latest event.
        institution : str, optional
            Whose council it is; by default that of the crisis.

        Raises
        ------
        UnknownError
            No event has the number of the crisis.
        """
        number = None if crisis is None else an_event("crisis", crisis)
        event = None if number is None else self.graph.get_event(number)
        if number is not None and event is None:
            raise UnknownError(f"there is no event {number} in the graph: log the crisis first")
        if tick is None:
            latest = self.memory.record.query("SELECT max(timestamp) FROM events")[0][0]
            tick = (latest or 0) if event is None else event.tick
        if institution is None:
            institution = "" if event is None else event.institution_id
        return await self.retriever.retrieve(
            question,
            self.citizens(),
            tick,
            institution,
            number,
            k,
            EmbedderRouter(self.memory.embedder),
        )
