"""Runs all checks of the doctor in one view of the record."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cvx.arguments import a_folder, some_texts
from cvx.errors import (
    CvxError,
    InvalidInputError,
    LostTailError,
    RecordIOError,
    StoreNotFoundError,
    StoreVersionError,
)
from cvx.store.database import describe, lenient, read_only
from cvx.store.doctor import folder_checks, record_checks
from cvx.store.doctor.findings import Check, Finding, Report
from cvx.store.doctor.folder_checks import remains
from cvx.store.schema import SCHEMA_VERSION, check_version, foreign
from cvx.store.store import IndexKind


def check(
    path: str | os.PathLike[str],
    *,
    look_for: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Look for damage in the memory in a folder; nothing is changed, locked or migrated.

    Parameters
    ----------
    path : str or path
        The folder. No embedder is needed.
    look_for : sequence of str
        Texts of which nothing should be left in the folder, such as what was erased: whatever
        still says one is named, without repeating it.
    progress : callable, optional
        Is told (checks done, of how many).

    Returns
    -------
    Report
        ``sound`` says whether anything serious was found.

    Raises
    ------
    StoreNotFoundError, LostTailError
        There is no store; or no record any more.
    StoreVersionError
        ``memory.db`` is of a later version, or of something else, or of an older one: opening it
        brings it to this one.
    RecordIOError
        There is no room, or no right, to look at it; that is no damage.
    InvalidInputError
        A path that no folder can have; an empty text to look for.

    Examples
    --------
    >>> import tempfile
    >>> from cvx.embed import LexicalEmbedder
    >>> from cvx.memory import Memory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Memory.open(folder, embedder=LexicalEmbedder(16)) as memory:
    ...         _ = memory.add("a mug on a shelf")
    ...     report = check(folder)
    >>> report.sound, report.rows["events"]
    (True, 1)
    """
    folder, texts = a_folder("path", path), some_texts("look_for", look_for)
    if not all(map(str.strip, texts)):
        raise InvalidInputError("look_for: give texts that say something")
    findings: list[Finding] = []
    seen = folder_checks.look(folder)
    # SQLite would read, or delete, what stands there.
    if any(name.startswith("memory.db") for name in seen.misplaced):
        return Report(tuple(folder_checks.misplaced(seen)))
    try:
        known = describe(folder)
        check_version(known.schema_version, str(folder))
        with read_only(folder) as db, lenient(db):
            counts = record_checks.count_rows(db)
            checks = _checks(db, folder, seen, IndexKind.of(known), findings)
            if texts:
                checks.append(lambda: remains(db, folder, texts))
            for number, one in enumerate(checks):
                if progress is not None:
                    progress(number, len(checks))
                findings += _run(one, findings)
            if progress is not None:
                progress(len(checks), len(checks))
    except (LostTailError, StoreNotFoundError, StoreVersionError, RecordIOError):
        raise
    except CvxError as error:
        return Report((Finding(Check.FILE, "memory.db", str(error)),))
    return Report(tuple(findings), counts)


def _checks(
    db: sqlite3.Connection,
    folder: Path,
    seen: folder_checks.Seen,
    kind: IndexKind | None,
    found: list[Finding],
) -> list[Callable[[], Iterator[Finding]]]:
    def damaged(table: str) -> set[object]:
        return {f.key[0] for f in found if f.check is Check.ROW and f.table == table}

    return [
        lambda: (
            Finding(Check.SCHEMA, f"{one.kind} {one.name}", one.what, None, (one.kind, one.name))
            for one in foreign(db, SCHEMA_VERSION)
        ),
        lambda: record_checks.damaged_rows(db),
        lambda: record_checks.unstorable_rows(db),
        lambda: record_checks.damaged_pages(db),
        lambda: record_checks.differing_words(
            db, damaged("events") | _owners(db, damaged("aliases"))
        ),
        lambda: record_checks.orphans(db),
        lambda: record_checks.settings(db),
        lambda: record_checks.counters(db),
        lambda: record_checks.gaps(db),
        lambda: record_checks.breaks(db, damaged("journal")),
        lambda: record_checks.backward_times(db, damaged("journal")),
        lambda: folder_checks.misplaced(seen),
        lambda: folder_checks.lock_and_tail(db, seen),
        lambda: folder_checks.snapshots(db, folder, seen, kind),
        lambda: folder_checks.stray_files(folder),
        lambda: folder_checks.exposed(folder, seen),
        lambda: record_checks.clock_ahead(db),
        lambda: _unfinished(db),
    ]


def _owners(db: sqlite3.Connection, aliases: set[object]) -> set[object]:
    nodes = [node for node in aliases if isinstance(node, int)]
    found = db.execute(
        "SELECT event_id FROM aliases WHERE node IN (SELECT value FROM json_each(?))",
        (json.dumps(nodes),),
    )
    return {row[0] for row in found}


def _run(check: Callable[[], Iterator[Finding]], before: Sequence[Finding]) -> list[Finding]:
    out: list[Finding] = []
    try:
        out.extend(check())
    except sqlite3.DatabaseError as error:
        # The pages are named by SQLite's own check; here the rest goes on.
        out.append(Finding(Check.PAGE, "memory.db", f"a check broke off ({error})"))
    except (TypeError, ValueError, LookupError, OverflowError, RecursionError):
        # An odd value stopped it, and is named already.
        if not any(one.check in (Check.ROW, Check.VALUE) for one in before):
            raise
    return out


def _unfinished(db: sqlite3.Connection) -> Iterator[Finding]:
    if db.execute("SELECT 1 FROM meta WHERE key = 'erasing'").fetchone():
        yield Finding(
            Check.ERASE_UNFINISHED,
            "memory.db",
            "an erase broke off before the files were clean: opening the store finishes it",
        )
