"""Refusing at once what could not be written down when the episode ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cvx.arguments import whole, wrong
from cvx.errors import InvalidEntityError, InvalidParameterError
from cvx.validation import VISIBILITIES, storable_metadata, storable_text

an_entity = whole(0, error=InvalidEntityError)
"""Check whose timeline is meant, by the name of the argument."""


def check_text(name: str, value: object, *, optional: bool = False) -> None:
    """Raise an InvalidParameterError unless the value is a string (or None, where it may be)."""
    if not (isinstance(value, str) or (optional and value is None)):
        wanted = "a string or None" if optional else "a string"
        raise InvalidParameterError(f"{name} is {value!r}: give {wanted}")
    if value is not None:
        storable_text(name, value)


def a_visibility(name: str, value: Any) -> str:
    """Check who else may read an episode."""
    if value not in VISIBILITIES:
        raise wrong(name, value, f"one of {', '.join(VISIBILITIES)}")
    return str(value)


def check_action(action: object) -> None:
    """Raise an InvalidParameterError unless the value says what was done, or is None."""
    check_text("action", action, optional=True)
    if isinstance(action, str) and not action.strip():
        raise InvalidParameterError(
            f"action is {action!r}: give what was done, or None where nothing was"
        )


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as a tuple; raise an InvalidParameterError unless each is a string."""
    if isinstance(tags, str):
        raise InvalidParameterError(f"tags is the string {tags!r}: give a sequence of strings")
    found = tuple(tags)
    for tag in found:
        check_text("a tag", tag)
    return found


def checked_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of metadata; raise an InvalidInputError unless it can be stored."""
    return storable_metadata("metadata", metadata or {})
