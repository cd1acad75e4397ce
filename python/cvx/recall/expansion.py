"""From what the sources found to what stands beside it: in time, and over links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvx.recall.view import View
from cvx.types import IntArray

NEIGHBOURED, STARTS = 50, 20
"""Of how many of the best so far the neighbours are taken, and the links followed."""


def with_neighbours(view: View, best: IntArray, reach: int, kinds: Sequence[str]) -> IntArray:
    """Return candidates and what stands beside them.

    Parameters
    ----------
    view : View
        What may come back.
    best : ndarray of shape (n,), int64
        Rows that the sources found, best first, each once.
    reach : int
        How many neighbours in time of the best 50, on either side and within the session.
    kinds : sequence of str
        Kinds of links that are followed one step, in their direction, from the best 20.

    Returns
    -------
    ndarray of shape (m,), int64
        Rows, ascending, each once.
    """
    rows = [best]
    if reach and len(best):
        rows.append(view.window(best[:NEIGHBOURED], reach).ravel())
    if kinds:
        ends = [end for _, end, edge in view.links(best[:STARTS]) if edge.kind in kinds]
        rows.append(np.array(ends, dtype=np.int64))
    every = np.unique(np.concatenate(rows))
    every = every[every >= 0]
    return every[view.visible[every]]
