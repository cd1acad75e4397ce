"""Links between events."""

from __future__ import annotations

import json

from cvx.arguments import a_text, an_event, checked, number, one_of
from cvx.causal.events import CAUSES, check_order, known_order
from cvx.errors import (
    EdgeWeightError,
    InvalidEdgeError,
    NoVectorError,
    UnknownEdgeKindError,
    UnknownEventError,
)
from cvx.memory.base import Base
from cvx.types import Edge

_weight = number(0.0, 1.0, EdgeWeightError)
_text = one_of(str, called="a str", error=InvalidEdgeError)


class Links(Base):
    """What says that one event led to another."""

    def link(
        self,
        a: int,
        b: int,
        kind: str = "caused",
        weight: float = 1.0,
        why: str = "",
        *,
        evidence: str = "",
        effect_first: str = "refuse",
    ) -> None:
        """Say that one event led to another; the same link again replaces the older one.

        Parameters
        ----------
        a, b : int
            Events, from cause to effect.
        kind : str, default "caused"
            A kind of edge; one of your own is declared first, with ``declare_edge_kind``.
        weight : float, default 1.0
            In [0, 1].
        why, evidence : str
            The reason in words, and what it rests on.
        effect_first : {"refuse", "flag", "allow"}, default "refuse"
            What becomes of a link of a built-in causal kind ("caused", "caused_success",
            "caused_failure", "granger_causal") to an effect that happened before its cause: an
            error, a link with a warning, or a link. Allow it where timestamps say when something
            was told, and not when it happened.

        Raises
        ------
        UnknownEventError, UnknownEdgeKindError, EdgeWeightError, InvalidEdgeError
            No such event or kind; a weight outside its bounds; a link to itself, or a reason that
            is no string.
        EffectBeforeCauseError
            The effect happened before the cause, and ``effect_first`` is "refuse".
        InvalidParameterError
            Another ``effect_first`` than those.

        Warns
        -----
        EffectFirstWarning
            The effect happened before the cause, and ``effect_first`` is "flag".
        """
        a, b = an_event("a", a), an_event("b", b)
        for name, value in (
            ("kind", kind),
            ("why", why),
            ("evidence", evidence),
            ("effect_first", effect_first),
        ):
            _text(name, value)
        weight = _weight("weight", weight)
        if a == b:
            raise InvalidEdgeError(f"event {a} cannot lead to itself: give two events")
        if kind == "temporal":
            raise InvalidEdgeError("temporal edges are implied by time: give another kind")
        kinds = self.index.edge_kinds
        if kind not in kinds:
            raise UnknownEdgeKindError(
                f"there is no edge kind {kind!r}: declare it first, or use {', '.join(kinds)}"
            )
        known_order(effect_first)
        with self.record.transaction() as write:
            (cause, began), (effect, followed) = self._end(a), self._end(b)
            if kind in CAUSES:
                check_order((a, began), (b, followed), effect_first)
            write.add_links([Edge(cause, effect, kind, weight, why, evidence)])

    @checked(name=a_text)
    def declare_edge_kind(self, name: str) -> None:
        """Make a name an edge kind of this memory, for good.

        Raises
        ------
        InvalidEdgeKindNameError
            Not lower snake case.
        """
        if name in self.index.edge_kinds:
            return
        # The index knows which names it takes; this one is thrown away.
        self._store.fresh().declare_edge_kind(name)
        with self.record.transaction() as write:
            kinds = json.loads(self.record.meta("edge_kinds") or "[]")
            write.set_meta("edge_kinds", json.dumps([*kinds, name]))
            write.journal("kind", [name])

    def _node(self, event_id: int) -> int:
        return self._end(event_id)[0]

    def _end(self, event_id: int) -> tuple[int, int]:
        """The node of an event, and when it happened."""
        found = self.record.query(
            "SELECT node, timestamp FROM events WHERE event_id = ?", (event_id,)
        )
        if not found:
            raise UnknownEventError(f"there is no event {event_id}: it was erased or never given")
        if found[0][0] is None:
            raise NoVectorError(f"event {event_id} is in no index: add it as an event of its own")
        node, timestamp = found[0]
        return int(node), int(timestamp)
