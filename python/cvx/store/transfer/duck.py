"""DuckDB: the events of the Causal Memory Core's blueprint, and tables with all the rest.

The table ``events`` has the blueprint's six columns: what has a vector, with its primary cause.
``cvx_events`` has every event with every other column, ``cvx_links``, ``cvx_aliases`` and so on
the other tables, ``cvx_header`` what the export says of itself. Rows travel through Parquet,
which DuckDB reads and writes by itself.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvx.errors import ExportError, InputFileError, MissingExtraError
from cvx.store.transfer import parquet
from cvx.store.transfer.blueprint import Cause, depths, primary_causes
from cvx.store.transfer.files import written_whole
from cvx.store.transfer.header import Header
from cvx.store.transfer.tables import ORDER, Batch, columns

if TYPE_CHECKING:
    import duckdb

_BLUEPRINT = """
CREATE SEQUENCE events_id START {next};
CREATE TABLE events (
    event_id INTEGER PRIMARY KEY DEFAULT nextval('events_id'),
    timestamp TIMESTAMP NOT NULL,
    effect_text VARCHAR NOT NULL,
    embedding FLOAT[] NOT NULL,
    cause_id INTEGER REFERENCES events (event_id),
    relationship_text VARCHAR,
    CHECK ((cause_id IS NULL) = (relationship_text IS NULL))
);
"""
_EARLIEST, _LATEST = -9_223_372_022_400_000_000, 9_223_372_036_854_775_806
"""What a TIMESTAMP can hold; ``cvx_events`` has the exact number."""
_MOST_EVENTS = 2**31 - 1
_ROWS_A_FILE = 5_000
_KEPT_APART = ("text", "embedding")
"""Columns of events that stand in ``events`` wherever there is a vector."""


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError(
            "duckdb is not installed: pip install 'cvx[duckdb]', or export to Parquet"
        ) from error
    return duckdb


@contextmanager
def opened(path: Path, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB file.

    Raises
    ------
    MissingExtraError
        The package duckdb is not installed.
    InputFileError
        It is no such file, or another process has it open.
    """
    duckdb = _duckdb()
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
    except duckdb.Error as error:
        raise InputFileError(f"{path} cannot be opened with DuckDB ({error})") from error
    with closing(connection):
        yield connection


def write(
    path: Path,
    header: Header,
    types: parquet.Types,
    found: Iterable[Batch],
    record: sqlite3.Connection,
) -> None:
    """Write an export; the file is there whole or not at all.

    Raises
    ------
    MissingExtraError
        The package duckdb is not installed.
    ExportError
        An id is too large for the blueprint's INTEGER.
    """
    _duckdb()
    last = int(header.meta["next_event"])
    if last > _MOST_EVENTS:
        raise ExportError(
            f"event ids go up to {last}, DuckDB's INTEGER to {_MOST_EVENTS}: use Parquet"
        )
    causes = primary_causes(record)
    with (
        tempfile.TemporaryDirectory(prefix="cvx-export-") as scratch,
        written_whole(path) as beside,
    ):
        folder = Path(scratch) / "rows"
        parquet.write_into(folder, header, types, found)
        _write_causes(Path(scratch) / "causes.parquet", causes)
        with opened(beside) as db:
            db.execute("BEGIN")
            db.execute(_BLUEPRINT.format(next=max(last, 1)))
            db.execute("CREATE TABLE cvx_header (told VARCHAR)")
            db.execute("INSERT INTO cvx_header VALUES (?)", [header.to_text()])
            for table in ORDER:
                files = _quoted(folder / table / "*.parquet")
                chosen = ", ".join(_column(table, name) for name in columns(table))
                db.execute(
                    f"CREATE TABLE cvx_{table} AS SELECT {chosen} FROM read_parquet({files})"
                )
            _fill_blueprint(
                db,
                folder,
                Path(scratch) / "causes.parquet",
                max(depths(causes).values(), default=0),
            )
            db.execute("CREATE INDEX events_by_timestamp ON events (timestamp)")
            db.execute("COMMIT")


