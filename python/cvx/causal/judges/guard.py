"""What keeps a judge's failure from becoming the memory's."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from cvx.causal.judges.prompt import read_answer
from cvx.causal.judges.protocol import Judge, Judgement, Pair


def within(asking: Callable[[], object], timeout_s: float | None) -> object:
    """Return what a call returns, or the exception that it raised or that its time-out is.

    Parameters
    ----------
    asking : callable
        Whatever a user has given.
    timeout_s : float or None
        Seconds to wait; ``None`` for ever. What hangs goes on in a thread of its own, which does
        not keep the program from ending.
    """
    if timeout_s is None:
        return _caught(asking)
    answers: queue.SimpleQueue[object] = queue.SimpleQueue()
    threading.Thread(
        target=lambda: answers.put(_caught(asking)), name="cvx-asking", daemon=True
    ).start()
    try:
        return answers.get(timeout=timeout_s)
    except queue.Empty:
        return TimeoutError(f"no answer within {timeout_s:g} s")


def _caught(asking: Callable[[], object]) -> object:
    try:
        return asking()
    except Exception as error:  # whatever a user's function raises
        return error


def guarded(asking: Callable[[], object], timeout_s: float | None) -> Judgement:
    """Return what an answer means, "unjudged" where asking raised or took too long."""
    answer = within(asking, timeout_s)
    if isinstance(answer, TimeoutError):
        return Judgement("unjudged", why=str(answer))
    if isinstance(answer, Exception):
        return Judgement("unjudged", why=f"{type(answer).__name__}: {answer}")
    return read_answer(answer)


def judgements(judge: Judge, pairs: Sequence[Pair]) -> list[Judgement]:
    """Return one judgement a pair, whatever the judge does.

    A judge that raises, or gives another number of answers or something else than judgements,
    leaves the pairs unjudged.
    """
    try:
        found = list(judge.judge(pairs))
    except Exception as error:  # whatever a user's judge raises
        return [Judgement("unjudged", why=f"{type(error).__name__}: {error}") for _ in pairs]
    if len(found) != len(pairs) or not all(isinstance(one, Judgement) for one in found):
        why = f"{len(found)} answers to {len(pairs)} pairs, or answers that are no Judgement"
        return [Judgement("unjudged", why=why) for _ in pairs]
    return found
