"""The raw index: nodes in time, found by similarity, by time, by edges and by region.

It knows arrays, node ids and namespaces, and neither text nor files other than its own snapshot.
"""

from __future__ import annotations

from cvx.index.raw_index import RawIndex
from cvx.index.results import Ancestry, Path

__all__ = ["Ancestry", "Path", "RawIndex"]
