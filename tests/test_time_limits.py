"""What others wrote runs a few at a time, for a limited time, and brings nothing down."""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue

import pytest

from cvx.time_limits import LONGEST_PAUSE_S, MOST_AT_ONCE, PAUSE_S, Calls

LONG = 600.0


def test_many_calls_at_once_take_turns_in_few_threads() -> None:
    calls = Calls()
    released = threading.Event()
    seen: SimpleQueue[threading.Thread] = SimpleQueue()

    def work() -> int:
        seen.put(threading.current_thread())
        released.wait(LONG)
        return 7

    started = [calls.start(work, LONG, "one") for _ in range(5 * MOST_AT_ONCE)]
    running = [seen.get() for _ in range(MOST_AT_ONCE)]
    assert seen.empty()
    released.set()
    assert [calls.wait(one).value for one in started] == [7] * len(started)
    assert {seen.get() for _ in range(4 * MOST_AT_ONCE)} <= set(running)


def test_calls_that_hang_are_refused_under_their_own_name_alone_until_one_comes_back() -> None:
    calls, others = Calls(), Calls()
    released = threading.Event()
    threads: SimpleQueue[threading.Thread] = SimpleQueue()

    def hang() -> None:
        threads.put(threading.current_thread())
        released.wait(LONG)

    hanging = [calls.start(hang, 0.01, "a") for _ in range(MOST_AT_ONCE)]
    late = calls.start(lambda: 7, 0.01, "a")
    assert {calls.wait(one).problem for one in hanging} == {"no answer within 0.01 s"}
    refused = f"not asked: {MOST_AT_ONCE} earlier calls have not come back yet"
    assert calls.wait(late).problem == refused
    assert calls.run(lambda: 7, LONG, "a").problem == refused
    assert calls.run(lambda: 7, LONG, "b").value == 7
    assert others.run(lambda: 7, LONG, "a").value == 7
    released.set()
    for _ in range(MOST_AT_ONCE):
        threads.get().join()
    assert calls.run(lambda: 7, LONG, "a").value == 7


def test_what_hangs_for_ever_is_asked_again_after_a_pause_that_doubles_until_it_answers() -> None:
    now = 0.0
    calls = Calls(clock=lambda: now)
    released = threading.Event()
    entered: SimpleQueue[int] = SimpleQueue()

    def hang() -> None:
        entered.put(1)
        released.wait(LONG)

    for call in [calls.start(hang, 0.01, "a") for _ in range(MOST_AT_ONCE)]:
        calls.wait(call)
    for pause in (PAUSE_S, 2 * PAUSE_S):
        now += pause * 0.99
        assert calls.run(hang, 0.01, "a").problem.startswith("not asked")
        now += pause * 0.02
        # One call alone is let through, which hangs too.
        assert calls.run(hang, 0.01, "a").problem == "no answer within 0.01 s"
        assert calls.run(hang, 0.01, "a").problem.startswith("not asked")
    assert entered.qsize() == MOST_AT_ONCE + 2
    now += LONGEST_PAUSE_S
    assert calls.run(lambda: 7, LONG, "a").value == 7
    # It answers again: as many run at once as before, whatever still hangs.
    for _ in range(MOST_AT_ONCE + 2):
        entered.get(timeout=LONG)
    some = [calls.start(hang, LONG, "a") for _ in range(MOST_AT_ONCE + 1)]
    for _ in range(MOST_AT_ONCE):
        entered.get(timeout=LONG)
    assert entered.empty()
    released.set()
    assert [calls.wait(one).problem for one in some] == [""] * len(some)


def test_the_first_of_several_failures_says_that_it_is_the_first_until_one_answers() -> None:
    calls = Calls()

    def broken() -> None:
        raise OSError("away")

    assert [calls.run(broken, LONG, "a").first for _ in range(3)] == [True, False, False]
    assert calls.run(broken, LONG, "b").first
    assert not calls.run(lambda: 7, LONG, "a").first
    assert calls.run(broken, LONG, "a").first


def test_a_call_whose_time_was_over_before_its_turn_is_not_made() -> None:
    calls = Calls()
    released = threading.Event()
    made: list[str] = []
    for _ in range(MOST_AT_ONCE):
        calls.start(lambda: released.wait(LONG), LONG)
    late = calls.start(lambda: made.append("late"), 0.0)
    soon = calls.start(lambda: made.append("soon"), LONG)
    released.set()
    calls.wait(soon)
    assert calls.wait(late).problem.startswith("not asked")
    assert made == ["soon"]


def test_the_time_of_a_call_runs_from_its_start_whoever_is_waited_for_first() -> None:
    calls = Calls()
    released = threading.Event()
    first, second = (calls.start(released.wait, 0.02, name) for name in ("a", "b"))
    assert calls.wait(second).problem == "no answer within 0.02 s"
    assert time.perf_counter() >= first.deadline
    assert calls.wait(first).problem == "no answer within 0.02 s"
    released.set()


@pytest.mark.parametrize("seconds", [None, LONG])
def test_an_error_is_an_outcome(seconds: float | None) -> None:
    def broken() -> None:
        raise OSError("the other memory is gone")

    found = Calls().run(broken, seconds)
    assert (found.value, found.problem) == (None, "OSError: the other memory is gone")


def test_what_wants_to_end_the_process_ends_it_only_where_it_runs_in_our_thread() -> None:
    def leaving() -> None:
        raise SystemExit("no licence")

    assert Calls().run(leaving, LONG).problem == "SystemExit: no licence"
    with pytest.raises(SystemExit):
        Calls().run(leaving, None)
