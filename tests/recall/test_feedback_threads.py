"""What one thread notes while another writes is not lost."""

import sys
import threading
from types import FrameType

from cvx.memory import Memory
from cvx.memory.usage_buffer import UsageBuffer
from tests.recall.rooms import BY_SIMILARITY, room


def retrieved(memory: Memory, event: int) -> float:
    return {context: n for context, n, _, _ in memory.record.usage()}[f'["event",{event}]']


def test_a_recall_is_counted_although_another_thread_writes_at_that_moment() -> None:
    memory = room()
    event = memory.add("x one").id
    counting, written = threading.Event(), threading.Event()

    def stop_at_counting(frame: FrameType, what: str, _: object) -> None:
        if what == "call" and frame.f_code is UsageBuffer.count.__code__:
            counting.set()
            # A writer that has to wait for this thread is not done before it goes on.
            written.wait(timeout=0.5)

    def recall() -> None:
        sys.settrace(stop_at_counting)
        memory.recall("x", pipeline=BY_SIMILARITY)

    reader = threading.Thread(target=recall, daemon=True)
    reader.start()
    assert counting.wait(timeout=60)
    memory.add("y meanwhile")
    written.set()
    reader.join(timeout=60)
    memory.add("y afterwards")
    assert retrieved(memory, event) == 1


def test_what_was_asked_first_counts_although_it_was_noted_later() -> None:
    # While one recall waits, a later one is noted, and could not be written.
    noted, not_written = UsageBuffer(), UsageBuffer()
    not_written.asked(8)
    noted.asked(5)
    noted.join(not_written)
    assert noted.since == 5
