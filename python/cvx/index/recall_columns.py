"""Computes candidates and columns of a recall natively; `cvx._cvx` says what each takes and gives.

All take rows of a corpus as int64 and its columns as they are, and look at the candidates and their
neighbours only.
"""

from cvx._cvx import (
    best,
    best_by_idf,
    candidates,
    holds,
    neighbourhood,
    signal_columns,
    stretched,
    votes,
    weighed,
    window,
)

__all__ = [
    "best",
    "best_by_idf",
    "candidates",
    "holds",
    "neighbourhood",
    "signal_columns",
    "stretched",
    "votes",
    "weighed",
    "window",
]
