"""Looking for a text in everything that a store's folder holds, to see what is left of it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from cvx.store import rows
from cvx.store.doctor.findings import Check, Finding
from cvx.store.ownfiles import regular

_CHUNK = 1 << 20
_WORDS = ("events_words", "events_pairs")


def remains(db: sqlite3.Connection, folder: Path, texts: Sequence[str]) -> Iterator[Finding]:
    """Name every row and every file that says one of some texts; no finding repeats the text.

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
        said = [name for name, value in told.items() if _says(value, forms)]
        if said:
            shown = [f"its {name}" if name in said else told[name] for name in keys]
            what = f"it is in {', '.join(said)}: {_cure_of(table, told)}"
            yield Finding(Check.REMAINS, f"{table} {shown}", what)


def _cure_of(table: str, row: dict[str, object]) -> str:
    if table in ("events", "aliases"):
        return f"`cvx forget {row['event_id']} --erase`"
    if table == "set_aside":
        return "`cvx doctor --discard`"
    if table in rows.COLUMNS:
        return "it goes with the event that it quotes, unless another says the same"
    return "the table is none of a record"


def _says(value: object, forms: set[str]) -> bool:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        return False
    folded = value.casefold()
    return any(form in folded for form in forms)


def _in_words(db: sqlite3.Connection, texts: Sequence[str]) -> Iterator[Finding]:
    """Name what the text index finds by a text, and no event or alias says."""
    there = "SELECT 1 FROM events WHERE event_id = ?1"
    for text in texts:
        phrase = '"' + text.replace("\0", " ").replace('"', '""') + '"'
        for table in _WORDS:
            found = db.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (phrase,))
            for (event,) in found.fetchall():
                if db.execute(there, (event,)).fetchone() is None:
                    where, what = f"{table} [{event}]", "the words of the text index say it"
                    yield Finding(Check.REMAINS, where, f"{what}: `cvx doctor --repair`")


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
