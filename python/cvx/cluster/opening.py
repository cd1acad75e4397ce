"""Opens a cluster: finds its coordinator or starts one, and waits until it is ready."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cvx.arguments import a_flag, checked, number, optional, whole, wrong
from cvx.cluster.client import ShardClient
from cvx.cluster.coordinator import Coordinator, Plan, read_layout
from cvx.cluster.layout import MOST_SHARDS
from cvx.cluster.memory import ClusterMemory
from cvx.embed import Embedder
from cvx.embed.registry import embedder_from, embedder_of
from cvx.errors import RecordIOError, SettingsMismatchError, StoreError

_START_S = 120.0
_USERS: dict[str, WeakSet[ShardClient]] = {}
"""The clients of each cluster that this process made, by the id of its coordinator."""


@checked(
    shards=optional(whole(1, MOST_SHARDS)),
    replicas=optional(whole(1)),
    hosts=optional(whole(1)),
    degraded_writes=optional(a_flag),
    deadline_s=number(0.001),
    patience_s=number(0.001),
    cpus=optional(number(0.0)),
    start_s=number(0.0),
)
def open(  # noqa: A001
    path: str | os.PathLike[str],
    *,
    shards: int | None = None,
    replicas: int | None = None,
    hosts: int | None = None,
    degraded_writes: bool | None = None,
    snapshots: str | None = None,
    deadline_s: float = 1.0,
    patience_s: float = 20.0,
    cpus: float | None = None,
    start_s: float = 120.0,
    embedder: Embedder | str | None = None,
    dim: int | None = None,
    metric: str | None = None,
    clock: str | None = None,
    preset: str | None = None,
    tokenizer: str | None = None,
    seed: int | None = None,
) -> ClusterMemory:
    """Open a memory on the Ray cluster that this process is connected to, or on this machine.

    Who opens the same path again, in this process or another, gets the same memory: what is given
    then must be what it runs with. It is closed by the process that made it, with the last of the
    memories that were opened there. Where this process is connected to none, it joins the Ray
    cluster that runs on this machine, if any (``ray.init``): connect to another one before.

    Parameters
    ----------
    path : str or path
        The folder on every node, on its own disk, in which the stores are; or a bucket, such as
        "s3://name/memory", for snapshots: the stores are then in a temporary folder of each node.
    shards : int, optional
        How many, for good; default 4.
    replicas : int, optional
        On how many nodes each shard is: a write returns when as many have synced it. Default 2, or
        1 where the cluster has one node.
    hosts : int, optional
        How many actors have shards; default one a shard.
    degraded_writes : bool, optional
        Whether writes go on where fewer nodes than that are left, instead of raising; default not.
    snapshots : str, optional
        A bucket or folder, as fsspec knows it, for snapshots and the changes since.
    deadline_s : float, default 1.0
        So long a read waits at most; what comes back names the shards that are ``missing``.
    patience_s : float, default 20.0
        So long a write waits until somebody leads its shard.
    cpus : float, optional
        Of a node, that Ray sets aside for each host; default 1.
    start_s : float, default 120.0
        So long it waits until every shard is on as many nodes as wanted.
    embedder, dim, metric, clock, preset, tokenizer, seed
        As for ``Memory.open``.

    Raises
    ------
    MissingExtraError
        Ray is not installed.
    SettingsMismatchError
        The cluster runs, or was made, with something else than what is given.
    StoreError
        The shards could not be opened, or the folder is the store of one machine.
    RecordIOError
        There can be no such folder.
    """
    folder, url = _folder_of(path)
    url = snapshots or url
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.WARNING)
    here = embedder_from(embedder) if isinstance(embedder, str) else embedder
    # Without what it has kept in RAM since it was made, where it can be made of its name.
    plain = None if here is None else embedder_of(str(here.info()["id"]))
    given = {
        "shards": shards,
        "hosts": hosts,
        "replicas": replicas,
        "degraded_writes": degraded_writes,
        "snapshots": url,
        "cpus": cpus,
        "embedder": plain if type(plain) is type(embedder) else embedder,
        "dim": dim,
        "metric": metric,
        "clock": clock,
        "preset": preset,
        "tokenizer": tokenizer,
        "seed": seed,
    }
    space = f"cvx-{hashlib.blake2b(str(folder).encode(), digest_size=6).hexdigest()}"
    try:
        coordinator = ray.get_actor("coordinator", namespace=space)
    except ValueError:
        coordinator = _started(_plan(folder, given, space), start_s)
        _USERS[coordinator._actor_id.hex()] = WeakSet()
    else:
        told: Any = ray.get(coordinator.plan.remote())
        _check_same(given, told[0])
    client = ShardClient(coordinator, deadline_s, patience_s)
    return ClusterMemory(client, coordinator, here, users=_USERS.get(coordinator._actor_id.hex()))


_OF_THE_PLAN = ("shards", "hosts", "replicas", "degraded_writes", "snapshots", "cpus")


def _plan(folder: Path, given: dict[str, Any], space: str) -> Plan:
    """Return what a cluster is to be started with: what is given, and defaults for the rest."""
    nodes = sum(node["Alive"] for node in ray.nodes())  # type: ignore[no-untyped-call]
    replicas = given["replicas"] or min(2, nodes)
    shards = given["shards"] or 4
    settings = {name: one for name, one in given.items() if name not in _OF_THE_PLAN}
    return Plan(
        str(folder),
        shards,
        given["hosts"] or max(shards, replicas),
        replicas,
        bool(given["degraded_writes"]),
        given["snapshots"],
        1.0 if given["cpus"] is None else given["cpus"],
        settings | {"seed": settings["seed"] or 0},
        space,
    )


def _check_same(given: dict[str, Any], plan: Plan) -> None:
    """Refuse to open a cluster that runs with something else than what is given."""
    for name, one in given.items():
        known = getattr(plan, name) if name in _OF_THE_PLAN else plan.settings[name]
        if name == "embedder" and None not in (one, known):
            same = _name_of(one) == _name_of(known)
        else:
            same = one in (None, known)
        if not same:
            raise SettingsMismatchError(
                f"{name} is {one!r}, but this cluster runs with {known!r}: give that, or nothing, "
                "or close it first"
            )


def _name_of(embedder: Any) -> Any:
    return embedder if isinstance(embedder, str) else embedder.info()["id"]


def _folder_of(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    plain = os.fspath(path)
    if not plain:
        raise wrong("path", path, "a folder or a bucket")
    if "://" not in plain:
        return Path(plain).absolute(), None
    name = hashlib.blake2b(plain.encode(), digest_size=6).hexdigest()
    return Path(tempfile.gettempdir()) / f"cvx-cluster-{name}", plain


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be made, or is the store of one machine."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        plain = (folder / "memory.db").exists() and not (folder / "cluster.json").exists()
    except FileExistsError as error:
        raise RecordIOError(f"{folder} is a file: give the path of a folder") from error
    except OSError as error:
        raise RecordIOError(f"{folder} cannot be made ({error}): give another folder") from error
    if plain:
        raise StoreError(
            f"{folder} is the store of one machine, which a cluster does not take over: open it "
            "with cvx.Memory.open, or give the cluster a folder of its own"
        )


def _started(plan: Plan, start_s: float) -> Any:
    """Start the coordinator of a cluster, and wait until every shard is on enough nodes."""
    _check_folder(Path(plan.path))
    layout = read_layout(plan)
    if layout is not None and layout.shards != plan.shards:
        raise SettingsMismatchError(
            f"shards is {plan.shards}, but this cluster was made with {layout.shards}: give that, "
            "or make another one"
        )
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    options = {
        "name": "coordinator",
        "namespace": plan.space,
        "lifetime": "detached",
        "num_cpus": 0,
        "max_restarts": -1,
        # Whatever it is asked may be asked twice: Ray asks again where it was started anew.
        "max_task_retries": -1,
        "max_concurrency": 64,
        "scheduling_strategy": here,
    }
    started: Any = ray.remote(Coordinator).options(**options).remote(plan)
    ray.get(started.plan.remote(), timeout=_START_S)
    end, told = time.monotonic() + start_s, dict[str, Any]()
    while time.monotonic() < end:
        with suppress(ray.exceptions.GetTimeoutError):
            told = ray.get(started.health.remote(), timeout=5)
            shards = told["shards"].values()
            if len(shards) >= plan.shards and all(one["whole"] for one in shards):
                return started
        time.sleep(0.05)
    ray.get(started.close.remote(), timeout=60)
    ray.kill(started)
    raise StoreError(
        f"the shards of {plan.path} are not on {plan.replicas} nodes after {start_s:g} s "
        f"({told}): give Ray more nodes or cpus, or fewer replicas and hosts; hosts that never "
        "live may be kept waiting by another process that has their folders"
    )
