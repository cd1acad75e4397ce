"""Runs the user's callables under a time limit, few at a time, in worker threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MOST_AT_ONCE = 4
"""So many calls of one name run at a time, those that hang included."""

PAUSE_S = 10.0
"""So long after all of them hung one more call is made; after that hung too, twice as long."""

LONGEST_PAUSE_S = 60.0
"""What the pause grows to."""


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
    first : bool
        Whether it has a problem and the call of its name before it had none.
    """

    value: T | None = None
    problem: str = ""
    seconds: float = 0.0
    first: bool = False


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
    line: _Line
    outcome: Outcome[T] | None = None
    given_up: bool = False


@dataclass(slots=True, eq=False)
class _Line:
    """The calls of one name: how many may run, do, and were given up; who waits, and the pause."""

    most: int = MOST_AT_ONCE
    pause: float = PAUSE_S
    running: int = 0
    given_up: int = 0
    waiting: deque[Call[Any]] = field(default_factory=deque)
    again: float = 0.0
    """When the line that hangs is left behind, and one call made in a new one."""

    def next(self, now: float) -> Call[Any] | None:
        """Take the first that waits and still has time; nobody waits for those before it."""
        while self.waiting:
            call = self.waiting.popleft()
            if now < call.deadline:
                return call
            call.outcome = _NOT_ASKED
        return None


class Calls:
    """Runs what others wrote in threads of its own, `MOST_AT_ONCE` of a name at the most.

    Further calls wait for their turn as long as their time lasts. A thread cannot be stopped from
    outside: one that hangs is left behind, as a daemon that keeps neither the process nor the
    closing of a memory waiting. Where all that may run hang, further calls are refused at once,
    until one of them comes back, or one that is tried after a pause is answered.

    Parameters
    ----------
    clock : callable, default `time.perf_counter`
        Seconds since any time.

    Examples
    --------
    >>> calls = Calls()
    >>> calls.run(lambda: 6 * 7, 60.0).value
    42
    >>> calls.run(lambda: 1 / 0, 60.0).problem
    'ZeroDivisionError: division by zero'
    """

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._lines: dict[str, _Line] = {}
        self._failing: set[str] = set()

    def run(self, work: Callable[[], T], seconds: float | None, name: str = "") -> Outcome[T]:
        """Call something and wait for it; ``seconds`` None waits for ever, in this thread."""
        if seconds is None:
            return self._noted(name, _done(work, Exception))
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
        now = self._clock()
        with self._changed:
            line = self._line(name, now)
            here = partial(copy_context().run, work)
            call = Call(here, name, seconds, now + seconds, line)
            if line.running < line.most:
                threading.Thread(
                    target=self._work, args=(call,), daemon=True, name="cvx-call"
                ).start()
                line.running += 1
            elif line.given_up < line.most:
                line.waiting.append(call)
            else:
                call.outcome = _NOT_ASKED
        return call

    def _line(self, name: str, now: float) -> _Line:
        line = self._lines.setdefault(name, _Line())
        if line.given_up >= line.most and now >= line.again:
            # Its threads may hang for ever: what they hang in may long have ended.
            line = self._lines[name] = _Line(1, min(2 * line.pause, LONGEST_PAUSE_S))
        return line

    def wait(self, call: Call[T]) -> Outcome[T]:
        """Wait for a call; one that is not done in its time has no value and says so."""
        with self._changed:
            left = max(call.deadline - self._clock(), 0.0)
            self._changed.wait_for(lambda: call.outcome is not None, left)
            return self._noted(call.name, call.outcome or self._given_up(call))

    def _given_up(self, call: Call[T]) -> Outcome[T]:
        line = call.line
        if call in line.waiting:
            line.waiting.remove(call)
            return _NOT_ASKED
        call.given_up = True
        line.given_up += 1
        line.again = self._clock() + line.pause
        return Outcome(problem=f"no answer within {call.seconds:g} s", seconds=call.seconds)

    def _noted(self, name: str, outcome: Outcome[T]) -> Outcome[T]:
        with self._changed:
            if not outcome.problem:
                self._failing.discard(name)
            elif name not in self._failing:
                self._failing.add(name)
                return replace(outcome, first=True)
        return outcome

    def _work(self, call: Call[Any]) -> None:
        following: Call[Any] | None = call
        while following is not None:
            call = following
            outcome = _done(call.work, BaseException)
            with self._changed:
                call.outcome = outcome
                line = call.line
                line.given_up -= call.given_up
                if not call.given_up:
                    line.most, line.pause = MOST_AT_ONCE, PAUSE_S
                following = line.next(self._clock())
                line.running -= following is None
                if not line.running and self._lines.get(call.name) is line:
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
