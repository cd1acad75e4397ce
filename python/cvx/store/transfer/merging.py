"""Taking an export into a record that holds something: events under new ids, recorded now."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cvx.errors import ExportError
from cvx.store import rows, text
from cvx.store.failpoints import reach
from cvx.store.learned import use_context, whose_use
from cvx.store.rowcheck import RowCheck
from cvx.store.transfer.incoming import Imported, Incoming
from cvx.store.transfer.tables import ORDER, Progress, Row, checked, counted
from cvx.store.writer import Writer
from cvx.types import Edge

_LEFT_OUT = ("decisions", "model_state", "journal")
"""What was logged and learned, and the order of it, belong to the history they are of."""


class _NewIds:
    """The ids that things of an export get here, one after the other in their order.

    Parameters
    ----------
    write : Writer
        Who knows which ids were never given.
    """

    def __init__(self, write: Writer) -> None:
        episodes = "SELECT ifnull(max(episode_id), -1) + 1 FROM episodes"
        self.next = {
            "event": write.next_event,
            "node": write.next_node,
            "episode": int(write.connection.execute(episodes).fetchone()[0]),
        }
        self._known: dict[tuple[str, int], int] = {}

    def give(self, kind: str, old: int) -> int:
        """Return a new id for something that comes in."""
        if (kind, old) in self._known:
            raise ExportError(f"the export has {kind} {old} twice: nothing was taken in")
        new = self._known[kind, old] = self.next[kind]
        self.next[kind] += 1
        return new

    def of(self, kind: str, old: int) -> int:
        """Return the new id of something that came in."""
        new = self._known.get((kind, old))
        if new is None:
            raise ExportError(
                f"the export refers to {kind} {old}, which is not in it: nothing was taken in"
            )
        return new

    def of_or_give(self, kind: str, old: int) -> int:
        """Return the new id of something that came in, or that is gone and still referred to."""
        new = self._known.get((kind, old))
        return self.give(kind, old) if new is None else new

    def context(self, told: str) -> str:
        """Return what a count is of, under the new ids."""
        kind, number = _thing(told)
        if kind is None:
            return told
        _, *whose = whose_use(json.loads(told))
        thing = [kind, self.of(kind, number)]
        return json.dumps(use_context(thing, *whose), separators=(",", ":"))


def _thing(context: str) -> tuple[str | None, int]:
    """Return the kind and the id of what a count is of; None where it is no event and no node."""
    try:
        thing, *_ = whose_use(json.loads(context))
    except (ValueError, RecursionError):
        return None, 0
    match thing:
        case ["event" | "node" as kind, int(number)]:
            return kind, number
    return None, 0


def merge(write: Writer, incoming: Incoming, progress: Progress) -> Imported:
    """Add the events of an export with their aliases, links, episodes, counts and decays.

    Raises
    ------
    ExportError
        A key of an event is taken.
    """
    db = write.connection
    header = incoming.header
    ids = _NewIds(write)
    _add_kinds(write, json.loads(header.meta.get("edge_kinds", "[]")))
    counts = dict.fromkeys(ORDER, 0)
    put: dict[str, Callable[[Writer, list[Row], _NewIds], None]] = {
        "episodes": _episodes,
        "events": _events,
        "aliases": _aliases,
        "links": _links,
        "usage": _usage,
        "decays": _decays,
    }
    check = RowCheck(db, int(header.meta.get("dim", 0)), header.meta.get("metric", ""))
    found = checked(incoming.batches(), check)
    for table, some in counted(found, header.total, progress):
        if table in put:
            put[table](write, some, ids)
            counts[table] += len(some)
        reach("import.written")
    text.refill(db)
    write.next_event, write.next_node = ids.next["event"], ids.next["node"]
    left_out = {table: header.counts[table] for table in _LEFT_OUT if header.counts[table]}
    return Imported(merged=True, counts=counts, left_out=left_out)


def _add_kinds(write: Writer, names: list[str]) -> None:
    db = write.connection
    found = db.execute("SELECT value FROM meta WHERE key = 'edge_kinds'").fetchone()
    known = json.loads(found[0]) if found else []
    for name in names:
        if name not in known:
            known.append(name)
            write.journal("kind", [name])
    if names:
        write.set_meta("edge_kinds", json.dumps(known))


def _put(write: Writer, table: str, some: list[dict[str, Any]]) -> None:
    values = [tuple(row[name] for name in rows.COLUMNS[table]) for row in some]
    write.connection.executemany(
        rows.insert_sql(table), ((*row, rows.row_crc(*row)) for row in values)
    )


def _named(table: str, row: Row) -> dict[str, Any]:
    return dict(zip(rows.COLUMNS[table], row[:-1], strict=True))


def _episodes(write: Writer, some: list[Row], ids: _NewIds) -> None:
    new = [_named("episodes", row) for row in some]
    for row in new:
        row["episode_id"] = ids.give("episode", row["episode_id"])
        row["recorded"] = write.recorded
    _put(write, "episodes", new)
    write.journal("episode", [row["episode_id"] for row in new])


def _events(write: Writer, some: list[Row], ids: _NewIds) -> None:
    new = [_named("events", row) for row in some]
    for row in new:
        row["event_id"] = ids.give("event", row["event_id"])
        if row["node"] is not None:
            row["node"] = ids.give("node", row["node"])
        if row["episode"] is not None:
            row["episode"] = ids.of("episode", row["episode"])
        row["recorded"] = write.recorded
        if row["key"] is not None:
            _check_key(write, row["namespace"], row["key"])
    _put(write, "events", new)
    _journal_nodes(write, [row["node"] for row in new])


def _check_key(write: Writer, namespace: object, key: object) -> None:
    found = write.connection.execute(
        "SELECT event_id FROM events WHERE namespace = ? AND key = ?", (namespace, key)
    ).fetchone()
    if found is not None:
        raise ExportError(
            f"the key {key!r} in namespace {namespace!r} is that of event {found[0]} here: import "
            "into a store of its own. Nothing was taken in"
        )


def _aliases(write: Writer, some: list[Row], ids: _NewIds) -> None:
    new = [_named("aliases", row) for row in some]
    for row in new:
        row["node"] = ids.give("node", row["node"])
        row["event_id"] = ids.of("event", row["event_id"])
        row["recorded"] = write.recorded
    _put(write, "aliases", new)
    _journal_nodes(write, [row["node"] for row in new])


def _journal_nodes(write: Writer, nodes: list[object]) -> None:
    runs: list[list[int]] = []
    for node in sorted(node for node in nodes if isinstance(node, int)):
        if runs and runs[-1][1] + 1 == node:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    if runs:
        write.journal("insert", runs)


def _links(write: Writer, some: list[Row], ids: _NewIds) -> None:
    write.add_links(Edge(ids.of("node", row[0]), ids.of("node", row[1]), *row[2:6]) for row in some)


def _usage(write: Writer, some: list[Row], ids: _NewIds) -> None:
    db = write.connection
    new, last = [], dict[int, int]()
    for row in some:
        told = _named("usage", row)
        context = ids.context(str(told["context"]))
        found = db.execute(
            "SELECT retrieved, followed, helped FROM usage WHERE context = ?", (context,)
        ).fetchone() or (0, 0, 0)
        counts = zip(found, (told["retrieved"], told["followed"], told["helped"]), strict=True)
        new.append((context, *(a + b for a, b in counts)))
        kind, number = _thing(context)
        if isinstance(told["last_used"], int) and kind == "event":
            last[number] = told["last_used"]
    write.set_usage(new)
    if last:
        write.touch(last)


def _decays(write: Writer, some: list[Row], ids: _NewIds) -> None:
    new = [_named("decays", row) for row in some]
    for row in new:
        row["episode"] = ids.of_or_give("episode", row["episode"])
        row["node"] = ids.of("node", row["node"])
        row["recorded"] = write.recorded
    _put(write, "decays", new)
