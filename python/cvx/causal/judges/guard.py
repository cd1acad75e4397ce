"""What keeps a judge's failure from becoming the memory's."""

from __future__ import annotations

from collections.abc import Sequence

from cvx.causal.judges.protocol import Judge, Judgement, Pair


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
