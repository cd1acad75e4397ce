"""What is refused before anything is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from cvx.errors import InvalidInputError
from cvx.recall.suspicion import reads_like_an_order
from cvx.types import Event
from cvx.validation import check_event

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
    check_event(event)
    if _ORDER not in event.tags and reads_like_an_order(event.text):
        return replace(event, tags=(*event.tags, _ORDER))
    return event
