"""Events into a causal graph as they happen: hooks for a simulation, or for an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy.typing as npt

from cvx.causal.events import CausalEvent, EventId
from cvx.causal.graph import CausalGraph
from cvx.errors import UnknownEventError
from cvx.types import Vector

Listener: TypeAlias = Callable[[CausalEvent], None]


class EventLog:
    """Adds what happens to a causal graph, links it, and tells those who listen.

    Parameters
    ----------
    graph : CausalGraph
        Where events go.
    embed : callable, optional
        From a text to its vector, for events that bring none.
    window_ticks : int, default 48
        How far back an event that names no cause is linked to what reads alike; 0 for never.

    Examples
    --------
    >>> graph = CausalGraph()
    >>> log = EventLog(graph)
    >>> cuts = log.decision("Budget cuts passed", 60, "senate")
    >>> plague = log.crisis("Plague outbreak", 80, "health", causes=[cuts])
    >>> graph.predecessors(plague) == {cuts: 1}
    True
    """

    def __init__(
        self,
        graph: CausalGraph,
        *,
        embed: Callable[[str], Vector] | None = None,
        window_ticks: int = 48,
    ) -> None:
        self.graph = graph
        self.embed = embed
        self.window_ticks = window_ticks
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` with every event from now on, after it was linked."""
        self._listeners.append(listener)

    def crisis(
        self, text: str, tick: int, institution_id: str, *, causes: Sequence[EventId] = ()
    ) -> EventId:
        """Log a crisis; see ``log``."""
        return self.log("crisis", text, tick, institution_id, causes=causes)

    def decision(
        self, text: str, tick: int, institution_id: str, *, causes: Sequence[EventId] = ()
    ) -> EventId:
        """Log a decision of a council; see ``log``."""
        return self.log("decision", text, tick, institution_id, causes=causes)

    def outcome(
        self, text: str, tick: int, institution_id: str, *, causes: Sequence[EventId] = ()
    ) -> EventId:
        """Log what came of a decision; see ``log``."""
        return self.log("outcome", text, tick, institution_id, causes=causes)

    def log(
        self,
        kind: str,
        text: str,
        tick: int,
        institution_id: str = "",
        *,
        causes: Sequence[EventId] = (),
        embedding: npt.ArrayLike | None = None,
    ) -> EventId:
        """Add an event with its causes.

        Parameters
        ----------
        kind, text, tick, institution_id, embedding
            As for ``CausalGraph.add_event``.
        causes : sequence of str or int
            Events that led to it; without any it is linked to what came shortly before and reads
            alike.

        Returns
        -------
        str or int
            Its id.

        Raises
        ------
        UnknownEventError
            A cause that does not exist; nothing is added.
        """
        for cause in causes:
            if cause not in self.graph:
                raise UnknownEventError(f"there is no event {cause!r} in the graph: log it first")
        vector = embedding
        if vector is None and self.embed is not None:
            vector = self.embed(text)
        event = self.graph.add_event(
            None, text, tick, kind=kind, institution_id=institution_id, embedding=vector
        )
        for cause in causes:
            self.graph.link(cause, event)
        if not causes and self.window_ticks:
            self.graph.auto_link_predecessors(event, self.window_ticks)
        added = self.graph.get_event(event)
        if added is not None:
            for listener in self._listeners:
                listener(added)
        return event
