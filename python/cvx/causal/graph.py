"""What led to what: events and the links between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt

from cvx.causal.events import CausalEvent, EventId, Link
from cvx.causal.ground import Ground, RamGround
from cvx.causal.linking import LinkRule, proximity_links
from cvx.causal.order import check_order, known_order
from cvx.causal.walking import Attenuation, Walking, unknown_event
from cvx.errors import (
    InvalidEdgeError,
    InvalidParameterError,
)


class CausalGraph(Walking):
    """A directed graph of events, over the edge layer of an index.

    Parameters
    ----------
    ground : Ground, optional
        Where events and links are kept; by default in RAM. A memory gives out a graph over its
        own events: ``cvx.Memory.causes``.
    attenuation : float or mapping of (str, str) to float, default 1.0
        What a link between two institutions is worth beside one within: one factor for all, or
        one for each pair (of the cause, of the effect); pairs that are not named keep theirs
        whole. In [0, 1].
    effect_first : {"refuse", "flag", "allow"}, default "refuse"
        What becomes of a link to an effect that happened before its cause: an error, a link with
        a warning, or a link.

    Examples
    --------
    >>> graph = CausalGraph()
    >>> for name, tick in (("drought", 20), ("rationing", 25), ("riots", 60)):
    ...     _ = graph.add_event(name, f"the {name}", tick)
    >>> graph.link("drought", "rationing", 0.9)
    >>> graph.link("rationing", "riots", 0.5)
    >>> graph.predecessors("riots")
    {'rationing': 1, 'drought': 2}
    >>> [(found.id, found.weight) for found in graph.walk("riots").found]
    [('rationing', 0.5), ('drought', 0.45)]
    """

    def __init__(
        self,
        ground: Ground | None = None,
        *,
        attenuation: Attenuation = 1.0,
        effect_first: str = "refuse",
    ) -> None:
        factors = attenuation.values() if isinstance(attenuation, Mapping) else (attenuation,)
        for factor in factors:
            if not 0.0 <= factor <= 1.0:
                raise InvalidParameterError(f"attenuation holds {factor}: give factors in [0, 1]")
        self.ground: Ground = RamGround() if ground is None else ground
        self.attenuation = attenuation
        self.effect_first = known_order(effect_first)

    def __len__(self) -> int:
        return len(self.ground)

    def __contains__(self, event: object) -> bool:
        return isinstance(event, (str, int)) and self.ground.get(event) is not None

    def __iter__(self) -> Iterator[CausalEvent]:
        return iter(self.ground.events())

    @property
    def size(self) -> int:
        """How many events there are."""
        return len(self.ground)

    def add_event(
        self,
        event_id: EventId | None,
        text: str,
        tick: int,
        *,
        kind: str = "event",
        institution_id: str = "",
        embedding: npt.ArrayLike | None = None,
    ) -> EventId:
        """Add something that happened.

        Parameters
        ----------
        event_id : str or int or None
            What it is called; ``None`` gives it a number.
        text, tick, kind, institution_id, embedding
            As for ``CausalEvent``.

        Returns
        -------
        str or int
            Its id.

        Raises
        ------
        InvalidInputError
            The id is taken, or the ground gives ids by itself.
        InvalidVectorError, DimensionError
            An embedding that is no vector, or of another dimension than those before.
        """
        name = self.ground.next_id() if event_id is None else event_id
        vector: Any = embedding
        return self.ground.add(
            CausalEvent("" if name is None else name, text, tick, kind, institution_id, vector)
        )

    def link(
        self,
        cause: EventId,
        effect: EventId,
        weight: float = 1.0,
        *,
        kind: str = "caused",
        why: str = "",
        evidence: str = "",
        recorded: int | None = None,
        lenient: bool = False,
    ) -> None:
        """Say that one event led to another; the same link again replaces the older one.

        Parameters
        ----------
        cause, effect : str or int
            Events.
        weight : float, default 1.0
            How sure, in [0, 1].
        kind : str, default "caused"
            "caused", "caused_success", "caused_failure" or "granger_causal".
        why, evidence : str
            The reason in words, and what it rests on.
        recorded : int, optional
            The tick at which this became known; default when the later of the two happened.
        lenient : bool, default False
            Pass over a link with an end that does not exist, as the blueprint does.

        Raises
        ------
        UnknownEventError
            An end does not exist.
        EdgeWeightError, InvalidEdgeError
            A weight outside [0, 1]; a link to itself.
        EffectBeforeCauseError
            The effect happened before the cause, and ``effect_first`` is "refuse".

        Warns
        -----
        EffectFirstWarning
            The same, and it is "flag".
        """
        made = Link(cause, effect, weight, kind, why, evidence, recorded)
        if cause == effect:
            raise InvalidEdgeError(f"event {cause!r} cannot lead to itself: give two events")
        ends = self.ground.get(cause), self.ground.get(effect)
        for name, event in zip((cause, effect), ends, strict=True):
            if event is None:
                if lenient:
                    return
                raise unknown_event(name)
        first, second = ends
        assert first is not None
        assert second is not None
        check_order((cause, first.tick), (effect, second.tick), self.effect_first)
        self.ground.put(made)

    def auto_link_predecessors(
        self,
        new_event_id: EventId,
        window_ticks: int = 48,
        semantic_threshold: float | None = None,
        *,
        rule: LinkRule | None = None,
    ) -> list[Link]:
        """Link an event to what came shortly before it and reads alike.

        ``0.5 * exp(-0.05 * age) + 0.5 * max(0, cosine)`` from 0.3 up becomes the weight. It is a
        proxy, for filling a sparse graph; see ``docs/causal.md``.

        Parameters
        ----------
        new_event_id : str or int
            The effect.
        window_ticks : int, default 48
            How far back to look; above 0. What happened at the same tick is left out.
        semantic_threshold : float, optional
            Leave out what is less similar; the blueprint's argument of this name does nothing,
            and so does this one until it is given.
        rule : LinkRule, optional
            Other shares, pace and bound than those.

        Returns
        -------
        list of Link
            What was linked, in time order.

        Raises
        ------
        UnknownEventError
            No such event.
        InvalidParameterError
            A window below 1.
        """
        event = self._known(new_event_id)
        if window_ticks < 1:
            raise InvalidParameterError(f"window_ticks is {window_ticks}: give at least 1")
        before = self.ground.between(event.tick - window_ticks, event.tick)
        made = proximity_links(event, before, rule or LinkRule(), semantic_threshold)
        for link in made:
            self.ground.put(link)
        return made

    def as_of(self, time: int) -> CausalGraph:
        """Return the graph as it was known at a time: no later event, link or weight."""
        return CausalGraph(
            self.ground.as_of(time),
            attenuation=self.attenuation,
            effect_first=self.effect_first,
        )

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``: events with their fields, links with weight and reason.

        Of several links between the same two events the strongest is kept.

        Raises
        ------
        MissingExtraError
            networkx is not installed (extra ``causal``).
        """
        from cvx.causal.export import to_networkx

        return to_networkx(self)
