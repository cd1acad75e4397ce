"""Running what others wrote, for a limited time and without being brought down by it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Outcome(Generic[T]):
    """What became of one call.

    Attributes
    ----------
    value : object, optional
        What it returned; None while it has not.
    problem : str
        Why there is no value; empty where there is one.
    seconds : float
        How long it took.
    """

    value: T | None = None
    problem: str = ""
    seconds: float = 0.0
    _done: threading.Event = field(default_factory=threading.Event, repr=False)


def start(call: Callable[[], T]) -> Outcome[T]:
    """Start a call in a thread of its own; `wait` collects it.

    A thread cannot be stopped from outside: one that hangs is left behind, as a daemon that does
    not keep the process alive.
    """
    outcome = Outcome[T]()

    def work() -> None:
        begun = time.perf_counter()
        value, problem = None, ""
        # Whatever it raises is the caller's news, not this thread's end.
        try:
            value = call()
        except BaseException as error:
            problem = f"{type(error).__name__}: {error}"
        outcome.value, outcome.problem = value, problem
        outcome.seconds = time.perf_counter() - begun
        outcome._done.set()

    threading.Thread(target=work, daemon=True, name="cvx-recall").start()
    return outcome


def wait(outcome: Outcome[T], seconds: float) -> Outcome[T]:
    """Wait for a call; one that is not done by then has no value and says so."""
    if outcome._done.wait(max(seconds, 0.0)):
        return outcome
    return Outcome(problem=f"no answer within {seconds:g} s", seconds=seconds)
