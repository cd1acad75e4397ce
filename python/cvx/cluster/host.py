"""A host of shards: the Ray actor whose stores are on its node's disk."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import threading
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ray
from ray.util.metrics import Gauge, Histogram
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cvx.cluster import replication, snapshots
from cvx.cluster.client import packed, plain_error
from cvx.cluster.namespace_rows import NamespaceRows, carve
from cvx.cluster.shard_store import READS, ShardStore, Shipment
from cvx.errors import CvxError, ReplicaLostError, StoreNotFoundError
from cvx.memory import Memory
from cvx.store.files import make_folders, make_private

SYNC_S = 3.0
"""So long a primary waits for a copy to sync a write."""
LEASE_S = 3.0
"""So long after a host was heard last may it acknowledge what no copy has; nobody leads before."""
_HAND_S = 30.0
_SEND_S, _ADOPT_S = 60.0, 600.0
_CHUNK = 2**20
_NICE = 10
_COPY = "copy-"

Asked = tuple[Any, ...]
"""The shard, and what ``ShardStore.call`` takes."""


class Host:
    """Has shards on one node: takes their verbs, ships what they write, receives copies.

    Parameters
    ----------
    name : str
        Of the actor, and of its folder, which is its alone while it lives.
    root : str
        Where the folders of hosts are.
    settings : mapping
        As for ``Memory.open``.
    least : int
        On how many hosts a write must be synced.
    url : str or None
        Where snapshots go.
    space : str
        The namespace of Ray in which the actors of the cluster are named.
    """

    def __init__(
        self,
        name: str,
        root: str,
        settings: Mapping[str, Any],
        least: int,
        url: str | None,
        space: str,
    ) -> None:
        self._name, self._root = name, Path(root) / name
        self._settings, self._least, self._space = dict(settings), least, space
        self._url = url
        self._born, self._heard = uuid.uuid4().hex, 0.0
        self._stores: dict[int, ShardStore] = {}
        self._lock = threading.RLock()
        labels = {"cluster": space, "host": name}
        self._seconds = Histogram(
            "cvx_call_seconds",
            "What a verb took on its shard.",
            boundaries=[0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3],
            tag_keys=("cluster", "host", "verb"),
        )
        self._seconds.set_default_tags(labels)
        self._shards = Gauge("cvx_shards", "Shards by role.", tag_keys=("cluster", "host", "role"))
        self._shards.set_default_tags(labels)
        self._root.mkdir(parents=True, exist_ok=True)
        # Another process that has it, of another Ray cluster or of a node cut off, is waited for.
        self._held = (self._root / "LOCK").open("w")
        fcntl.flock(self._held, fcntl.LOCK_EX)
        for left in self._root.glob(f"{_COPY}*"):
            shutil.rmtree(left)

    def ping(self, born: str = "", heard: float = 0.0) -> dict[str, Any]:
        """Return who it is and what it has, however busy it is.

        ``heard`` is the time by the clock of this process, ``born`` then, of its last answer that
        arrived.
        """
        if born == self._born:
            self._heard = max(self._heard, heard)
        stores = {
            shard: (store.is_primary, store.epoch, tuple(store.gone))
            for shard, store in list(self._stores.items())
        }
        found = (one for one in self._root.glob("shard-*") if one.is_dir())
        there = [(int(one.stem.removeprefix("shard-")), one) for one in found]
        leads = sum(primary for primary, *_ in stores.values())
        self._shards.set(leads, {"role": "primary"})
        self._shards.set(len(stores) - leads, {"role": "copy"})
        return {
            "born": self._born,
            "now": time.monotonic(),
            "pid": os.getpid(),
            "node": ray.get_runtime_context().get_node_id(),
            "stores": stores,
            "folders": {n for n, at in there if at.suffix or n not in stores},
        }

    def call(self, asked: bytes) -> bytes:
        """Do one verb; returns ("ok", answer), ("error", why) or where else to ask, packed."""
        shard, *_ = request = pickle.loads(asked)
        store = self._stores.get(shard)
        return packed(self.answer(request), *([] if store is None else [store.told]))

    def answer(self, asked: Asked) -> tuple[str, Any]:
        """Do one verb."""
        shard, _, verb, *_ = asked
        store, began = self._stores.get(shard), time.perf_counter()
        if store is None or (not store.is_primary and verb not in READS):
            return "moved", None
        try:
            answer = store.call(*asked[1:])
        except Exception as error:
            if self._stores.get(shard) is not store:
                # It was closed under it: another host has the shard, or this one has it anew.
                return "moved", None
            if isinstance(error, CvxError | TypeError | AttributeError):
                return "error", error
            raise
        self._seconds.observe(time.perf_counter() - began, {"verb": verb})
        return "ok", answer

    # What the coordinator says.

    def lead(
        self,
        shard: int,
        epoch: int,
        gone: Collection[str] = (),
        *,
        since: int = 0,
        new: bool = False,
        alone: bool = False,
        copies: Sequence[str] = (),
    ) -> None:
        """Take the writes of a shard: as its copy so far, from its folder, or from a snapshot.

        Parameters
        ----------
        shard, epoch : int
            Which, and in which epoch.
        gone : collection of str
            Namespaces that moved away from it.
        since : int
            The epoch that was led last: a copy of an older one is refused.
        new : bool
            Whether nobody has had it yet.
        alone : bool
            Whether a dead primary had no copies: what this host has itself is older than the
            bucket.
        copies : sequence of str
            Hosts that stand where this one does.

        Raises
        ------
        StoreNotFoundError
            There is nothing of it, and it is not new.
        ReplicaLostError
            What is here is of an older epoch than the last.
        """
        with self._lock:
            store, folder = self._stores.get(shard), self._folder(shard)
            if store is None and (folder / "memory.db").exists():
                store = self._open(shard)
            if alone and (store is None or store.epoch <= since):
                self.put_aside(shard)
                store = None
            elif store is not None and store.epoch < since:
                raise ReplicaLostError(
                    f"{self._name} has shard {shard} of epoch {store.epoch}, older than {since}: "
                    "another host is to lead"
                )
            if store is None:
                bucket = None if new else self._url
                if not new and (bucket is None or not snapshots.restore(bucket, shard, folder)):
                    raise StoreNotFoundError(f"{folder} has nothing of shard {shard}")
                store = self._open(shard)
            if self._url is not None:
                archive = snapshots.Archive(self._url, shard, epoch, store.memory.record)
                # What was written before it leads may be in no object yet. Where the bucket fails,
                # it does not lead.
                archive.snapshot()
                store.archive = archive
            store.lead(epoch, gone, copies)

    def _open(self, shard: int) -> ShardStore:
        def send(host: str, shipments: Sequence[Shipment]) -> str:
            return self._send(store, host, shipments)

        store = self._stores[shard] = ShardStore(
            shard, self._folder(shard), self._settings, self._least, send, self._may_lead
        )
        # The first writer would do it otherwise, and all others wait for it.
        with suppress(CvxError):
            store.memory.admin.snapshot()
        return store

    def _may_lead(self) -> bool:
        # Without a bucket nobody takes over from a host that has a shard alone.
        return self._url is None or time.monotonic() < self._heard + LEASE_S

    def put_aside(self, shard: int) -> None:
        """Have a shard no more, which others have newer; its folder stays until enough have it."""
        with self._lock:
            store = self._stores.pop(shard, None)
            if store is not None:
                store.close()
            folder = self._folder(shard)
            if folder.exists():
                aside = folder.with_suffix(".aside")
                shutil.rmtree(aside, ignore_errors=True)
                folder.rename(aside)

    def clear(self, shard: int) -> None:
        """Remove what this host has of a shard in folders that are not open."""
        with self._lock:
            folder = self._folder(shard)
            shutil.rmtree(folder.with_suffix(".aside"), ignore_errors=True)
            if shard not in self._stores:
                shutil.rmtree(folder, ignore_errors=True)

    def of(self, shard: int, verb: str, *args: Any) -> Any:
        """Return what the store of a shard answers to one of its own verbs, as "archive.snapshot".

        Raises
        ------
        ReplicaLostError
            There is none here.
        """
        store = self._stores.get(shard)
        if store is None:
            raise ReplicaLostError(f"{self._name} has no shard {shard}")
        return attrgetter(verb)(store)(*args)

    def join(
        self, shard: int, hosts: Sequence[str], namespace: str | None = None, new: int = 0
    ) -> None:
        """Send a shard to a host, and count it among the copies from then on.

        Or, of the shard, one namespace to the hosts of its ``new`` shard, and take no more of it
        here: they stand at the same change then, in epoch 0, and the first of them is to lead.
        Writers go on meanwhile, but for the last moment.

        Raises
        ------
        ReplicaLostError
            One of the hosts did not take it.
        """
        store, moves = self._stores[shard], namespace is not None
        kept = NamespaceRows(lambda name, _: name == namespace)
        to, epoch = (new, 0) if moves else (shard, store.epoch)
        key = f"move {namespace}" if moves else hosts[0]
        number = store.begin_joining(key)

        def finish() -> None:
            if namespace is not None:
                store.gone.add(namespace)
                return
            if not self._counted(store, *hosts):
                raise ReplicaLostError(f"another host leads shard {shard}: ask that one")
            store.copies += hosts
            store.lost.pop(key, None)

        def hand(shipments: list[Shipment]) -> None:
            if moves:
                shipments = [(n, kept.of(change), answers) for n, change, answers in shipments]
            taken = [peer.of.remote(to, "take", epoch, shipments) for peer in peers]
            for host, problem in zip(hosts, ray.get(taken, timeout=_HAND_S), strict=True):
                if problem:
                    raise ReplicaLostError(f"{host} cannot have shard {to}: {problem}")

        try:
            peers = [self._peer(host) for host in hosts]
            if moves:
                # In a process of its own: here it would hold up those that write.
                node = ray.get_runtime_context().get_node_id()
                carving = ray.remote(num_cpus=0, max_calls=1)(_carve).options(
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
                )
                # Settings of its own: in these the embedder has kept what it was asked here.
                told = self._peer("coordinator").plan.remote()
                source = store.memory.record.path
                kept = ray.get(carving.remote(source, self._root, kept, told, peers, to, number))
            else:
                # What is left in it is removed before writers wait.
                with TemporaryDirectory(prefix=_COPY, dir=self._root) as folder:
                    replication.copy_to(store.memory.record, Path(folder) / "memory.db")
                    _send_folder(Path(folder), peers, to, epoch, number)
            store.end_joining(key, hand, finish)
        except ray.exceptions.RayError as error:
            raise ReplicaLostError(
                f"{', '.join(hosts)} cannot have shard {to}: {plain_error(error)}"
            ) from error
        finally:
            store.stop_joining(key)

    # What other hosts say.

    def receive(self, shard: int, name: str, chunk: bytes, *, first: bool) -> None:
        """Take a piece of a file of a shard, and have it on disk."""
        file = self._folder(shard) / name
        if first:
            self.put_aside(shard)
            self.clear(shard)
        make_folders(file.parent)
        make_private(file)
        with file.open("ab") as target:
            target.write(chunk)
            target.flush()
            # Now and not all at its end: who writes to that disk would wait for seconds.
            os.fsync(target.fileno())

    def follow(self, shard: int, epoch: int, number: int | None = None) -> None:
        """Be a copy of a shard whose record is here, at a change of its primary."""
        with self._lock:
            store = self._stores.get(shard) or self._open(shard)
            store.follow(epoch, store.number if number is None else number)

    def keep_up(self, moved: Mapping[str, int]) -> None:
        """Do what can wait a second: for the bucket, for copies, for namespaces that have gone.

        ``moved`` says where these are.
        """
        for store in list(self._stores.values()):
            with suppress(CvxError):
                store.keep_up(moved)
            if store.archive is not None:
                store.archive.keep_up()

    def close(self) -> None:
        """Close every store."""
        with self._lock:
            for store in self._stores.values():
                if store.archive is not None:
                    store.archive.flush()
                store.close()
            self._stores.clear()
            self._held.close()

    def _folder(self, shard: int) -> Path:
        return self._root / f"shard-{shard:05d}"

    def _peer(self, name: str) -> Any:
        return ray.get_actor(name, namespace=self._space)

    def _counted(self, store: ShardStore, host: str, lost: str = "") -> bool:
        """Let the coordinator count a host among the copies, or no more; False if it does not."""
        told = self._peer("coordinator").counted.remote(store.shard, store.epoch, host, lost)
        return bool(ray.get(told, timeout=SYNC_S))

    def _send(self, store: ShardStore, host: str, shipments: Sequence[Shipment]) -> str:
        try:
            taken = self._peer(host).of.remote(store.shard, "take", store.epoch, shipments)
            problem = str(ray.get(taken, timeout=SYNC_S))
        except Exception as error:  # of Ray: the node is gone, or does not answer
            problem = f"{type(error).__name__}: {host} did not take a change"
        if problem:
            # Before anything is acknowledged, the coordinator knows that the host is no copy.
            known = False
            with suppress(Exception):  # it looks for itself, too
                known = self._counted(store, host, problem)
            if not known:
                # Another host leads by now, or nobody can say so: nothing is acknowledged.
                store.follow(store.epoch, -1)
        return problem


def _carve(
    source: str,
    root: Path,
    kept: NamespaceRows,
    told: Any,
    peers: Sequence[Any],
    shard: int,
    number: int,
) -> NamespaceRows:
    """Carve a namespace out in the background, and send it to the hosts of its shard.

    ``told`` is what the coordinator says of its plan.
    """
    os.nice(_NICE)
    plan, _ = told
    with TemporaryDirectory(prefix=_COPY, dir=root) as folder:
        carve(source, Path(folder) / "memory.db", kept)
        # With its index, which each of them would make anew beside those that write.
        Memory.open(folder, **plan.settings).close()
        _send_folder(Path(folder), peers, shard, 0, number)
    return kept


def _send_folder(folder: Path, peers: Sequence[Any], shard: int, epoch: int, number: int) -> None:
    """Send a store to hosts, which are copies from then on, at a change of its primary."""
    files = [folder / "memory.db", *sorted((folder / "index").glob("*"))]
    for file in files:
        name, first = str(file.relative_to(folder)), file == files[0]
        with file.open("rb") as source:
            while chunk := source.read(_CHUNK):
                part = ray.put(chunk)
                ray.get(
                    [peer.receive.remote(shard, name, part, first=first) for peer in peers],
                    timeout=_SEND_S,
                )
                first = False
    ray.get([peer.follow.remote(shard, epoch, number) for peer in peers], timeout=_ADOPT_S)
