"""Reads and writes exports as DuckDB files, with the causal core's table of events.

The table ``events`` has the blueprint's six columns: what has a vector, with its primary cause.
``cvx_events`` has every event with every other column, ``cvx_links``, ``cvx_aliases`` and so on
the other tables, ``cvx_header`` what the export says of itself. Rows travel through Parquet,
which DuckDB reads and writes by itself.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cvx.errors import ExportError, FileError
from cvx.extras import needs
from cvx.store import rows
from cvx.store.files import written_whole
from cvx.store.transfer.format import MOST_ROWS, Batch, Header, Incoming, Types

if TYPE_CHECKING:
    import duckdb

CAUSAL_KINDS = ("caused", "caused_success", "caused_failure", "granger_causal")
"""Links of these kinds say that their end followed from their start."""

_CANDIDATES = f"""
WITH owner AS (
    SELECT node, event_id FROM events WHERE node IS NOT NULL AND embedding IS NOT NULL
    UNION ALL
    SELECT aliases.node, event_id FROM aliases JOIN events USING (event_id)
    WHERE events.embedding IS NOT NULL
)
SELECT effect.event_id, cause.event_id, links.why, links.kind
FROM links
JOIN owner AS cause ON cause.node = from_node
JOIN owner AS effect ON effect.node = to_node
WHERE links.kind IN ({", ".join("?" * len(CAUSAL_KINDS))})
AND effect.event_id <> cause.event_id
ORDER BY effect.event_id, links.weight DESC, links.recorded, from_node, links.kind
"""


def primary_causes(db: sqlite3.Connection) -> dict[int, tuple[int, str]]:
    """Return the primary cause of every event that has one: its strongest causal link.

    With each cause comes the reason of the link, or its kind where it gives none.

    Of equally strong links the one recorded first counts. Links may form circles, causes may not:
    the youngest event of a circle becomes a root. Events without a vector are left out.
    """
    causes: dict[int, tuple[int, str]] = {}
    for effect, cause, why, kind in db.execute(_CANDIDATES, CAUSAL_KINDS):
        causes.setdefault(effect, (cause, why or kind))
    _open_circles(causes)
    return causes


def _open_circles(causes: dict[int, tuple[int, str]]) -> None:
    sound: set[int] = set()
    for start in sorted(causes):
        path: list[int] = []
        event = start
        while event in causes and event not in sound and event not in path:
            path.append(event)
            event, _ = causes[event]
        if event in path:
            # From there on the path is a circle.
            del causes[max(path[path.index(event) :])]
        sound.update(path)


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
_LEAST_MIB = 256
_ALONE = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
_KEPT_APART = ("text", "embedding")
"""Columns of events that stand in ``events`` wherever there is a vector."""


def _duckdb() -> Any:
    with needs("duckdb"):
        import duckdb
    return duckdb


def connect(path: str) -> duckdb.DuckDBPyConnection:
    """Connect to a DuckDB file that may be somebody else's: it reaches nothing but itself.

    No other file is read or written, nothing is fetched, no extension is loaded, and names in a
    query are those of the file, never of Python's variables. Others of this process may have the
    file open too; the same holds for them from now on.

    Parameters
    ----------
    path : str
        The file, or ":memory:".

    Raises
    ------
    MissingExtraError
        The package duckdb is not installed.
    """
    made: duckdb.DuckDBPyConnection = _duckdb().connect(path)
    try:
        (locked,) = made.execute("SELECT current_setting('lock_configuration')").fetchall()
        if not locked[0]:
            made.execute(";".join(f"SET {name} = {value}" for name, value in _ALONE.items()))
    except BaseException:
        made.close()
        raise
    return made


@contextmanager
def opened(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a DuckDB file for reading.

    Raises
    ------
    MissingExtraError
        The package duckdb is not installed.
    FileError
        It is no such file, cannot be read, or another process has it open.
    """
    duckdb = _duckdb()
    if not path.is_file():
        raise FileError(f"{path} cannot be read: there is no such file")
    room = max(_LEAST_MIB, 4 * path.stat().st_size >> 20)
    try:
        config = {**_ALONE, "memory_limit": f"{room}MiB"}
        with closing(duckdb.connect(str(path), read_only=True, config=config)) as connection:
            yield connection
    except duckdb.Error as error:
        raise FileError(f"{path} cannot be read with DuckDB ({error})") from error


