"""Running what others wrote, for a limited time and without being brought down by it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_HANGING = 4
"""A source of which so many calls have been given up and still run is not asked until one ends."""

_hanging: Counter[int] = Counter()
_guard = threading.Lock()


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
    _source: int = 0
    _given_up: bool = False


def start(call: Callable[[], T], asked: object) -> Outcome[T]:
    """Start a call in a thread of its own; `wait` collects it.

    A thread cannot be stopped from outside: one that hangs is left behind, as a daemon that keeps
    neither the process nor the closing of a memory waiting. There are `MOST_HANGING` of a source
    at the most.

    Parameters
    ----------
    call : callable
        What is run.
    asked : object
        Whom it asks. Functions of the same code, such as a lambda that is written into each call,
        are one source; so are all methods of one object.
    """
    source = getattr(asked, "__code__", getattr(asked, "__self__", asked))
    outcome = Outcome[T](_source=id(source))
    with _guard:
        hanging = _hanging[outcome._source]
    if hanging >= MOST_HANGING:
        outcome.problem = f"not asked: {hanging} earlier calls have not come back yet"
        outcome._done.set()
        return outcome

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
        with _guard:
            outcome._done.set()
            if outcome._given_up:
                _hanging[outcome._source] -= 1

    threading.Thread(target=work, daemon=True, name="cvx-recall").start()
    return outcome


def wait(outcome: Outcome[T], seconds: float) -> Outcome[T]:
    """Wait for a call; one that is not done by then has no value and says so."""
    if outcome._done.wait(max(seconds, 0.0)):
        return outcome
    with _guard:
        if outcome._done.is_set():
            return outcome
        outcome._given_up = True
        _hanging[outcome._source] += 1
    return Outcome(problem=f"no answer within {seconds:g} s", seconds=seconds)