def _column(table: str, name: str) -> str:
    if table == "events" and name in _KEPT_APART:
        return f"CASE WHEN embedding IS NULL THEN {name} END AS {name}"
    return name


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _write_causes(path: Path, causes: dict[int, Cause]) -> None:
    import polars as pl

    depth = depths(causes)
    pl.DataFrame(
        {
            "effect": list(causes),
            "cause": [cause.event for cause in causes.values()],
            "relationship": [cause.relationship for cause in causes.values()],
            "depth": [depth[effect] for effect in causes],
        },
        schema={
            "effect": pl.Int64,
            "cause": pl.Int64,
            "relationship": pl.String,
            "depth": pl.Int64,
        },
    ).write_parquet(path)


def _fill_blueprint(
    db: duckdb.DuckDBPyConnection, folder: Path, causes: Path, deepest: int
) -> None:
    columns = (
        f"event_id, make_timestamp(greatest(least(timestamp, {_LATEST}), {_EARLIEST})), text,"
        " embedding, cause, relationship"
    )
    files = _quoted(folder / "events" / "*.parquet")
    joined = f"read_parquet({files}) LEFT JOIN read_parquet({_quoted(causes)}) ON effect = event_id"
    db.execute(
        f"INSERT INTO events SELECT {columns} FROM {joined}"
        " WHERE embedding IS NOT NULL AND cause IS NULL ORDER BY event_id"
    )
    # DuckDB checks a reference at once, and not against rows of the same statement: causes go in
    # before their effects, a depth at a time.
    db.execute(f"CREATE TEMP TABLE effects AS SELECT * FROM {joined} WHERE cause IS NOT NULL")
    for depth in range(1, deepest + 1):
        db.execute(
            f"INSERT INTO events SELECT {columns} FROM effects WHERE depth = ? ORDER BY event_id",
            [depth],
        )
    db.execute("DROP TABLE effects")


class DuckDB:
    """An export in DuckDB.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ExportError
        It was not written by ``cvx export``; ``cvx.memory.transfer.from_duckdb`` also takes the
        files of a ``CausalMemoryCore``.
    InputFileError
        It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            raise InputFileError(f"{path} cannot be read: there is no such file")
        with opened(path, read_only=True) as db:
            names = {
                row[0] for row in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            }
            if "cvx_header" not in names:
                raise ExportError(f"{path} is no export of cvx: it has no table cvx_header")
            (told,) = db.execute("SELECT told FROM cvx_header").fetchall()
        self.header = Header.from_text(told[0], str(path))

    def batches(self) -> Iterator[Batch]:
        """Yield every row, checked; see `Incoming`."""
        with tempfile.TemporaryDirectory(prefix="cvx-import-") as scratch:
            folder = Path(scratch)
            (folder / "header.json").write_text(self.header.to_text(), encoding="utf-8")
            with opened(self._path, read_only=True) as db:
                for table in ORDER:
                    (folder / table).mkdir()
                    self._unpack(db, table, folder / table)
            yield from parquet.Parquet(folder).batches()

    def _unpack(self, db: duckdb.DuckDBPyConnection, table: str, folder: Path) -> None:
        total = db.execute(f"SELECT count(*) FROM cvx_{table}").fetchone()
        for number, first in enumerate(
            range(0, 0 if total is None else int(total[0]), _ROWS_A_FILE)
        ):
            target = _quoted(folder / f"{number:05}.parquet")
            # Rows keep the order in which they were put.
            source = (
                f"SELECT * FROM cvx_{table} LIMIT {_ROWS_A_FILE} OFFSET {first}"
                if table != "events"
                else "SELECT c.* REPLACE (coalesce(c.text, e.effect_text) AS text,"
                " coalesce(c.embedding, e.embedding) AS embedding)"
                f" FROM (SELECT * FROM cvx_events LIMIT {_ROWS_A_FILE} OFFSET {first}) AS c"
                " LEFT JOIN events AS e USING (event_id) ORDER BY event_id"
            )
            db.execute(f"COPY ({source}) TO {target} (FORMAT parquet)")
