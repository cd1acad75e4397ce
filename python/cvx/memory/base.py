"""What every part of the memory stands on."""

from __future__ import annotations

import hashlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from cvx.arguments import a_text, an_event, checked
from cvx.calls import Calls
from cvx.embed import Embedder, LexicalEmbedder
from cvx.errors import (
    LexicalOnlyWarning,
    UnknownEventError,
)
from cvx.index import TemporalIndex
from cvx.memory.noted import Noted
from cvx.scoring import Calibration, logged_calibration
from cvx.store import IndexKind, Record, Store, Writer
from cvx.store.spaces import check_namespace
from cvx.types import DEFAULT_NAMESPACE, Event, Vector
from cvx.validation import storable_text, storable_vector

_MOST_HANDED_OUT = 10_000


class Base:
    """The store behind a memory, and the checks before anything goes into it."""

    def __init__(
        self,
        folder: Path | None,
        embedder: Embedder | None,
        *,
        metric: str = "cosine",
        settings: Mapping[str, int] | None = None,
        clock: Callable[[], int] | None = None,
        create: bool = True,
        accept_lost_tail: bool = False,
        record: Record | None = None,
        read_only: bool = False,
    ) -> None:
        self.embedder = _default_embedder() if embedder is None else embedder
        info = self.embedder.info()
        self.dim, self.metric = int(info["dim"]), metric
        self._kind = IndexKind(
            lambda **settings: TemporalIndex(self.dim, metric=metric, **settings),
            partial(TemporalIndex.load, verify=True, mmap=True),
            str(info["id"]),
            metric,
            self.dim,
            settings or {},
        )
        self._store = Store(
            folder,
            self._kind,
            clock=clock,
            create=create,
            accept_lost_tail=accept_lost_tail,
            record=record,
            read_only=read_only,
        )
        # What recall gave out, by what it says: the agent may bring it back as something new.
        # Any thread may recall: this and what is noted change under the record's mutex.
        self._handed_out: OrderedDict[bytes, tuple[int, ...]] = OrderedDict()
        self._noted = Noted()
        self._calls = Calls()
        self._asked: dict[str, tuple[str, int, int]] = {}

    @property
    def record(self) -> Record:
        """The record; what is written through it is followed by the index."""
        return self._store.record

    @property
    def index(self) -> TemporalIndex:
        """The index, for reading: everything that is to stay goes through the memory."""
        self._store.refresh()
        return self._store.index

    @property
    def folder(self) -> Path | None:
        """Where it lives, None for RAM."""
        return self._store.folder

    def __len__(self) -> int:
        found = self.record.query("SELECT count(*) FROM events WHERE state = 'active'")
        return int(found[0][0])

    @checked(event_id=an_event)
    def get(self, event_id: int) -> Event:
        """Return an event by its id, whatever its state.

        Raises
        ------
        UnknownEventError
            It was erased, or never given.
        DamagedRecordError
            Its row is not what was written.
        """
        found = self.record.events([event_id])
        if not found:
            raise UnknownEventError(f"there is no event {event_id}: it was erased or never given")
        return found[0]

    @checked(key=a_text)
    def id_of(self, key: str, *, namespace: str = DEFAULT_NAMESPACE) -> int:
        """Return the id of the event that is called so elsewhere.

        Raises
        ------
        UnknownEventError
            No event of the namespace has that key.
        """
        found = self.record.event_of_key(key, check_namespace(namespace))
        if found is None:
            raise UnknownEventError(
                f"no event of namespace {namespace!r} has the key {key!r}: add one with it, or "
                "name the namespace that has it"
            )
        return found

    def stats(self) -> dict[str, Any]:
        """Count what it holds: events, active, links, episodes, and the index's own.

        ``bytes`` are those of the texts and vectors of all events.
        ``calibration`` is how the logged predictions of success turned out, None if there are none.
        """
        found = self.calibration()
        return {**self._store.stats(), "calibration": None if found is None else found.to_dict()}

    def calibration(self) -> Calibration | None:
        """Compare the predictions of success of all logged decisions with what happened.

        Returns
        -------
        Calibration or None
            None if no decision has both a prediction and an outcome.
        """
        return logged_calibration(self.record)

    def damage(self) -> list[str]:
        """Read every row of the record and name those that are not what was written."""
        return self.record.damage()

    def snapshot(self) -> bool:
        """Write a snapshot of the index now; tell whether there is one (never in RAM)."""
        return self._store.snapshot()

    def _checked(self, vector: Vector) -> Vector:
        return storable_vector("the vector", vector, self.dim, self.metric, self._kind.embedder)

    def _embedded(self, texts: Sequence[str]) -> list[Vector]:
        for one in texts:
            storable_text("a text", one)
        return [self._checked(row) for row in self.embedder.embed(texts)] if texts else []

    def _remember_handing_out(
        self, namespace: str, events: Iterable[Event], block: str = ""
    ) -> None:
        """Note what a namespace was told: these events, and the block that shows them."""
        with self.record.mutex:
            told: list[int] = []
            for event in events:
                if event.event_id is not None and event.text.strip():
                    for reader in {namespace, event.namespace}:
                        self._hand_out(reader, event.text, [event.event_id])
                    told.append(event.event_id)
                    self._noted.count(event.event_id)
            if block and told:
                self._hand_out(namespace, block, told)

    def _remember_rendering(self, namespace: str, text: str, nodes: Sequence[int]) -> None:
        """Note that a loop told a namespace a text that shows these nodes."""
        with self.record.mutex:
            events = self.record.events_of_nodes(nodes)
            self._hand_out(namespace, text, [events[node] for node in nodes if node in events])

    def _hand_out(self, namespace: str, text: str, events: Iterable[int]) -> None:
        key = digest(namespace, text)
        self._handed_out[key] = tuple(events)
        self._handed_out.move_to_end(key)
        while len(self._handed_out) > _MOST_HANDED_OUT:
            self._handed_out.popitem(last=False)

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        """Open a transaction that writes down, too, what reading has noted."""
        noted = Noted()
        try:
            with self.record.transaction() as write:
                noted, self._noted = self._noted, noted
                yield write
                noted.write(write)
        except BaseException:
            with self.record.mutex:
                self._noted.join(noted)
            raise

    def _flush(self) -> None:
        if self._noted:
            with self._writing():
                pass


def digest(namespace: str, text: str) -> bytes:
    """Return what two texts share that differ in nothing but case and white space."""
    plain = f"{namespace}\0{' '.join(text.casefold().split())}"
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


_warned = False


def _default_embedder() -> Embedder:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "no embedder was given: the default compares spelling, not meaning; give one from "
            "cvx.embed for that",
            LexicalOnlyWarning,
            stacklevel=5,
        )
    return LexicalEmbedder()
