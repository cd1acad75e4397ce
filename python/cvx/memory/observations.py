"""Checks and normalises actions and observations of an agent; restores them from metadata."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from cvx.arguments import are_several, wrong
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.learn.advisor.types import Observation, restored_action
from cvx.types import Event, Vector
from cvx.validation import storable_text

_MOST_ACTIONS = 10_000
_LONGEST_OBSERVATION = 65_536
_LONGEST_STATE = 64


def canonical_action(name: str, value: Any) -> Hashable:
    """Return an action as it is stored and learned: a text, number, bool, or a tuple of these.

    An array becomes a tuple.

    Raises
    ------
    InvalidInputError
        Anything else, an empty text, or a number that is not finite.

    Examples
    --------
    >>> canonical_action("action", np.int64(3)), canonical_action("action", ("go", 2))
    (3, ('go', 2))
    >>> canonical_action("action", np.array([0.5, 1.0]))
    (0.5, 1.0)
    """
    if isinstance(value, np.ndarray) and value.ndim:
        value = tuple(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.item()
    if isinstance(value, str):
        if not storable_text(name, value).strip():
            raise wrong(name, value, "what was done, in words")
        return str(value)
    if isinstance(value, bool | int | float):
        if isinstance(value, float) and not math.isfinite(value):
            raise wrong(name, value, "a finite number")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise wrong(name, value, "a number of 64 bits")
        return value
    if isinstance(value, tuple) and value:
        return tuple(canonical_action(f"{name}[{at}]", one) for at, one in enumerate(value))
    raise wrong(name, value, "a text, a number, or a tuple of these")


def some_actions(value: Any) -> list[Hashable]:
    """Return admissible actions in their order, of equal ones (1, 1.0 and True) the first.

    Raises
    ------
    InvalidInputError
        None at all, more than 10,000, or one that is no action.
    """
    if isinstance(value, str | bytes | Mapping) or not are_several(value):
        raise wrong("actions", value, "a list of actions, or None for those known here")
    listed = [canonical_action(f"actions[{at}]", one) for at, one in enumerate(value)]
    if not listed:
        raise wrong("actions", value, "at least one action, or None for those known here")
    if len(listed) > _MOST_ACTIONS:
        raise InvalidInputError(
            f"there are {len(listed)} actions: give at most {_MOST_ACTIONS}, those worth weighing"
        )
    return list(dict.fromkeys(listed))


def listed_action(action: Hashable) -> Any:
    """Return an action as JSON keeps it."""
    return [listed_action(one) for one in action] if isinstance(action, tuple) else action


def action_of(step: Event) -> Hashable:
    """Return what was done in a step as it was given."""
    return restored_action(step.metadata["action"]) if "action" in step.metadata else step.action


def seen_in(told: Mapping[str, Any], text: str, vector: Vector | None) -> Observation:
    """Return an observation as it was given, from how a step or an episode keeps it."""
    numbers = told.get("observation")
    if isinstance(numbers, list):
        return Observation(None, np.array(numbers, dtype=np.float32))
    if numbers == "vector":
        return Observation(None, vector)
    return Observation(text if text or vector is None else None, vector)


def state_of(observation: Observation) -> Hashable:
    """Return what observations share that look the same."""
    if observation.text is not None:
        return observation.text
    return b"" if observation.vector is None else observation.vector.tobytes()


def same_observation(a: Observation | None, b: Observation | None) -> bool:
    """Return whether two observations are known and look the same."""
    return a is not None and b is not None and state_of(a) == state_of(b)


def _state_name(numbers: tuple[int, ...]) -> str:
    told = " ".join(str(int(one)) for one in numbers)
    if len(numbers) <= _LONGEST_STATE:
        return told
    return f"state {hashlib.blake2b(told.encode(), digest_size=16).hexdigest()}"


def read_observation(value: Any, embed: Callable[[str], Vector | None]) -> Observation:
    """Return an observation as it is learned from: a text with its vector, or numbers.

    Parameters
    ----------
    value : str, int, tuple of int, or sequence of float
    embed : callable
        Returns the vector of a text; None where there is none.

    Raises
    ------
    InvalidInputError, InvalidVectorError
        It is neither, or has NaN in it.
    """
    if value is None or isinstance(value, bytes):
        raise wrong("observation", value, "a text, or a list of numbers")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int):
        return Observation(str(int(value)), None)
    if isinstance(value, tuple) and value and all(isinstance(one, int) for one in value):
        return Observation(_state_name(value), None)
    if isinstance(value, str):
        text = storable_text("observation", value)
        if len(text) > _LONGEST_OBSERVATION:
            raise InvalidInputError(
                f"the observation has {len(text)} characters: give at most "
                f"{_LONGEST_OBSERVATION}, what tells one state from another"
            )
        return Observation(text, embed(text))
    try:
        # What is too large for this type is infinite in it, and refused as such.
        with np.errstate(over="ignore"):
            row = np.array(value, dtype=np.float32)
    except (TypeError, ValueError):
        raise wrong("observation", value, "a text, or a list of numbers") from None
    if row.ndim == 0:
        row = row.reshape(1)
    if row.ndim != 1 or not len(row):
        raise InvalidVectorError(
            f"the observation has shape {row.shape}: give a text, or one row of numbers"
        )
    if not np.isfinite(row).all():
        raise InvalidVectorError("the observation holds NaN or infinity: give finite numbers")
    return Observation(None, row)
