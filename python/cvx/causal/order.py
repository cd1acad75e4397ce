"""Causes come before their effects: what becomes of a link that says otherwise."""

from __future__ import annotations

import warnings

from cvx.causal.events import EventId
from cvx.errors import EffectBeforeCauseError, EffectFirstWarning, InvalidParameterError

_ORDERS = ("refuse", "flag", "allow")


def known_order(effect_first: str) -> str:
    """Return "refuse", "flag" or "allow" as it is.

    Raises
    ------
    InvalidParameterError
        It is none of them.
    """
    if effect_first not in _ORDERS:
        raise InvalidParameterError(f"effect_first is {effect_first!r}: give refuse, flag or allow")
    return effect_first


def check_order(cause: tuple[EventId, int], effect: tuple[EventId, int], effect_first: str) -> None:
    """Refuse or flag an effect that happened before its cause.

    Parameters
    ----------
    cause, effect : tuple of (str or int, int)
        The event and when it happened.
    effect_first : {"refuse", "flag", "allow"}
        An error, a warning at whoever called the caller, or nothing.

    Raises
    ------
    EffectBeforeCauseError
        It did, and ``effect_first`` is "refuse".

    Warns
    -----
    EffectFirstWarning
        It did, and it is "flag".
    """
    if effect[1] >= cause[1] or effect_first == "allow":
        return
    said = (
        f"event {effect[0]!r} happened at {effect[1]}, before its cause {cause[0]!r} at "
        f"{cause[1]}: swap them, or say effect_first='allow'"
    )
    if effect_first == "refuse":
        raise EffectBeforeCauseError(said)
    warnings.warn(said, EffectFirstWarning, stacklevel=3)
