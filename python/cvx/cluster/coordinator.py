"""The coordinator: which host leads which shard, failover, moving and spreading namespaces."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.experimental.internal_kv import (
    _internal_kv_del,
    _internal_kv_get,
    _internal_kv_put,
)

from cvx.cluster import snapshots
from cvx.cluster.host import LEASE_S, Host
from cvx.cluster.layout import Layout, Place
from cvx.cluster.public_events import Public
from cvx.cluster.shard_store import Duty
from cvx.errors import InvalidInputError, ReplicaLostError

_PERIOD_S, _PING_S = 0.2, 0.5
_MERGE_PERIOD_S, _MERGE_S, _MOVE_S, _CLOSE_S = 1.0, 10.0, 3600.0, 2.0
_PACE_S = 0.003
"""So long a round takes for each that is asked: with a thousand of them, three seconds."""
_LATE_S = 60.0
"""So long a host that has not answered since the start is waited for, before the bucket is used."""
_MISSES = 12
"""So many pings without an answer, and a host is taken for dead; an error says so at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings that a cluster is opened with.

    Parameters
    ----------
    path : str
        The folder on each node, in which each host has its own.
    shards, hosts, replicas : int
        How many shards, actors that have them, and nodes that have each shard.
    degraded_writes : bool
        Whether writes go on while fewer nodes than that have a shard.
    snapshots : str or None
        Where these go.
    cpus : float
        Of a node, that Ray sets aside for each host.
    settings : mapping
        As for ``Memory.open``.
    space : str
        The namespace of Ray in which the actors are named.
    """

    path: str
    shards: int
    hosts: int
    replicas: int
    degraded_writes: bool
    snapshots: str | None
    cpus: float
    settings: Mapping[str, Any]
    space: str

    @property
    def layout_file(self) -> Path:
        """The file in which the layout is written down, on the node of the coordinator."""
        return Path(self.path) / "cluster.json"


class Coordinator:
    """Starts the hosts, sees which of them live, and has every shard on as many as wanted.

    It takes no part in reads and writes. What it knows is in Ray's own store and in
    ``cluster.json`` in the folder before anybody is told of it.

    Parameters
    ----------
    plan : Plan
        Of the cluster.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        plan.layout_file.parent.mkdir(parents=True, exist_ok=True)
        self._duty = Duty(plan.replicas, plan.degraded_writes)
        # What Ray's own store says outlives the node of this actor, and the file outlives Ray.
        kept = _internal_kv_get(plan.space.encode())
        known = Layout.from_json(kept.decode()) if kept else read_layout(plan)
        self._layout = known or Layout(0, plan.shards)
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._moving, self._merging = threading.RLock(), threading.RLock()
        # Those of an earlier opening too, where there were more: they have what others have not.
        before = {host for place in self._layout.places.values() for host in place.hosts()}
        names = sorted(before | {f"host-{n}" for n in range(plan.hosts)})
        self._hosts = {name: self._started(name) for name in names}
        # By host: its last answer, when that came, and how many pings it has not answered since.
        self._alive: dict[str, Mapping[str, Any]] = {}
        self._heard: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._misses = dict.fromkeys(names, 0)
        # By shard: who is told to lead it, who is sent a copy of it, who failed at that.
        self._leading: dict[int, tuple[Any, str, int]] = {}
        self._joining: dict[int, tuple[Any, str]] = {}
        self._failed: dict[int, set[str]] = {}
        self._problems: dict[int, str] = {}
        # By pairs of shards, how far the one knows what others may see of the other.
        self._told: dict[tuple[int, int], int] = {}
        # Numbers of moves that broke off, of which nothing is in the bucket any more.
        self._emptied: set[int] = set()
        self._began = time.monotonic()
        self._threads = [
            threading.Thread(target=one, daemon=True) for one in (self._watch, self._care)
        ]
        for thread in self._threads:
            thread.start()

    def _started(self, name: str) -> Any:
        plan = self._plan
        options = {
            "name": name,
            "namespace": plan.space,
            # They outlive the process of this actor, and serve on without it.
            "lifetime": "detached",
            "num_cpus": plan.cpus,
            "max_restarts": -1,
            "max_concurrency": 32,
            "scheduling_strategy": "SPREAD",
            "get_if_exists": True,
        }
        return (
            ray.remote(Host)
            .options(**options)
            .remote(name, plan.path, plan.settings, self._duty, plan.snapshots, plan.space)
        )

    # What clients ask.

    def hosts(self) -> dict[str, Any]:
        """Return the actors that have shards, by name."""
        return self._hosts

    def plan(self) -> Plan:
        """Return what it was opened with."""
        return self._plan

    def layout(self) -> tuple[Layout, tuple[str, ...]]:
        """Return where everything is, and the hosts that do not answer."""
        return self._layout, tuple(name for name in self._hosts if name not in self._alive)

    def health(self) -> dict[str, Any]:
        """Return what lives where, and which shards are on fewer nodes than wanted."""
        layout = self._layout
        shards = {
            shard: {
                "primary": place.primary,
                "copies": list(place.copies),
                "epoch": place.epoch,
                "whole": self._is_whole(shard, place),
                "problem": self._problems.get(shard, ""),
            }
            for shard, place in layout.places.items()
        }
        hosts = {
            name: {"alive": name in self._alive}
            | {key: self._alive.get(name, {}).get(key) for key in ("node", "pid")}
            for name in self._hosts
        }
        spread = {name: list(some) for name, some in layout.spread.items()}
        return {
            "version": layout.version,
            "shards": shards,
            "hosts": hosts,
            "moved": dict(layout.moved),
            "spread": spread,
            "problems": dict(self._problems),
        }

    def counted(self, shard: int, epoch: int, host: str, lost: str = "") -> bool:
        """Count a host among the copies of a shard, or no more where it is ``lost``, and why.

        False for a shard that is led by another one now. The primary waits for this before it
        acknowledges a write on the strength of a new copy, or without one.
        """
        with self._lock:
            place = self._layout.places[shard]
            if place.epoch != epoch or shard in self._leading:
                return False
            copies = tuple(one for one in place.copies if one != host)
            if lost:
                self._problems[shard] = f"{host}: {lost}"
            else:
                self._problems.pop(shard, None)
                copies = (*copies, host)
                self._note(host, shard, epoch, leads=False)
            self._keep(self._layout.with_place(shard, replace(place, copies=copies)))
            return True

    def spread(self, namespace: str, shards: Sequence[int]) -> None:
        """Put the entities of a namespace that holds nothing yet on several shards."""
        with self._lock:
            odd = [one for one in shards if one not in self._layout.places]
            if odd or not shards:
                raise InvalidInputError(
                    f"shards are {list(shards)}: give some of {sorted(self._layout.places)}"
                )
            spread = {**self._layout.spread, namespace: tuple(shards)}
            version = self._layout.version + 1
            self._keep(replace(self._layout, version=version, spread=spread))

    def move(self, namespace: str, host: str) -> int:
        """Give a namespace a shard of its own, led by a host; returns its number.

        Raises
        ------
        InvalidInputError
            No such host that lives, or the namespace is on several shards.
        ReplicaLostError
            The hosts could not take it: it stays where it was.
        """
        with self._moving:
            layout = self._layout
            if host not in self._hosts:
                raise InvalidInputError(f"host is {host!r}: give one of {', '.join(self._hosts)}")
            if host not in self._alive:
                raise ReplicaLostError(f"{host} does not answer: give another, or ask again")
            if namespace in layout.spread:
                raise InvalidInputError(
                    f"namespace is {namespace!r}, which is on several shards: move one of others"
                )
            (source,) = layout.shards_of(namespace)
            if namespace in layout.moved and layout.places[source].primary == host:
                # Asked again, since who asked heard no answer.
                return source
            # A number that no other move had, also of those that broke off: something of theirs may
            # be in the bucket.
            place, new = layout.places[source], max([*layout.places, *layout.told]) + 1
            hosts = [host, *self._others(self._duty.wanted - 1, {self._node(host)})]
            old, actors = self._hosts[place.primary], [self._hosts[name] for name in hosts]
            self._next_epoch(new, 0)
            try:
                ray.get(old.move_out.remote(source, namespace, new, hosts), timeout=_MOVE_S)
                ray.get([one.follow.remote(new, 1) for one in actors[1:]], timeout=_MOVE_S)
                ray.get(actors[0].lead.remote(new, 1, copies=hosts[1:]), timeout=_MOVE_S)
                with self._lock:
                    self._check_still_led(source, place)
                    for name in hosts:
                        self._note(name, new, 1, leads=name == host)
                    layout = self._layout.with_place(new, Place(host, tuple(hosts[1:]), 1))
                    self._keep(replace(layout, moved={**layout.moved, namespace: new}))
            except BaseException:
                old.of.remote(source, "take_back", namespace)
                for one in actors:
                    one.drop.remote(new)
                raise
            return new

    def _check_still_led(self, shard: int, place: Place) -> None:
        """Refuse to go on where another host has led a shard meanwhile, and taken writes."""
        now = self._layout.places[shard]
        if (now.primary, now.epoch) != (place.primary, place.epoch):
            raise ReplicaLostError(
                f"another host leads shard {shard} since the move began: nothing moved, ask again"
            )

    def _others(self, count: int, nodes: set[str]) -> list[str]:
        """Return hosts on other nodes than these, each on another, those with few shards first."""
        found: list[str] = []
        for name, pong in sorted(self._alive.items(), key=lambda one: len(one[1]["stores"])):
            if len(found) < count and pong["node"] not in nodes:
                nodes.add(pong["node"])
                found.append(name)
        return found

    def _node(self, host: str) -> str:
        return str(self._alive[host]["node"]) if host in self._alive else ""

    def merge(self) -> None:
        """Let every shard know what others may see of the rest."""
        with self._merging:
            places = dict(self._layout.places)
            asked = {}
            for shard, place in places.items():
                others = [self._told.get((shard, to), 0) for to in places if to != shard]
                since = min(others, default=0)
                asked[shard] = self._hosts[place.primary].of.remote(shard, "public_since", since)
            for shard, one in asked.items():
                with suppress(Exception):  # of Ray: the next time
                    self._tell(shard, ray.get(one, timeout=_MERGE_S), places)

    def _tell(self, shard: int, public: Public, places: Mapping[int, Place]) -> None:
        sent = {}
        for to, place in places.items():
            if to == shard or self._told.get((shard, to)) == public.tail:
                continue
            if public.events or public.whole is not None:
                sent[to] = self._hosts[place.primary].of.remote(
                    to, "renew_public", shard, public, self._layout.moved
                )
            else:
                self._told[shard, to] = public.tail
        for to, one in sent.items():
            with suppress(Exception):  # of Ray, or a copy is lost: the next time
                ray.get(one, timeout=_MERGE_S)
                self._told[shard, to] = public.tail

    def settle(self) -> None:
        """See to it that nothing of what was erased is in another shard, or in the bucket."""
        for one in [self._keeping_up(name) for name in list(self._alive)]:
            self._tidied(ray.get(one, timeout=_MOVE_S))
        self.merge()
        if self._plan.snapshots is not None:
            self.snapshot()

    def _keeping_up(self, name: str) -> Any:
        return self._hosts[name].keep_up.remote(self._layout.moved)

    def _tidied(self, erased: Sequence[tuple[int, str]]) -> None:
        for shard, namespace in erased:
            # What others may see of it is to come back to this shard, as a copy.
            self._told.pop((self._layout.moved[namespace], shard), None)

    def snapshot(self) -> dict[int, str]:
        """Write a snapshot of every shard; returns their names."""
        if self._plan.snapshots is None:
            raise InvalidInputError("there is no bucket: open the cluster with snapshots=")
        asked = {
            shard: self._hosts[place.primary].of.remote(shard, "snapshot")
            for shard, place in self._layout.places.items()
        }
        return {shard: ray.get(one, timeout=_MOVE_S) for shard, one in asked.items()}

    def _care(self) -> None:
        asked: dict[str, Any] = {}
        while not self._ended.wait(max(_MERGE_PERIOD_S, _PACE_S * len(self._layout.places))):
            for name in list(self._alive):
                with suppress(Exception):  # of Ray: the next time
                    if name in asked and ray.wait([asked[name]], timeout=0)[0]:
                        self._tidied(ray.get(asked.pop(name)))
                    if name not in asked:
                        asked[name] = self._keeping_up(name)
            self.merge()
            with suppress(Exception):  # of the bucket: the next time
                self._empty()

    def close(self) -> None:
        """Close every store, and end."""
        self._ended.set()
        for thread in self._threads:
            # One may wait for a host that does not answer.
            thread.join(_CLOSE_S)
        done = [host.close.remote() for name, host in self._hosts.items() if name in self._alive]
        ray.wait(done, num_returns=len(done), timeout=30) if done else None
        for host in self._hosts.values():
            ray.kill(host)
        _internal_kv_del(self._plan.space.encode())

    # What it does by itself.

    def _watch(self) -> None:
        while not self._ended.wait(max(_PERIOD_S, _PACE_S * len(self._hosts))):
            with suppress(Exception):  # of Ray: looked at again in a moment
                self._look()
                self._mend()
                self._put_aside()
                self._clear_up()

    def _look(self) -> None:
        """See which hosts answer."""
        asked = {}
        for name, host in self._hosts.items():
            _, last = self._heard.get(name, (0.0, {}))
            asked[host.ping.remote(last.get("born", ""), last.get("now", 0.0))] = name
        ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=_PING_S)
        for one in ready:
            name = asked[one]
            try:
                self._alive[name] = pong = ray.get(one)
                self._heard[name] = time.monotonic(), pong
                self._misses[name] = 0
            except ray.exceptions.RayError:
                self._alive.pop(name, None)
        for one in late:
            name = asked[one]
            self._misses[name] += 1
            if self._misses[name] >= _MISSES:
                self._alive.pop(name, None)

    def _mend(self) -> None:
        """Have every shard led, and on as many nodes as wanted."""
        if len(self._layout.places) < self._plan.shards:
            self._begin()
        self._see_led()
        self._see_joined()
        for shard, place in sorted(self._layout.places.items()):
            if shard in self._leading:
                continue
            if not self._has(place.primary, shard, place.epoch, leads=True):
                self._replace(shard, place)
            elif len(place.copies) + 1 > self._duty.wanted or any(
                not self._has(host, shard, place.epoch) for host in place.copies
            ):
                self._prune(shard, place)
            elif len(place.copies) + 1 < self._duty.wanted and shard not in self._joining:
                self._heal(shard, place)

    def _put_aside(self) -> None:
        """Let no host keep a shard that it is not counted among the hosts of any more."""
        for name, pong in self._alive.items():
            for shard in pong["stores"].keys() - self._leading.keys() - self._joining.keys():
                place = self._layout.places.get(shard)
                if place is not None and name not in place.hosts():
                    self._hosts[name].put_aside.remote(shard)

    def _clear_up(self) -> None:
        """Undo what moves that broke off have left, and remove copies that nobody needs."""
        if not self._moving.acquire(blocking=False):
            return
        try:
            for name, pong in self._alive.items():
                done = []
                for shard in {*pong["stores"], *pong["folders"]} - {*self._leading, *self._joining}:
                    place, (leads, _, gone) = (
                        self._layout.places.get(shard),
                        pong["stores"].get(shard, (False, 0, ())),
                    )
                    if place is None and shard >= self._layout.shards:
                        self._emptied.discard(shard)
                        done.append(self._hosts[name].drop.remote(shard))
                    elif shard in pong["folders"] and place and self._is_whole(shard, place):
                        done.append(self._hosts[name].clear.remote(shard))
                    done += [
                        self._hosts[name].of.remote(shard, "take_back", namespace)
                        for namespace in (gone if leads else ())
                        if self._layout.shards_of(namespace) == (shard,)
                    ]
                # Before another move begins.
                ray.get(done, timeout=_PING_S)
        finally:
            self._moving.release()

    def _empty(self) -> None:
        """Remove from the bucket what moves that broke off have left there."""
        url = self._plan.snapshots
        if url is None or not self._moving.acquire(blocking=False):
            return
        try:
            layout = self._layout
            for shard in layout.told.keys() - layout.places.keys() - self._emptied:
                if shard >= layout.shards:
                    snapshots.remove(url, shard)
                    self._emptied.add(shard)
        finally:
            self._moving.release()

    def _has(self, host: str, shard: int, epoch: int, *, leads: bool = False) -> bool:
        """Return whether a host has a shard in an epoch, as its primary or as a copy."""
        stores = self._alive[host]["stores"] if host in self._alive else {}
        return shard in stores and tuple(stores[shard][:2]) == (leads, epoch)

    def _note(self, host: str, shard: int, epoch: int, *, leads: bool) -> None:
        """Know before its next answer what a host has."""
        if host in self._alive:
            self._alive[host]["stores"][shard] = (leads, epoch, ())

    def _is_whole(self, shard: int, place: Place) -> bool:
        following = sum(self._has(one, shard, place.epoch) for one in place.copies)
        return (
            self._has(place.primary, shard, place.epoch, leads=True)
            and following >= self._duty.wanted - 1
        )

    def _begin(self) -> None:
        """Make the shards of a new cluster, each first on one host."""
        names = sorted(self._hosts)
        if len(self._alive) < len(names):
            return
        if not (self._layout.version or self._layout.told) and (
            known := sorted({shard for one in self._alive.values() for shard in one["folders"]})
        ):
            self._problems[-1] = (
                f"{self._plan.layout_file} is missing, but hosts have folders of shards {known}: "
                "put it back from the node where the cluster was opened first"
            )
            return
        self._problems.pop(-1, None)
        for shard in range(self._plan.shards):
            if shard not in self._layout.places and shard not in self._leading:
                self._lead(shard, names[shard % len(names)], 0, new=True)

    def _lead(self, shard: int, host: str, since: int, **how: Any) -> None:
        """Tell a host to lead a shard, in an epoch that nobody was told before."""
        with self._lock:
            epoch, gone = self._next_epoch(shard, since), self._layout.left(shard)
            told = self._hosts[host].lead.remote(shard, epoch, gone, since=since, **how)
            self._leading[shard] = told, host, epoch

    def _next_epoch(self, shard: int, since: int) -> int:
        """Write down, before anybody is told, an epoch that nobody was told; return it."""
        with self._lock:
            epoch = max(self._layout.told.get(shard, 0), since) + 1
            self._keep(replace(self._layout, told={**self._layout.told, shard: epoch}))
            return epoch

    def _see_led(self) -> None:
        for shard, (told, host, epoch) in list(self._leading.items()):
            if not ray.wait([told], timeout=0)[0] and host in self._alive:
                continue
            try:
                ray.get(told, timeout=0)
            except Exception as error:  # of Ray or of the host: another one is tried
                del self._leading[shard]
                self._problems[shard] = f"{host}: {error}"[:500]
                self._failed.setdefault(shard, set()).add(host)
                continue
            self._problems.pop(shard, None)
            self._failed.pop(shard, None)
            with self._lock:
                self._keep(self._layout.with_place(shard, Place(host, (), epoch)))
                self._note(host, shard, epoch, leads=True)
                del self._leading[shard]

    def _replace(self, shard: int, place: Place) -> None:
        """Let a copy lead, or whoever finds the shard in its folder or in the bucket."""
        how = {}
        able = [host for host in place.copies if self._has(host, shard, place.epoch)]
        if not able:
            # None is left but folders: those of the primary and of its copies have everything.
            able = [host for host in place.hosts() if host in self._alive]
            if place.primary not in self._alive and not place.copies and self._plan.snapshots:
                able, how = self._heirs(shard, place), {"alone": True}
        fresh = [host for host in able if host not in self._failed.get(shard, ())]
        if fresh:
            self._lead(shard, fresh[0], place.epoch, **how)
        else:
            self._failed.pop(shard, None)

    def _heirs(self, shard: int, place: Place) -> list[str]:
        """Return who may begin from the bucket, where a dead host had a shard alone."""
        heard, _ = self._heard.get(place.primary, (self._began + _LATE_S - LEASE_S, {}))
        # A host that is cut off may acknowledge writes as long as this.
        if time.monotonic() < heard + LEASE_S + _PERIOD_S:
            self._problems[shard] = f"{place.primary}: it is waited for"
            return []
        return sorted(self._alive)

    def _prune(self, shard: int, place: Place) -> None:
        """Count those no more among the copies that are none."""
        kept = tuple(host for host in place.copies if self._has(host, shard, place.epoch))
        kept = kept[: self._duty.wanted - 1]
        primary = self._hosts[place.primary]
        for host in {*place.copies} - {*kept}:
            told = primary.of.remote(shard, "drop_copy", host, "it does not answer")
            ray.get(told, timeout=_PING_S)
        with self._lock:
            self._keep(self._layout.with_place(shard, replace(place, copies=kept)))

    def _heal(self, shard: int, place: Place) -> None:
        """Begin to send the shard to a host on another node."""
        for target in self._others(1, {self._node(host) for host in place.hosts()}):
            sent = self._hosts[place.primary].join.remote(shard, target)
            self._joining[shard] = sent, target

    def _see_joined(self) -> None:
        for shard, (sent, target) in list(self._joining.items()):
            if not ray.wait([sent], timeout=0)[0]:
                continue
            del self._joining[shard]
            try:
                ray.get(sent)
            except Exception as error:  # of Ray or of the host: another one is tried
                self._problems[shard] = f"{target}: {error}"[:500]

    def _keep(self, layout: Layout) -> None:
        """Write down a layout, then go by it."""
        told = layout.to_json()
        _internal_kv_put(self._plan.space.encode(), told.encode())
        half = self._plan.layout_file.with_suffix(".half")
        half.write_text(told)
        half.replace(self._plan.layout_file)
        self._layout = layout


def read_layout(plan: Plan) -> Layout | None:
    """Return what a coordinator wrote down last; None where there was none."""
    file = plan.layout_file
    return Layout.from_json(file.read_text()) if file.exists() else None
