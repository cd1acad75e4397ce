"""Resources that the verbs of a memory share: store, embedder, clock, buffered usage."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cvx.arguments import a_time, wrong
from cvx.embed import Embedder
from cvx.errors import (
    ClockWarning,
    DamagedStoreError,
    EmbedderAnswerError,
    LockTimeoutError,
    NamespaceError,
    NotWrittenWarning,
    SettingsMismatchError,
    StoreError,
    UnknownError,
    warn,
)
from cvx.index import RawIndex
from cvx.memory.namespace_access import Identity
from cvx.memory.settings import setting
from cvx.memory.usage_buffer import MUCH, SOME, UsageBuffer
from cvx.store import IndexKind, Record, Store, Writer
from cvx.store.history import Versions
from cvx.store.row_validation import explains
from cvx.store.transactions import Follower
from cvx.time_limits import Calls
from cvx.tracing import watched
from cvx.types import Event, Vector
from cvx.validation import storable_text, storable_vector

if TYPE_CHECKING:
    from cvx.memory.namespace_advisors import Advisors

T = TypeVar("T")
_MOST_HANDED_OUT = 10_000
_LIKE_SECONDS = range(1_400_000_000, 2_100_000_000)
"""Seconds since 1970 of the years 2014 to 2036; as microseconds, half an hour of 1970."""
_UNITS = {"seconds": 1_000_000, "milliseconds": 1_000}
"""What else a time may have been counted in, in microseconds."""
CLOSE_WAITS_S = 5.0
"""How long closing waits in all for another process that writes."""
_TRIES = 4
"""So often as much again is noted before the oldest of it goes, where nothing can be written."""


@explains(lambda state: state.record)
class Resources(Follower):
    """What all verbs and nouns of a memory share, and the checks before anything is stored.

    Parameters are those of ``Memory.open``.
    """

    def __init__(
        self,
        folder: Path | None,
        embedder: Embedder,
        *,
        metric: str = "cosine",
        settings: Mapping[str, int] | None = None,
        clock: Callable[[], int] | None = None,
        create: bool = True,
        record: Record | None = None,
        read_only: bool = False,
        kept: Mapping[str, str] | None = None,
        loaded: tuple[RawIndex, int] | None = None,
    ) -> None:
        self.embedder = embedder
        info = self.embedder.info()
        self.dim, self.metric = int(info["dim"]), metric
        self.kind = IndexKind(str(info["id"]), metric, self.dim, settings or {})
        self.store = Store(
            folder,
            self.kind,
            clock=clock,
            create=create,
            record=record,
            read_only=read_only,
            kept=kept,
            loaded=loaded,
        )
        # What recall gave out, by what it says: the agent may bring it back as something new.
        # Any thread may recall: this and what is noted change under a mutex, for a moment.
        self.mutex = threading.RLock()
        self._handed_out: OrderedDict[bytes, tuple[int, ...]] = OrderedDict()
        self.noted = UsageBuffer()
        self._tries = 1
        # Made when the first episode begins: what learns costs time to import, and to fill.
        self.advisors: Advisors | None = None
        self.calls = Calls()
        self.versions = Versions(self.record)
        # The newest event that was looked at, the end of the journal then, and the latest time.
        self._latest = -1, -1, 0
        self._unsettled = UsageBuffer()
        self.record.follow(self)

    def reopen(self, embedder: Embedder) -> None:
        """Be the state of the same store with another embedder, that it was moved to."""
        record, folder = self.record, self.folder
        if folder is None:
            record.followers.clear()
            self.__init__(None, embedder, metric=self.metric, record=record)  # type: ignore[misc]
        else:
            self.store.close()
            self.__init__(folder, embedder, metric=self.metric)  # type: ignore[misc]

    @property
    def record(self) -> Record:
        """The record; what is written through it is followed by the index."""
        return self.store.record

    @property
    def index(self) -> RawIndex:
        """The index, for reading: everything that is to stay goes through the memory."""
        self.store.refresh()
        return self.store.index

    @property
    def folder(self) -> Path | None:
        """Where it lives, None for RAM."""
        return self.store.folder

    def beside_index(self, code: Callable[[], object]) -> Path | None:
        """Return the folder of what is kept to spare making it again, None where nothing is.

        Parameters
        ----------
        code : callable
            Returns a checksum of the code that makes it: another one might make something else.
        """
        with suppress(OSError):  # An installation without sources: whose code it is cannot be told.
            return None if self.folder is None or not code() else self.folder / "index"
        return None

    @cached_property
    def clock(self) -> str:
        """What timestamps count: "utc" (microseconds), "ticks" or "turns"."""
        return setting(self.record, "clock")

    def now(self) -> int:
        """Return the time of the store's clock: the latest of an event where it only counts."""
        if self.clock == "utc":
            return self.record.now()
        event, seq, _ = self._latest
        tail = self.record.tail().seq
        if tail != seq:
            # All events once, then those that were added or changed since.
            found = self.record.query(
                "SELECT max(event_id), max(timestamp) FROM events WHERE event_id > ?1"
                " UNION ALL SELECT NULL, max(timestamp) FROM journal, json_each(body)"
                " JOIN events ON event_id = json_extract(value, '$[0]')"
                " WHERE seq > ?2 AND op = 'version'",
                (event, seq),
            )
            times = [row[1] for row in found if row[1] is not None]
            self._latest = found[0][0] or event, tail, max([self._latest[2], *times])
        return self._latest[2]

    def time(self, value: int | datetime | None) -> int:
        """Return when something happened that is added now.

        Raises
        ------
        InvalidInputError
            No whole number; or a datetime where the store counts ticks or turns.

        Warns
        -----
        ClockWarning
            A number of microseconds that would be a day of our years if it were (milli)seconds.
        """
        if value is None:
            return self.record.now() if self.clock == "utc" else self.now() + 1
        if isinstance(value, datetime) and self.clock != "utc":
            raise wrong("timestamp", value, f"an int: this memory counts {self.clock}")
        time = a_time("timestamp", value)
        if not isinstance(value, datetime) and (doubt := self.other_unit(time)):
            warn(doubt, ClockWarning)
        return time

    def other_unit(self, time: int) -> str | None:
        """Return in words that a time seems to count (milli)seconds where microseconds do."""
        for unit, factor in _UNITS.items() if self.clock == "utc" else ():
            if time * factor // 1_000_000 in _LIKE_SECONDS:
                meant = datetime.fromtimestamp(time * factor // 1_000_000, UTC)
                return (
                    f"timestamp is {time} microseconds, which is in 1970; as {unit} it would be "
                    f"{meant:%Y-%m-%d}: give a datetime, or {unit} times {factor:,}"
                )
        return None

    def remember_spec(self, spec: str | None) -> None:
        """Let the store remember how to make its embedder."""
        if spec is not None and self.record.meta("embedder_spec") != spec:
            with self.record.transaction() as write:
                write.set_meta("embedder_spec", spec)

    def event(self, event_id: int, identity: Identity, *, new: bool = False) -> Event:
        """Return an event by its id, whatever its state.

        One that was just made, and so is ``new``, has no earlier versions: they are not asked for,
        which waits for whoever brings the index level.

        Raises
        ------
        UnknownError
            It was erased, never given, or is not to be seen.
        """
        found = self.record.events([event_id])
        if not found or not identity.sees(found[0]):
            raise UnknownError(f"there is no event {event_id}: it was erased or never given")
        return found[0] if new else self.versions.of_each(found)[0]

    def ids_where(self, condition: str, values: Sequence[object] = ()) -> list[int]:
        """Return the ids of the events that pass a condition over their columns, ascending."""
        found = self.record.query(
            f"SELECT event_id FROM events WHERE {condition} ORDER BY event_id", values
        )
        return [row[0] for row in found]

    def active_events(self, namespace: str) -> list[Event]:
        """Return the active events of a namespace."""
        own = "namespace = ? AND state = 'active'"
        return self.record.events(self.ids_where(own, (namespace,)))

    def check_own(self, events: Iterable[int], identity: Identity) -> None:
        """Refuse to change events of others in the name of a bound memory.

        Raises
        ------
        UnknownError, NamespaceError
            One of them is not to be seen; or is seen, and of another namespace.
        """
        for number in events if identity.bound else ():
            whose = self.event(number, identity).namespace
            if whose != identity.namespace:
                raise NamespaceError(
                    f"event {number} is of namespace {whose!r}, but this memory is bound to "
                    f"{identity.namespace!r}: ask one of that namespace, or add an event of its own"
                )

    def node_of(self, event_id: int) -> int:
        """Return the node of an event.

        Raises
        ------
        UnknownError
            There is no such event, or it is in no index.
        """
        found = self.record.query("SELECT node FROM events WHERE event_id = ?", (event_id,))
        if not found:
            raise UnknownError(f"there is no event {event_id}: it was erased or never given")
        if found[0][0] is None:
            raise UnknownError(f"event {event_id} is in no index: add it as an event of its own")
        return int(found[0][0])

    def checked(self, vector: Vector) -> Vector:
        """Return a vector that the index takes, or raise what is wrong with it."""
        return storable_vector("the vector", vector, self.dim, self.metric, self.kind.embedder)

    def read_state(self, name: str, made: Callable[[Mapping[str, Any]], T]) -> T | None:
        """Return what is made of a state of the record, None where there is none.

        Raises
        ------
        DamagedStoreError
            It cannot be made of that: a file from elsewhere may hold anything.
        """
        told = self.record.state(name)
        try:
            return made(told) if told else None
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            raise DamagedStoreError(
                f"the state {name!r} cannot be read ({type(error).__name__}: {error}): "
                f"memory.learning.reset({name.partition(':')[0]!r}) lets go of it"
            ) from error

    @watched("embed", "texts")
    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the checked vectors of texts that can be stored; each text is embedded once."""
        for one in texts:
            storable_text("a text", one)
        once = list(dict.fromkeys(texts))
        rows = self.embedder.embed(once) if once else ()
        if len(rows) != len(once):
            raise EmbedderAnswerError(
                f"{self.kind.embedder} answered with {len(rows)} rows for {len(once)} texts: mend "
                "it, or choose another embedder"
            )
        made = {text: self.checked(row) for text, row in zip(once, rows, strict=True)}
        return [made[text] for text in texts]

    def hand_out(
        self, namespace: str, asked: int, events: Iterable[Event], block: str = ""
    ) -> None:
        """Note what a namespace was told: these events, and the block that shows them.

        ``asked`` is the number of the journal when it asked.
        """
        with self.mutex:
            told, frozen = list[int](), self.record.frozen
            self.noted.asked(asked)
            for event in events:
                if event.event_id is None or event.node is None or not event.text.strip():
                    continue
                for reader in {namespace, event.namespace}:
                    self.hand_out_text(reader, event.text, [event.node])
                told.append(event.node)
                if not frozen:
                    self.noted.count(event.event_id)
            if block and told:
                self.hand_out_text(namespace, block, told)

    def hand_out_text(self, namespace: str, text: str, nodes: Iterable[int]) -> None:
        """Note that a namespace was told a text that shows these nodes."""
        key = digest(namespace, text)
        with self.mutex:
            self._handed_out[key] = tuple(nodes)
            self._handed_out.move_to_end(key)
            while len(self._handed_out) > _MOST_HANDED_OUT:
                self._handed_out.popitem(last=False)

    def told(self, namespace: str, text: str) -> list[int]:
        """Return the active events that a text was handed out from, to a namespace.

        A node names a text: what has changed since, or was taken back, is told by no node.
        """
        with self.mutex:
            nodes = self._handed_out.get(digest(namespace, text), ())
        events = self.record.events_of_nodes(nodes, active=True) if nodes else {}
        return [events[node] for node in nodes if node in events]

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Open a transaction that writes down, too, what reading has noted.

        In a block it is kept until the block is durable.
        """
        noted = UsageBuffer()
        if not self.record.writing:
            self._unsettled = UsageBuffer()
        try:
            with self.record.transaction() as write:
                with self.mutex:
                    noted, self.noted = self.noted, noted
                yield write
                noted.write(write)
        except BaseException:
            with self.mutex:
                self.noted.join(noted)
            raise
        self._unsettled.join(noted)

    def taken_back(self) -> None:
        """Note again what was written down in a block that was taken back."""
        with self.mutex:
            self.noted.join(self._unsettled)
        self._unsettled = UsageBuffer()
        self._latest = -1, -1, 0

    def flush(self) -> None:
        """Write down what reading has noted."""
        if self.noted:
            with self.writing():
                pass

    def snapshot_alone(self) -> None:
        """Write a snapshot of the index, and remove the older ones, which are of other vectors."""
        self.store.snapshot()
        if self.store.snapshots is not None:
            with self.record.locked():
                self.store.snapshots.prune(1)

    def save_learned(self) -> None:
        """Write down what episodes taught, which could be learned again: where it fails, it is."""
        if self.advisors is not None and not self.record.closed:
            with suppress(StoreError, SettingsMismatchError):
                self.advisors.save()

    def flush_if_much(self) -> None:
        """Write down what reading has noted if there is much of it, and nobody else writes.

        Where it cannot be written, it is tried again, on a full disk when there is as much more,
        and in the end the oldest is dropped: reading waits for nobody, and takes no more room.
        """
        if self.noted.size < (SOME if self._tries == 1 else MUCH * self._tries):
            return
        database = self.record.database
        try:
            if database.may_write_at_once:
                with database.patience(0.0):
                    self.flush()
                    self._tries = 1
                    self.store.snapshot_if_grown()
        except LockTimeoutError:
            pass
        except StoreError:
            self._tries = min(self._tries + 1, _TRIES)
        with self.mutex:
            if self.noted.size >= MUCH * _TRIES:
                self.noted.drop_oldest(MUCH * (_TRIES - 1))

    def flush_last(self) -> None:
        """Write down what reading has noted before the store is closed; warn of what could not be.

        Warns
        -----
        NotWrittenWarning
            Another process writes.
        """
        # Threads of this process that are writing end first.
        with self.record.mutex:
            pass
        try:
            self.flush()
        except LockTimeoutError:
            used = {*self.noted.retrieved, *self.noted.used}
            warn(
                f"closed without writing down {len(self.noted.decided)} decisions and the use of "
                f"{len(used)} memories: another process kept {self.folder} locked for "
                f"{CLOSE_WAITS_S:g} s; all that was added is stored",
                NotWrittenWarning,
            )


def digest(namespace: str, text: str) -> bytes:
    """Return what two texts share that differ in nothing but case and white space."""
    plain = f"{namespace}\0{' '.join(text.casefold().split())}"
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def noun_repr(noun: Any) -> str:
    """Return a repr of what hangs on a memory, such as ``memory.causes``: which, and of which."""
    where = noun._shared.folder or "a memory in RAM"
    return f"<{type(noun).__name__.lower()} of {where}>"
