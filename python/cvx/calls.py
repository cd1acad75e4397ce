"""Calls of what others wrote: each for a limited time, few at once, none that brings us down."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MOST_AT_ONCE = 4
"""So many calls of one name run at a time, those that hang included."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of one call.

    Parameters
    ----------
    value : object, optional
        What it returned; None where it did not.
    problem : str
        Why there is no value; empty where there is one.
    seconds : float
        How long it took.
    """

    value: T | None = None
    problem: str = ""
    seconds: float = 0.0


_NOT_ASKED: Outcome[Any] = Outcome(
    problem=f"not asked: {MOST_AT_ONCE} earlier calls have not come back yet"
)


@dataclass(slots=True, eq=False)
class Call(Generic[T]):
    """A call that was started; ``Calls.start`` makes it, ``Calls.wait`` collects it."""

    work: Callable[[], T]
    name: str
    seconds: float
    deadline: float
    outcome: Outcome[T] | None = None
    given_up: bool = False


@dataclass(slots=True)
class _Line:
    """The calls of one name: how many run, how many of those were given up, who waits."""

    running: int = 0
    given_up: int = 0
    waiting: deque[Call[Any]] = field(default_factory=deque)

    def next(self) -> Call[Any] | None:
        """Take the first that waits and still has time; nobody waits for those before it."""
        while self.waiting:
            call = self.waiting.popleft()
            if time.perf_counter() < call.deadline:
                return call
            call.outcome = _NOT_ASKED
        return None


class Calls:
    """Runs what others wrote in threads of its own, `MOST_AT_ONCE` of a name at the most.

    Further calls wait for their turn as long as their time lasts. A thread cannot be stopped from
    outside: one that hangs is left behind, as a daemon that keeps neither the process nor the
    closing of a memory waiting. Where all that may run hang, further calls are refused at once,
    until one of them comes back.

    Examples
    --------
    >>> calls = Calls()
    >>> calls.run(lambda: 6 * 7, 60.0).value
    42
    >>> calls.run(lambda: 1 / 0, 60.0).problem
    'ZeroDivisionError: division by zero'
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._lines: dict[str, _Line] = {}

    def run(self, work: Callable[[], T], seconds: float | None, name: str = "") -> Outcome[T]:
        """Call something and wait for it; ``seconds`` None waits for ever, in this thread."""
        if seconds is None:
            return _done(work, Exception)
        return self.wait(self.start(work, seconds, name))

    def start(self, work: Callable[[], T], seconds: float, name: str = "") -> Call[T]:
        """Start a call whose time runs from now on.

        Parameters
        ----------
        work : callable
            What is run.
        seconds : float
            How long its answer is waited for.
        name : str
            Whom it asks: calls of one name share the bound.
        """
        call = Call(work, name, seconds, time.perf_counter() + seconds)
        with self._changed:
            line = self._lines.setdefault(name, _Line())
            if line.running < MOST_AT_ONCE:
                threading.Thread(
                    target=self._work, args=(call,), daemon=True, name="cvx-call"
                ).start()
                line.running += 1
            elif line.given_up < MOST_AT_ONCE:
                line.waiting.append(call)
            else:
                call.outcome = _NOT_ASKED
        return call

    def wait(self, call: Call[T]) -> Outcome[T]:
        """Wait for a call; one that is not done in its time has no value and says so."""
        with self._changed:
            left = max(call.deadline - time.perf_counter(), 0.0)
            self._changed.wait_for(lambda: call.outcome is not None, left)
            if call.outcome is not None:
                return call.outcome
            line = self._lines[call.name]
            if call in line.waiting:
                line.waiting.remove(call)
                return _NOT_ASKED
            call.given_up = True
            line.given_up += 1
        return Outcome(problem=f"no answer within {call.seconds:g} s", seconds=call.seconds)

    def _work(self, call: Call[Any]) -> None:
        following: Call[Any] | None = call
        while following is not None:
            call = following
            outcome = _done(call.work, BaseException)
            with self._changed:
                call.outcome = outcome
                line = self._lines[call.name]
                line.given_up -= call.given_up
                following = line.next()
                line.running -= following is None
                if not line.running:
                    del self._lines[call.name]
                self._changed.notify_all()


def _done(work: Callable[[], T], caught: type[BaseException]) -> Outcome[T]:
    begun = time.perf_counter()
    # Whatever it raises is the caller's news, not the end of this thread.
    try:
        value = work()
    except caught as error:
        problem = f"{type(error).__name__}: {error}"
        return Outcome(None, problem, time.perf_counter() - begun)
    return Outcome(value, "", time.perf_counter() - begun)
