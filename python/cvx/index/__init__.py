"""The raw index over the native module: insert, search, timelines, edges, regions, snapshots.

It knows arrays, node ids and namespaces, and neither text nor files other than its own snapshot.
"""

from __future__ import annotations

from cvx.index.raw_index import RawIndex
from cvx.index.results import Ancestry, Path

__all__ = ["Ancestry", "Path", "RawIndex"]
