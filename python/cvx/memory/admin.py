"""Maintenance of a store, ``memory.admin``: quarantine, trust, budgets, checks, exports."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cvx.arguments import a_file, a_flag, a_share, a_text, checked, one_of, optional, whole
from cvx.causal.forgetting import Vitality
from cvx.causal.graph_data import GraphInRecord
from cvx.embed import Embedder
from cvx.errors import InvalidInputError, StoreError
from cvx.learn.reputation import SOURCES, Reputation
from cvx.memory.namespace_access import Identity
from cvx.memory.resources import Resources, noun_repr
from cvx.memory.settings import check_embedder, settings_of
from cvx.memory.write_verbs import declare_edge_kind, set_state
from cvx.recall.visible_events import Asker, ways_sql
from cvx.scoring import beta_mean, logged_calibration
from cvx.store.history import HistoryLimits
from cvx.store.namespaces import check_namespace
from cvx.store.reembed import reembed
from cvx.store.row_validation import explains
from cvx.store.store import Compacted, compact
from cvx.types import DEFAULT_NAMESPACE, Event, Where
from cvx.validation import storable_text

if TYPE_CHECKING:
    from cvx.store.transfer import Header, Imported


class Eviction(NamedTuple):
    """The events a budget archives, or would archive.

    Attributes
    ----------
    events : tuple of int
        Least useful first.
    events_left, bytes_left : int
        What stays active.
    """

    events: tuple[int, ...]
    events_left: int
    bytes_left: int


class Faded(NamedTuple):
    """The events that `fade` archives, or would archive.

    Attributes
    ----------
    events : tuple of int
        Weakest first.
    vitality : tuple of float
        What is left of each, in their order.
    """

    events: tuple[int, ...]
    vitality: tuple[float, ...]


def _a_source(name: str, value: Any) -> str:
    if not storable_text(name, value):
        raise InvalidInputError(f"{name} is empty: name the one that is meant")
    return str(value)


@explains(lambda admin: admin._shared.record)
class Admin:
    """Maintenance of a store.

    Parameters
    ----------
    shared : Resources
        Of the memory.
    """

    __repr__ = noun_repr

    def __init__(self, shared: Resources) -> None:
        self._shared = shared

    def stats(self) -> dict[str, Any]:
        """Count what it holds: events, active, links, episodes, and the index's own.

        ``bytes`` are those of the texts and vectors of all events. ``history`` counts the logged
        ``decisions`` and the ``changes`` in the journal, with the limits of ``keep_history``.
        ``calibration`` is how the logged predictions of success turned out, None if there are none.
        ``sources`` says, by namespace and source, how often advice that was followed ``helped`` or
        ``failed``, and whether recall leaves the source out.
        """
        record = self._shared.record
        found = logged_calibration(record)
        states = record.query("SELECT name FROM model_state WHERE name GLOB ?", (f"{SOURCES}*",))
        sources = {}
        for (name,) in states:
            known = self._shared.read_state(name, Reputation.from_dict)
            if known is not None and (told := known.told()):
                sources[name.removeprefix(SOURCES)] = told
        return {
            **self._shared.store.stats(),
            "calibration": None if found is None else found.to_dict(),
            "sources": sources,
        }

    def check(self) -> list[str]:
        """Read every row of the record and name those that are not what was written."""
        return self._shared.record.damage()

    def snapshot(self) -> bool:
        """Write a snapshot of the index now; tell whether there is one (never in RAM)."""
        return self._shared.store.snapshot()

    @checked(decisions=whole(1), changes=whole(1))
    def keep_history(self, *, decisions: int = 100_000, changes: int = 1_000_000) -> None:
        """Set how much of its past this memory keeps, here at once.

        Other processes that write see it within a thousand changes.

        Parameters
        ----------
        decisions : int, default 100_000
            The newest logged decisions, with what came of them.
        changes : int, default 1_000_000
            The newest rows of the journal: ``as_of`` reaches as far back. Those that a snapshot of
            the index lacks are kept however many they are.

        Raises
        ------
        InvalidInputError
            A number below 1.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> memory.admin.keep_history(decisions=1_000)
        >>> memory.admin.stats()["history"]["most_decisions"]
        1000
        """
        self._shared.store.history.set_limits(HistoryLimits(decisions, changes))

    def compact(self) -> Compacted:
        """Give back the room that a memory does not need; see ``cvx.store.store.compact``."""
        return compact(self._shared.store)

    def transaction(self) -> AbstractContextManager[None]:
        """Make everything that is written in a ``with`` block durable at its end, or none of it.

        See ``cvx.store.Record.together``: other threads and processes wait until then, so that
        nothing may be awaited inside. Erasing and snapshots are refused there.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> with memory.admin.transaction():
        ...     rain = memory.add("it rained all night")
        ...     _ = memory.link(rain, memory.add("the cellar is under water"))
        >>> len(memory)
        2
        """
        return self._shared.record.together()

    @checked(name=storable_text)
    def declare_edge_kind(self, name: str) -> None:
        """Make a name an edge kind of this memory, for good.

        Raises
        ------
        InvalidInputError
            Not lower snake case.
        """
        declare_edge_kind(self._shared, name)

    @checked(source=storable_text)
    def audit(self, source: str) -> list[Event]:
        """Return everything that came from a source, whatever became of it."""
        return self._shared.record.events(self._shared.ids_where("source = ?", (source,)))

    @checked(source=optional(_a_source), dry_run=a_flag)
    def quarantine(
        self, *, source: str | None = None, where: Where | None = None, dry_run: bool = False
    ) -> list[int]:
        """Keep events out of every recall until ``release``.

        Parameters
        ----------
        source : str, optional
            Everything that came from it; and
        where : Filter, mapping of its fields, or a list of these, optional
            all of the store that passes; at least one of the two.
        dry_run : bool, default False
            Only say which ones.

        Returns
        -------
        list of int
            The events that were active.

        Raises
        ------
        InvalidInputError
            Neither a source nor a filter; a filter that cannot be, or that everything passes.
        """
        return self._move(source, where, "active", "quarantined", dry_run)

    @checked(source=optional(_a_source), dry_run=a_flag)
    def release(
        self, *, source: str | None = None, where: Where | None = None, dry_run: bool = False
    ) -> list[int]:
        """End a quarantine; returns the events that were in it. Parameters as there."""
        return self._move(source, where, "quarantined", "active", dry_run)

    def _move(
        self, source: str | None, where: Where | None, before: str, after: str, dry_run: bool
    ) -> list[int]:
        if source is None and where is None:
            raise InvalidInputError("source is None and where is None: give one of them, or both")
        condition, values = "state = ?", list[object]([before])
        if source is not None:
            condition, values = f"{condition} AND source = ?", [*values, source]
        if where is not None:
            whose = Identity(clock=self._shared.clock)
            if source is None and after == "quarantined":
                whose.choosing(where)
            passing = whose.passing(where)
            ways, more = ways_sql(Asker("", (), passing, "any"))
            condition, values = f"{condition} AND {ways}", [*values, *more]
        if dry_run:
            return self._shared.ids_where(condition, values)
        with self._shared.record.transaction() as write:
            events = self._shared.ids_where(condition, values)
            write.set_columns("state", dict.fromkeys(events, after))
        return events

    @checked(source=_a_source, value=a_share)
    def trust(self, source: str, value: float) -> list[int]:
        """Say how far a source is believed, of all that came from it; steps of episodes apart.

        Parameters
        ----------
        source : str
        value : float
            In [0, 1]; the trust of what comes from it later is given with it.

        Returns
        -------
        list of int
            The events whose trust was another one.

        Raises
        ------
        InvalidInputError
            No source; a value outside [0, 1].
        """
        others = "source = ? AND trust <> ? AND episode IS NULL"
        with self._shared.record.transaction() as write:
            events = self._shared.ids_where(others, (source, value))
            for event in events:
                write.change_event(event, {"trust": value})
        return events

    @checked(path=a_file, format=optional(a_text))
    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        progress: Callable[[int, int], None] | None = None,
    ) -> Header:
        """Write everything that the store knows to a file, so that an import loses nothing.

        What others write meanwhile is not in it.

        Parameters
        ----------
        path : str or path
            Where to; there must be nothing. For Parquet it becomes a folder.
        format : {"jsonl", "parquet", "duckdb"}, optional
            By default what the name ends in.
        progress : callable, optional
            Is told (rows written, of how many).

        Returns
        -------
        Header
            What was written.

        Raises
        ------
        InvalidInputError, FileError, DamagedStoreError, MissingExtraError
            As for ``cvx.store.transfer.export_record``.
        """
        from cvx.store.transfer import export_record

        # What was recalled last may not be written down yet. Where it cannot be, such as on a disk
        # that is full, all else is exported.
        with suppress(StoreError):
            self._shared.flush()
        return export_record(self._shared.record, Path(path), format, progress)

    @checked(path=a_file, format=optional(a_text), again=a_flag)
    def import_(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        again: bool = False,
    ) -> Imported:
        """Take an export in, all of it or nothing; see ``cvx.memory.transfer.import_export``."""
        from cvx.store.transfer import format_of, import_into, reader_of

        incoming = reader_of(Path(path), format_of(Path(path), format))
        return import_into(self._shared.record, incoming, again=again, progress=None)

    def reembed(self, embedder: Embedder | str) -> int:
        """Move the memory to another embedder, and go on with it.

        Until a single transaction switches over, the old vectors answer; broken off, the same call
        goes on. No other thread may use the memory meanwhile; other processes open it again.

        Parameters
        ----------
        embedder : Embedder or str
            As for ``Memory.open``.

        Returns
        -------
        int
            How many different texts were embedded; 0 where it was there already.

        Raises
        ------
        InvalidInputError, EmbedderError, InvalidVectorError
            As for ``cvx.store.reembed.reembed``: the memory stays as it was.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(embedder=LexicalEmbedder(16))
        >>> _ = memory.add("a mug on a shelf")
        >>> memory.admin.reembed(LexicalEmbedder(32)), memory.recall("mug")[0].text, memory.dim
        (1, 'a mug on a shelf', 32)
        """
        shared = self._shared
        meant = settings_of(check_embedder("embedder", embedder), None, shared.metric, None)
        shared.flush()
        made = reembed(shared.record, meant.embedder, spec=meant.spec)
        shared.reopen(meant.embedder)
        shared.snapshot_alone()
        return made

    @checked(source=_a_source)
    def roll_back(self, source: str) -> list[int]:
        """Undo a source: its events go into quarantine, their links are taken away for good.

        Links, unlike events, teach walks and searches that start elsewhere. Rewards that other
        memories lost in failed episodes of the source are given back. ``as_of`` still knows all of
        it, and ``erase`` removes the events themselves.

        Returns
        -------
        list of int
            All events of the source.
        """
        record = self._shared.record
        with record.transaction() as write:
            events = self._shared.ids_where("source = ?", (source,))
            write.set_columns("state", dict.fromkeys(events, "quarantined"))
            write.undo_decays(events)
            nodes = [n for some in record.nodes_of_events(events).values() for n in some]
            for node in nodes:
                edges = [
                    *record.links_of([node], incoming=True),
                    *record.links_of([node], incoming=False),
                ]
                write.remove_links((e.from_node, e.to_node, e.kind) for e in edges)
        return events

    @checked(events=optional(whole(0)), bytes=optional(whole(0)), dry_run=a_flag)
    def budget(
        self,
        *,
        events: int | None = None,
        bytes: int | None = None,  # noqa: A002
        dry_run: bool = True,
    ) -> Eviction:
        """Put away the least useful events until the rest fits a budget.

        Usefulness is the success to expect of an event (its reward, 0.5 without one, and how often
        it was retrieved) times its salience (0.5 without one); of equals the one goes that was
        used longest ago, or never used and happened longest ago.

        Parameters
        ----------
        events : int, optional
            How many may stay active.
        bytes : int, optional
            How large their texts and vectors together may be.
        dry_run : bool, default True
            Only say which ones; nothing is put away.

        Raises
        ------
        InvalidInputError
            No budget at all, or one below 0.
        """
        if events is None and bytes is None:
            raise InvalidInputError("no budget: give events, bytes or both")
        rows = self._shared.record.query(
            "SELECT event_id, reward, salience, recorded, ifnull(retrieved, 0),"
            " length(CAST(text AS BLOB)) + ifnull(length(embedding), 0),"
            " max(timestamp, ifnull(last_used, timestamp)) FROM events"
            " LEFT JOIN usage ON context = '[\"event\",' || event_id || ']'"
            " WHERE state = 'active'"
        )
        ordered = sorted(
            rows,
            key=lambda row: (
                self._usefulness(row[0], row[1], row[2], row[4]),
                max(row[6], self._shared.noted.used.get(row[0], row[6])),
                row[3],
            ),
        )
        left, size = len(ordered), sum(row[5] for row in ordered)
        gone: list[int] = []
        for row in ordered:
            if (events is None or left <= events) and (bytes is None or size <= bytes):
                break
            gone.append(row[0])
            left, size = left - 1, size - row[5]
        if gone and not dry_run:
            set_state(self._shared, gone, "archived")
        return Eviction(tuple(gone), left, size)

    @checked(
        below=a_share,
        rule=optional(one_of(Vitality, called="a Vitality")),
        now=optional(whole()),
        dry_run=a_flag,
    )
    def fade(
        self,
        below: float = 0.05,
        *,
        rule: Vitality | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        now: int | None = None,
        dry_run: bool = True,
    ) -> Faded:
        """Put away what nothing has called up for long, as ``Memory.forget`` does.

        Each event's vitality follows from its salience (0.5 without one), how often and when it
        was last used, and how many events it led to. It does not depend on how often ``fade`` is
        called.

        Parameters
        ----------
        below : float, default 0.05
            What has less left is put away; in [0, 1].
        rule : Vitality, optional
            How fast it fades; by default half in 30 days.
        namespace : str, default ""
            Whose events.
        now : int, optional
            In the unit of the timestamps; by default the clock of the memory.
        dry_run : bool, default True
            Only say which ones.

        Raises
        ------
        InvalidInputError
            A bound outside [0, 1].
        """
        events = self._shared.active_events(check_namespace(namespace))
        if not events:
            return Faded((), ())
        ids = [event.event_id for event in events if event.event_id is not None]
        at = self._shared.record.now() if now is None else now
        used = self._shared.record.used(ids)
        counts = [used.get(number, (0, None)) for number in ids]
        pairs = zip(events, counts, strict=True)
        unused_for = [
            at - max(e.timestamp, last if last is not None else e.timestamp)
            for e, (_, last) in pairs
        ]
        led_to = dict.fromkeys(ids, 0)
        for link in GraphInRecord(
            self._shared.record, lambda: self._shared.index.edge_kinds, namespace=namespace
        ).links(ids, backward=False):
            led_to[int(link.cause)] += 1
        left = (rule or Vitality())(
            np.array([0.5 if e.salience is None else e.salience for e in events]),
            np.array(unused_for, dtype=np.float64),
            np.array([uses for uses, _ in counts], dtype=np.int64),
            np.array([led_to[number] for number in ids], dtype=np.int64),
        )
        order = np.argsort(left, kind="stable").tolist()
        weakest = [place for place in order if left[place] < below]
        gone = tuple(ids[place] for place in weakest)
        if gone and not dry_run:
            set_state(self._shared, gone, "archived")
        return Faded(gone, tuple(float(left[place]) for place in weakest))

    def _usefulness(
        self, event: int, reward: float | None, salience: float | None, retrieved: int
    ) -> float:
        asked = retrieved + self._shared.noted.retrieved.get(event, 0)
        worth = 0.5 if reward is None else reward
        weight = 0.5 if salience is None else salience
        # One retrieval says little, the hundredth hardly more than the tenth.
        return worth * weight * (0.5 + beta_mean(asked, asked, 2.0, 0.0))
