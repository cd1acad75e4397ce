"""Repairing what an examination found, without losing anything that was acknowledged."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from cvx.errors import CvxError, RecordError, SnapshotError
from cvx.store import text
from cvx.store.cached import Index
from cvx.store.doctor.examination import examine
from cvx.store.doctor.findings import Check, Finding, Report
from cvx.store.doctor.rowrepair import Mended, mend
from cvx.store.erase import finish
from cvx.store.record import Record
from cvx.store.snapshots import Snapshots
from cvx.store.store import IndexKind, Store
from cvx.store.writer import Writer

_WORDS = (Check.WORD_MISSING, Check.WORD_EXTRA, Check.WORD_DIFFERENT)
_LOST = (Check.LOST_TAIL, Check.SNAPSHOT_AHEAD)
_BAD_SNAPSHOTS = (Check.SNAPSHOT_DAMAGED, Check.SNAPSHOT_FOREIGN, Check.INDEX_DIFFERS)
_BEYOND = (Check.FILE, Check.PAGE)


def repair(
    folder: Path,
    kind: IndexKind[Index],
    report: Report,
    *,
    accept_lost_tail: bool = False,
) -> Report:
    """Repair what a report names, then examine again.

    Parameters
    ----------
    folder : Path
        Of the store.
    kind : IndexKind
        Its index.
    report : Report
        What was found.
    accept_lost_tail : bool, default False
        Go on from what the record holds although newer changes are known to be missing; until
        then nothing else is repaired, since a copy of the file may still be put back.

    Returns
    -------
    Report
        With ``done``, in words, and ``left``.
    """
    found = report.findings
    if not found:
        return report
    if any(one.check in _LOST for one in found) and not accept_lost_tail:
        return replace(report, done=(), left=found)
    if any(one.check is Check.FILE for one in found):
        return replace(report, done=(), left=found)
    done: list[str] = []
    with Record(folder / "memory.db") as record:
        _lost_tail(record, folder, kind, found, done)
        try:
            _indexes(record, found, done)
            _counters(record, found, done)
            changed = _rows(record, found, done)
            _files(record, folder, kind, found, done, all_snapshots=changed)
        except (RecordError, SnapshotError) as error:
            done.append(f"broke off: {error}")
    _reopened(folder, kind, found, done)
    again = examine(folder, kind)
    return replace(report, done=tuple(done), left=again.findings)


def _lost_tail(
    record: Record,
    folder: Path,
    kind: IndexKind[Index],
    found: tuple[Finding, ...],
    done: list[str],
) -> None:
    if not any(one.check in _LOST for one in found):
        return
    _snapshots(record, folder, kind).set_aside()
    record.forget_lost_tail()
    done.append(
        f"accepted change {record.tail().seq} as the last one; snapshots of the lost changes are "
        "kept as index/*.lost"
    )


def _snapshots(record: Record, folder: Path, kind: IndexKind[Index]) -> Snapshots[Index]:
    return Snapshots(folder / "index", record, kind.load, (kind.embedder, kind.metric, kind.dim))


def _indexes(record: Record, found: tuple[Finding, ...], done: list[str]) -> None:
    if any(one.check is Check.SECONDARY_INDEX for one in found):
        with record.transaction() as write:
            write.connection.execute("REINDEX")
        done.append("built the secondary indexes of the tables anew")


def _counters(record: Record, found: tuple[Finding, ...], done: list[str]) -> None:
    highest = {
        "next_node": "max((SELECT ifnull(max(node), -1) FROM events),"
        " (SELECT ifnull(max(node), -1) FROM aliases))",
        "next_event": "(SELECT ifnull(max(event_id), 0) FROM events)",
        "next_decision": "(SELECT ifnull(max(decision_id), -1) FROM decisions)",
    }
    for one in found:
        if one.check is Check.COUNTER:
            name = str(one.key[0])
            # Without these counters no transaction can begin.
            with record.locked():
                record.query(
                    f"INSERT OR REPLACE INTO meta VALUES (?, CAST({highest[name]} + 1 AS TEXT))",
                    (name,),
                )
            done.append(f"raised the counter {name}")


def _rows(record: Record, found: tuple[Finding, ...], done: list[str]) -> bool:
    """Repair everything inside the record, in one transaction; tell if a node went away."""
    inside = [one for one in found if one.check not in (*_LOST, *_BAD_SNAPSHOTS, *_BEYOND)]
    rebuild = False
    with record.transaction() as write:
        db = write.connection
        factory, db.text_factory = db.text_factory, _lenient
        try:
            db.execute("PRAGMA defer_foreign_keys = ON")
            mended = mend(write, inside)
            done += mended.done
            done += _rest(write, inside, mended)
            rebuild = bool(mended.nodes) or any(
                one.check in (Check.JOURNAL_GAP, Check.JOURNAL_CHAIN, Check.INDEX_DIFFERS)
                or (one.check is Check.ROW and one.table in ("events", "aliases", "journal"))
                for one in found
            )
            if rebuild:
                # Other processes follow the journal: this makes them build their index anew.
                write.journal("erase", sorted(mended.nodes))
        finally:
            db.text_factory = factory
    return rebuild


def _rest(write: Writer, found: list[Finding], mended: Mended) -> list[str]:
    db, done = write.connection, list[str]()
    if any(one.check is Check.JOURNAL_CHAIN for one in found):
        done.append("began the journal anew from here: what came before stays as it is")
    if mended.texts_changed or any(one.check in _WORDS for one in found):
        text.refill(db)
        done.append("built the text index anew")
    staged = [int(str(one.key[0])) for one in found if one.check is Check.STAGED_ROW]
    if staged:
        db.executemany("DELETE FROM staged WHERE node = ?", ((node,) for node in staged))
        done.append(f"dropped {len(staged)} vectors of a move; `cvx reembed` makes them again")
    return done


def _lenient(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _files(
    record: Record,
    folder: Path,
    kind: IndexKind[Index],
    found: tuple[Finding, ...],
    done: list[str],
    *,
    all_snapshots: bool,
) -> None:
    with record.locked():
        bad = {one.where for one in found if one.check in _BAD_SNAPSHOTS}
        if all_snapshots:
            _snapshots(record, folder, kind).prune(0)
            done.append("dropped the snapshots of the index: it is built anew from the record")
        for where in [] if all_snapshots else sorted(bad):
            # The name of the manifest goes first: a snapshot may be without one.
            for path in ((folder / where).with_suffix(".json"), folder / where):
                path.unlink(missing_ok=True)
            done.append(f"dropped {where}")
        for one in found:
            if one.check is Check.STRAY_FILE and (folder / one.where).exists():
                with suppress(OSError):
                    (folder / one.where).unlink()
                    done.append(f"removed {one.where}")
        if any(one.check.name.startswith("LOCK") for one in found):
            done.append("wrote LOCK")
    record.forget_lost_tail()


def _reopened(
    folder: Path, kind: IndexKind[Index], found: tuple[Finding, ...], done: list[str]
) -> None:
    """Open the whole store, finish what was begun, and leave a snapshot."""
    try:
        store = Store(folder, kind)
    except CvxError as error:
        done.append(f"could not open the store: {error}")
        return
    try:
        if any(one.check is Check.ERASE_UNFINISHED for one in found):
            done.append(
                "finished the erase"
                if finish(store)
                else "could not finish the erase: another process is reading the log; close it"
            )
        if store.replica.rebuilds:
            store.snapshot()
            done.append("built the index from the record and wrote a snapshot")
    finally:
        store.close()
