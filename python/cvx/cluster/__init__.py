"""The same memory on several machines: shards on a Ray cluster, each with a copy on another node.

Examples
--------
>>> from cvx.cluster import ClusterMemory
>>> ClusterMemory.recall.__doc__.splitlines()[0]
'Find what fits a cue, best first; as ``Memory.recall``.'
"""

from __future__ import annotations

from cvx.extras import needs

with needs("cluster"):
    from cvx.cluster.memory import ClusterMemory
    from cvx.cluster.opening import open  # noqa: A004

__all__ = ["ClusterMemory", "open"]
