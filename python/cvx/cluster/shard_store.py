"""One shard's store on one host, as the primary that writes or as a copy that follows."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from cvx.cluster import public_events, replication
from cvx.cluster.layout import FIRST_ID
from cvx.cluster.namespace_rows import namespaces_of
from cvx.cluster.public_events import IS_COPY, ORIGIN, check_not_reserved, origin_of
from cvx.cluster.replication import Capture, Change
from cvx.cluster.snapshots import Archive
from cvx.errors import CvxError, ReplicaLostError, UnknownError
from cvx.memory import Memory
from cvx.memory.advice import Advice
from cvx.store.rows import AMONG, listed
from cvx.store.transfer import import_into
from cvx.types import Event, Hit

_KEPT_ANSWERS = 1_000
_EPOCH = "cluster_epoch"
_AT_ONCE = 25
READS = frozenset(
    (
        *("recall", "recall_many", "context", "why", "consequences", "get", "events", "count"),
        *("causes.pending", "causes.story", "learning.calibration", "learning.ranked"),
        *("admin.stats", "admin.check", "frames.events", "frames.links", "frames.episodes"),
        *("frames.decisions", "frames.usage"),
    )
)
"""Verbs that change nothing, so that a copy may answer them."""
_EVENTS: Mapping[str, int] = {
    "get": 1,
    "update": 1,
    "forget": 1,
    "erase": 1,
    "link": 2,
    "why": 1,
    "consequences": 1,
    "causes.propose": 1,
    "causes.observe": 2,
    "causes.story": 1,
    "learning.decisions_with": 1,
}
"""How many of its first arguments are events, or lists of them."""
_EVENT_OPTIONS = ("helped", "followed")


_QUERIES = {
    "count": (
        "SELECT count(*) FROM events WHERE state = 'active' AND namespace NOT IN"
        f" (SELECT value FROM json_each(?)) AND NOT {IS_COPY}"
    ),
    "holds": (
        f"SELECT EXISTS (SELECT 1 FROM events WHERE namespace = ?1 AND NOT {IS_COPY})"
        " OR EXISTS (SELECT 1 FROM episodes WHERE namespace = ?1)"
    ),
}
"""How many events there are, of all but what left; whether a namespace has anything here."""


class MovedAwayError(UnknownError):
    """The namespace is on another shard, or about to be: who asks looks it up again."""

    def __init__(
        self, why: str = "it is of a namespace that moved: ask within() that namespace"
    ) -> None:
        super().__init__(why)


Shipment = tuple[int, Change, dict[str, Any]]
"""Its number, what changed, and what was answered to the requests that changed it."""
Send = Callable[[str, Sequence[Shipment]], str]
"""Sends changes to a host, by its name; returns what went wrong, "" where they were synced."""


class ShardStore:
    """One shard's store on one host, as the primary that takes writes or as a copy.

    Parameters
    ----------
    shard : int
        Its number.
    folder : Path
        Of its store.
    settings : mapping
        As for ``Memory.open``.
    least : int
        On how many hosts a write must be synced, this one included.
    send : Send
        By which a copy gets what is written.
    may_lead : callable
        Whether it may acknowledge what no copy has: nobody else can have been told to lead.
    """

    def __init__(
        self,
        shard: int,
        folder: Path,
        settings: Mapping[str, Any],
        least: int,
        send: Send,
        may_lead: Callable[[], bool] = lambda: True,
    ) -> None:
        self.shard, self.folder, self.least = shard, folder, least
        self._send, self._may_lead = send, may_lead
        self.number = 0
        self.copies: list[str] = []
        self.lost: dict[str, str] = {}
        self.gone: set[str] = set()
        self.archive: Archive | None = None
        self.memory = Memory.open(folder, **settings)
        # In the record, so that a folder that was away is known by it.
        self.epoch = int(self.memory.record.meta(_EPOCH) or 0)
        self._capture: Capture | None = None
        # What was written since, for each that is being sent a copy.
        self._joining: dict[str, list[Shipment]] = {}
        self._done: OrderedDict[str, Any] = OrderedDict()
        self._unsent: dict[str, Any] = {}
        self._bound = lru_cache(lambda named, also: self.memory.within(named, also=also))
        self._tidied: set[str] = set()
        # Each with what was advised in it last.
        self._episodes: dict[int, tuple[Any, Advice | None]] = {}
        self._writing, self._shipping = threading.RLock(), threading.RLock()
        self.origins = self._known_origins()

    @property
    def is_primary(self) -> bool:
        """Whether it takes writes."""
        return self._capture is not None

    def _known_origins(self, among: Iterable[int] | None = None) -> dict[int, int]:
        """Return the copies of what others made public, by the ids of their originals."""
        which, values = ("", ()) if among is None else (f" AND event_id {AMONG}", (listed(among),))
        told = self.memory.record.query(
            f"SELECT json_extract(metadata, '$.\"{ORIGIN}\"'), event_id FROM events"
            f" WHERE {IS_COPY}{which}",
            values,
        )
        # An event that is here by itself is nobody's copy.
        here = {event.id for event in self.memory.record.events([origin for origin, _ in told])}
        return {origin: local for origin, local in told if origin not in here}

    def _follow_origins(self, change: Change) -> None:
        gone = {event for (event,) in change.gone.get("events", ())}
        kept = {one: local for one, local in self.origins.items() if local not in gone}
        put = [row[0] for row in change.put.get("events", ())]
        self.origins = kept | (self._known_origins(put) if put else {})

    # Who it is.

    def lead(self, epoch: int, gone: Collection[str] = (), copies: Sequence[str] = ()) -> None:
        """Take writes from now on, with copies that stand where this one does.

        ``gone`` are namespaces that moved away.
        """
        record = self.memory.record
        record.refuse_writes(None)
        self.memory.erase([])
        self._capture = self._capture or Capture(record)
        self._capture.take()
        with record.transaction() as write:
            write.set_meta(_EPOCH, str(epoch))
            write.next_event = max(write.next_event, (self.shard << FIRST_ID) + 1)
            if record.tail().seq == 0:
                # A record with a history: what is imported gets ids of this shard.
                write.journal("kind", [])
        self.epoch, self.copies, self.gone = epoch, [*copies], {*gone}
        record.refresh()

    def follow(self, epoch: int, number: int) -> None:
        """Be a copy: nothing is written here but what comes from the primary."""
        self.memory.record.refuse_writes(
            f"this host has a copy of shard {self.shard}: write to the primary"
        )
        self.epoch, self.number, self._capture = epoch, number, None

    def keep_up(self, moved: Mapping[str, int]) -> None:
        """Send what reading noted, and erase what is left of namespaces that have ``moved`` away.

        The index and columns follow what was written, so that neither the next read nor, where
        nobody reads, the write after thousands of others has to wait for them.
        """
        self.memory.record.refresh()
        if not self.is_primary:
            return
        for namespace in sorted(self.gone - self._tidied):
            if moved.get(namespace, self.shard) != self.shard:
                with self._writing:
                    found = self.memory.record.query(
                        f"SELECT event_id FROM events WHERE namespace = ? AND NOT {IS_COPY}",
                        (namespace,),
                    )
                    self.memory.erase([row[0] for row in found])
                self._tidied.add(namespace)
        self.ship()

    def close(self) -> None:
        """Close the store; what reading noted is not written down."""
        self._capture = None
        with suppress(OSError):
            self.memory.close()

    # Verbs.

    def call(
        self,
        request: str,
        verb: str,
        bound: tuple[str, tuple[str, ...]] | None,
        args: Sequence[Any],
        options: Mapping[str, Any],
        namespace: str | None = None,
    ) -> Any:
        """Do what one verb says; a write is synced by every copy when this returns.

        Raises
        ------
        ReplicaLostError
            Fewer hosts than wanted have the shard.
        InvalidInputError
            Metadata have the key by which copies of public events are known.
        """
        if verb in READS:
            self._check_here(verb, args, options, namespace)
            return self._do(verb, bound, args, options)
        check_not_reserved([args, options])
        with self._writing:
            if request in self._done:
                found = self._done[request]
            else:
                self._check_here(verb, args, options, namespace)
                self._check_copies()
                found = self._do(verb, bound, args, options)
                self._note(request, found)
                self._unsent[request] = found
        # What is known already may be on too few hosts still.
        self.ship()
        self._check_leads()
        self._check_copies()
        return found

    def _check_here(
        self, verb: str, args: Sequence[Any], options: Mapping[str, Any], namespace: str | None
    ) -> None:
        """Refuse what is of a namespace that has left."""
        if not self.gone:
            return
        named = {namespace, options.get("namespace")}
        if verb == "take_in":
            named |= namespaces_of(args[0])
        listed = [self._inward(one) for one in args[: _EVENTS.get(verb, 0)]]
        events = [one for some in listed for one in (some if type(some) is list else [some])]
        numbers = [one for one in events if type(one) is int and one >> FIRST_ID == self.shard]
        named |= {event.namespace for event in self.memory.record.events(numbers)}
        if named & self.gone:
            raise MovedAwayError

    def _note(self, request: str, answer: Any) -> None:
        self._done[request] = answer
        while len(self._done) > _KEPT_ANSWERS:
            self._done.popitem(last=False)

    def _check_leads(self) -> None:
        if not self.is_primary:
            raise ReplicaLostError(f"another host leads shard {self.shard}: ask again")

    def _check_copies(self) -> None:
        if not self.copies and not self._may_lead():
            raise ReplicaLostError(
                f"this host has shard {self.shard} alone and does not hear from the coordinator: "
                "another may lead by now; ask again"
            )
        if 1 + len(self.copies) >= self.least:
            return
        why = "; ".join(f"{host}: {said}" for host, said in self.lost.items())
        raise ReplicaLostError(
            f"shard {self.shard} is on {1 + len(self.copies)} of {self.least} hosts"
            f"{f' ({why})' if why else ''}: wait until another has it, or open the cluster with "
            "degraded_writes=True"
        )

    def _do(
        self,
        verb: str,
        bound: tuple[str, tuple[str, ...]] | None,
        args: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Any:
        memory = self.memory if bound is None else self._bound(*bound)
        events = _EVENTS.get(verb, 0)
        args = [*(self._inward(one) for one in args[:events]), *args[events:]]
        options = {
            name: self._inward(one) if name in _EVENT_OPTIONS else one
            for name, one in options.items()
        }
        if verb.startswith("episode"):
            return self._episode(memory, verb, args, dict(options))
        if verb in _QUERIES:
            asked = json.dumps(sorted(self.gone)) if verb == "count" else options["namespace"]
            return self.memory.record.query(_QUERIES[verb], (asked,))[0][0]
        if verb == "recall_many":
            return [memory.recall(cue, *args[1:], **options) for cue in args[0]]
        if verb == "take_in":
            return import_into(self.memory.record, args[0], **options)
        if verb == "admin.export":
            args = [args[0].replace("{shard}", str(self.shard))]
        thing: Any = memory
        for name in verb.split("."):
            thing = getattr(thing, name)
        return thing(*args, **options) if callable(thing) else thing

    def _episode(
        self, memory: Memory, verb: str, args: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        first, within = self.shard << FIRST_ID, (1 << FIRST_ID) - 1
        if verb == "episode":
            number = options.pop("id", None)
            new = memory.episode(**options if number is None else {"id": number & within})
            if new.namespace in self.gone:
                raise MovedAwayError
            self._episodes[new.id] = new, None
            return new.id + first, new.goal, new.task, new.namespace, new.events
        number, *args = args
        # Its shard may have been another one when it began.
        number &= within
        # One that was begun on a host that is gone: the steps are in the record.
        run, advice = self._episodes.get(number) or (memory.episode(id=number), None)
        chosen, seen = options.pop("chosen", None), options.pop("seen", None)
        if verb == "episode.act" and advice is None:
            # It was advised on a host that is gone.
            options.setdefault("observation", seen)
        if chosen is not None and advice is not None:
            advice.chosen, advice.chance = advice.option(chosen[0]), chosen[1]
        told = getattr(run, verb.removeprefix("episode."))(*args, **options)
        self._episodes[number] = run, told if isinstance(told, Advice) else advice
        if run.ended:
            del self._episodes[number]
        return told

    # Ids: an event that came from another shard has one of its own here.

    def _inward(self, value: Any) -> Any:
        if isinstance(value, Event | Hit):
            event = value.event if isinstance(value, Hit) else value
            value = value if event is None or event.event_id is None else event.event_id
        if type(value) is int:
            return self.origins.get(value, value)
        if type(value) is list and value and all(type(one) in (int, Event, Hit) for one in value):
            return [self._inward(one) for one in value]
        return value

    def told(self, event: Event) -> Event:
        """Return an event as it is told: with ids that all shards know."""
        if event.episode_id is not None:
            event = replace(event, episode_id=(self.shard << FIRST_ID) + event.episode_id)
        origin = origin_of(event)
        if origin is None or self.origins.get(origin) != event.event_id:
            return event
        rest = {name: one for name, one in event.metadata.items() if name != ORIGIN}
        return replace(event, event_id=origin, metadata=rest)

    # Copies.

    def ship(self) -> None:
        """Send what was written since the last time to every copy, and wait until it is synced.

        Who waits here while another sends finds its own rows sent as well.
        """
        with self._shipping:
            if self._capture is None:
                return
            with self._writing:
                change = self._capture.take()
                answers, self._unsent = self._unsent, {}
            if not change and not answers:
                return
            self.number += 1
            if self.archive is not None:
                self.archive.note(change)
            for waiting in self._joining.values():
                waiting.append((self.number, change, answers))
            for host in list(self.copies):
                problem = self._send(host, [(self.number, change, answers)])
                if problem:
                    self.drop_copy(host, problem)

    def drop_copy(self, host: str, why: str) -> None:
        """Ship nothing to a host any more."""
        if host in self.copies:
            self.copies.remove(host)
            self.lost[host] = why

    def take(self, epoch: int, shipments: Sequence[Shipment]) -> str:
        """Store what the primary ships; returns why not, "" where it is synced."""
        if epoch != self.epoch or self.is_primary:
            return f"it is in epoch {self.epoch}, the change of epoch {epoch}"
        new = [one for one in shipments if one[0] > self.number]
        if not new:
            return ""
        if new[0][0] > self.number + 1:
            return f"it stands at change {self.number} and is sent {new[0][0]}"
        changes, record = [change for _, change, _ in new], self.memory.record
        try:
            # In one transaction: to sync is what takes the time.
            replication.apply(record, *changes)
        except (CvxError, OSError) as error:
            return str(error)
        self.number = new[-1][0]
        for _, change, answers in new:
            self._follow_origins(change)
            for request, answer in answers.items():
                self._note(request, answer)
        if any(change.erases for change in changes):
            # The rows are gone; what is left of them in free pages and snapshots is to go, too.
            record.refuse_writes(None)
            try:
                with record.transaction() as write:
                    write.set_meta("erasing", "1")
                self.memory.erase([])
            finally:
                self.follow(self.epoch, self.number)
        return ""

    def begin_joining(self, key: str) -> int:
        """Keep what is written from now on for who is sent a copy; return where it is."""
        with self._shipping:
            self.copies = [one for one in self.copies if one != key]
            self._joining[key] = []
            return self.number

    def end_joining(
        self, key: str, hand: Callable[[list[Shipment]], None], finish: Callable[[], None]
    ) -> None:
        """Hand over what was kept, the last of it while writers wait, and finish.

        Raises
        ------
        ReplicaLostError
            Another host leads meanwhile; or what ``hand`` and ``finish`` raise.
        """
        waiting = self._joining[key]

        def hand_some() -> None:
            hand(some := waiting[:_AT_ONCE])
            del waiting[: len(some)]

        while len(waiting) > 2:
            began = time.monotonic()
            hand_some()
            # Half of the time is left to those that write.
            time.sleep(time.monotonic() - began)
        # In the order in which shipping takes them.
        with self._shipping, self._writing:
            self.ship()
            self._check_leads()
            while waiting:
                hand_some()
            finish()

    def stop_joining(self, key: str) -> None:
        """Keep nothing for who was sent a copy any more."""
        self._joining.pop(key, None)

    # What others may see.

    def public_since(self, seq: int) -> public_events.Public:
        """Return what others may see, and changed after a number of the journal."""
        return public_events.public_since(self.memory.record, seq, self.gone)

    def renew_public(self, of: int, public: public_events.Public, moved: Mapping[str, int]) -> None:
        """Take over what others may see of another shard; ``moved`` says which have their own."""

        def is_of(number: int, namespace: str) -> bool:
            return moved.get(namespace, number >> FIRST_ID) == of

        with self._writing:
            if self.gone - self._tidied:
                raise ReplicaLostError("what has moved away is not erased yet: tell it again")
            self._check_copies()
            public_events.take_public(self.memory, self.origins, public, is_of)
        self.ship()
        self._check_leads()
