"""What is refused before anything is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from cvx.errors import InvalidInputError
from cvx.store.suspicion import tags_with_mark
from cvx.types import Event
from cvx.validation import check_event


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
    tags = tags_with_mark(event.tags, event.text)
    return event if tags == event.tags else replace(event, tags=tags)
