"""What keeps a judge's failure from becoming the memory's."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from cvx.causal.judges.protocol import Judge, Judgement, Pair


def guarded(judging: Callable[[], Judgement], timeout_s: float | None) -> Judgement:
    """Return a judgement, "unjudged" where making it raised or took too long.

    Parameters
    ----------
    judging : callable
        Makes it.
    timeout_s : float or None
        Seconds to wait; ``None`` for ever. What hangs goes on in a thread of its own, which does
        not keep the program from ending.
    """
    if timeout_s is None:
        return _caught(judging)
    answers: queue.SimpleQueue[Judgement] = queue.SimpleQueue()
    worker = threading.Thread(
        target=lambda: answers.put(_caught(judging)), name="cvx-judge", daemon=True
    )
    worker.start()
    try:
        return answers.get(timeout=timeout_s)
    except queue.Empty:
        return Judgement("unjudged", why=f"no answer within {timeout_s:g} s")


def _caught(judging: Callable[[], Judgement]) -> Judgement:
    try:
        return judging()
    except Exception as error:  # whatever a user's judge raises
        return Judgement("unjudged", why=f"{type(error).__name__}: {error}")


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
