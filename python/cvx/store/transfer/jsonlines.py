"""JSON Lines: a header, a line a row, a last line that says how many there were."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from cvx.errors import ExportError, FileError
from cvx.escaping import printable
from cvx.store import rows
from cvx.store.files import written_whole
from cvx.store.transfer.format import Batch, Header, Incoming, Row

_VECTOR = "embedding"
_UNREADABLE = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip
_ORDER = list(rows.COLUMNS)
_LONGEST = 1 << 28
"""So many bytes may a line have: more than any text that was ever remembered."""


def write(path: Path, header: Header, found: Iterable[Batch]) -> None:
    """Write an export; the file is there whole or not at all. "-" is the standard output."""
    with _opened(path) as file:
        file.write(header.to_text() + "\n")
        number = 0
        for table, some in found:
            names = rows.stored_columns(table)
            for row in some:
                file.write(_line(table, names, row))
            number += len(some)
        file.write(json.dumps({"end": number}) + "\n")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if str(path) == "-":
        yield sys.stdout
        return
    with written_whole(path) as beside, beside.open("w", encoding="utf-8") as file:
        yield file


def _line(table: str, names: tuple[str, ...], row: Row) -> str:
    plain = dict(zip(names, row, strict=True))
    raw = plain.get(_VECTOR)
    if raw is not None:
        plain[_VECTOR] = base64.b64encode(raw).decode("ascii")
    told = json.dumps({"table": table, **plain}, separators=(",", ":"), ensure_ascii=False)
    # Standard output may be a terminal; JSON reads the same.
    return printable(told) + "\n"


def read(path: Path) -> Incoming:
    """Begin to read an export.

    Raises
    ------
    FileError
        It cannot be read.
    ExportError
        It is no export.
    """
    try:
        with path.open("rb") as file:
            first = file.readline(_LONGEST)
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror})") from error
    return Incoming(Header.from_text(first, str(path)), _batches(path))


def _batches(path: Path) -> Iterator[Batch]:
    number, table, some = 0, "", list[Row]()
    end: int | None = None
    with path.open("rb") as file:
        file.readline(_LONGEST)
        for place, raw in enumerate(iter(lambda: file.readline(_LONGEST), b""), 2):
            where = f"{path}, line {place}"
            if end is not None:
                raise ExportError(f"{where}: there is something after the end")
            its_table, row = _parsed(raw, where)
            if its_table == "end":
                end = row[0]
                continue
            if its_table != table or len(some) >= 5_000:
                if some:
                    yield table, some
                if _ORDER.index(its_table) < _ORDER.index(table or its_table):
                    raise ExportError(
                        f"{where}: a row of {its_table} after those of {table}: sort by table"
                    )
                table, some = its_table, []
            some.append(row)
            number += 1
    if some:
        yield table, some
    if end != number:
        raise ExportError(
            f"{path} has {number} rows and "
            + ("no last line" if end is None else f"says {end}")
            + ": it was cut; export again. Nothing was taken in"
        )


def _parsed(raw: bytes, where: str) -> tuple[str, Row]:
    try:
        told: dict[str, Any] = json.loads(raw)
        if "end" in told:
            return "end", (int(told["end"]),)
        table = told.pop("table")
        return table, _row(told, rows.stored_columns(table))
    except _UNREADABLE as error:
        raise ExportError(
            f"{where} is no row of an export ({type(error).__name__}: {error}): nothing was taken "
            "in"
        ) from error


def _row(told: dict[str, Any], names: tuple[str, ...]) -> Row:
    if told.get(_VECTOR) is not None:
        told[_VECTOR] = base64.b64decode(told[_VECTOR], validate=True)
    if len(told) != len(names):
        raise ValueError(f"it has {sorted(told)}")
    return tuple(told[name] for name in names)
