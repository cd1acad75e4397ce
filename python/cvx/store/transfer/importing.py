"""Imports an export: into an empty record as it was, or merged under new ids."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from cvx.errors import (
    CvxError,
    ExportError,
    SettingsMismatchError,
)
from cvx.index import RawIndex
from cvx.index.text_signs import may_hide_orders
from cvx.store import fulltext, rows
from cvx.store.database import tail_of
from cvx.store.doctor.record_checks import (
    COUNTERS,
    backward_times,
    breaks,
    gaps,
    highest_id,
    orphans,
    settings,
)
from cvx.store.failpoints import reach
from cvx.store.lock import Tail
from cvx.store.prompt_injection import reads_like_an_order, tags_with_mark
from cvx.store.record import Record
from cvx.store.replica import Intake, build
from cvx.store.row_validation import RowCheck
from cvx.store.rows import use_context, whose_use
from cvx.store.transfer.format import (
    Batch,
    Header,
    Imported,
    Incoming,
    Progress,
    Row,
    counted,
)
from cvx.store.writer import Writer
from cvx.types import Edge


def import_into(
    record: Record,
    incoming: Incoming,
    *,
    again: bool = False,
    progress: Progress = None,
) -> Imported:
    """Take an export in, all of it or nothing, in one transaction.

    An empty record becomes what was exported, ids and journal included, and takes over its
    embedder. One that holds something gets the events under new ids, recorded now. Every row is
    held to what a write is held to, and an index is made of them, before anything is committed.

    Parameters
    ----------
    record : Record
        One that no index follows.
    incoming : Incoming
        The export.
    again : bool, default False
        Take it in although that was done before, or it is this record's own.
    progress : callable, optional
        Is told (rows read, of how many).

    Raises
    ------
    SettingsMismatchError
        Its vectors are those of another embedder.
    ExportError
        It is damaged, cut, holds what no cvx could have written, or was taken in before; nothing
        was stored.
    """
    try:
        with record.transaction() as write:
            first = write.next_node
            done, intake = _take_in(record, write, incoming, again=again, progress=progress)
            index = _fed(record, first, intake, quick=done.merged)
        return replace(done, index=None if done.merged or index is None else (index, write.tail))
    except sqlite3.IntegrityError as error:
        raise ExportError(
            f"the export contradicts itself, a row is there twice or refers to none ({error}): "
            "export again. Nothing was taken in"
        ) from error


def _fed(record: Record, first: int, intake: Intake | None, *, quick: bool) -> RawIndex | None:
    """Make an index of the nodes from a number on, to see that one can be made.

    How well it would find is no matter where the record has another: few links are soon made.
    """
    dim, metric = record.meta("dim"), record.meta("metric")
    if dim is None or metric is None:
        return None
    known = len(record.damaged)
    try:
        filled = intake is not None and intake.complete
        if intake is not None and filled:
            index = intake.index
        else:
            settings = record.told("index", dict)
            index = RawIndex(int(dim), metric=metric, **settings)
            if quick:
                settings |= {"m": 2, "ef_construction": 2}
                index = RawIndex(int(dim), metric=metric, **settings)
        build(record, index, first, filled=filled)
    except (CvxError, TypeError, ValueError) as error:
        raise ExportError(
            f"no index can be made of the export ({error}): export again. Nothing was taken in"
        ) from error
    refused = [*record.damaged][known:]
    if refused:
        raise ExportError(
            f"no index takes {len(refused)} rows of the export ({'; '.join(refused[:3])}): export "
            "again. Nothing was taken in"
        )
    return index


def _take_in(
    record: Record, write: Writer, incoming: Incoming, *, again: bool, progress: Progress
) -> tuple[Imported, Intake | None]:
    header = incoming.header
    taken = record.told("imported", list)
    if not again and (header.name in taken or header.uuid == record.meta("uuid")):
        raise ExportError(
            "this export was taken in before, or is this store's own: its events are here; "
            "say again=True (--again) to have them twice"
        )
    empty = record.tail().seq == 0 and not record.query("SELECT 1 FROM events LIMIT 1")
    if not empty:
        _check_embedder(record, header)
    intake = _intake_of(header) if empty else None
    done = restore(write, incoming, progress, intake) if empty else merge(write, incoming, progress)
    write.set_meta("imported", json.dumps([*taken, header.name]))
    reach("import.finished")
    return done, intake


def _intake_of(header: Header) -> Intake | None:
    """Return what puts the events of an export into an index as they come, if that can be."""
    if header.counts["aliases"]:
        return None
    meta = header.meta
    with suppress(CvxError, TypeError, ValueError, LookupError):
        # Where none can be made, `_fed` says why.
        settings = json.loads(meta.get("index", "{}"))
        index = RawIndex(int(meta["dim"]), metric=meta["metric"], **settings)
        return Intake(index, header.counts["events"])
    return None


def _check_embedder(record: Record, header: Header) -> None:
    for name in ("embedder", "dim", "metric"):
        own, other = record.meta(name), header.meta.get(name)
        if own != other:
            raise SettingsMismatchError(
                f"the export holds vectors of {name} {other}, this store those of {own}: import "
                "into a new store, move that one with reembed, and export it again"
            )


def restore(
    write: Writer, incoming: Incoming, progress: Progress, intake: Intake | None
) -> Imported:
    """Store every row as it is: ids, times of recording and the journal included.

    Its events are put into an index, too, if there is an ``intake``.

    Raises
    ------
    ExportError
        A row could not have been written by cvx, or they do not fit together.
    """
    db, header = write.connection, incoming.header
    db.execute("PRAGMA defer_foreign_keys = ON")
    for table, some in _checked(db, incoming, progress):
        db.executemany(rows.insert_sql(table), some)
        if table == "events":
            fulltext.add(db, ((row[0], row[_TEXT]) for row in some))
            if intake is not None:
                intake.take(some)
        reach("import.written")
    fulltext.add_aliases(db, 0)
    for key, value in header.meta.items():
        write.set_meta(key, value)
    _take_counters(write, header)
    _check_whole(db, header)
    write.tail = Tail(header.seq, header.chain)
    if not _journal_covers_all(db):
        # An index that followed the empty record would miss what was there before its journal.
        write.journal("erase", [])
    return Imported(merged=False, counts=header.counts, left_out={})


def _checked(db: sqlite3.Connection, incoming: Incoming, progress: Progress) -> Iterator[Batch]:
    """Yield the rows of an export, each such as cvx could have written, as many as it says.

    An event that reads like an order is marked as one, whatever the export says of it.

    Raises
    ------
    ExportError
        A row, named, could not; or there are more or fewer.
    """
    header = incoming.header
    check = RowCheck(db, int(header.meta.get("dim", 0)), header.meta.get("metric", ""))
    numbers = dict.fromkeys(rows.COLUMNS, 0)
    for table, some in counted(incoming.batches, header.total, progress):
        for row, whole in zip(some, rows.whole_rows(some), strict=True):
            if not whole:
                raise ExportError(
                    f"row {rows.key_of(table, row)} of {table} is not what was written (its "
                    "checksum does not hold): export again. Nothing was taken in"
                )
        if (found := check.first_refused(table, some)) is not None:
            refused, why = found
            raise ExportError(
                f"row {rows.key_of(table, refused)} of {table} could not have been written by cvx "
                f"({why}): export again. Nothing was taken in"
            )
        numbers[table] += len(some)
        if numbers[table] > header.counts[table]:
            break
        yield table, _marked(some) if table == "events" else some
    for table, number in numbers.items():
        if number != header.counts[table]:
            raise ExportError(
                f"of {table} the export has {number} rows, {header.counts[table]} were written: "
                "export again. Nothing was taken in"
            )


_TEXT, _TAGS = (rows.COLUMNS["events"].index(name) for name in ("text", "tags"))


def _marked(some: list[Row]) -> list[Row]:
    """Return rows of events, those that read like an order with the mark."""
    may = may_hide_orders([row[_TEXT] for row in some])
    return [_with_mark(row) if look else row for row, look in zip(some, may, strict=True)]


def _with_mark(row: Row) -> Row:
    """Return an event's row with the mark that it would have got here."""
    if not reads_like_an_order(row[_TEXT]):
        return row
    tags = json.loads(row[_TAGS])
    marked = tags_with_mark(tags, row[_TEXT])
    if len(marked) == len(tags):
        return row
    changed = (*row[:_TAGS], json.dumps(marked, separators=(",", ":")), *row[_TAGS + 1 : -1])
    return (*changed, rows.row_crc(*changed))


