"""Computes candidates and columns of a recall natively; `cvx._cvx` says what each takes and gives.

All take rows of a corpus as int64 and its columns as they are, and look at the candidates and their
neighbours only.
"""

from cvx._cvx import (
    best_by_idf,
    dense_columns,
    holds,
    joined,
    neighbourhood,
    session_columns,
    votes,
    window,
    with_neighbours,
    word_columns,
)

__all__ = [
    "best_by_idf",
    "dense_columns",
    "holds",
    "joined",
    "neighbourhood",
    "session_columns",
    "votes",
    "window",
    "with_neighbours",
    "word_columns",
]
