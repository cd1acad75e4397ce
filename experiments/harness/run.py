"""Plays all arms and seeds in worker processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from multiprocessing.managers import SyncManager
from typing import Any

from experiments.harness.play_arm import Played, play_arm
from experiments.harness.setup import Setup


def run(setup: Setup) -> Iterator[Played]:
    """Play everything in worker processes; yield each game as it ends, in no fixed order.

    Raises
    ------
    CvxError
        As the domain and the players raise; what still runs is stopped.
    """
    setup.check()
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    manager.start(_end_with_parent)
    ended, stop = manager.Queue(), manager.Event()
    with (
        manager,
        ProcessPoolExecutor(
            setup.workers, mp_context=context, initializer=_end_with_parent
        ) as pool,
    ):
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


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even if that was killed.

    Nobody waits for what it plays then, and its store has to be free. In the middle of a game
    nothing of that game is kept, as `Course` says.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(setup: Setup, arm: str, seed: int, ended: Any, stop: Any) -> None:
    for played in play_arm(setup, arm, seed):
        ended.put(played)
        if stop.is_set():
            return
