"""Adapters to other frameworks. Each needs the packages of its own extra."""

from __future__ import annotations

from collections.abc import Iterable

from cvx.arguments import one_of
from cvx.errors import UnknownError
from cvx.memory import Memory
from cvx.types import Event

a_memory = one_of(Memory, called="a cvx.Memory, such as Memory.open(folder) returns")


def by_key(memory: Memory, keys: Iterable[str]) -> dict[str, Event]:
    """Return the events of some keys, but those that were forgotten or never there."""
    found = {}
    for key in keys:
        try:
            event = memory.get(key=key)
        except UnknownError:
            continue
        if event.state == "active":
            found[key] = event
    return found
