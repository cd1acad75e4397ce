"""Playing all arms and seeds, in worker processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

from cvx.experiment.course import Played, play_arm
from cvx.experiment.setup import Setup


def run(setup: Setup) -> Iterator[Played]:
    """Play everything in worker processes; yield each game as it ends, in no fixed order.

    Raises
    ------
    CvxError
        As the domain and the players raise; what still runs is stopped.
    """
    setup.check()
    context = multiprocessing.get_context("spawn")
    manager = context.Manager()
    ended, stop = manager.Queue(), manager.Event()
    with ProcessPoolExecutor(setup.workers, mp_context=context) as pool:
        jobs: list[Future[None]] = [
            pool.submit(_work, setup, arm, seed, ended, stop)
            for seed in range(setup.first_seed, setup.first_seed + setup.seeds)
            for arm in setup.arms
        ]
        try:
            while True:
                finished = all(job.done() for job in jobs)
                with contextlib.suppress(queue.Empty):
                    while True:
                        yield ended.get(timeout=0.0 if finished else 0.2)
                for job in jobs:
                    if job.done():
                        job.result()
                if finished:
                    return
        finally:
            # An interrupt at a terminal may have ended the manager, and then the workers too.
            with contextlib.suppress(OSError, EOFError):
                stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _work(setup: Setup, arm: str, seed: int, ended: Any, stop: Any) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    for played in play_arm(setup, arm, seed):
        # Nobody waits for what is played when the parent was killed, and its store has to be free.
        if not parent.is_alive():
            return
        ended.put(played)
        if stop.is_set():
            return
