"""Refusing at once what could not be written down when the episode ends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cvx.arguments import whole, wrong
from cvx.errors import InvalidEntityError, InvalidParameterError, RewardRangeError
from cvx.store.spaces import VISIBILITIES

an_entity = whole(0, error=InvalidEntityError)
"""Check whose timeline is meant, by the name of the argument."""


def check_text(name: str, value: object, *, optional: bool = False) -> None:
    """Raise an InvalidParameterError unless the value is a string (or None, where it may be)."""
    if not (isinstance(value, str) or (optional and value is None)):
        wanted = "a string or None" if optional else "a string"
        raise InvalidParameterError(f"{name} is {value!r}: give {wanted}")


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
    """Return metadata as a dict; raise an InvalidParameterError unless JSON can hold it."""
    found = dict(metadata or {})
    if found:
        try:
            json.dumps(found)
        except (TypeError, ValueError) as error:
            raise InvalidParameterError(
                f"metadata is {found!r}, which JSON cannot hold ({error}): "
                "give strings, numbers, lists and dicts of these"
            ) from error
    return found


def check_reward(reward: float) -> float:
    """Return the reward as a float if it lies in [0, 1].

    Raises
    ------
    RewardRangeError
        It is outside, or not a number.
    """
    try:
        value = float(reward)
    except (TypeError, ValueError):
        raise RewardRangeError(
            f"reward is {reward!r}: give a number in [0, 1], 1 is a win"
        ) from None
    if not 0.0 <= value <= 1.0:
        raise RewardRangeError(
            f"reward is {reward}, outside [0, 1]: scale outcomes to that range, 1 is a win"
        )
    return value
