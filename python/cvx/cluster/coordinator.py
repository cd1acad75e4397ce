"""The coordinator: which host leads which shard, failover, moving and spreading namespaces."""

from __future__ import annotations

import threading
import time
from collections import Counter
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
from cvx.errors import InvalidInputError, ReplicaLostError

_PERIOD_S, _PING_S = 0.2, 0.5
_MERGE_PERIOD_S, _MERGE_S, _MOVE_S, _CLOSE_S = 1.0, 10.0, 3600.0, 2.0
_PACE_S = 0.003
"""So long a round takes for each that is asked: with a thousand of them, three seconds."""
_LATE_S = 60.0
"""So long a host that has not answered since the start is waited for, before the bucket is used."""
_MISSES = 12
"""So often is an answer late, and its host is taken for dead; an error says so at once."""


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
        # What Ray's own store says outlives the node of this actor, and the file outlives Ray.
        kept = _internal_kv_get(plan.space.encode())
        known = Layout.from_json(kept.decode()) if kept else read_layout(plan)
        self._layout = known or Layout(0, plan.shards)
        self._lock, self._moving, self._merging = (threading.RLock() for _ in range(3))
        self._ended = threading.Event()
        # Those of an earlier opening too, where there were more: they have what others have not.
        before = {host for place in self._layout.places.values() for host in place.hosts()}
        names = sorted(before | {f"host-{n}" for n in range(plan.hosts)})
        self._hosts = {name: self._started(name) for name in names}
        # By host: the ping that is not answered yet, the last answer, and how often one was late.
        self._asked: dict[str, Any] = {}
        self._pongs: dict[str, dict[str, Any]] = {}
        self._misses = dict.fromkeys(names, 0)
        # By shard: who is told to lead it, in which epoch; or is sent a copy, in epoch 0.
        self._busy: dict[int, tuple[Any, str, int]] = {}
        # By shard: how many could not lead it, one after the other; what went wrong last.
        self._tries: Counter[int] = Counter()
        self._problems: dict[int, str] = {}
        # By pairs of shards, how far the one knows what others may see of the other.
        self._told: dict[tuple[int, int], int] = {}
        self._began = time.monotonic()
        self._threads = [
            threading.Thread(target=one, daemon=True) for one in (self._watch, self._care)
        ]
        for thread in self._threads:
            thread.start()

    def _started(self, name: str) -> Any:
        plan = self._plan
        least = 1 if plan.degraded_writes else plan.replicas
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
            .remote(name, plan.path, plan.settings, least, plan.snapshots, plan.space)
        )

    @property
    def _alive(self) -> dict[str, dict[str, Any]]:
        """The last answers of the hosts that answer."""
        return {name: one for name, one in self._pongs.items() if self._misses[name] < _MISSES}

    # What clients ask.

    def plan(self) -> tuple[Plan, dict[str, Any]]:
        """Return what it was opened with, and the actors that have shards, by name."""
        return self._plan, self._hosts

    def layout(self) -> tuple[Layout, tuple[str, ...]]:
        """Return where everything is, and the hosts that do not answer."""
        return self._layout, tuple(self._hosts.keys() - self._alive.keys())

    def health(self) -> dict[str, Any]:
        """Return what lives where, and which shards are on fewer nodes than wanted."""
        layout, alive = self._layout, self._alive
        return {
            "version": layout.version,
            "shards": {
                shard: {
                    "primary": place.primary,
                    "copies": list(place.copies),
                    "epoch": place.epoch,
                    "whole": self._is_whole(shard, place),
                    "problem": self._problems.get(shard, ""),
                }
                for shard, place in layout.places.items()
            },
            "hosts": {
                name: {"alive": name in alive}
                | {key: alive.get(name, {}).get(key) for key in ("node", "pid")}
                for name in self._hosts
            },
            "moved": dict(layout.moved),
            "spread": {name: list(some) for name, some in layout.spread.items()},
            "problems": dict(self._problems),
        }

    def counted(self, shard: int, epoch: int, host: str, lost: str = "") -> bool:
        """Count a host among the copies of a shard, or no more where it is ``lost``, and why.

        False for a shard that is led by another one now. The primary waits for this before it
        acknowledges a write on the strength of a new copy, or without one.
        """
        with self._lock:
            place = self._layout.places[shard]
            if place.epoch != epoch or self._is_being_led(shard):
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
            layout, alive = self._layout, self._alive
            if host not in self._hosts:
                raise InvalidInputError(f"host is {host!r}: give one of {', '.join(self._hosts)}")
            if host not in alive:
                raise ReplicaLostError(f"{host} does not answer: give another, or ask again")
            if namespace in layout.spread:
                raise InvalidInputError(
                    f"namespace is {namespace!r}, which is on several shards: move one of others"
                )
            (source,) = layout.shards_of(namespace)
            place = layout.places[source]
            if namespace in layout.moved and place.primary == host:
                # Asked again, since who asked heard no answer.
                return source
            # A number that no other move had, also of those that broke off: something of theirs may
            # be in the bucket.
            new = max([*layout.places, *layout.told]) + 1
            copies = self._others(self._plan.replicas - 1, {alive[host]["node"]})
            self._next_epoch(new, 0)
            # What is made of it here and there is removed again, where it breaks off.
            for asked in (
                lambda: self._hosts[place.primary].join.remote(
                    source, [host, *copies], namespace, new
                ),
                lambda: [self._hosts[one].follow.remote(new, 1) for one in copies],
                lambda: self._hosts[host].lead.remote(new, 1, copies=copies),
            ):
                ray.get(asked(), timeout=_MOVE_S)
            with self._lock:
                now = self._layout.places[source]
                if (now.primary, now.epoch) != (place.primary, place.epoch):
                    raise ReplicaLostError(
                        f"another host leads shard {source} since the move began: nothing moved, "
                        "ask again"
                    )
                for one in (host, *copies):
                    self._note(one, new, 1, leads=one == host)
                layout = self._layout.with_place(new, Place(host, tuple(copies), 1))
                self._keep(replace(layout, moved={**layout.moved, namespace: new}))
            return new

    def _others(self, count: int, nodes: set[str]) -> list[str]:
        """Return hosts on other nodes than these, each on another, those with few shards first."""
        found: list[str] = []
        for name, pong in sorted(self._alive.items(), key=lambda one: len(one[1]["stores"])):
            if len(found) < count and pong["node"] not in nodes:
                nodes.add(pong["node"])
                found.append(name)
        return found

    def merge(self) -> None:
        """Let every shard know what others may see of the rest.

        Raises
        ------
        ReplicaLostError
            Some did not answer, or could not take it in, for ten seconds.
        """
        end = time.monotonic() + _MERGE_S
        while behind := self._tell_all():
            if time.monotonic() > end:
                raise ReplicaLostError(
                    f"shards {behind} do not know yet what was made public, or erased, on others: "
                    "they are told once a second; ask again, stats() says what is wrong"
                )
            time.sleep(_PERIOD_S)

    def _tell_all(self) -> list[int]:
        """Tell every shard of every other one, once; returns those that do not know all yet."""
        with self._merging:
            places = {n: self._hosts[place.primary] for n, place in self._layout.places.items()}
            asked, tails = {}, dict[int, int]()
            for shard, host in places.items():
                since = min(
                    (self._told.get((shard, to), 0) for to in places if to != shard), default=0
                )
                asked[shard] = host.of.remote(shard, "public_since", since)
            for shard, one in asked.items():
                with suppress(Exception):  # of Ray: the next time
                    public = ray.get(one, timeout=_MERGE_S)
                    tails[shard] = public.tail
                    self._tell(shard, public, places)
            pairs = [(shard, to) for shard in places for to in places if to != shard]
            return sorted({to for of, to in pairs if self._told.get((of, to)) != tails.get(of, -1)})

    def _tell(self, shard: int, public: Public, hosts: Mapping[int, Any]) -> None:
        new, sent = public.events or public.whole is not None, {}
        for to, host in hosts.items():
            if to != shard and self._told.get((shard, to)) != public.tail:
                told = shard, public, self._layout.moved
                sent[to] = [host.of.remote(to, "renew_public", *told)] if new else []
        for to, some in sent.items():
            with suppress(Exception):  # of Ray, or a copy is lost: the next time
                ray.get(some, timeout=_MERGE_S)
                self._told[shard, to] = public.tail

    def settle(self) -> None:
        """See to it that nothing of what was erased is in another shard, or in the bucket."""
        ray.get([self._keeping_up(name) for name in self._alive], timeout=_MOVE_S)
        self.merge()
        if self._plan.snapshots is not None:
            self.snapshot()

    def _keeping_up(self, name: str) -> Any:
        return self._hosts[name].keep_up.remote(self._layout.moved)

    def snapshot(self) -> dict[int, str]:
        """Write a snapshot of every shard; returns their names."""
        if self._plan.snapshots is None:
            raise InvalidInputError("there is no bucket: open the cluster with snapshots=")
        asked = {
            shard: self._hosts[place.primary].of.remote(shard, "archive.snapshot")
            for shard, place in self._layout.places.items()
        }
        return {shard: ray.get(one, timeout=_MOVE_S) for shard, one in asked.items()}

    def _care(self) -> None:
        asked: dict[str, Any] = {}
        while not self._ended.wait(max(_MERGE_PERIOD_S, _PACE_S * len(self._layout.places))):
            for name in self._alive:
                if name not in asked or ray.wait([asked[name]], timeout=0)[0]:
                    asked[name] = self._keeping_up(name)
            self._tell_all()
            with suppress(Exception):  # of the bucket: the next time
                self._empty()

    def close(self) -> None:
        """Close every store, and end."""
        self._ended.set()
        for thread in self._threads:
            # One may wait for a host that does not answer.
            thread.join(_CLOSE_S)
        if done := [self._hosts[name].close.remote() for name in self._alive]:
            ray.wait(done, num_returns=len(done), timeout=30)
        for host in self._hosts.values():
            ray.kill(host)
        _internal_kv_del(self._plan.space.encode())

    # What it does by itself.

    def _watch(self) -> None:
        while not self._ended.wait(max(_PERIOD_S, _PACE_S * len(self._hosts))):
            with suppress(Exception):  # of Ray: looked at again in a moment
                self._look()
                self._mend()
                self._tidy()

    def _look(self) -> None:
        """See which hosts answer.

        Ray takes a second to say that one is dead: who has not answered yet is not asked anew.
        """
        for name in self._hosts.keys() - self._asked.keys():
            last = self._pongs.get(name, {"born": "", "now": 0.0})
            self._asked[name] = self._hosts[name].ping.remote(last["born"], last["now"])
        asked = [*self._asked.values()]
        ready = {*ray.wait(asked, num_returns=len(asked), timeout=_PING_S)[0]}
        for name, one in [*self._asked.items()]:
            if one not in ready:
                self._misses[name] += 1
                continue
            del self._asked[name]
            try:
                self._pongs[name] = ray.get(one) | {"heard": time.monotonic()}
                self._misses[name] = 0
            except ray.exceptions.RayError:
                self._misses[name] = _MISSES

    def _mend(self) -> None:
        """Have every shard led, and on as many nodes as wanted."""
        if len(self._layout.places) < self._plan.shards:
            self._begin()
        self._see_done()
        wanted = self._plan.replicas - 1
        for shard, place in sorted(self._layout.places.items()):
            if self._is_being_led(shard):
                continue
            copies = [host for host in place.copies if self._has(host, shard, place.epoch)]
            if not self._has(place.primary, shard, place.epoch, leads=True):
                self._replace(shard, place, copies)
            elif copies[:wanted] != [*place.copies]:
                # Those that are none are counted no more.
                kept, primary = tuple(copies[:wanted]), self._hosts[place.primary]
                for host in {*place.copies} - {*kept}:
                    told = primary.of.remote(shard, "drop_copy", host, "it does not answer")
                    ray.get(told, timeout=_PING_S)
                with self._lock:
                    self._keep(self._layout.with_place(shard, replace(place, copies=kept)))
            elif len(copies) < wanted and shard not in self._busy:
                nodes = {self._pongs[host]["node"] for host in place.hosts()}
                for target in self._others(1, nodes):
                    sent = self._hosts[place.primary].join.remote(shard, [target])
                    self._busy[shard] = sent, target, 0

    def _is_being_led(self, shard: int) -> bool:
        return shard in self._busy and self._busy[shard][2] > 0

    def _tidy(self) -> None:
        """Remove what hosts have of shards that others have, and undo what broken moves left."""
        free, layout, done = self._moving.acquire(blocking=False), self._layout, []
        try:
            for name, pong in self._alive.items():
                host, stores = self._hosts[name], pong["stores"]
                for shard in {*stores, *pong["folders"]} - self._busy.keys():
                    place = layout.places.get(shard)
                    left = place is None and free and shard >= layout.shards
                    if shard in stores and (left or (place and name not in place.hosts())):
                        done.append(host.put_aside.remote(shard))
                    elif shard in pong["folders"] and (
                        left or (place and self._is_whole(shard, place))
                    ):
                        done.append(host.clear.remote(shard))
                    leads, _, gone = stores.get(shard, (False, 0, ()))
                    done += [
                        host.of.remote(shard, "gone.discard", namespace)
                        for namespace in (gone if leads and free else ())
                        if layout.shards_of(namespace) == (shard,)
                    ]
            # Before another move begins.
            ray.get(done, timeout=_PING_S)
        finally:
            if free:
                self._moving.release()

    def _empty(self) -> None:
        """Remove from the bucket what moves that broke off have left there."""
        if self._plan.snapshots is None or not self._moving.acquire(blocking=False):
            return
        try:
            layout = self._layout
            held = {n for one in self._alive.values() for n in (*one["stores"], *one["folders"])}
            for shard in layout.told.keys() - layout.places.keys() - held:
                if layout.told[shard] and shard >= layout.shards:
                    snapshots.remove(self._plan.snapshots, shard)
                    # Its number is not given again, and there is nothing of it any more.
                    with self._lock:
                        self._keep(replace(self._layout, told={**self._layout.told, shard: 0}))
        finally:
            self._moving.release()

    def _has(self, host: str, shard: int, epoch: int, *, leads: bool = False) -> bool:
        """Return whether a host has a shard in an epoch, as its primary or as a copy."""
        alive = self._misses.get(host, _MISSES) < _MISSES
        stores = self._pongs[host]["stores"] if alive and host in self._pongs else {}
        known: tuple[Any, ...] = stores.get(shard, ())
        return known[:2] == (leads, epoch)

    def _note(self, host: str, shard: int, epoch: int, *, leads: bool) -> None:
        """Know before its next answer what a host has."""
        self._pongs[host]["stores"][shard] = (leads, epoch, ())

    def _is_whole(self, shard: int, place: Place) -> bool:
        following = sum(self._has(one, shard, place.epoch) for one in place.copies)
        return (
            self._has(place.primary, shard, place.epoch, leads=True)
            and following >= self._plan.replicas - 1
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
            if shard not in self._layout.places and shard not in self._busy:
                self._lead(shard, names[shard % len(names)], 0, new=True)

    def _lead(self, shard: int, host: str, since: int, **how: Any) -> None:
        """Tell a host to lead a shard, in an epoch that nobody was told before."""
        with self._lock:
            epoch, gone = self._next_epoch(shard, since), self._layout.left(shard)
            told = self._hosts[host].lead.remote(shard, epoch, gone, since=since, **how)
            self._busy[shard] = told, host, epoch

    def _next_epoch(self, shard: int, since: int) -> int:
        """Write down, before anybody is told, an epoch that nobody was told; return it."""
        with self._lock:
            epoch = max(self._layout.told.get(shard, 0), since) + 1
            self._keep(replace(self._layout, told={**self._layout.told, shard: epoch}))
            return epoch

    def _see_done(self) -> None:
        """See who leads by now, and who has the copy that was sent."""
        for shard, (told, host, epoch) in list(self._busy.items()):
            if not ray.wait([told], timeout=0)[0] and (host in self._alive or not epoch):
                continue
            with self._lock:
                del self._busy[shard]
                try:
                    ray.get(told, timeout=0)
                except Exception as error:  # of Ray or of the host: another one is tried
                    self._problems[shard] = f"{host}: {error}"[:500]
                    self._tries[shard] += 1
                    continue
                if epoch:
                    self._problems.pop(shard, None)
                    self._keep(self._layout.with_place(shard, Place(host, (), epoch)))
                    self._note(host, shard, epoch, leads=True)

    def _replace(self, shard: int, place: Place, copies: Sequence[str]) -> None:
        """Let a copy lead, or whoever finds the shard in its folder or in the bucket."""
        how = {}
        # Where none is left but folders, those of the primary and its copies have everything.
        able = copies or [host for host in place.hosts() if host in self._alive]
        if place.primary not in self._alive and not place.copies and self._plan.snapshots:
            able, how, late = sorted(self._alive), {"alone": True}, self._began + _LATE_S - LEASE_S
            heard = self._pongs.get(place.primary, {}).get("heard", late)
            # A host that is cut off may acknowledge writes as long as this.
            if time.monotonic() < heard + LEASE_S + _PERIOD_S:
                self._problems[shard] = f"{place.primary}: it is waited for"
                return
        if able:
            self._lead(shard, able[self._tries[shard] % len(able)], place.epoch, **how)

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
