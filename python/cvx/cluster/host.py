"""A host of shards: the Ray actor that has their stores on the disk of its node."""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.util.metrics import Gauge, Histogram

from cvx.cluster import bucket, shipping
from cvx.cluster.moving import Public, carve
from cvx.cluster.part import Duty, MovedAwayError, Part, Send, Shipment, reads
from cvx.errors import CvxError, ReplicaLostError, StoreNotFoundError

SYNC_S = 3.0
"""So long a primary waits for a copy to sync a write."""
_HAND_S = 30.0
_CHUNK = 4 * 2**20

Asked = tuple[int, str, str, tuple[str, tuple[str, ...]] | None, Sequence[Any], Mapping[str, Any]]
"""Shard, request, verb, namespace and what is shared, arguments and options."""


class Host:
    """Has shards on one node: takes their verbs, ships what they write, receives copies.

    Parameters
    ----------
    name : str
        Of the actor, and of its folder.
    root : str
        Where the folders of hosts are.
    settings : mapping
        As for ``Memory.open``.
    duty : Duty
        What each primary owes its copies.
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
        duty: Duty,
        url: str | None,
        space: str,
    ) -> None:
        self._name, self._root = name, Path(root) / name
        self._settings, self._duty, self._space = dict(settings), duty, space
        self._url = url
        self._born = uuid.uuid4().hex
        self._parts: dict[int, Part] = {}
        self._archives: dict[int, bucket.Archive] = {}
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

    def ping(self) -> dict[str, Any]:
        """Return who it is and what it has."""
        with self._lock:
            parts = {
                shard: (part.is_primary, part.epoch, tuple(part.gone))
                for shard, part in self._parts.items()
            }
        leads = sum(primary for primary, *_ in parts.values())
        self._shards.set(leads, {"role": "primary"})
        self._shards.set(len(parts) - leads, {"role": "copy"})
        node = ray.get_runtime_context().get_node_id()
        return {"born": self._born, "pid": os.getpid(), "node": node, "parts": parts}

    def call(self, *asked: Any) -> tuple[str, Any]:
        """Do one verb: ("ok", answer), ("error", why), or where else to ask."""
        shard, request, verb, bound, args, options = asked
        part, began = self._parts.get(shard), time.perf_counter()
        if part is None or (not part.is_primary and not reads(verb)):
            return "moved", None
        try:
            answer = part.call(request, verb, bound, args, options, self._sender(part))
        except MovedAwayError:
            return "elsewhere", None
        except (CvxError, TypeError, AttributeError) as error:
            if self._parts.get(shard) is not part:
                # It was closed under it: another host has the shard, or this one has it anew.
                return "moved", None
            return "error", error
        archive = self._archives.get(shard)
        if archive is not None and archive.is_due:
            archive.keep_up(self._root)
        self._seconds.observe(time.perf_counter() - began, {"verb": verb})
        return "ok", answer

    def many(self, calls: Sequence[Asked]) -> list[tuple[str, Any]]:
        """Do several verbs, one after the other."""
        return [self.call(*asked) for asked in calls]

    # What the directory says.

    def lead(
        self, shard: int, epoch: int, gone: frozenset[str], *, new: bool, after: str = ""
    ) -> None:
        """Take the writes of a shard: as its copy so far, from its folder, or from a snapshot.

        ``after`` names a dead primary that had no copies: what this host has itself is older than
        the folder of that one, and than the bucket.

        Raises
        ------
        StoreNotFoundError
            There is nothing of it, and it is not new.
        ReplicaLostError
            What is here is of an older epoch than the last.
        """
        with self._lock:
            part = self._parts.get(shard)
            if after and (part is None or part.epoch != epoch):
                self.put_aside(shard)
                part = self._taken_over(shard, after)
            elif part is not None and part.epoch < epoch - 1:
                raise ReplicaLostError(
                    f"{self._name} has shard {shard} of epoch {part.epoch}, older than "
                    f"{epoch - 1}: another host is to lead"
                )
            if part is None:
                folder = self._folder(shard)
                there = new or (folder / "memory.db").exists()
                if not there and (
                    self._url is None or not bucket.restore(self._url, shard, folder)
                ):
                    raise StoreNotFoundError(f"{folder} has nothing of shard {shard}")
                part = self._parts[shard] = Part(shard, folder, self._settings, self._duty)
            part.lead(epoch, gone)
            self._archive(part)

    def _archive(self, part: Part) -> None:
        if self._url is not None:
            archive = bucket.Archive(self._url, part.shard, part.memory.record)
            # What was written before it led may be in no object yet.
            archive.snapshot(self._root)
            part.archive = self._archives[part.shard] = archive

    def duty(self, duty: Duty) -> None:
        """Owe another number of copies."""
        self._duty = duty
        for part in self._parts.values():
            part.duty = duty

    def drop(self, shard: int) -> None:
        """Have a shard no more."""
        with self._lock:
            part = self._parts.pop(shard, None)
            self._archives.pop(shard, None)
        if part is not None:
            part.close()
        shutil.rmtree(self._folder(shard), ignore_errors=True)
        shutil.rmtree(self._folder(shard).with_suffix(".aside"), ignore_errors=True)

    def _taken_over(self, shard: int, host: str) -> Part | None:
        """Open the folder that a dead host had of a shard, as one of this host."""
        if not self.finds(shard, host):
            return None
        theirs, mine = self._folder_of(host, shard), self._folder(shard)
        theirs.rename(mine)
        try:
            part = self._parts[shard] = Part(shard, mine, self._settings, self._duty)
        except BaseException:
            mine.rename(theirs)
            raise
        return part

    def put_aside(self, shard: int) -> None:
        """Have a shard no more, which others have newer; its folder is kept under another name."""
        with self._lock:
            part = self._parts.pop(shard, None)
            self._archives.pop(shard, None)
            if part is not None:
                part.close()
            folder = self._folder(shard)
            if folder.exists():
                aside = folder.with_suffix(".aside")
                shutil.rmtree(aside, ignore_errors=True)
                folder.rename(aside)

    def finds(self, shard: int, host: str) -> bool:
        """Return whether the folder that a host had of a shard is on the disk of this one."""
        return (self._folder_of(host, shard) / "memory.db").exists()

    def drop_copy(self, shard: int, host: str, why: str) -> None:
        """Ship a shard to a host no more."""
        part = self._parts.get(shard)
        if part is not None and host in part.copies:
            part.copies.remove(host)
            part.lost[host] = why

    def join(self, shard: int, host: str) -> None:
        """Send a shard to a host, and count it among the copies from then on.

        Writers go on meanwhile, but for the last moment.

        Raises
        ------
        ReplicaLostError
            The host did not take it.
        """
        self._send_copy(shard, host)
        part = self._parts[shard]

        def confirm() -> bool:
            told = self._peer("directory").joined.remote(shard, part.epoch, host)
            return bool(ray.get(told, timeout=SYNC_S))

        part.end_joining(host, self._sender(part), confirm)

    def _send_copy(self, shard: int, host: str) -> None:
        part = self._parts[shard]
        number = part.begin_joining(host)
        copy = self._root / f"{shard:05d}.copy"
        try:
            shipping.copy_to(part.memory.record, copy)
            self._send_file(copy, shard, host, part.epoch, number)
        except BaseException as error:
            part.stop_joining(host)
            raise ReplicaLostError(f"{host} cannot have shard {shard}: {error}") from error
        finally:
            copy.unlink(missing_ok=True)

    def _send_file(self, copy: Path, shard: int, host: str, epoch: int, number: int) -> None:
        peer, first = self._peer(host), True
        with copy.open("rb") as file:
            while chunk := file.read(_CHUNK):
                ray.get(peer.receive.remote(shard, chunk, first=first), timeout=60)
                first = False
        ray.get(peer.adopt.remote(shard, epoch, number), timeout=600)

    # A namespace gets a shard of its own.

    def part_with(self, shard: int, namespace: str, new: int, hosts: Sequence[str]) -> int:
        """Send a namespace to the hosts of its new shard, and take no more of it here.

        Returns
        -------
        int
            At which change the copies stand; the first of the hosts is to lead.
        """
        part, key = self._parts[shard], f"move {namespace}"
        part.begin_joining(key)
        copy = self._root / f"{new:05d}.copy"
        try:
            shipping.copy_to(part.memory.record, copy)
            carve(copy, namespace)
            for host in hosts:
                self._send_file(copy, new, host, 0, 0)

            def hand(host: str, shipments: Sequence[Shipment]) -> str:
                taken = self._peer(host).take.remote(new, 0, shipments)
                return str(ray.get(taken, timeout=_HAND_S))

            return part.part_with(namespace, hosts, hand, self._sender(part))
        finally:
            part.stop_joining(key)
            copy.unlink(missing_ok=True)

    def lead_with(self, shard: int, copies: Sequence[str]) -> None:
        """Take the writes of a shard that was carved out of another, with its copies."""
        part = self._parts[shard]
        part.lead_with(1, copies)
        self._archive(part)

    def follow(self, shard: int, epoch: int) -> None:
        """Follow whoever leads in an epoch, from where this copy stands."""
        part = self._parts[shard]
        part.follow(epoch, part.number)

    def take_back(self, shard: int, namespace: str) -> None:
        """Have a namespace again, whose move broke off."""
        self._parts[shard].gone.discard(namespace)

    def tidy(self, shard: int, namespace: str) -> int:
        """Erase what is left of a namespace that has gone."""
        part = self._parts[shard]
        return part.tidy(namespace, self._sender(part))

    def public_since(self, shard: int, seq: int) -> Public:
        """Return what others may see of a shard, and changed after a number of its journal."""
        return self._parts[shard].public_since(seq)

    def renew_public(self, shard: int, of: int, public: Public, moved: Mapping[str, int]) -> None:
        """Take over what others may see of another shard."""
        part = self._parts[shard]
        part.renew_public(of, public, moved, self._sender(part))

    # What other hosts say.

    def receive(self, shard: int, chunk: bytes, *, first: bool) -> None:
        """Take a piece of the record of a shard."""
        folder = self._folder(shard)
        if first:
            self.drop(shard)
            folder.mkdir(parents=True)
        with (folder / "memory.db").open("ab") as file:
            file.write(chunk)

    def adopt(self, shard: int, epoch: int, number: int) -> None:
        """Be a copy of the shard that was received, at a change of its primary."""
        with self._lock:
            folder = self._folder(shard)
            part = self._parts[shard] = Part(shard, folder, self._settings, self._duty)
            part.follow(epoch, number)

    def take(self, shard: int, epoch: int, shipments: Sequence[Shipment]) -> str:
        """Store what the primary of a shard ships; returns why not, "" where it is synced."""
        part = self._parts.get(shard)
        if part is None:
            return f"there is no shard {shard} here"
        return part.take(epoch, shipments)

    def snapshot(self, shard: int) -> str | None:
        """Write a snapshot of a shard to the bucket; returns its name."""
        archive = self._archives.get(shard)
        return None if archive is None else archive.snapshot(self._root)

    def keep_up(self) -> None:
        """Write the changes that wait to the bucket, and let copies be ready to be read."""
        for archive in list(self._archives.values()):
            archive.keep_up(self._root)
        for part in list(self._parts.values()):
            with suppress(CvxError):
                part.warm()

    def close(self) -> None:
        """Close every store."""
        with self._lock:
            for archive in self._archives.values():
                archive.flush()
            for part in self._parts.values():
                part.close()
            self._parts.clear()

    def _folder(self, shard: int) -> Path:
        return self._folder_of(self._name, shard)

    def _folder_of(self, host: str, shard: int) -> Path:
        return self._root.parent / host / f"shard-{shard:05d}"

    def _peer(self, host: str) -> Any:
        return ray.get_actor(host, namespace=self._space)

    def _sender(self, part: Part) -> Send:
        def send(host: str, shipments: Sequence[Shipment]) -> str:
            try:
                taken = self._peer(host).take.remote(part.shard, part.epoch, shipments)
                problem = str(ray.get(taken, timeout=SYNC_S))
            except Exception as error:  # of Ray: the node is gone, or does not answer
                problem = f"{type(error).__name__}: {host} did not take a change"
            if problem:
                self._report(part, host, problem)
            return problem

        return send

    def _report(self, part: Part, host: str, why: str) -> None:
        """Tell the directory that a host is no copy any more, before anything is acknowledged."""
        with suppress(Exception):  # it looks for itself, too
            known = self._peer("directory").lost.remote(part.shard, part.epoch, host, why)
            if ray.get(known, timeout=SYNC_S):
                return
        # Another host leads by now, or nobody can say so: what was written is not acknowledged.
        part.follow(part.epoch, -1)
        part.duty = Duty(part.duty.wanted, degraded=False)
