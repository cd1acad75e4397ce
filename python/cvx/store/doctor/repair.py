"""Repairs what an examination found, without losing anything that was acknowledged."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from cvx.errors import CvxError, SnapshotError, StoreError
from cvx.store import fulltext
from cvx.store.database import connect, lenient
from cvx.store.doctor.examination import examine
from cvx.store.doctor.findings import Check, Finding, Report
from cvx.store.doctor.record_checks import highest_id
from cvx.store.doctor.row_repair import Mended, mend
from cvx.store.erase import finish
from cvx.store.lock import FileLock
from cvx.store.record import Record
from cvx.store.schema import SCHEMA_VERSION, foreign, version_of
from cvx.store.snapshots import Snapshots
from cvx.store.store import IndexKind, Store
from cvx.store.writer import Writer

_WORDS = (Check.WORD_MISSING, Check.WORD_EXTRA, Check.WORD_DIFFERENT)
_LOST = (Check.LOST_TAIL, Check.SNAPSHOT_AHEAD)
_BAD_SNAPSHOTS = (Check.SNAPSHOT_DAMAGED, Check.SNAPSHOT_FOREIGN)
_OUTSIDE = (*_LOST, *_BAD_SNAPSHOTS, Check.FILE, Check.SCHEMA, Check.PAGE)
"""What is not inside the record, or beyond repair."""


def repair(
    folder: Path,
    kind: IndexKind,
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
    if any(one.check in (Check.FILE, Check.MISPLACED) for one in found):
        return replace(report, done=(), left=found)
    done: list[str] = []
    if any(one.check is Check.SCHEMA for one in found):
        try:
            _make_its_own(folder, done)
        except (StoreError, sqlite3.Error) as error:
            done.append(f"broke off: {error}")
            return replace(report, done=tuple(done), left=examine(folder, kind).findings)
    with Record(folder / "memory.db") as record:
        job = _Repair(record, folder, kind, found, done)
        job.accept_lost_tail()
        try:
            job.build_secondary_indexes()
            job.put_counters_right()
            rebuild = job.repair_rows()
            job.clean_files(all_snapshots=rebuild)
        except (StoreError, SnapshotError, sqlite3.Error) as error:
            done.append(f"broke off: {error}")
    _reopened(folder, kind, found, done)
    again = examine(folder, kind)
    return replace(report, done=tuple(done), left=again.findings)


@dataclass(frozen=True, slots=True)
class _Repair:
    """One repair: each step looks for its findings, and says what it did."""

    record: Record
    folder: Path
    kind: IndexKind
    found: tuple[Finding, ...]
    done: list[str]

    def has(self, *checks: Check) -> bool:
        return any(one.check in checks for one in self.found)

    def accept_lost_tail(self) -> None:
        if not self.has(*_LOST):
            return
        self.snapshots().set_aside()
        self.record.forget_lost_tail()
        self.done.append(
            f"accepted change {self.record.tail().seq} as the last one; snapshots of the lost "
            "changes are kept as index/*.lost"
        )

    def snapshots(self) -> Snapshots:
        return Snapshots(self.folder / "index", self.record, self.kind.made)

    def build_secondary_indexes(self) -> None:
        if self.has(Check.SECONDARY_INDEX):
            with self.record.transaction() as write:
                write.connection.execute("REINDEX")
            self.done.append("built the secondary indexes of the tables anew")

    def put_counters_right(self) -> None:
        for one in self.found:
            if one.check is Check.COUNTER:
                name = str(one.key[0])
                # Without these counters no transaction can begin.
                with self.record.locked():
                    highest, _ = highest_id(self.record.database.connection(), name)
                    self.record.query(
                        "INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(highest + 1))
                    )
                self.done.append(f"put the counter {name} right: {highest + 1}")

    def repair_rows(self) -> bool:
        """Repair everything inside the record, in one transaction; tell if indexes are stale."""
        inside = [one for one in self.found if one.check not in _OUTSIDE]
        with self.record.transaction() as write:
            db = write.connection
            with lenient(db):
                db.execute("PRAGMA defer_foreign_keys = ON")
                mended = mend(write, inside)
                self.done.extend(mended.done)
                self.done.extend(_rest(write, inside, mended))
                stale = bool(mended.nodes) or any(map(_changes_an_index, self.found))
                if stale:
                    # Other processes follow the journal: this makes them build their index anew.
                    write.journal("erase", sorted(mended.nodes))
        return stale

    def clean_files(self, *, all_snapshots: bool) -> None:
        """Drop what no process can use; under the lock, nobody is just writing it."""
        with self.record.locked():
            if all_snapshots:
                self.snapshots().prune(0)
                self.done.append(
                    "dropped the snapshots of the index: it is built anew from the record"
                )
            for one in self.found:
                path = self.folder / one.where
                if one.check in _BAD_SNAPSHOTS and not all_snapshots:
                    # The name of the manifest goes first: a snapshot may be without one.
                    with suppress(OSError):
                        path.with_suffix(".json").unlink(missing_ok=True)
                        path.unlink(missing_ok=True)
                        self.done.append(f"dropped {one.where}")
                elif one.check is Check.STRAY_FILE and not path.is_symlink() and path.exists():
                    with suppress(OSError):
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
                        self.done.append(f"removed {one.where}")
                elif one.check is Check.EXPOSED and not path.is_symlink():
                    with suppress(OSError):
                        path.chmod(path.stat().st_mode & ~0o077)
                        self.done.append(f"made {one.where} its owner's alone")
        self.record.forget_lost_tail()
        if self.has(Check.LOCK_MISSING, Check.LOCK_DAMAGED, Check.LOCK_OLD):
            self.done.append("wrote LOCK")


def _make_its_own(folder: Path, done: list[str]) -> None:
    """Take away triggers, views and indexes that no record has, and make its own again.

    Raises
    ------
    DamagedStoreError
        There are other tables: what is in them is somebody's.
    """
    with closing(connect(folder / "memory.db")) as db, closing(FileLock(folder / "LOCK")) as lock:
        with lock:
            db.execute("BEGIN IMMEDIATE")
            for one in foreign(db, SCHEMA_VERSION):
                name = one.name.replace('"', '""')
                if one.kind != "table" and not one.missing:
                    db.execute(f'DROP {one.kind} "{name}"')
                    done.append(f"dropped the {one.kind} {one.name}")
                if one.kind != "table" and one.sql is not None:
                    db.execute(one.sql)
                    done.append(f"made the {one.kind} {one.name}")
            db.execute("COMMIT")
        # What is left is beyond repair.
        version_of(db, str(folder / "memory.db"))


def _changes_an_index(one: Finding) -> bool:
    """Whether an index that was built before the repair may hold something else than the rows."""
    if one.check in (Check.ROW, Check.VALUE):
        return one.table in ("events", "aliases", "journal")
    return one.check in (Check.JOURNAL_GAP, Check.JOURNAL_CHAIN)


def _rest(write: Writer, found: list[Finding], mended: Mended) -> list[str]:
    db, done = write.connection, list[str]()
    if any(one.check is Check.JOURNAL_CHAIN for one in found):
        done.append("began the journal anew from here: what came before stays as it is")
    if mended.texts_changed or any(one.check in _WORDS for one in found):
        fulltext.refill(db)
        done.append("built the text index anew")
    staged = [int(str(one.key[0])) for one in found if one.check is Check.STAGED_ROW]
    if staged:
        db.executemany("DELETE FROM staged WHERE node = ?", ((node,) for node in staged))
        done.append(f"dropped {len(staged)} vectors of a move; `cvx reembed` makes them again")
    return done


def _reopened(folder: Path, kind: IndexKind, found: tuple[Finding, ...], done: list[str]) -> None:
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
