"""A Ray cluster of several nodes on one machine, whose nodes can be killed."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from cvx.errors import MissingShardsError

if TYPE_CHECKING:
    from cvx.cluster import ClusterMemory
    from cvx.types import Event

QUICK = {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "10000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_gcs_server_request_timeout_seconds": "10",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_enable_metrics_collection": "0",
    "RAY_worker_niceness": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "raylet|state-dump|node with node id|unexpected resource usage",
}
"""Ray as it is set here: a dead node is noticed in two seconds, and hosts do not wait for others.

It does not print the log of a node that was killed.
Ray's default niceness of 15 is for batch jobs: a busy machine lets such a process wait.
"""
_STORE = 80 * 2**20
_TRIES = 3
_MINUTE_S = 60.0


class LocalCluster:
    """Nodes of one Ray cluster on this machine, each with room for one host.

    The head has none: it is what Ray itself cannot do without.

    Parameters
    ----------
    nodes : int
        How many beside the head.
    """

    def __init__(self, nodes: int) -> None:
        os.environ.update(QUICK)
        import ray
        from ray.cluster_utils import Cluster

        self._ray = ray
        head = {"num_cpus": 0, "object_store_memory": _STORE, "include_dashboard": False}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        # Before there are others: a driver dies with the node that it is connected to.
        ray.init(address=self._cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        self._nodes: dict[str, Any] = {}
        for _ in range(nodes):
            self.add()

    def add(self) -> None:
        """Start one more node."""
        for left in reversed(range(_TRIES)):
            try:
                node = self._cluster.add_node(num_cpus=1, object_store_memory=_STORE, wait=False)
            except Exception:  # of Ray: a busy machine did not start it in time
                if not left:
                    raise
            else:
                self._nodes[node.node_id] = node
                return

    def kill(self, host: dict[str, Any]) -> None:
        """Kill the node of a host of ``stats()["hosts"]``, with the host, as a lost machine is.

        Parameters
        ----------
        host : dict
            Its node and process.
        """
        node = self._nodes.pop(host["node"])
        with suppress(ProcessLookupError):
            os.kill(host["pid"], signal.SIGKILL)
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        """End Ray, and every node."""
        self._ray.shutdown()
        self._cluster.shutdown()


def everything_of(memory: ClusterMemory, namespace: str) -> list[Event]:
    """Return all events of a namespace, however long it takes: a partial answer tells of no loss.

    Raises
    ------
    MissingShardsError
        A shard does not answer within a minute.
    """
    before, memory._client.deadline_s = memory._client.deadline_s, _MINUTE_S
    try:
        found = memory.events(namespace=namespace)
    finally:
        memory._client.deadline_s = before
    if found.missing:
        raise MissingShardsError(f"{', '.join(found.missing)} did not answer within a minute")
    return found


@contextmanager
def local_cluster(nodes: int) -> Iterator[LocalCluster]:
    """Run a cluster for a block."""
    cluster = LocalCluster(nodes)
    try:
        yield cluster
    finally:
        cluster.close()
