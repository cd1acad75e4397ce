"""The nodes and links of a causal graph, and the order in time that a link must keep."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cvx.arguments import among
from cvx.causal.evidence import Evidence
from cvx.causal.vectors import as_vector
from cvx.errors import (
    EffectFirstWarning,
    InvalidInputError,
)
from cvx.types import Edge, EventId, Vector

_NOT_CAUSAL = frozenset(
    {"temporal", "same_action_type", "region_transition", "irrelevant", "mentions"}
)
CAUSES = frozenset({"caused", "caused_success", "caused_failure", "granger_causal"})
"""Kinds of which a cause comes before its effect; a kind of one's own may run against time."""


def causal_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the edge kinds that say what led to what: all but those that are known to say less.

    Examples
    --------
    >>> causal_kinds(("temporal", "caused", "irrelevant", "my_own"))
    ('caused', 'my_own')
    """
    return tuple(kind for kind in kinds if kind not in NOT_WALKED)


HIDDEN = {state: f"cause_{state}" for state in ("candidate", "rejected", "unjudged")}
"""The kinds under which links are kept that nothing walks: no ranking, no story."""

NOT_WALKED = _NOT_CAUSAL | {*HIDDEN.values()}


def state_of(edge: Edge) -> str:
    """Return what a link is: "stated", "judged", "confirmed", or what its hidden kind says."""
    hidden = edge.kind.removeprefix("cause_")
    if HIDDEN.get(hidden) == edge.kind:
        return hidden
    return Evidence.from_text(edge.evidence).state


@dataclass(frozen=True, slots=True)
class CausalEvent:
    """Something that happened, as a node of the graph.

    Parameters
    ----------
    id : str or int
        What it is called.
    text : str
        What it says.
    tick : int
        When it happened.
    kind : str, default "event"
        Free label, such as "crisis", "decision" or "policy".
    institution_id : str, default ""
        Who it happened to, or who did it.
    embedding : array_like of shape (dim,), float32, optional
        Where it lies.
    metadata : mapping, optional
        Whatever else is known of it.

    Raises
    ------
    InvalidInputError
        An id that is neither str nor int, or a text that is no str.
    InvalidVectorError
        An embedding that is no vector.
    """

    id: EventId
    text: str
    tick: int
    kind: str = "event"
    institution_id: str = ""
    embedding: Vector | None = field(default=None, repr=False, compare=False)
    metadata: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.id, (str, int)):
            raise InvalidInputError(f"the event's id is {self.id!r}: give a str or an int")
        if not isinstance(self.text, str):
            raise InvalidInputError(
                f"the text of event {self.id!r} is {self.text!r}: give a str, '' for no words"
            )
        if self.embedding is not None:
            object.__setattr__(self, "embedding", as_vector(self.embedding))


def link_of(edge: Edge, cause: EventId, effect: EventId) -> Edge:
    """Return an edge of a store as a link between two events."""
    state = state_of(edge)
    kind = "caused" if state in HIDDEN else edge.kind
    return Edge(cause, effect, kind, edge.weight, edge.why, edge.evidence, edge.recorded, state)


known_order = partial(among("refuse", "flag", "allow"), "effect_first")
"""Return "refuse", "flag" or "allow" as it is; anything else raises InvalidInputError."""


def check_link(
    link: Edge, began: int, followed: int, effect_first: str, *, stacklevel: int = 3
) -> None:
    """Refuse a link to itself; refuse or flag an effect that happened before its cause.

    Parameters
    ----------
    link : Edge
        Of a kind that is known. Only the kinds of ``CAUSES`` keep an order in time.
    began, followed : int
        When the cause happened, and when the effect did.
    effect_first : {"refuse", "flag", "allow"}
        What becomes of an effect before its cause: an error, a warning, or nothing.
    stacklevel : int, default 3
        Whose line the warning names: by default whoever called the caller.

    Raises
    ------
    InvalidInputError
        It leads from an event to itself, or its weight is outside [0, 1].
    InvalidInputError
        The effect happened first, and ``effect_first`` is "refuse".

    Warns
    -----
    EffectFirstWarning
        The effect happened first, and it is "flag".
    """
    if not 0.0 <= link.weight <= 1.0:
        raise InvalidInputError(f"weight is {link.weight}, outside [0, 1]: scale it to that range")
    if link.cause == link.effect:
        raise InvalidInputError(f"event {link.cause!r} cannot lead to itself: give two events")
    if followed >= began or effect_first == "allow" or link.kind not in CAUSES:
        return
    said = (
        f"event {link.effect!r} happened at {followed}, before its cause {link.cause!r} at "
        f"{began}: swap them, or say effect_first='allow'"
    )
    if effect_first == "refuse":
        raise InvalidInputError(said)
    warnings.warn(said, EffectFirstWarning, stacklevel=stacklevel)
