"""Selects the rows of some namespaces from a record: to move them, and to import them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from cvx.cluster.public_events import ORIGIN
from cvx.cluster.replication import Change, Row, apply
from cvx.store import Record, rows
from cvx.store.database import read_only
from cvx.store.history import FIRST_KEPT
from cvx.store.rows import whose_use
from cvx.store.transfer.format import Incoming, batches
from cvx.types import ENTITY_KEY, entity_name


class NamespaceRows:
    """Says of rows whether they are of the namespaces that are kept.

    An event is remembered when it is seen, so that what refers to it is known: rows are asked in
    the order of ``rows.COLUMNS``. Copies of public events are of no namespace here.

    Parameters
    ----------
    keeps : callable
        Of a namespace and an entity, whether it is kept.
    """

    def __init__(self, keeps: Callable[[str, str | None], bool]) -> None:
        self._keeps = keeps
        self._events: set[int] = set()
        self._nodes: set[int] = set()

    def has(self, table: str, row: Row) -> bool:
        """Return whether a row is of what is kept, or of the record itself."""
        told = dict(zip(rows.COLUMNS.get(table, ()), row, strict=False))
        match table:
            case "episodes":
                return self._keeps(told["namespace"], _entity_of(told))
            case "events" | "aliases":
                event, node = told["event_id"], told["node"]
                if table == "aliases":
                    kept = event in self._events
                else:
                    kept = self._keeps(told["namespace"], _entity_of(told)) and not _is_copy(told)
                if kept:
                    self._events.add(event)
                    self._nodes.add(node)
                return kept
            case "links":
                return {told["from_node"], told["to_node"]} <= self._nodes
            case "decays":
                return told["node"] in self._nodes
            case "decisions":
                return self._keeps(json.loads(told["record"]).get("namespace", ""), None)
            case "model_state":
                _, colon, namespace = told["name"].partition(":")
                return not colon or self._keeps(namespace, None)
            case "usage":
                return self._counts(json.loads(told["context"]))
        return True

    def _counts(self, context: Any) -> bool:
        match whose_use(context):
            case ["event", int(event)], _, _:
                return event in self._events
            case ["node", int(node)], _, _:
                return node in self._nodes
            case _, str(readers), _:
                return bool(readers) and self._keeps(readers.partition("\x1f")[0], None)
        return False

    def of(self, change: Change) -> Change:
        """Return what of a change is kept; the journal stays whole, since it is a chain."""
        put = {
            table: kept
            for table in ("meta", *rows.COLUMNS)
            if (kept := [row for row in change.put.get(table, ()) if self.has(table, row)])
        }
        return Change(put, change.gone)


def _entity_of(told: dict[str, Any]) -> str | None:
    """Return the name of the entity of a row, as who added it gave it."""
    name = json.loads(told["metadata"]).get(ENTITY_KEY)
    return entity_name(told["entity"]) if name is None else str(name)


def _is_copy(event: dict[str, Any]) -> bool:
    """Return whether a row of events is a copy of what another shard made public."""
    told = event["metadata"]
    return told is not None and ORIGIN in told and type(json.loads(told).get(ORIGIN)) is int


def carve(source_path: str, path: Path, kept: NamespaceRows) -> NamespaceRows:
    """Write what is kept of a record to a new one, in one view of it that writers do not change.

    Ids and times stay. Of the journal its end stays: what was overwritten before is gone, as when
    a history is shortened. Returns ``kept``, which knows its events now.
    """
    with read_only(Path(source_path)) as source, Record(path) as target:
        # It is synced where it is received: until then it only competes with those that write.
        target.database.connection().execute("PRAGMA synchronous = OFF")
        last: list[Row] = []
        for table, some in batches(source):
            if table == "journal":
                last = some[-1:]
            else:
                apply(target, kept.of(Change({table: some})))
        meta = source.execute("SELECT key, value FROM meta").fetchall()
        meta += [(FIRST_KEPT, str(row[0])) for row in last]
        apply(target, Change({"meta": meta, "journal": last}))
    return kept


def namespaces_of(rows_of_export: Incoming) -> set[str]:
    """Return of which namespaces there are events in what ``by_shard`` returned."""
    at = rows.COLUMNS["events"].index("namespace")
    (events,) = (some for table, some in copy(rows_of_export.batches) if table == "events")
    return {row[at] for row in events}


def by_shard(
    incoming: Incoming, shards: Iterable[int], shard_of: Callable[[str, str | None], int]
) -> dict[int, Incoming]:
    """Return the rows of an export for each shard that has some; all of them are in memory.

    What was learned and logged belongs to the history it is of, and is left out, as are copies of
    what others made public: they are copied anew.
    """

    def of(shard: int) -> NamespaceRows:
        return NamespaceRows(lambda name, entity: shard_of(name, entity) == shard)

    kept = {shard: of(shard) for shard in shards}
    found = {shard: {table: list[Row]() for table in rows.COLUMNS} for shard in kept}
    for table, some in incoming.batches:
        if table not in ("decisions", "model_state", "journal"):
            for shard, one in kept.items():
                found[shard][table] += [row for row in some if one.has(table, row)]
    return {
        shard: Incoming(
            replace(incoming.header, counts={table: len(rows) for table, rows in some.items()}),
            iter([*some.items()]),
        )
        for shard, some in found.items()
        if any(some.values())
    }
