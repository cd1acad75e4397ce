"""How good a ranking is.

Relevance is binary: an event answers, or does not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence

from cvx.errors import InvalidInputError


def recall_at(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return the share of the gold that is among the first k.

    Parameters
    ----------
    ranked : sequence
        Best first, each once.
    gold : collection
        What answers, not empty.
    k : int
        How many count, at least 1.

    Examples
    --------
    >>> recall_at([3, 1, 2], {1, 9}, 2)
    0.5
    """
    _check(gold, k)
    return len(set(ranked[:k]) & set(gold)) / len(set(gold))


def ndcg_at(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return the discounted gain of the first k as a share of the best one possible.

    References
    ----------
    Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques; log base 2.

    Examples
    --------
    >>> ndcg_at([3, 1], {3}, 2), round(ndcg_at([1, 3], {3}, 2), 3)
    (1.0, 0.631)
    """
    _check(gold, k)
    wanted = set(gold)
    gain = sum(
        1.0 / math.log2(place + 2) for place, item in enumerate(ranked[:k]) if item in wanted
    )
    best = sum(1.0 / math.log2(place + 2) for place in range(min(k, len(wanted))))
    return gain / best


def reciprocal_rank(ranked: Sequence[Hashable], gold: Collection[Hashable]) -> float:
    """Return 1 / place of the first that answers, 0 if none does.

    Examples
    --------
    >>> reciprocal_rank([4, 7], {7})
    0.5
    """
    _check(gold, 1)
    wanted = set(gold)
    return next((1.0 / at for at, item in enumerate(ranked, start=1) if item in wanted), 0.0)


def _check(gold: Collection[Hashable], k: int) -> None:
    if not gold:
        raise InvalidInputError("gold is empty: such a question has no ranking to measure")
    if k < 1:
        raise InvalidInputError(f"k is {k}: give at least 1")
