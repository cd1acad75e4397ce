"""Threads that share a loop: every outcome is learned once, and whole."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from cvx.learn.loop import ActiveMemory
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue

THREADS, GAMES = 4, 12


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.requirement("V16", "V23")
@pytest.mark.usefixtures("hasty")
def test_outcomes_of_several_threads_are_learned_once_each() -> None:
    am = ActiveMemory(TemporalIndex(32), weights=None)
    am.add_demonstration("clean a mug", [("a kitchen", "go to sink 1")], "clean")
    errors: list[BaseException] = []

    def play() -> None:
        try:
            for game in range(GAMES):
                run = am.begin("clean a mug", "clean")
                decision = am.recall(Cue(step="a kitchen"), episode=run, k=50, distinct=None)
                am.act(decision, "go to sink 1", [h for h in decision.hits if h.node == 0])
                am.close(run, float(game % 2))
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=play) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    played = THREADS * GAMES
    numbers = [episode.episode_id for episode in am.episodes]
    assert len(numbers) == len(set(numbers)) == played + 1
    assert am.mdp is not None
    assert len(am.mdp) == played + 1
    assert am.usage is not None
    assert am.usage.count(("node", 0)) == (played, played, played / 2)
    again = ActiveMemory(am.index, record=am.record, weights=None)
    assert again.usage is not None
    assert again.usage.count(("node", 0)) == (played, played, played / 2)
