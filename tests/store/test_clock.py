"""Wrong clocks: one reading in the next century moves nothing, and now goes on to mean now."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cvx.errors import ClockWarning
from cvx.memory import Memory
from cvx.store.transactions import Clock
from tests.store.processes import embedder

CENTURY = 100 * 365 * 86_400_000_000


def now() -> int:
    return time.time_ns() // 1000


def test_one_wrong_reading_moves_no_later_time(tmp_path: Path) -> None:
    readings: Iterator[int] = iter([0, 0, CENTURY, *[0] * 100])
    with Memory._opened(tmp_path, embedder(), now=lambda: now() + next(readings)) as memory:
        events = [memory.add(f"note {number}") for number in range(4)]
        assert max(event.recorded or 0 for event in events) < now() + 60_000_000


def test_a_clock_that_stays_ahead_is_believed() -> None:
    readings = iter([0, CENTURY, CENTURY, CENTURY])
    clock = Clock(lambda: next(readings))
    assert [clock(), clock(), clock()] == [0, CENTURY, CENTURY]


def test_after_a_time_ahead_now_means_now_and_a_warning_is_given(tmp_path: Path) -> None:
    with Memory._opened(tmp_path, embedder(), now=lambda: now() + CENTURY) as memory:
        ahead = memory.add("written by a wrong clock")
    with Memory.open(tmp_path, embedder=embedder()) as memory:
        with pytest.warns(ClockWarning, match="ahead of this machine's clock"):
            later = memory.add("written by a right one")
        memory.add("and no second warning")
        assert len(memory.as_of(now())) == 3
        assert [event.text for event in memory.as_of(ahead.recorded or 0).events()] == [ahead.text]
        assert (later.recorded or 0) > (ahead.recorded or 0)
