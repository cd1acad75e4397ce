"""What is refused before anything is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from cvx.episodes import check_reward
from cvx.errors import (
    InvalidEntityError,
    InvalidInputError,
    InvalidParameterError,
)
from cvx.recall.suspicion import reads_like_an_order
from cvx.store.spaces import STATES, VISIBILITIES, check_namespace
from cvx.types import Event

_ORDER = "instruction"
"""Tag of text that reads like an order to a model: a mark to filter by, not a refusal."""


@contextmanager
def named(place: int) -> Iterator[None]:
    """Say which of several events an error is about."""
    try:
        yield
    except InvalidInputError as error:
        raise type(error)(f"event {place} of those given: {error}") from error


def sound(event: Event) -> Event:
    """Return an event whose every field can be stored, or raise what is wrong with it."""
    _check_types(event)
    check_namespace(event.namespace)
    if not 0 <= event.entity_id < 2**63:
        raise InvalidEntityError(f"entity {event.entity_id}: give one from 0 up to 2**63 - 1")
    if not -(2**63) <= event.timestamp < 2**63:
        raise InvalidInputError(f"timestamp {event.timestamp}: give one of 64 bits")
    if event.reward is not None:
        check_reward(event.reward)
    for name, value in (("trust", event.trust), ("salience", event.salience)):
        if value is not None and not 0.0 <= value <= 1.0:
            raise InvalidParameterError(f"{name} is {value}: give one in [0, 1]")
    if event.visibility not in VISIBILITIES:
        raise InvalidParameterError(
            f"visibility is {event.visibility!r}: give one of {', '.join(VISIBILITIES)}"
        )
    if event.state not in STATES:
        raise InvalidParameterError(f"state is {event.state!r}: give one of {', '.join(STATES)}")
    if _ORDER not in event.tags and reads_like_an_order(event.text):
        return replace(event, tags=(*event.tags, _ORDER))
    return event


def _check_types(event: Event) -> None:
    if not isinstance(event, Event):
        raise InvalidInputError(f"{event!r} is no Event: give one, or a text to add")
    # SQLite takes anything in any column, and an index is built of all rows or of none.
    for name, value in (("text", event.text), ("kind", event.kind), ("source", event.source)):
        if not isinstance(value, str):
            raise InvalidInputError(f"{name} is {value!r}: give a str")
    for name, given in (("action", event.action), ("key", event.key)):
        if given is not None and not isinstance(given, str):
            raise InvalidInputError(f"{name} is {given!r}: give a str, or None")
    if not isinstance(event.entity_id, int):
        raise InvalidEntityError(f"entity {event.entity_id!r}: give an int")
    if not isinstance(event.timestamp, int):
        raise InvalidInputError(f"timestamp {event.timestamp!r}: give an int")
    if not all(isinstance(tag, str) for tag in event.tags):
        raise InvalidParameterError(f"tags are {event.tags!r}: give strings")
    for name, number in (("trust", event.trust), ("salience", event.salience)):
        if not isinstance(number, int | float) and (number is not None or name == "trust"):
            raise InvalidParameterError(f"{name} is {number!r}: give a number in [0, 1]")
