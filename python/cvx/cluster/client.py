"""The client of a cluster: sends requests to the hosts of shards, with deadlines and retries."""

from __future__ import annotations

import copyreg
import io
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, NamedTuple

import ray
from ray import cloudpickle

from cvx.cluster.layout import Layout
from cvx.cluster.shard_store import READS, MovedAwayError
from cvx.errors import CvxError, MissingShardsError, StoreError
from cvx.types import Event, Factor, Hit

_COOL_S = 1.0
"""So long a host that did not answer is not asked again, unless another layout comes first."""
_PAUSE_S = 0.03
_SHARE = 0.75
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Request:
    """One verb for one shard.

    Parameters
    ----------
    shard : int
        Whose.
    verb : str
        Of a memory, of something it has ("causes.confirm"), or of an episode ("episode.act").
    bound : tuple or None
        In the name of which namespace, and what is shared with it; None at the root.
    args, options
        Of the verb.
    namespace : str or None
        Of which namespace it is, where that is known: a shard that it has left refuses it.
    id : str
        Its own: a shard that has done it answers as before, and does it no second time.
    """

    shard: int
    verb: str
    bound: tuple[str, tuple[str, ...]] | None
    args: Sequence[Any]
    options: Mapping[str, Any]
    namespace: str | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def packed(self) -> bytes:
        """What a host is sent: Ray passes bytes on as they are."""
        asked = self.shard, self.id, self.verb, self.bound, self.args, self.options, self.namespace
        made: bytes = cloudpickle.dumps(asked)  # type: ignore[no-untyped-call]
        return made


_EVENT, _HIT = (attrgetter(*(one.name for one in fields(kind))) for kind in (Event, Hit))


_AS_VALUES = copyreg.dispatch_table | {
    Hit: lambda hit: (Hit, _HIT(hit)),
    Factor: lambda factor: (Factor, tuple(factor)),
}
"""Hits are written as tuples of their values, as events are: half the time that pickle takes."""


def packed(answer: object, told: Callable[[Event], Event] = lambda event: event) -> bytes:
    """Return an answer as a host sends it; ``pickle.loads`` reads it.

    Each event in it, however deep, is written as ``told`` returns it.
    """
    made = io.BytesIO()
    packer = pickle.Pickler(made, protocol=5)
    packer.dispatch_table = {
        **_AS_VALUES,
        Event: lambda event: (Event, _EVENT(told(event))),
    }
    packer.dump(answer)
    return made.getvalue()


class Missing(NamedTuple):
    """Stands for an answer that did not arrive in time."""

    shard: int

    def __str__(self) -> str:
        return f"shard {self.shard}"


def plain_error(error: BaseException) -> CvxError:
    """Return what an actor raised, without the tracebacks that Ray wraps it in."""
    while isinstance(error, ray.exceptions.RayTaskError):
        error = error.cause
    if isinstance(error, CvxError):
        return error
    return StoreError(f"the cluster could not do it: {type(error).__name__}: {error}")