def _take_counters(write: Writer, header: Header) -> None:
    """Go on from the first free ids that the export says; they are bounded by those given."""
    for name in COUNTERS:
        given, bound = highest_id(write.connection, name)
        following = int(header.meta.get(name, given + 1))
        if not given < following <= bound:
            raise ExportError(
                f"the export says {name} {following}, with ids up to {given}: more than that, and "
                f"at most {bound}, is possible. Import it into a store that holds something, where "
                "everything gets new ids; nothing was taken in"
            )
        setattr(write, name, following)


def _check_whole(db: sqlite3.Connection, header: Header) -> None:
    """Ask what the doctor would find between rows that are each sound."""
    journal = (*gaps(db), *breaks(db, ()), *backward_times(db, ()))
    for finding in (*orphans(db), *journal, *settings(db)):
        raise ExportError(
            f"the export contradicts itself: {finding.where}: {finding.what}. Nothing was taken in"
        )
    if tail_of(db) != (header.seq, header.chain):
        raise ExportError(
            f"the export says that its journal ends at {header.seq}, and it ends elsewhere: export "
            "again. Nothing was taken in"
        )


def _journal_covers_all(db: sqlite3.Connection) -> bool:
    runs = db.execute(
        "SELECT total(json_extract(value, '$[1]') - json_extract(value, '$[0]') + 1)"
        " FROM journal, json_each(body) WHERE op = 'insert'"
    )
    nodes = db.execute("SELECT (SELECT count(node) FROM events) + (SELECT count(*) FROM aliases)")
    return bool(runs.fetchone()[0] >= nodes.fetchone()[0])


