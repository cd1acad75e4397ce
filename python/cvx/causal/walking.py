"""The reading half of a causal graph: walks, and stories made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cvx.causal.events import CausalEvent, EventId, Link
from cvx.causal.ground import Ground
from cvx.causal.narrative import Story
from cvx.causal.walk import DEFAULT_DEPTH, DEFAULT_NODES, Limits, Walk
from cvx.errors import InvalidParameterError, UnknownEventError

Attenuation = float | Mapping[tuple[str, str], float]


class Walking:
    """Everything that asks a graph, and changes nothing."""

    ground: Ground
    attenuation: Attenuation

    def get_event(self, event_id: EventId) -> CausalEvent | None:
        """Return an event, or None if there is none of that id."""
        return self.ground.get(event_id)

    def events_for_institution(self, institution_id: str) -> list[CausalEvent]:
        """Return what happened to an institution, in time order."""
        return self.ground.of_institution(institution_id)

    def causes(self, event_id: EventId) -> list[Link]:
        """Return the links that end at an event, the strongest first.

        Raises
        ------
        UnknownEventError
            No such event.
        """
        self._known(event_id)
        found = self.ground.links([event_id], backward=True)
        return sorted(found, key=lambda link: -link.weight)

    def effects(self, event_id: EventId) -> list[Link]:
        """Return the links that start at an event, the strongest first; see ``causes``."""
        self._known(event_id)
        found = self.ground.links([event_id], backward=False)
        return sorted(found, key=lambda link: -link.weight)

    def walk(
        self,
        event_id: EventId,
        max_depth: int = DEFAULT_DEPTH,
        *,
        max_nodes: int = DEFAULT_NODES,
        backward: bool = True,
        min_weight: float = 0.0,
    ) -> Walk:
        """Walk back to what led to an event, or forward to what came of it.

        Parameters
        ----------
        event_id : str or int
            Where the walk begins.
        max_depth, max_nodes, backward, min_weight
            As for ``Limits``.

        Returns
        -------
        Walk
            With depth, path weight and path of each, and whether the budget cut it off.

        Raises
        ------
        UnknownEventError
            No such event.
        InvalidParameterError
            A bound below 1.
        """
        limits = Limits(max_depth, max_nodes, backward, min_weight)
        self._known(event_id)
        return self.ground.walk(event_id, limits, self._factor())

    def predecessors(self, event_id: EventId, max_depth: int = DEFAULT_DEPTH) -> dict[EventId, int]:
        """Return every cause with its depth: 1 for a direct one; {} for an unknown event."""
        return self._depths(event_id, max_depth, backward=True)

    def consequences(self, event_id: EventId, max_depth: int = DEFAULT_DEPTH) -> dict[EventId, int]:
        """Return everything that came of an event with its depth; {} for an unknown event."""
        return self._depths(event_id, max_depth, backward=False)

    def _depths(self, event_id: EventId, max_depth: int, *, backward: bool) -> dict[EventId, int]:
        if max_depth < 1:
            raise InvalidParameterError(f"max_depth is {max_depth}: give at least 1")
        if self.ground.get(event_id) is None:
            return {}
        return self.ground.depths(event_id, max_depth, backward=backward)

    def story(
        self,
        event_id: EventId,
        max_depth: int = DEFAULT_DEPTH,
        *,
        after: int = 2,
        before: bool = True,
        max_nodes: int = DEFAULT_NODES,
    ) -> Story:
        """Return an event with what led to it and what came of it, to be told or drawn.

        Parameters
        ----------
        event_id : str or int
            What the story is about.
        max_depth : int, default 4
            How far back it goes, at least 1.
        after : int, default 2
            How far on it goes; 0 ends it with the event.
        before : bool, default True
            Whether it begins with what led to the event; ``False``: with the event.
        max_nodes : int, default 1_000
            Events either way at the most.

        Raises
        ------
        UnknownEventError
            No such event.
        InvalidParameterError
            A bound below 1, or ``after`` below 0.
        """
        if after < 0:
            raise InvalidParameterError(f"after is {after}: give 0 or more")
        subject = self._known(event_id)
        back = self.walk(event_id, max_depth, max_nodes=max_nodes) if before else None
        forward = None
        if after:
            forward = self.walk(event_id, after, max_nodes=max_nodes, backward=False)
        events = {subject.id: subject}
        for reached in (*(back.found if back else ()), *(forward.found if forward else ())):
            found = self.ground.get(reached.id)
            if found is not None:
                events[reached.id] = found
        return Story(
            subject,
            events,
            self._told(subject.id, back, backward=True),
            self._told(subject.id, forward, backward=False),
            back,
            forward,
        )

    def _told(self, subject: EventId, walked: Walk | None, *, backward: bool) -> tuple[Link, ...]:
        """The links between the subject and what was reached, those across ways included."""
        known = {subject, *(reached.id for reached in (walked.found if walked else ()))}
        links = self.ground.links(list(known) if walked else [], backward=backward)
        return tuple(link for link in links if link.cause in known and link.effect in known)

    def _known(self, event_id: EventId) -> CausalEvent:
        found = self.ground.get(event_id)
        if found is None:
            raise unknown_event(event_id)
        return found

    def _factor(self) -> Callable[[Link], float] | None:
        return None if self.attenuation in (1.0, {}) else self._across

    def _across(self, link: Link) -> float:
        cause, effect = self.ground.get(link.cause), self.ground.get(link.effect)
        if cause is None or effect is None or cause.institution_id == effect.institution_id:
            return 1.0
        if isinstance(self.attenuation, Mapping):
            return self.attenuation.get((cause.institution_id, effect.institution_id), 1.0)
        return self.attenuation


def unknown_event(event_id: EventId) -> UnknownEventError:
    """Return the error for an event that a graph does not have."""
    return UnknownEventError(
        f"there is no event {event_id!r} that can be seen here: add it, or name its namespace"
    )