class ShardClient:
    """Sends requests to shards on behalf of one client: where they are, and whom instead.

    A host that did not answer is not asked for a while (a circuit breaker).

    Parameters
    ----------
    coordinator : actor
        Who knows where they are.
    deadline_s : float
        So long a read waits, at most.
    patience_s : float
        So long a write waits for somebody to lead its shard.
    """

    def __init__(self, coordinator: Any, deadline_s: float, patience_s: float) -> None:
        self.deadline_s, self.patience_s = deadline_s, patience_s
        self._coordinator = coordinator
        self._shut: dict[str, float] = {}
        self._looked = 0.0
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_AT_ONCE)
        self.closed = False
        self.hosts: dict[str, Any] = ray.get(coordinator.plan.remote())[1]
        self.layout: Layout = ray.get(coordinator.layout.remote())[0]

    def check_open(self) -> None:
        """Refuse to ask once it is closed.

        Raises
        ------
        StoreError
            It is.
        """
        if self.closed:
            raise StoreError("this memory of a cluster is closed: open the cluster again")

    def look_again(self, seconds: float = 1.0, *, at_once: bool = False) -> None:
        """Ask the coordinator where everything is; seldom, however often this is called."""
        with self._lock:
            now = time.monotonic()
            if now < self._looked + _PAUSE_S and not at_once:
                return
            self._looked = now
        # Without the coordinator what is known serves on.
        with suppress(ray.exceptions.RayError):
            layout, dead = ray.get(self._coordinator.layout.remote(), timeout=max(seconds, 0.0))
            if layout.version > self.layout.version:
                # Who leads now was seen to live.
                self._shut.clear()
                self.layout = layout
            for host in dead:
                self._miss(host)

    def one(self, request: Request, end: float | None = None) -> Any:
        """Return the answer of a shard, or `Missing`; raise what its memory raised.

        A read ends at ``end`` of the monotonic clock, by default when its deadline is over.
        """
        self.check_open()
        if request.verb in READS:
            # What is left is for the way back.
            return self._read(request, end or time.monotonic() + _SHARE * self.deadline_s)
        return self._write(request)

    def all(self, requests: Sequence[Request]) -> list[Any]:
        """Return the answers of several shards, all within one deadline."""
        end = time.monotonic() + _SHARE * self.deadline_s
        if len(requests) == 1:
            return [self.one(requests[0], end)]
        return list(self._threads.map(lambda one: self.one(one, end), requests))

    def _miss(self, host: str) -> None:
        """Ask a host no more for a while."""
        self._shut[host] = time.monotonic() + _COOL_S

    def _read(self, request: Request, end: float) -> Any:
        """Ask the primary; where it does not answer soon, or not at all, the copies too."""
        soon = self.deadline_s / 3
        while (now := time.monotonic()) < end:
            self.check_open()
            hosts = self.layout.places[request.shard].hosts()
            open_now = [host for host in hosts if self._shut.get(host, 0.0) < now]
            sent: dict[Any, str] = {}
            for host in open_now:
                sent[self.hosts[host].call.remote(request.packed)] = host
                until = end if host == open_now[-1] else min(time.monotonic() + soon, end)
                answer = self._first(request, sent, until)
                if answer is not None:
                    return answer[0]
                if host in sent.values():
                    self._miss(host)
            self.look_again(min(end - time.monotonic(), soon))
            request = self._where_now(request)
            if not open_now and time.monotonic() + _PAUSE_S < end:
                time.sleep(_PAUSE_S)
        return Missing(request.shard)

    def _write(self, request: Request) -> Any:
        """Ask who leads, until somebody does; a request that came twice is done once."""
        end, sent, epoch = time.monotonic() + self.patience_s, dict[Any, str](), -1
        while (now := time.monotonic()) < end:
            self.check_open()
            place = self.layout.places[request.shard]
            if not sent or place.epoch != epoch:
                epoch = place.epoch
                sent[self.hosts[place.primary].call.remote(request.packed)] = place.primary
            answer = self._first(request, sent, min(end, now + self.deadline_s))
            if answer is not None:
                return answer[0]
            if not sent:
                time.sleep(_PAUSE_S)
            self.look_again(at_once=True)
            request = self._where_now(request)
        raise MissingShardsError(
            f"shard {request.shard} did not take a write within {self.patience_s:g} s: it is not "
            "acknowledged; see stats(), and write it again with a key of its own"
        )

    def _where_now(self, request: Request) -> Request:
        """Return a request for the shard that its namespace has moved to."""
        if request.namespace is None:
            return request
        held = self.layout.shards_of(request.namespace)
        return replace(request, shard=held[0]) if len(held) == 1 else request

    def _first(self, request: Request, sent: dict[Any, str], end: float) -> tuple[Any] | None:
        """Return the first answer of those asked; None where there is none in time."""
        while sent and (left := end - time.monotonic()) > 0:
            (one, *_) = sent
            if len(sent) > 1:
                done, _ = ray.wait(list(sent), num_returns=1, timeout=left)
                if not done:
                    break
                (one,) = done
            try:
                # An answer that is there may yet lie on a node that is gone.
                left = max(end - time.monotonic(), 0.0)
                kind, answer = pickle.loads(ray.get(one, timeout=left))
            except ray.exceptions.GetTimeoutError:
                break
            except ray.exceptions.RayTaskError as error:
                # A fault of a verb, not of its host.
                raise plain_error(error) from None
            except ray.exceptions.RayError:
                self._miss(sent.pop(one))
                continue
            del sent[one]
            # Of a namespace that moved it is looked up again, where that is known.
            if kind == "error" and not (
                request.namespace is not None and isinstance(answer, MovedAwayError)
            ):
                raise answer
            if kind == "ok":
                return (answer,)
        return None
