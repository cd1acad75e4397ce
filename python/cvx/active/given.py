"""What a loop may be given: hits whose advice was taken, steps that somebody else took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cvx.arguments import one_of, wrong
from cvx.types import Decision, Hit

a_decision = one_of(Decision, called="a decision that recall() returned")


def some_hits(name: str, value: Any) -> tuple[Hit, ...]:
    """Check one hit or several.

    Raises
    ------
    InvalidParameterError
        Something else, such as the numbers of nodes.
    """
    several = isinstance(value, Iterable) and not isinstance(value, Hit)
    hits = tuple(value) if several else (value,)
    if not all(isinstance(hit, Hit) for hit in hits):
        raise wrong(name, value, "hits of the decision")
    return hits


def a_shown_step(name: str, value: Any) -> tuple[Any, ...]:
    """Check that a step of a demonstration is a text, an action and perhaps a vector.

    Raises
    ------
    InvalidParameterError
        Of another length, or no tuple nor list: a str would fall apart into its letters.
    """
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        raise wrong(name, value, "(text, action) or (text, action, vector)")
    return tuple(value)
