"""Repairs what an examination found, and salvages readable rows of a damaged database."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cvx.errors import (
    CvxError,
    DamagedStoreError,
    FileError,
    SnapshotError,
    StoreError,
    StoreNotFoundError,
)
from cvx.store import fulltext, rows
from cvx.store.database import connect, lenient, tail_of
from cvx.store.doctor.examination import examine
from cvx.store.doctor.findings import Check, Finding, Report
from cvx.store.doctor.record_checks import COUNTERS, PLACEHOLDER, highest_id, orphans
from cvx.store.erase import finish
from cvx.store.files import make_folders, refuse_foreign
from cvx.store.lock import FileLock
from cvx.store.record import Record
from cvx.store.row_validation import RowCheck, may_say
from cvx.store.schema import SCHEMA_VERSION, SET_ASIDE, foreign, version_of
from cvx.store.snapshots import Snapshots
from cvx.store.store import IndexKind, Store
from cvx.store.writer import Writer
from cvx.validation import cleaned

Row = tuple[Any, ...]
TABLE = "set_aside"
_DEEPEST = 3
"""How many rows stand on each other: a link on an alias, that on its event."""


def _stored(db: sqlite3.Connection, table: str, key: Sequence[object]) -> Row | None:
    """Return a row with its checksum, however damaged; None where it is gone."""
    condition, values = _where(table, key)
    found: Row | None = db.execute(
        f"SELECT {', '.join(rows.stored_columns(table))} FROM {table} WHERE {condition}", values
    ).fetchone()
    return found


def set_aside(record: Record) -> int:
    """Return how many rows repairs have moved here."""
    if not record.query("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)):
        return 0
    return int(record.query(f"SELECT count(*) FROM {TABLE}")[0][0])


def discard(record: Record) -> int:
    """Throw away for good what repairs have moved here; returns how many rows that were."""
    number = set_aside(record)
    if number:
        with record.transaction() as write:
            write.connection.execute(f"DROP TABLE {TABLE}")
        record.compact()
    return number


def _where(table: str, key: Sequence[object]) -> tuple[str, list[object]]:
    """Return the condition for one primary key, damaged text included."""
    conditions, values = list[str](), list[object]()
    for name, value in zip(rows.KEYS[table], key, strict=True):
        if isinstance(value, str):
            conditions.append(f"CAST({name} AS BLOB) = ?")
            values.append(value.encode("utf-8", "surrogateescape"))
        else:
            conditions.append(f"{name} IS ?")
            values.append(value)
    return " AND ".join(conditions), values


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    return value


_MOST_LOST = 1_000_000
"""So many missing changes are marked as lost: a larger gap is that of a number nobody wrote."""


@dataclass(slots=True)
class Mended:
    """Counts of rows that a repair cleaned or moved.

    Attributes
    ----------
    done : list of str
        In words.
    nodes : set of int
        Nodes that no event has any more.
    texts_changed : bool
        Whether the text index is to be built anew.
    """

    done: list[str] = field(default_factory=list)
    nodes: set[int] = field(default_factory=set)
    texts_changed: bool = False


def mend(write: Writer, findings: Iterable[Finding]) -> Mended:
    """Clean damaged rows where possible, and move the rest to the table ``set_aside``."""
    out = Mended()
    for one in findings:
        if one.check is Check.ROW and one.table is not None:
            _move_aside(write, one.table, one.key, "its checksum did not hold", out)
        elif one.check is Check.VALUE and one.table is not None:
            _unstorable(write, one.table, one.key, out)
        elif one.check is Check.JOURNAL_GAP:
            first, last = (int(str(number)) for number in one.key)
            _fill_gap(write, first, last)
            out.done.append(f"marked the lost changes {first}..{last} in the journal")
    # What hung on a row that went is an orphan by now, and so is what hangs on that.
    for _ in range(_DEEPEST):
        for one in [*orphans(write.connection)]:
            _orphan(write, one, out)
    return out


def _unstorable(write: Writer, table: str, key: Sequence[object], out: Mended) -> None:
    """Replace what cannot be stored in the texts of a row; move it aside where that is no cure."""
    row = _stored(write.connection, table, key)
    if row is None:
        return
    clean = cleaned_row(table, row[:-1])
    why = RowCheck.of(write.connection).refusal(table, clean)
    if why is None and _rewrite(write.connection, table, key, clean):
        out.texts_changed = True
        out.done.append(f"replaced what cannot be stored in {table} {list(key)} by U+FFFD or null")
        return
    _move_aside(write, table, key, why or "its key is taken", out)


def cleaned_row(table: str, row: Row) -> Row:
    """Return a row, without its checksum, in which what cannot be stored is replaced."""
    return tuple(_clean(name, value) for name, value in zip(rows.COLUMNS[table], row, strict=True))


def _clean(name: str, value: Any) -> Any:
    if name in ("tags", "metadata"):
        with suppress(ValueError, RecursionError):
            return json.dumps(cleaned(json.loads(value)), separators=(",", ":"))
    return cleaned(value) if isinstance(value, str) else value


def _move_aside(write: Writer, table: str, key: Sequence[object], why: str, out: Mended) -> None:
    """Move a row into ``set_aside``; in the journal a mark says that something was there."""
    row = _stored(write.connection, table, key)
    if row is None:
        return
    if table in ("events", "aliases"):
        out.texts_changed = True
        node = row[rows.COLUMNS[table].index("node")]
        out.nodes |= {node} if isinstance(node, int) else set()
    kept = dict(zip(rows.stored_columns(table), map(_plain, row), strict=True))
    condition, values = _where(table, key)
    write.connection.execute(SET_ASIDE)
    write.connection.execute(
        f"INSERT INTO {TABLE} (recorded, why, from_table, row) VALUES (?, ?, ?, ?)",
        (write.recorded, why, table, json.dumps(kept)),
    )
    write.connection.execute(f"DELETE FROM {table} WHERE {condition}", values)
    if table == "journal":
        _fill_gap(write, int(str(key[0])), int(str(key[0])))
    out.done.append(f"moved {table} {list(key)} to the table set_aside: {why}")


def _rewrite(db: sqlite3.Connection, table: str, key: Sequence[object], right: Row) -> bool:
    names = rows.COLUMNS[table]
    condition, values = _where(table, key)
    assignments = ", ".join(f"{name} = ?" for name in (*names, "crc"))
    try:
        db.execute(
            f"UPDATE {table} SET {assignments} WHERE {condition}",
            (*right, rows.row_crc(*right), *values),
        )
    except sqlite3.IntegrityError:
        # Its true key is taken by now.
        return False
    return True


def _orphan(write: Writer, one: Finding, out: Mended) -> None:
    table = str(one.table)
    if table not in ("events", "decisions"):
        _move_aside(write, table, one.key, one.what, out)
        return
    condition, values = _where(table, one.key)
    write.connection.execute(f"UPDATE {table} SET episode = NULL WHERE {condition}", values)
    write.connection.execute(rows.renew_crc_sql(table, condition), values)
    out.done.append(f"detached {one.where} from an episode that does not exist")


def _fill_gap(write: Writer, first: int, last: int) -> None:
    db = write.connection
    before = db.execute(
        "SELECT recorded, chain FROM journal WHERE seq < ? ORDER BY seq DESC LIMIT 1", (first,)
    ).fetchone()
    recorded, chain = before or (0, 0)
    if last - first >= _MOST_LOST:
        raise DamagedStoreError(
            f"{last - first + 1:,} changes are missing before {last}, and at most {_MOST_LOST:,} "
            "are marked as lost: save what is sound with `cvx doctor --salvage`"
        )
    for seq in range(first, last + 1):
        row = (seq, recorded, PLACEHOLDER, "[]", chain)
        db.execute(rows.insert_sql("journal"), (*row, rows.row_crc(*row)))


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
    lost = any(one.check in _LOST for one in found) and not accept_lost_tail
    if not found or lost or any(one.check in (Check.FILE, Check.MISPLACED) for one in found):
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
                    # Other processes follow the journal: what names no node makes them build their
                    # index anew, for rows that stay may have changed.
                    for gone in (sorted(mended.nodes), []):
                        write.journal("erase", gone)
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


_AT_ONCE = 256
_FARTHEST = 1 << 40
"""A jump over rows that cannot be read gives up here."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was saved.

    Parameters
    ----------
    counts : dict
        Rows of each table that are in the new store.
    wrong : dict
        Rows of each table that could be read and were not what was written; they are left out.
    broken : tuple of str
        Tables with parts that could not be read.
    """

    counts: dict[str, int]
    wrong: dict[str, int]
    broken: tuple[str, ...]


def salvage(folder: Path, target: Path) -> Salvaged:
    """Copy every row that can be read, and is right, into a new store.

    The damaged one is only read. What refers to a row that was lost is found by an examination
    of the new store, as orphans.

    Parameters
    ----------
    folder : Path
        The damaged store.
    target : Path
        A folder that is not there yet.

    Raises
    ------
    StoreNotFoundError
        There is no ``memory.db``.
    FileError
        There is something at ``target``.
    DamagedStoreError
        Not even the list of tables can be read.
    """
    path = folder / "memory.db"
    if not path.is_file():
        raise StoreNotFoundError(f"{folder} is no store: there is no memory.db in it")
    refuse_foreign(path)
    if target.exists():
        raise FileError(f"{target} is there already: give a folder that is not")
    with closing(connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            _refuse_views(db)
            meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise DamagedStoreError(
                f"{path}: nothing can be read of it any more ({error}): restore a copy"
            ) from error
        make_folders(target)
        with Record(target / "memory.db") as record:
            # What a lost row was referred to by stays, for the examination to find.
            record.database.connection().execute("PRAGMA foreign_keys = OFF")
            with record.transaction() as write:
                return _copy(db, meta, write)


def _refuse_views(db: sqlite3.Connection) -> None:
    """Refuse a database in which something else stands in for a table: it may never end."""
    found = db.execute("SELECT name FROM sqlite_master WHERE type <> 'table'")
    views = sorted({str(name) for (name,) in found} & {"meta", *rows.COLUMNS})
    if views:
        raise sqlite3.DatabaseError(f"{', '.join(views)}: a view, not a table")


def _copy(db: sqlite3.Connection, meta: dict[str, str], write: Writer) -> Salvaged:
    counts, wrong, broken = dict.fromkeys(rows.COLUMNS, 0), dict.fromkeys(rows.COLUMNS, 0), []
    for key, value in meta.items():
        if may_say(key, value):
            write.set_meta(key, value)
    check = RowCheck.of(write.connection)
    for table in rows.COLUMNS:
        whole, found = _readable(db, table)
        if not whole:
            broken.append(table)
        for row in found:
            right = row[:-1] if rows.whole(row) else None
            if right is not None and check.refusal(table, right):
                right = cleaned_row(table, right)
            if right is None or check.refusal(table, right):
                wrong[table] += 1
            else:
                write.connection.execute(rows.insert_sql(table), (*right, rows.row_crc(*right)))
                counts[table] += 1
    for key in COUNTERS:
        highest, bound = highest_id(write.connection, key)
        told = meta.get(key, "0")
        following = int(told) if may_say(key, told) else 0
        write.set_meta(key, str(following if highest < following <= bound else highest + 1))
    fulltext.refill(write.connection)
    write.tail = tail_of(write.connection)
    return Salvaged(counts, wrong, tuple(broken))


def _readable(db: sqlite3.Connection, table: str) -> tuple[bool, list[Row]]:
    """Return whether a table could be read to its end, and every row that could."""
    if len(rows.KEYS[table]) == 1 and table not in ("usage", "model_state"):
        return _by_number(db, table)
    found: dict[tuple[object, ...], Row] = {}
    sql = f"SELECT {', '.join(rows.stored_columns(table))} FROM {table} ORDER BY "
    # Where the one end cannot be reached, the other half may be read from the other one.
    for end in ("", " DESC"):
        try:
            for row in db.execute(sql + ", ".join(name + end for name in rows.KEYS[table])):
                found[tuple(rows.key_of(table, row))] = row
            return True, list(found.values())
        except sqlite3.DatabaseError:
            continue
    return False, list(found.values())


def _by_number(db: sqlite3.Connection, table: str) -> tuple[bool, list[Row]]:
    whole, found = True, list[Row]()
    (key,) = rows.KEYS[table]
    place = rows.COLUMNS[table].index(key)
    sql = f"SELECT {', '.join(rows.stored_columns(table))} FROM {table} WHERE {key} > ?"
    after, limit, jump = -(2**62), _AT_ONCE, 1
    while jump < _FARTHEST:
        try:
            some = db.execute(f"{sql} ORDER BY {key} LIMIT ?", (after, limit)).fetchall()
        except sqlite3.DatabaseError:
            whole = False
            if limit > 1:
                limit = 1
            else:
                after, jump = max(after, 0) + jump, 2 * jump
            continue
        if not some:
            break
        found += some
        after, jump = some[-1][place], 1
        limit = min(2 * limit, _AT_ONCE)
    return whole, found
