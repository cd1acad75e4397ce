"""The directory of a cluster: which host has which shard, who leads, who stands in for the dead."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.experimental.internal_kv import (
    _internal_kv_del,
    _internal_kv_get,
    _internal_kv_put,
)

from cvx.cluster.host import Host
from cvx.cluster.moving import Public
from cvx.cluster.part import Duty
from cvx.cluster.placement import Layout, Place
from cvx.errors import InvalidInputError, ReplicaLostError, StoreNotFoundError

_PERIOD_S, _PING_S = 0.2, 0.5
_MERGE_PERIOD_S, _MERGE_S, _MOVE_S, _CLOSE_S = 1.0, 10.0, 600.0, 2.0
_PACE_S = 0.003
"""So long a round takes for each that is asked: with a thousand of them, three seconds."""
_LATE_S = 60.0
"""So long a host that has not answered since the start is waited for, before the bucket is used."""
_MISSES = 12
"""So many pings without an answer, and a host is taken for dead; an error says so at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a cluster is opened with.

    Parameters
    ----------
    path : str
        The folder on each node, in which each host has its own.
    url : str or None
        Where snapshots go.
    shards, hosts, copies : int
        How many shards, actors that have them, and nodes that have each shard.
    degraded : bool
        Whether writes go on while fewer nodes than that have a shard.
    settings : mapping
        As for ``Memory.open``.
    space : str
        The namespace of Ray in which the actors are named.
    cpus : float
        Of a node, that Ray sets aside for each host.
    """

    path: str
    url: str | None
    shards: int
    hosts: int
    copies: int
    degraded: bool
    settings: Mapping[str, Any]
    space: str
    cpus: float = 1.0


class Directory:
    """Starts the hosts, sees which of them live, and has every shard on as many as wanted.

    It takes no part in reads and writes. What it knows is written to ``cluster.json`` in the folder
    (and to the bucket) before anybody is told of it.

    Parameters
    ----------
    plan : Plan
        Of the cluster.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._file = Path(plan.path) / "cluster.json"
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._duty = Duty(plan.copies, plan.degraded)
        # What Ray's own store says outlives the node of this actor, and the file outlives Ray.
        kept = _internal_kv_get(plan.space.encode())
        known = layout_of(kept.decode()) if kept else read_layout(self._file)
        self._layout = known or Layout(0, plan.shards)
        self._lock = threading.RLock()
        names = [f"host-{n}" for n in range(plan.hosts)]
        self._hosts = {name: self._started(name) for name in names}
        self._alive: dict[str, Mapping[str, Any]] = {}
        self._misses = dict.fromkeys(names, 0)
        self._joining: dict[int, tuple[Any, str]] = {}
        self._problems: dict[int, str] = {}
        self._new = known is None
        self._ended = threading.Event()
        self._moving, self._merging = threading.RLock(), threading.RLock()
        # By pairs of shards, how far the one knows what others may see of the other.
        self._told: dict[tuple[int, int], int] = {}
        moved = self._layout.moved
        self._untidy = [(shard, name) for name in moved for shard in self._layout.left_by(name)]
        self._answered: set[str] = set()
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
            .remote(name, plan.path, plan.settings, self._duty, plan.url, plan.space)
        )

    # What clients ask.

    def layout(self) -> tuple[Layout, tuple[str, ...]]:
        """Return where everything is, and the hosts that do not answer."""
        return self._layout, tuple(name for name in self._hosts if name not in self._alive)

    def plan(self) -> Plan:
        """Return what it was opened with."""
        return self._plan

    def health(self) -> dict[str, Any]:
        """Return what lives where, and which shards are on fewer nodes than wanted."""
        layout = self._layout
        return {
            "version": layout.version,
            "shards": {
                shard: {
                    "primary": place.primary,
                    "copies": list(place.copies),
                    "epoch": place.epoch,
                    "whole": self._leads(place.primary, shard, place.epoch)
                    and sum(self._follows(one, shard, place.epoch) for one in place.copies)
                    >= self._duty.wanted - 1,
                    "problem": self._problems.get(shard, ""),
                }
                for shard, place in layout.places.items()
            },
            "hosts": {
                name: {"alive": name in self._alive, **self._told_of(name)} for name in self._hosts
            },
            "moved": dict(layout.moved),
            "spread": {name: list(some) for name, some in layout.spread.items()},
        }

    def _told_of(self, name: str) -> dict[str, Any]:
        pong = self._alive.get(name, {})
        return {"node": pong.get("node"), "pid": pong.get("pid")}

    def lost(self, shard: int, epoch: int, host: str, why: str) -> bool:
        """Take a host from the copies of a shard; False for one that leads it no more."""
        with self._lock:
            place = self._layout.places[shard]
            if place.epoch != epoch:
                return False
            self._problems[shard] = f"{host}: {why}"
            rest = tuple(one for one in place.copies if one != host)
            self._keep(self._layout.with_place(shard, replace(place, copies=rest)))
            return True

    def joined(self, shard: int, epoch: int, host: str) -> bool:
        """Count a host among the copies of a shard; False for one that leads it no more.

        The primary waits for this before it acknowledges a write on the strength of the new copy.
        """
        with self._lock:
            place = self._layout.places[shard]
            if place.epoch != epoch:
                return False
            self._problems.pop(shard, None)
            copies = (*(one for one in place.copies if one != host), host)
            self._keep(self._layout.with_place(shard, replace(place, copies=copies)))
            if host in self._alive:
                self._alive[host]["parts"][shard] = (False, epoch, ())
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
            if host not in self._alive:
                names = ", ".join(sorted(self._alive))
                raise InvalidInputError(f"host is {host!r}: give one of {names}")
            if namespace in layout.spread:
                raise InvalidInputError(
                    f"namespace is {namespace!r}, which is on several shards: move one of others"
                )
            (source,) = layout.shards_of(namespace)
            place, new = layout.places[source], max(layout.places) + 1
            held = {self._alive[host]["node"]}
            hosts = [host]
            for name, pong in sorted(self._alive.items(), key=lambda one: len(one[1]["parts"])):
                if len(hosts) < self._duty.wanted and pong["node"] not in held:
                    held.add(pong["node"])
                    hosts.append(name)
            old = self._hosts[place.primary]
            try:
                ray.get(old.part_with.remote(source, namespace, new, hosts), timeout=_MOVE_S)
                for name in hosts[1:]:
                    ray.get(self._hosts[name].follow.remote(new, 1), timeout=_MOVE_S)
                ray.get(self._hosts[host].lead_with.remote(new, hosts[1:]), timeout=_MOVE_S)
                with self._lock:
                    self._check_still_led(source, place)
                    for name in hosts:
                        if name in self._alive:
                            self._alive[name]["parts"][new] = (name == host, 1, ())
                    layout = self._layout.with_place(new, Place(host, tuple(hosts[1:]), 1))
                    self._keep(replace(layout, moved={**layout.moved, namespace: new}))
            except BaseException:
                old.take_back.remote(source, namespace)
                for name in hosts:
                    self._hosts[name].drop.remote(new)
                raise
            self._untidy.append((source, namespace))
            return new

    def _check_still_led(self, shard: int, place: Place) -> None:
        """Refuse to go on where another host has led a shard meanwhile, and taken writes."""
        now = self._layout.places[shard]
        if (now.primary, now.epoch) != (place.primary, place.epoch):
            raise ReplicaLostError(
                f"another host leads shard {shard} since the move began: nothing moved, ask again"
            )

    def merge(self) -> None:
        """Let every shard know what others may see of the rest."""
        with self._merging:
            places = dict(self._layout.places)
            since = {
                shard: min(
                    (self._told.get((shard, to), 0) for to in places if to != shard), default=0
                )
                for shard in places
            }
            asked = {
                shard: self._hosts[place.primary].public_since.remote(shard, since[shard])
                for shard, place in places.items()
            }
            for shard, one in asked.items():
                with suppress(Exception):  # of Ray: the next time
                    public = ray.get(one, timeout=_MERGE_S)
                    self._tell(shard, public, places)

    def _tell(self, shard: int, public: Public, places: Mapping[int, Place]) -> None:
        sent = {}
        for to, place in places.items():
            if to == shard or self._told.get((shard, to)) == public.tail:
                continue
            if public.events or public.whole is not None:
                sent[to] = self._hosts[place.primary].renew_public.remote(
                    to, shard, public, self._layout.moved
                )
            else:
                self._told[shard, to] = public.tail
        for to, one in sent.items():
            with suppress(Exception):  # of Ray, or a copy is lost: the next time
                ray.get(one, timeout=_MERGE_S)
                self._told[shard, to] = public.tail

    def settle(self) -> None:
        """See to it that nothing of what was erased is in another shard, or in the bucket."""
        self._tidy()
        self.merge()
        if self._plan.url is not None:
            self.snapshot()

    def snapshot(self) -> dict[int, str]:
        """Write a snapshot of every shard; returns their names."""
        if self._plan.url is None:
            raise InvalidInputError("there is no bucket: open the cluster with snapshots=")
        asked = {
            shard: self._hosts[place.primary].snapshot.remote(shard)
            for shard, place in self._layout.places.items()
        }
        return {shard: ray.get(one, timeout=_MOVE_S) for shard, one in asked.items()}

    def _tidy(self) -> None:
        while self._untidy:
            shard, namespace = self._untidy[0]
            primary = self._hosts[self._layout.places[shard].primary]
            ray.get(primary.tidy.remote(shard, namespace), timeout=_MOVE_S)
            # What others may see of it is to come back to this shard, as a copy.
            self._told.pop((self._layout.moved[namespace], shard), None)
            self._untidy.pop(0)

    def _care(self) -> None:
        asked: dict[str, Any] = {}
        while not self._ended.wait(max(_MERGE_PERIOD_S, _PACE_S * len(self._layout.places))):
            with suppress(Exception):  # of Ray: the next time
                for name in list(self._alive):
                    if name not in asked or ray.wait([asked[name]], timeout=0)[0]:
                        asked[name] = self._hosts[name].keep_up.remote()
                self.merge()
                self._tidy()

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
                self._take_back()

    def _look(self) -> None:
        """See which hosts answer."""
        asked = {host.ping.remote(): name for name, host in self._hosts.items()}
        ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=_PING_S)
        for one in ready:
            name = asked[one]
            try:
                self._alive[name] = ray.get(one)
                self._misses[name] = 0
                self._answered.add(name)
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
        self._see_joined()
        self._put_aside()
        for shard, place in sorted(self._layout.places.items()):
            if not self._leads(place.primary, shard, place.epoch):
                self._replace(shard, place)
            elif len(place.copies) + 1 > self._duty.wanted or any(
                not self._follows(host, shard, place.epoch) for host in place.copies
            ):
                self._prune(shard, place)
            elif len(place.copies) + 1 < self._duty.wanted and shard not in self._joining:
                self._heal(shard, place)

    def _take_back(self) -> None:
        """Let shards have again what was to leave them, where the move broke off."""
        if not self._moving.acquire(blocking=False):
            return
        try:
            for shard, place in self._layout.places.items():
                part = self._part(place.primary, shard)
                for namespace in part[2] if part is not None else ():
                    if self._layout.shards_of(namespace) == (shard,):
                        self._hosts[place.primary].take_back.remote(shard, namespace)
        finally:
            self._moving.release()

    def _part(self, host: str, shard: int) -> tuple[bool, int, tuple[str, ...]] | None:
        parts = self._alive[host]["parts"] if host in self._alive else {}
        found: tuple[bool, int, tuple[str, ...]] | None = parts.get(shard)
        return found

    def _leads(self, host: str, shard: int, epoch: int) -> bool:
        part = self._part(host, shard)
        return part is not None and part[0] and part[1] == epoch

    def _follows(self, host: str, shard: int, epoch: int) -> bool:
        part = self._part(host, shard)
        return part is not None and not part[0] and part[1] == epoch

    def _begin(self) -> None:
        """Make the shards of a new cluster, each first on one host."""
        names = sorted(self._hosts)
        if len(self._alive) < len(names):
            return
        for shard in range(self._plan.shards):
            if shard not in self._layout.places:
                self._lead(shard, names[shard % len(names)], 1, new=True)

    def _lead(
        self, shard: int, host: str, epoch: int, *, new: bool = False, after: str = ""
    ) -> bool:
        try:
            moved = self._layout.moved
            gone = frozenset(name for name, where in moved.items() if where != shard)
            asked = self._hosts[host].lead.remote(shard, epoch, gone, new=new, after=after)
            ray.get(asked, timeout=60)
        except (ray.exceptions.RayError, StoreNotFoundError) as error:
            self._problems[shard] = f"{host}: {error}"[:500]
            return False
        self._problems.pop(shard, None)
        with self._lock:
            self._keep(self._layout.with_place(shard, Place(host, (), epoch)))
            if host in self._alive:
                self._alive[host]["parts"][shard] = (True, epoch, ())
        return True

    def _replace(self, shard: int, place: Place) -> None:
        """Let a copy lead, or whoever finds the shard in its folder or in the bucket."""
        live = [host for host in place.copies if self._follows(host, shard, place.epoch)]
        if not live:
            # None is left but folders: those of the primary and of its copies have everything.
            live = [host for host in place.hosts() if host in self._alive]
            if place.primary not in self._alive and not place.copies and self._plan.url:
                self._replace_from_elsewhere(shard, place)
                return
        for host in live:
            if self._lead(shard, host, place.epoch + 1):
                return

    def _replace_from_elsewhere(self, shard: int, place: Place) -> None:
        """Let a host lead with the folder of the dead primary on its disk, else from the bucket."""
        late = place.primary not in self._answered
        if late and time.monotonic() < self._began + _LATE_S:
            self._problems[shard] = f"{place.primary}: it has not answered since the start"
            return
        names = sorted(self._alive)
        asked = [self._hosts[name].finds.remote(shard, place.primary) for name in names]
        found = dict(zip(names, ray.get(asked, timeout=_MERGE_S), strict=True))
        for host in sorted(names, key=lambda one: not found[one]):
            if self._lead(shard, host, place.epoch + 1, after=place.primary):
                return

    def _put_aside(self) -> None:
        """Let no host keep a shard that it is not counted among the hosts of any more."""
        for name, pong in self._alive.items():
            for shard in pong["parts"]:
                place = self._layout.places.get(shard)
                if (
                    place is not None
                    and name not in place.hosts()
                    and shard not in self._joining
                    # One of a later epoch was told to lead a moment ago.
                    and pong["parts"][shard][1] <= place.epoch
                ):
                    self._hosts[name].put_aside.remote(shard)

    def _prune(self, shard: int, place: Place) -> None:
        """Count those no more among the copies that are none."""
        kept = tuple(host for host in place.copies if self._follows(host, shard, place.epoch))
        kept = kept[: self._duty.wanted - 1]
        primary = self._hosts[place.primary]
        for host in {*place.copies} - {*kept}:
            ray.get(primary.drop_copy.remote(shard, host, "it does not answer"), timeout=_PING_S)
        with self._lock:
            self._keep(self._layout.with_place(shard, replace(place, copies=kept)))

    def _heal(self, shard: int, place: Place) -> None:
        """Begin to send the shard to a host on another node."""
        held = {self._alive[host]["node"] for host in place.hosts() if host in self._alive}
        free = [
            (len(pong["parts"]), name)
            for name, pong in self._alive.items()
            if pong["node"] not in held
        ]
        if free:
            _, target = min(free)
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

    # What it keeps.

    def _keep(self, layout: Layout) -> None:
        """Write down a layout, then go by it."""
        told = json.dumps({**asdict(layout), "places": _by_number(layout.places)}, indent=1)
        _internal_kv_put(self._plan.space.encode(), told.encode())
        half = self._file.with_suffix(".half")
        half.write_text(told)
        half.replace(self._file)
        self._layout = layout


def read_layout(file: Path) -> Layout | None:
    """Return what a directory wrote down last; None where there was none."""
    return layout_of(file.read_text()) if file.exists() else None


def layout_of(text: str) -> Layout:
    """Return the layout that a directory wrote down."""
    told = json.loads(text)
    places = {
        int(shard): Place(one["primary"], tuple(one["copies"]), one["epoch"])
        for shard, one in told["places"].items()
    }
    spread = {name: tuple(some) for name, some in told["spread"].items()}
    return Layout(told["version"], told["shards"], places, told["moved"], spread)


def _by_number(places: Mapping[int, Place]) -> dict[int, dict[str, Any]]:
    return {shard: asdict(place) for shard, place in places.items()}


def wait_until_led(directory: Any, shards: int, patience_s: float) -> bool:
    """Wait until every shard of a new or reopened cluster is led; tell if it is."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with suppress(ray.exceptions.GetTimeoutError):
            health = ray.get(directory.health.remote(), timeout=5)
            if len(health["shards"]) >= shards and all(
                one["whole"] for one in health["shards"].values()
            ):
                return True
        time.sleep(0.05)
    return False
