"""Checks files of the folder: lock, snapshots, strays, permissions, traces of erased text."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cvx.errors import SnapshotError
from cvx.store import rows
from cvx.store.database import reaches, tail_of
from cvx.store.doctor.findings import Check, Finding
from cvx.store.files import (
    BESIDE_RECORD,
    HALF_COPIES,
    HALF_LEARNED_STATE,
    HALF_SNAPSHOT,
    SNAPSHOT,
    in_index,
    named_like,
    read_own,
    regular,
)
from cvx.store.lock import Tail, parse_tail
from cvx.store.snapshots import Manifest, load
from cvx.store.store import IndexKind
from cvx.validation import names_another_file


@dataclass(frozen=True, slots=True)
class Seen:
    """Facts from the small files, read before the record.

    Parameters
    ----------
    lock : bytes or None
        What was in LOCK; None where there was no such file.
    manifests : mapping
        What was in the manifest of each snapshot, by its path.
    misplaced : mapping
        What is wrong with something else in the place of a file of the store, by its name.
    """

    lock: bytes | None
    manifests: Mapping[Path, bytes]
    misplaced: Mapping[str, str]


def look(folder: Path) -> Seen:
    """Read lock, tail and snapshot files without taking the lock."""
    lock = None
    with suppress(OSError):
        lock = read_own(folder / "LOCK")
    manifests = {}
    for path in in_index(folder, SNAPSHOT):
        # Another process may write a newer one meanwhile and remove this.
        if path.suffix == ".json":
            with suppress(OSError):
                manifests[path] = read_own(path)
    others = {}
    for name, is_one, wanted in (
        ("memory.db", Path.is_file, "file of the record"),
        *((f"memory.db{one}", Path.is_file, "file of SQLite") for one in BESIDE_RECORD),
        ("LOCK", Path.is_file, "lock file"),
        ("index", Path.is_dir, "folder of snapshots"),
    ):
        path = folder / name
        if path.is_symlink():
            others[name] = f"the {wanted} is a symbolic link, which is not followed: move it away"
        elif path.exists() and not is_one(path):
            what = "a folder" if path.is_dir() else "a file" if path.is_file() else "no file"
            others[name] = f"the {wanted} is {what}: move it away"
    if "memory.db-journal" not in others and names_another_file(folder / "memory.db"):
        what = "the journal names another file, which SQLite would delete: remove the journal"
        others["memory.db-journal"] = what
    return Seen(lock, manifests, others)


def misplaced(seen: Seen) -> Iterator[Finding]:
    """Report what blocks a path that the store needs."""
    for name, what in seen.misplaced.items():
        yield Finding(Check.MISPLACED, name, what)


def lock_and_tail(db: sqlite3.Connection, seen: Seen) -> Iterator[Finding]:
    """Compare the tail that LOCK remembers with that of the record."""
    if "LOCK" in seen.misplaced:
        return
    if seen.lock is None:
        yield Finding(Check.LOCK, "LOCK", "there is no lock file; the next writer makes it")
        return
    tail = parse_tail(seen.lock)
    if tail is None:
        if seen.lock:
            yield Finding(Check.LOCK, "LOCK", "the lock file does not say how far it went")
        return
    end = tail_of(db)
    if not reaches(db, tail):
        yield Finding(
            Check.LOST_TAIL,
            "LOCK",
            f"changes up to {tail.seq} were written, the record ends at {end.seq} or has "
            "another history: the newest changes are lost",
        )
    elif tail.seq < end.seq:
        yield Finding(
            Check.LOCK, "LOCK", f"it remembers change {tail.seq}, the record has {end.seq}"
        )


def snapshots(
    db: sqlite3.Connection, folder: Path, seen: Seen, kind: IndexKind | None
) -> Iterator[Finding]:
    """Look at every snapshot, and at what lies beside them."""
    found = db.execute("SELECT value FROM meta WHERE key = 'uuid'").fetchone()
    own = None if found is None else found[0]
    for path, raw in seen.manifests.items():
        flaw = _flaw(db, path, Manifest.from_bytes(raw), own, kind)
        if flaw is not None:
            yield Finding(flaw[0], f"index/{path.stem}.cvx", flaw[1])
    for path in in_index(folder, SNAPSHOT):
        pair = path.with_suffix(".json")
        if not regular(path):
            what = f"{path.name} is a symbolic link, or no file"
            yield Finding(Check.SNAPSHOT, f"index/{path.stem}.cvx", what)
        elif path.suffix == ".cvx" and not os.path.lexists(pair):
            yield Finding(Check.STRAY_FILE, f"index/{path.name}", "a crash left it")


def _flaw(
    db: sqlite3.Connection,
    path: Path,
    manifest: Manifest | None,
    own: str | None,
    kind: IndexKind | None,
) -> tuple[Check, str] | None:
    """Return what is wrong with a snapshot, by the path of its manifest."""
    if manifest is None or str(manifest.seq) != path.stem:
        return Check.SNAPSHOT, "its manifest is not what was written"
    if manifest.uuid != own:
        return Check.SNAPSHOT, "it belongs to another store"
    if not reaches(db, Tail(manifest.seq, manifest.chain)):
        lacking = f"it holds change {manifest.seq}, which the record does not have"
        return Check.LOST_TAIL, f"{lacking}: the newest changes are lost"
    if kind is not None and (manifest.embedder, manifest.metric, manifest.dim) != kind.made:
        return Check.SNAPSHOT, f"its vectors are of {manifest.embedder}"
    try:
        if kind is not None:
            load(path.with_suffix(".cvx"), manifest.size, verify=True)
    except (SnapshotError, OSError) as error:
        # Gone with its manifest, another process has only replaced it.
        return (Check.SNAPSHOT, str(error)) if path.exists() else None
    return None


def stray_files(folder: Path) -> Iterator[Finding]:
    """Name what a process that was killed left beside the record and the snapshots."""
    left = named_like(folder, *HALF_COPIES)
    left += in_index(folder, HALF_SNAPSHOT, HALF_LEARNED_STATE)
    for path in sorted(left):
        if not path.is_symlink():
            yield Finding(Check.STRAY_FILE, str(path.relative_to(folder)), "a crash left it")


def exposed(folder: Path, seen: Seen) -> Iterator[Finding]:
    """Name the files of a store that others than its owner may open: a lock, to stop everybody."""
    record = [folder / f"memory.db{ending}" for ending in ("", "-wal", "-shm")]
    snapshots = in_index(folder, SNAPSHOT)
    for path in (folder, *record, folder / "LOCK", folder / "index", *snapshots):
        with suppress(OSError):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & _OTHERS and path.name not in seen.misplaced:
                where = str(path.relative_to(folder))
                yield Finding(
                    Check.EXPOSED, where, f"its mode is {mode:o}: others than its owner may open it"
                )


_OTHERS = 0o077 if os.name == "posix" else 0


_CHUNK = 1 << 20
_WORDS = ("events_words", "events_pairs")


def remains(db: sqlite3.Connection, folder: Path, texts: Sequence[str]) -> Iterator[Finding]:
    """Report rows and files that still contain erased texts, without repeating them.

    Rows of every table are looked through whatever the case, files byte by byte: for UTF-8, for
    the escapes of JSON, and for those of JSON within JSON. What is compressed (Parquet, DuckDB) or
    torn apart (a long text in free pages of the database) is not found.

    Parameters
    ----------
    db : Connection
        The record, to read.
    folder : Path
        Of the store: every file below it is read, links are not followed.
    texts : sequence of str
        None of them empty.
    """
    forms = {form for text in texts for form in _forms(text)}
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    folded = {form.casefold() for form in forms}
    in_rows = [
        found
        for table in tables
        if not table.startswith(_WORDS)
        for found in _in_table(db, table, folded)
    ]
    yield from in_rows
    yield from _in_words(db, texts)
    needles = [form.encode() for form in forms]
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        # Where rows say it, the bytes of the database are theirs.
        if in_rows and name.startswith("memory.db"):
            continue
        if regular(path) and _holds(path, needles):
            yield Finding(Check.REMAINS, name, f"the file holds it: {_cure(name)}")


def _forms(text: str) -> list[str]:
    once = json.dumps(text)[1:-1]
    return [text, once, json.dumps(once)[1:-1]]


def _cure(name: str) -> str:
    if name.startswith("memory.db"):
        return "in pages that are free or overwritten; `cvx compact` writes them anew"
    if name.startswith("index" + os.sep):
        return "it is a cache; erase what says it, or delete the file"
    return "it is none of the record; see whose it is, and delete it"


def _in_table(db: sqlite3.Connection, table: str, forms: set[str]) -> Iterator[Finding]:
    names = [row[1] for row in db.execute(f'PRAGMA table_info("{_plain(table)}")')]
    keys = rows.KEYS.get(table, tuple(names[:1]))
    quoted = ", ".join(f'"{_plain(name)}"' for name in names)
    for row in db.execute(f'SELECT {quoted} FROM "{_plain(table)}"'):
        told = dict(zip(names, row, strict=True))
        if said := [name for name, value in told.items() if _says(value, forms)]:
            shown = [f"its {name}" if name in said else told[name] for name in keys]
            what = f"it is in {', '.join(said)}: {_cure_of(table, told)}"
            yield Finding(Check.REMAINS, f"{table} {shown}", what)


def _cure_of(table: str, row: dict[str, object]) -> str:
    goes = "it goes with the event that it quotes, unless another says the same"
    cures = {
        **dict.fromkeys(("events", "aliases"), f"`cvx forget {row.get('event_id')} --erase`"),
        "set_aside": "an older version kept it; the next erase of anything drops the table",
    }
    return cures.get(table, goes if table in rows.COLUMNS else "the table is none of a record")


def _says(value: object, forms: set[str]) -> bool:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    folded = value.casefold() if isinstance(value, str) else ""
    return any(form in folded for form in forms)


def _in_words(db: sqlite3.Connection, texts: Sequence[str]) -> Iterator[Finding]:
    """Name what the text index finds by a text, and no event or alias says."""
    what = (
        "the words of the text index say it: they are made anew by `cvx doctor --repair NEW_FOLDER`"
    )
    for text in texts:
        phrase = '"' + text.replace("\0", " ").replace('"', '""') + '"'
        for table in _WORDS:
            for (event,) in db.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ?"
                " AND rowid NOT IN (SELECT event_id FROM events)",
                (phrase,),
            ).fetchall():
                yield Finding(Check.REMAINS, f"{table} [{event}]", what)


def _plain(name: str) -> str:
    return name.replace('"', '""')


def _holds(path: Path, needles: Sequence[bytes]) -> bool:
    longest = max(map(len, needles))
    before = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            window = before + chunk
            if any(needle in window for needle in needles):
                return True
            before = window[-(longest - 1) :] if longest > 1 else b""
    return False