_LEFT_OUT = ("decisions", "model_state", "journal")
"""What was logged and learned, and the order of it, belong to the history they are of."""


class _NewIds:
    """The ids that things of an export get here, one after the other in their order.

    Parameters
    ----------
    write : Writer
        Who knows which ids were never given.
    """

    def __init__(self, write: Writer) -> None:
        self.next = {
            "event": write.next_event,
            "node": write.next_node,
            "episode": write.next_episode(),
        }
        self._known: dict[tuple[str, int], int] = {}

    def give(self, kind: str, old: int) -> int:
        """Return a new id for something that comes in."""
        if (kind, old) in self._known:
            raise ExportError(f"the export has {kind} {old} twice: nothing was taken in")
        new = self._known[kind, old] = self.next[kind]
        self.next[kind] += 1
        return new

    def of(self, kind: str, old: int) -> int:
        """Return the new id of something that came in."""
        new = self._known.get((kind, old))
        if new is None:
            raise ExportError(
                f"the export refers to {kind} {old}, which is not in it: nothing was taken in"
            )
        return new

    def of_or_give(self, kind: str, old: int) -> int:
        """Return the new id of something that came in, or that is gone and still referred to."""
        new = self._known.get((kind, old))
        return self.give(kind, old) if new is None else new


_RENUMBERED: Mapping[str, Mapping[str, tuple[str, Callable[[_NewIds, str, int], int]]]] = {
    "episodes": {"episode_id": ("episode", _NewIds.give)},
    "events": {
        "event_id": ("event", _NewIds.give),
        "node": ("node", _NewIds.give),
        "episode": ("episode", _NewIds.of),
    },
    "aliases": {"node": ("node", _NewIds.give), "event_id": ("event", _NewIds.of)},
    "decays": {"episode": ("episode", _NewIds.of_or_give), "node": ("node", _NewIds.of)},
}
"""Columns that hold ids, by table: of what, and whether they are given here."""


def merge(write: Writer, incoming: Incoming, progress: Progress) -> Imported:
    """Add the events of an export with their aliases, links, episodes, counts and decays.

    Raises
    ------
    ExportError
        A key of an event is taken.
    """
    db, counts = write.connection, incoming.header.counts
    ids = _NewIds(write)
    write.add_kinds(json.loads(incoming.header.meta.get("edge_kinds", "[]")))
    for table, some in _checked(db, incoming, progress):
        if table in _RENUMBERED:
            _add_renumbered(write, table, some, ids)
        elif table == "links":
            write.add_links(
                Edge(ids.of("node", row[0]), ids.of("node", row[1]), *row[2:6]) for row in some
            )
        elif table == "usage":
            _add_usage(write, some, ids)
        reach("import.written")
    fulltext.add_aliases(db, write.next_event)
    write.next_event, write.next_node = ids.next["event"], ids.next["node"]
    left_out = {table: counts[table] for table in _LEFT_OUT if counts[table]}
    taken = {table: 0 if table in _LEFT_OUT else number for table, number in counts.items()}
    return Imported(merged=True, counts=taken, left_out=left_out)


def _add_renumbered(write: Writer, table: str, some: list[Row], ids: _NewIds) -> None:
    """Store rows under new ids, recorded now."""
    new = []
    for row in some:
        told = dict(zip(rows.COLUMNS[table], row, strict=False))
        for name, (kind, number) in _RENUMBERED[table].items():
            if told[name] is not None:
                told[name] = number(ids, kind, told[name])
        told["recorded"] = write.recorded
        if told.get("key") is not None:
            _check_key(write, told["namespace"], told["key"])
        new.append(told)
    write.put(table, (tuple(told.values()) for told in new))
    if table == "events":
        fulltext.add(write.connection, ((told["event_id"], told["text"]) for told in new))
    if table == "episodes":
        write.journal("episode", [told["episode_id"] for told in new])
    elif table != "decays":
        write.journal_nodes(told["node"] for told in new)


def _check_key(write: Writer, namespace: object, key: object) -> None:
    found = write.connection.execute(
        "SELECT event_id FROM events WHERE namespace = ? AND key = ?", (namespace, key)
    ).fetchone()
    if found is not None:
        raise ExportError(
            f"the key {key!r} in namespace {namespace!r} is that of event {found[0]} here: import "
            "into a store of its own. Nothing was taken in"
        )


def _add_usage(write: Writer, some: list[Row], ids: _NewIds) -> None:
    new, last = [], dict[int, int]()
    for told, *counts, used, _ in some:
        thing, *whose = whose_use(json.loads(told))
        match thing:
            case ["event" | "node" as kind, int(old)]:
                number = ids.of(kind, old)
                thing = use_context([kind, number], *whose)
                told = json.dumps(thing, separators=(",", ":"))
                if kind == "event" and used is not None:
                    last[number] = used
        there = write.connection.execute(
            "SELECT retrieved, followed, helped FROM usage WHERE context = ?", (told,)
        ).fetchone() or (0, 0, 0)
        new.append((told, *map(sum, zip(there, counts, strict=True))))
    write.set_usage(new)
    if last:
        write.touch(last)