def base_tables(db: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the tables of the file itself, each with its number of rows: no view, no computation.

    A view could stand for a query of anything; a table may have columns that are computed.
    """
    found = db.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal"
        " AND NOT temporary AND sql NOT ILIKE '%generated always%'"
        " AND database_name = current_database()"
    ).fetchall()
    return {name: _count(db, name) for (name,) in found}


def _count(db: duckdb.DuckDBPyConnection, table: str) -> int:
    name = table.replace('"', '""')
    (count,) = db.execute(f'SELECT count(*) FROM main."{name}"').fetchall()
    return int(count[0])


def write(
    path: Path,
    header: Header,
    types: Types,
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
    from cvx.store.transfer.parquet_file import write_into

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
        write_into(folder, header, types, found)
        _write_causes(Path(scratch) / "causes.parquet", causes)
        # What it reads lies in a folder of this process alone.
        with closing(_duckdb().connect(str(beside))) as db:
            db.execute("BEGIN")
            db.execute(_BLUEPRINT.format(next=max(last, 1)))
            db.execute("CREATE TABLE cvx_header (told VARCHAR)")
            db.execute("INSERT INTO cvx_header VALUES (?)", [header.to_text()])
            for table in rows.COLUMNS:
                files = _quoted(folder / table / "*.parquet")
                chosen = ", ".join(_column(table, name) for name in rows.stored_columns(table))
                db.execute(
                    f"CREATE TABLE cvx_{table} AS SELECT {chosen} FROM read_parquet({files})"
                )
            _fill_blueprint(db, folder, Path(scratch) / "causes.parquet")
            db.execute("CREATE INDEX events_by_timestamp ON events (timestamp)")
            db.execute("COMMIT")


def _column(table: str, name: str) -> str:
    if table == "events" and name in _KEPT_APART:
        return f"CASE WHEN embedding IS NULL THEN {name} END AS {name}"
    return name


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _write_causes(path: Path, causes: dict[int, tuple[int, str]]) -> None:
    import polars as pl

    pl.DataFrame(
        [(effect, *cause) for effect, cause in causes.items()],
        schema={"effect": pl.Int64, "cause": pl.Int64, "relationship": pl.String},
        orient="row",
    ).write_parquet(path)


def _fill_blueprint(db: duckdb.DuckDBPyConnection, folder: Path, causes: Path) -> None:
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
    # DuckDB checks a reference at once, and not against rows of the same statement: effects go in
    # once their causes are there.
    db.execute(f"CREATE TEMP TABLE effects AS SELECT * FROM {joined} WHERE cause IS NOT NULL")
    put, added = "(SELECT event_id FROM events)", 1
    while added:
        ((added,),) = db.execute(
            f"INSERT INTO events SELECT {columns} FROM effects"
            f" WHERE cause IN {put} AND event_id NOT IN {put} ORDER BY event_id"
        ).fetchall()
    db.execute("DROP TABLE effects")


def read(path: Path) -> Incoming:
    """Begin to read an export.

    Raises
    ------
    ExportError
        It was not written by ``cvx export``; ``cvx.memory.transfer.from_duckdb`` also takes the
        files of a ``CausalMemoryCore``.
    FileError
        It cannot be read.
    """
    with opened(path) as db:
        tables = base_tables(db)
        if "cvx_header" not in tables:
            raise ExportError(f"{path} is no export of cvx: it has no table cvx_header")
        missing = {"events", *(f"cvx_{table}" for table in rows.COLUMNS)} - tables.keys()
        if missing:
            raise ExportError(f"{path} has no table {', '.join(sorted(missing))}: export again")
        if tables["cvx_header"] != 1 or max(tables.values()) > path.stat().st_size:
            raise ExportError(f"{path} has more rows than an export of its size: export again")
        (told,) = db.execute("SELECT told FROM main.cvx_header").fetchall()
    header = Header.from_text(told[0], str(path))
    return Incoming(header, _batches(path, header.counts))


def _batches(path: Path, counts: Mapping[str, int]) -> Iterator[Batch]:
    with opened(path) as db:
        for table in rows.COLUMNS:
            chosen = ", ".join(f"c.{name}" for name in rows.stored_columns(table))
            rest = ""
            if table == "events":
                for name, other in (("text", "effect_text"), ("embedding", "embedding")):
                    chosen = chosen.replace(f"c.{name}", f"coalesce(c.{name}, e.{other})")
                rest = "LEFT JOIN main.events AS e USING (event_id) ORDER BY c.event_id"
            for first in range(0, counts[table], MOST_ROWS):
                # Rows keep the order in which they were put.
                source = f"SELECT * FROM main.cvx_{table} LIMIT {MOST_ROWS} OFFSET {first}"
                found = db.execute(f"SELECT {chosen} FROM ({source}) AS c {rest}").fetchnumpy()
                named = zip(found.values(), rows.stored_columns(table), strict=True)
                parts = [_values(column, name) for column, name in named]
                if not len(parts[0]):
                    break  # The header counts more of them than there are.
                yield table, list(zip(*parts, strict=True))


def _values(column: Any, name: str) -> list[Any]:
    """Return a column as what SQLite stores: vectors as bytes."""
    listed: list[Any] = column.tolist()
    if name == "embedding":
        return [None if one is None else np.asarray(one, dtype="<f4").tobytes() for one in listed]
    if name == "helped":
        return [int(one) if isinstance(one, float) and one.is_integer() else one for one in listed]
    return listed


_COLUMNS = ("event_id", "timestamp", "effect_text", "embedding", "cause_id", "relationship_text")
_BATCH = 2_000
_PLAIN = (
    "SELECT event_id, epoch_us(timestamp), effect_text, embedding, cause_id, relationship_text"
    " FROM main.events ORDER BY event_id"
)
# A row of events is never updated: a cause that was confirmed later stands beside it.
_RETRIED = """
SELECT event_id, epoch_us(events.timestamp), effect_text, embedding,
    coalesce(events.cause_id, later.cause_id), coalesce(relationship_text, explanation)
FROM main.events LEFT JOIN (
    SELECT effect_id, arg_max(cause_id, judgement_id) AS cause_id,
        arg_max(coalesce(explanation, ''), judgement_id) AS explanation
    FROM main.judgements WHERE verdict = 'yes' GROUP BY effect_id
) AS later ON later.effect_id = event_id
ORDER BY event_id
"""


class CoreEvent(NamedTuple):
    """A row of the blueprint's table.

    Attributes
    ----------
    event_id : int
        There.
    timestamp : int
        Microseconds since 1970-01-01 UTC.
    effect_text : str
        What it says.
    embedding : list of float
        Of a model that the file does not name.
    cause_id : int or None
        Its cause.
    relationship_text : str or None
        How that led to it.
    """

    event_id: int
    timestamp: int
    effect_text: str
    embedding: list[float]
    cause_id: int | None
    relationship_text: str | None


def core_events(path: Path) -> Iterator[tuple[list[CoreEvent], int]]:
    """Yield batches of events in the order of their ids, each with the number of all.

    Raises
    ------
    FileError
        There is no such file, or it is none of DuckDB's.
    ExportError
        It has no table ``events`` with the blueprint's columns.
    MissingExtraError
        The package duckdb is not installed.
    """
    with opened(path) as db:
        tables = base_tables(db)
        found = db.execute(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = 'events'"
            " AND schema_name = 'main'"
        ).fetchall()
        missing = set(_COLUMNS) - {column for (column,) in found}
        if missing or "events" not in tables:
            raise ExportError(
                f"{path} has no table events with {', '.join(sorted(missing or _COLUMNS))}: give "
                "the file of a CausalMemoryCore"
            )
        cursor = db.execute(_RETRIED if "judgements" in tables else _PLAIN)
        while rows := cursor.fetchmany(_BATCH):
            yield [CoreEvent(*row) for row in rows], tables["events"]
