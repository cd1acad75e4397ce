"""The worker processes of an experiment end with it, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
from collections.abc import Generator
from multiprocessing.connection import Connection

import pytest

pytest.importorskip("statsmodels")

from experiments.harness.run import run
from experiments.tests.harness.hat_domain import small
from tests.store.processes import CONTEXT

SECONDS = 60
"""A bound on waiting, far beyond what it takes."""


def play_and_say(said: Connection) -> None:
    # One game in each of many seeds: some workers play, some wait for the next job.
    plan = small(protocol="stream", seeds=40, rounds=1, games_per_round=1, measured=0, workers=2)
    for played in run(plan):
        processes = multiprocessing.active_children()
        said.send((played.place, [one.pid for one in processes]))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the platform has no handle on a process")
def test_the_workers_end_when_their_parent_is_killed() -> None:
    here, there = CONTEXT.Pipe(duplex=False)
    parent = CONTEXT.Process(target=play_and_say, args=(there,))
    parent.start()
    there.close()
    _, pids = here.recv()
    assert len(pids) == 3, "two workers, and the manager of their queue"
    handles = [os.pidfd_open(pid) for pid in pids]
    try:
        assert parent.pid is not None
        os.kill(parent.pid, signal.SIGKILL)
        parent.join()
        for handle in handles:
            ended, _, _ = select.select([handle], [], [], SECONDS)
            assert ended == [handle], "a process outlives the experiment"
    finally:
        for handle in handles:
            os.close(handle)


def test_a_run_that_breaks_off_leaves_no_process() -> None:
    games = run(small(rounds=1, games_per_round=1, measured=0, protocol="stream"))
    assert isinstance(games, Generator)
    next(games)
    with pytest.raises(ConnectionError) as raised:
        games.throw(ConnectionError("the reader of the games died"))
    # The error still holds the run's frame, and all that is in it.
    assert raised.traceback
    assert multiprocessing.active_children() == []
