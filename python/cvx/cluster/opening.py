"""Opening a cluster: its directory is found or started, and waited for."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cvx.arguments import a_flag, checked, number, optional, whole, wrong
from cvx.cluster.asking import Asker
from cvx.cluster.directory import Directory, Plan, read_layout, wait_until_led
from cvx.cluster.memory import ClusterMemory
from cvx.cluster.placement import MOST_SHARDS
from cvx.embed.registry import embedder_from, embedder_of
from cvx.errors import RecordIOError, SettingsMismatchError, StoreError

if TYPE_CHECKING:
    from cvx.embed import Embedder

_START_S = 120.0
_USERS: dict[str, WeakSet[Asker]] = {}
"""Who asks, of each cluster that this process made, by the id of its directory."""


@checked(
    shards=whole(1),
    replicas=optional(whole(1)),
    hosts=optional(whole(1)),
    degraded_writes=a_flag,
    deadline_s=number(0.001),
    patience_s=number(0.001),
    cpus=number(0.0),
    start_s=number(0.0),
)
def open(  # noqa: A001
    path: str | os.PathLike[str],
    *,
    shards: int = 4,
    replicas: int | None = None,
    hosts: int | None = None,
    degraded_writes: bool = False,
    snapshots: str | None = None,
    deadline_s: float = 1.0,
    patience_s: float = 20.0,
    cpus: float = 1.0,
    start_s: float = 120.0,
    embedder: Embedder | str | None = None,
    dim: int | None = None,
    metric: str | None = None,
    clock: str | None = None,
    preset: str | None = None,
    tokenizer: str | None = None,
    seed: int = 0,
) -> ClusterMemory:
    """Open a memory on the Ray cluster that this process is connected to, or on this machine.

    Who opens the same path again, in this process or another, gets the same memory. It is closed
    by the process that made it, with the last of the memories that were opened there.

    Parameters
    ----------
    path : str or path
        The folder on every node, on its own disk, in which the stores are; or a bucket, such as
        "s3://name/memory", for snapshots: the stores are then in a temporary folder of each node.
    shards : int, default 4
        How many, for good.
    replicas : int, optional
        On how many nodes each shard is: a write returns when as many have synced it. Default 2, or
        1 where the cluster has one node.
    hosts : int, optional
        How many actors have shards; default one a shard.
    degraded_writes : bool, default False
        Whether writes go on where fewer nodes than that are left, instead of raising.
    snapshots : str, optional
        A bucket or folder, as fsspec knows it, for snapshots and the changes since.
    deadline_s : float, default 1.0
        So long a read waits at most; what comes back names the shards that are ``missing``.
    patience_s : float, default 20.0
        So long a write waits until somebody leads its shard.
    cpus : float, default 1.0
        Of a node, that Ray sets aside for each host.
    start_s : float, default 120.0
        So long it waits until every shard is on as many nodes as wanted.
    embedder, dim, metric, clock, preset, tokenizer, seed
        As for ``Memory.open``.

    Raises
    ------
    MissingExtraError
        Ray is not installed.
    SettingsMismatchError
        The cluster was made with another number of shards, or another embedder.
    StoreError
        The shards could not be opened, or the folder is the store of one machine.
    RecordIOError
        There can be no such folder.
    """
    if shards > MOST_SHARDS:
        raise wrong("shards", shards, f"at most {MOST_SHARDS}")
    folder, url = _folder_of(path)
    url = snapshots or url
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.WARNING)
    nodes = sum(node["Alive"] for node in ray.nodes())  # type: ignore[no-untyped-call]
    here = embedder_from(embedder) if isinstance(embedder, str) else embedder
    # Without what it has kept in RAM since it was made, where it can be made of its name.
    plain = None if here is None else embedder_of(str(here.info()["id"]))
    settings = {
        "embedder": plain if type(plain) is type(embedder) else embedder,
        "dim": dim,
        "metric": metric,
        "clock": clock,
        "preset": preset,
        "tokenizer": tokenizer,
        "seed": seed,
    }
    plan = Plan(
        str(folder),
        url,
        shards,
        hosts or max(shards, replicas or min(2, nodes)),
        replicas or min(2, nodes),
        degraded_writes,
        settings,
        f"cvx-{hashlib.blake2b(str(folder).encode(), digest_size=6).hexdigest()}",
        cpus,
    )
    directory, own = _directory(plan, start_s)
    asker = Asker(directory, plan.space, deadline_s, patience_s)
    number = directory._actor_id.hex()
    if own:
        _USERS[number] = WeakSet()
    return ClusterMemory(asker, directory, here, users=_USERS.get(number))


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


def _directory(plan: Plan, start_s: float) -> tuple[Any, bool]:
    """Return the directory of a cluster, and whether it was started here."""
    try:
        known = ray.get_actor("directory", namespace=plan.space)
    except ValueError:
        pass
    else:
        theirs: Any = ray.get(known.plan.remote())
        if theirs.shards != plan.shards:
            raise SettingsMismatchError(
                f"shards is {plan.shards}, but this cluster runs with {theirs.shards}: give that"
            )
        return known, False
    _check_folder(Path(plan.path))
    layout = read_layout(Path(plan.path) / "cluster.json")
    if layout is not None and layout.shards != plan.shards:
        raise SettingsMismatchError(
            f"shards is {plan.shards}, but this cluster was made with {layout.shards}: give that, "
            "or make another one"
        )
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    started: Any = (
        ray.remote(Directory)
        .options(
            name="directory",
            lifetime="detached",
            namespace=plan.space,
            num_cpus=0,
            max_restarts=-1,
            max_concurrency=64,
            scheduling_strategy=here,
        )
        .remote(plan)
    )
    ray.get(started.plan.remote(), timeout=_START_S)
    if not wait_until_led(started, plan.shards, start_s):
        told = ray.get(started.health.remote())
        ray.get(started.close.remote(), timeout=60)
        ray.kill(started)
        problems = {shard: one["problem"] for shard, one in told["shards"].items()}
        raise StoreError(
            f"the shards of {plan.path} are not on {plan.copies} nodes after {start_s:g} s "
            f"({len(told['shards'])} of {plan.shards} led, problems {problems}, hosts "
            f"{told['hosts']}): give Ray more nodes or cpus, or fewer replicas and hosts"
        )
    return started, True
