"""Keeps the index equal to the record: replays the journal, rebuilds where that fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import numpy as np

from cvx.errors import (
    CvxError,
    DamagedRowsWarning,
    DamagedStoreError,
    SnapshotError,
    StoreError,
    UnknownError,
    warn,
)
from cvx.index import RawIndex
from cvx.store import rows
from cvx.store.lock import Tail
from cvx.store.namespaces import space
from cvx.store.record import Record
from cvx.store.row_validation import RowCheck, node_bound
from cvx.store.writer import Writer

_CHUNK = 20_000
_FOR_THE_PAST = ("row", "metadata", "episode", "step_kind")
"""What the journal keeps for views of the past; the index knows nothing of it."""
_REFUSED = (CvxError, ValueError, TypeError, OverflowError)
"""What a row raises that no index takes, such as one that another program wrote."""
_MOST_BEHIND = 4096
"""So many transactions may wait for the next read, which takes them into the index all at once."""


class Replica:
    """Keeps an index equal to the record.

    A node's id is its place in the order of insertion, so ids that the record does not use
    (erased events, transactions taken back) are passed over.

    Parameters
    ----------
    record : Record
        What is followed.
    fresh : callable or None
        Makes an empty index; ``None`` where the index may hold more than the record has, and so is
        never built anew.
    loaded : (RawIndex, int), optional
        A snapshot and the number of the journal it holds; without it the index is built. That of
        a view of the past may hold what came later: that is taken back.

    Attributes
    ----------
    index : RawIndex
        Stays the same object, whatever happens to it.
    seq : int
        How far of the journal it holds.
    rebuilds : int
        How often it was built from the record.
    changes : int
        How many rows of the journal changed the index, since this object was made.
    incomplete : bool
        Whether damaged rows, or rows that the index refuses, are left out of it.
    refused : list of str
        Why the snapshot that it came from was given up after it was opened.
    """

    def __init__(
        self,
        record: Record,
        fresh: Callable[[], RawIndex] | None,
        loaded: tuple[RawIndex, int] | None = None,
    ) -> None:
        self.record = record
        self.fresh = fresh
        self.rebuilds = 0
        self.changes = 0
        self.incomplete = False
        self.refused: list[str] = []
        self._stale = False
        self._replaying = False
        self._is_loaded = loaded is not None
        self._behind = 0
        self._version: Tail | None = None
        if loaded is None:
            self.index, self.seq = self._empty(), 0
            self.rebuild()
        else:
            self.index, self.seq = loaded
            self.index.mend_by(self._mend)
            tail = record.tail().seq
            # The snapshot of a view of the past may be of today.
            self._stale = self.seq > tail and not self._taken_back(tail)
            self.catch_up()
        record.follow(self)

    def begun(self, write: Writer) -> None:
        """See to it that no id is given twice."""
        # Ids that a transaction taken back has used up in this index are used up for all.
        write.next_node = max(write.next_node, self._given())

    def ended(self) -> None:
        """Take in what was committed, now or with the next ones."""
        self._behind += 1
        if self._behind >= _MOST_BEHIND:
            # An index that cannot take it in is built anew at its next use.
            try:
                self.catch_up()
            except CvxError:
                self._stale = True

    def _mend(self) -> bool:
        """Build the index anew after it read rows of its snapshot that are damaged.

        In the middle of a replay the error is raised, and who replays builds it anew. Of several
        threads that meet the damage one builds it, the others wait and use what that one made.
        """
        with self.record.reading():
            # Only now is it this thread that replays, if any does.
            if self._replaying:
                return False
            if self._is_loaded:
                self.refused.append("its rows are not what was written")
                self.rebuild()
        return True

    def taken_back(self) -> None:
        """Be built anew at the next use: the index holds what the record never had."""
        self._stale = True

    def refresh(self) -> None:
        """Be level with the record; costs microseconds where nothing was committed since."""
        with self.record.reading():
            version = self.record.version()
            if version != self._version or self._behind or self._stale:
                self.catch_up()
                self._version = version

    def catch_up(self) -> None:
        """Replay the journal from where the index stands."""
        with self.record.reading():
            # Another process may have erased what views of this one still read.
            self.record.database.end_views_of_erased(self.seq)
            if self._stale or not self.record.keeps_changes_after(self.seq):
                self.rebuild()
            known = len(self.record.damaged)
            try:
                unread = self.record.journal(self.seq, but=_FOR_THE_PAST)
            except DamagedStoreError:
                self.rebuild()
                return
            erased = False
            for seq, op, body in _joined(unread):
                try:
                    self._replaying = True
                    applied = self._apply(op, body)
                except _REFUSED:
                    # Not what cvx writes: the rows themselves say what is.
                    applied = False
                finally:
                    self._replaying = False
                if not applied:
                    self.rebuild()
                    return
                self.seq = seq
                self.changes += 1
                erased |= op == "erase"
            if erased:
                # Names that nobody else has go with the nodes.
                self.index.compact()
            self.seq = self.record.tail().seq
            _fill(self.index, _next_node(self.record, self.index))
            self._behind = 0
            self._tell_what_is_left_out(known)

    def _taken_back(self, tail: int) -> bool:
        self._replaying = True
        try:
            return self._take_back(tail)
        except SnapshotError:
            return False
        finally:
            self._replaying = False

    def _take_back(self, tail: int) -> bool:
        """Let an index be what it was at the end of a view of the past; False if it cannot.

        The vector of an earlier version is in it no more, and to take out more nodes than are left
        costs more than an index of those.
        """
        later = [
            (seq, op, json.loads(body))
            for seq, op, body in self.record.query(
                "SELECT seq, op, body FROM main.journal WHERE seq > ? AND seq <= ? ORDER BY seq",
                (tail, self.seq),
            )
        ]
        gone = [run for _, op, body in later if op == "insert" for run in body]
        count = sum(last - first + 1 for first, last in gone)
        if (
            len(later) < self.seq - tail
            or 2 * count > len(self.index)
            or any(op == "version" for _, op, _ in later)
        ):
            return False
        there = (n for first, last in gone for n in range(first, last + 1) if n in self.index)
        self.index.delete(list(there))
        for _, op, body in reversed(later):
            if op in ("reward", "link"):
                for *which, before, after in reversed(body):
                    self._apply(op, [[*which, after, before]])
            elif op in ("state", "recallable"):
                self._apply(op, body)
        return True

    def rebuild(self) -> None:
        """Build the index from the rows of the record.

        Rows that are damaged are left out, with a warning that names them.
        """
        with self.record.reading():
            known = len(self.record.damaged)
            seq = self.record.tail().seq
            index = self._empty()
            build(self.record, index)
            self.index.become(index)
            self._is_loaded = False
            self.seq = seq
            self.rebuilds += 1
            self.changes += 1
            self._stale = False
            self._behind = 0
            self.incomplete = False
            self._tell_what_is_left_out(known)

    def _empty(self) -> RawIndex:
        if self.fresh is None:
            raise StoreError(
                f"{self.record.path} has rows that the index has not, or others in their place: "
                "give the index that was saved with it, or an empty one"
            )
        return self.fresh()

    def _tell_what_is_left_out(self, known: int) -> None:
        """Warn of the rows that were found damaged, or refused, beyond those known before."""
        if damaged := [*self.record.damaged][known:]:
            self.incomplete = True
            more = f" and {len(damaged) - 3} more" if len(damaged) > 3 else ""
            warn(
                f"{', '.join(damaged[:3])}{more}: not what was written, or what no index takes, "
                "and left out of the index; restore a copy, or let doctor save the rest",
                DamagedRowsWarning,
            )

    def _given(self) -> int:
        return int(self.index.stats()["ids_given"])

    def _apply(self, op: str, body: list[Any]) -> bool:
        """Do what a row of the journal says; False where only a rebuild can."""
        index = self.index
        if op == "insert":
            return all(self._insert_run(first, last) for first, last in body)
        if op == "reward":
            for node, _, after in body:
                for one in self._with_aliases(node):
                    index.set_reward(one, after)
        elif op in ("state", "recallable"):
            nodes = self.record.nodes_of_events([event for event, *_ in body])
            advising = self._advising([event for event, *_ in body])
            for event, some in nodes.items():
                for node in some:
                    if node in index:
                        index.set_recallable(node, event in advising)
        elif op == "link":
            for a, b, kind, _, after in body:
                if after is not None:
                    _link(index, a, b, kind, after[0])
                elif a in index and b in index:
                    # It may be gone already, with one of its ends.
                    with suppress(UnknownError):
                        index.remove_edge(a, b, kind)
        elif op == "kind":
            for name in body:
                index.declare_edge_kind(name)
        elif op == "version":
            return all(self._take_version(*entry) for entry in body)
        elif op == "erase":
            # A repair, an import and another model say of no node that it alone is gone.
            index.delete([node for node in body if node in index])
            return bool(body)
        return True

    def _take_version(self, event: int, before: Mapping[str, Any], node: int) -> bool:
        """Put the new node of an event in the place of the old one; False if only a rebuild can."""
        if before["node"] is not None and before["node"] in self.index:
            self.index.delete([before["node"]])
        now = self.record.nodes_of_events([event]).get(event, [])
        if not now or now[0] != node:
            # A later version, or an erase, has taken it away again.
            return True
        asked = "SELECT timestamp, tags, action, reward FROM events WHERE event_id = ?"
        for alias in now[1:]:
            ((*same, reward),) = self.record.query(asked, (event,))
            # An index has no way to change these of a node that it has.
            if same != [before["timestamp"], before["tags"], before["action"]]:
                return False
            if alias in self.index:
                self.index.set_reward(alias, reward)
        return self._insert_run(node, node)

    def _with_aliases(self, node: int) -> list[int]:
        found = self.record.query(
            "SELECT ?1 UNION ALL SELECT aliases.node FROM aliases JOIN events USING (event_id)"
            " WHERE events.node = ?1",
            (node,),
        )
        return [row[0] for row in found if row[0] in self.index]

    def _advising(self, events: Sequence[int]) -> set[int]:
        found = self.record.query(
            f"SELECT event_id FROM events WHERE event_id {rows.AMONG}"
            " AND recallable AND state = 'active'",
            (rows.listed(events),),
        )
        return {row[0] for row in found}

    def _insert_run(self, first: int, last: int) -> bool:
        given = self._given()
        if first < given:
            # There already: an index that came without the number of the journal that it holds.
            known = _node_rows(self.record, first, min(last, given - 1))
            if any(
                n not in self.index or self.index.step(n)[:3] != (n, who, when)
                for n, who, when, *_ in known
            ):
                return False
            first = given
        bound = node_bound(int(self.index.stats()["nodes"]))
        if first <= last:
            _fill(self.index, min(first, bound))
            _insert_all(self.record, self.index, first, min(last, bound), last - first + 1)
        return True


class Intake:
    """Puts events into an index while they are stored, which spares reading them again.

    That takes events without aliases that come in the order of their nodes. With the first one
    that does not, ``complete`` becomes false and nothing more is taken.

    Parameters
    ----------
    index : RawIndex
        An empty one.
    count : int
        How many events come at the most.

    Attributes
    ----------
    complete : bool
        Whether all that came is in the index; without links, as ``build`` expects it.
    """

    def __init__(self, index: RawIndex, count: int) -> None:
        self.index, self.complete = index, True
        self._bound = node_bound(count)
        index.reserve(count)

    def take(self, some: Sequence[tuple[Any, ...]]) -> None:
        """Take in rows of events that were found to be sound."""
        if not self.complete:
            return
        found = [_node_row(row) for row in some if row[_AT["node"]] is not None]
        nodes = [int(self.index.stats()["ids_given"]) - 1, *(row[0] for row in found), self._bound]
        self.complete = all(map(int.__lt__, nodes, nodes[1:]))
        if self.complete:
            try:
                for run in _runs(found):
                    _fill(self.index, run[0][0])
                    _insert_rows(self.index, run, link=False)
            except _REFUSED:
                # Whoever builds it from the record says which rows.
                self.complete = False


def build(record: Record, index: RawIndex, first: int = 0, *, filled: bool = False) -> None:
    """Put everything of a record from a node on into an index.

    Rows that are damaged, or that no index takes, are left out and noted in the record.

    Parameters
    ----------
    record : Record
        What is read.
    index : RawIndex
        Where to.
    first : int, default 0
        The first node.
    filled : bool, default False
        Whether all nodes are there, without links: an `Intake` took them.

    Raises
    ------
    DamagedStoreError
        The record says that it gave more ids than any record of its size does.
    """
    for kind in record.told("edge_kinds", list):
        with suppress(CvxError):
            # One that cannot be declared is that of no link either.
            index.declare_edge_kind(kind)
    if filled:
        index.relink()
    else:
        _insert_from(record, index, first)
    _fill(index, _next_node(record, index))
    for edge in record.links():
        try:
            _link(index, edge.from_node, edge.to_node, edge.kind, edge.weight)
        except _REFUSED as error:
            ends = [edge.from_node, edge.to_node, edge.kind]
            _blame(record, error, _OF_ENDS, ends)
            record.damaged[f"links {ends} ({error})"] = None


def _insert_from(record: Record, index: RawIndex, first: int) -> None:
    (count,) = record.query(
        "SELECT (SELECT count(node) FROM events) + (SELECT count(*) FROM aliases)"
    )[0]
    bound = node_bound(count)
    beyond = record.query(
        "SELECT node FROM events WHERE node > ?1 AND typeof(node) = 'integer'"
        " UNION ALL SELECT node FROM aliases WHERE node > ?1",
        (bound,),
    )
    for (node,) in beyond:
        _refuse(record, node, f"its id is beyond {bound}")
    _insert_all(record, index, first, bound, count)


def _next_node(record: Record, index: RawIndex) -> int:
    told = record.meta("next_node") or "0"
    bound = node_bound(int(index.stats()["nodes"]))
    if not (told.isdecimal() and told.isascii()) or not 0 <= int(told[:20]) <= bound:
        raise DamagedStoreError(
            f"{record.path} says that its next node is {told[:20]}, and with its events that is at "
            f"most {bound}: `cvx doctor --repair` puts it right"
        )
    return int(told)


def _insert_all(record: Record, index: RawIndex, first: int, last: int, count: int) -> None:
    """Insert the nodes from first to last, ``count`` of them at the most."""
    # Many are linked together at less cost; few would be linked anew with all that are there.
    together = min(count, last - first + 1) >= max(_CHUNK, int(index.stats()["nodes"]))
    if together:
        index.reserve(count)
    while True:
        (end,) = record.query(
            "SELECT max(node) FROM (SELECT node FROM events WHERE node BETWEEN ?1 AND ?2"
            " UNION ALL SELECT node FROM aliases WHERE node BETWEEN ?1 AND ?2"
            " ORDER BY node LIMIT ?3)",
            (first, last, _CHUNK),
        )[0]
        if end is None:
            break
        _insert(record, index, first, end, link=not together)
        first = end + 1
    if together:
        index.relink()


_AT = {name: place for place, name in enumerate(rows.COLUMNS["events"])}
_of_a_node = itemgetter(
    *map(_AT.__getitem__, (
        "node", "entity", "timestamp", "embedding", "reward", "namespace", "visibility", "tags",
        "action",
    ))
)  # fmt: skip


def _node_rows(record: Record, first: int, last: int) -> list[tuple[Any, ...]]:
    """Return what an index holds of the nodes from first to last, by node.

    Rows that are damaged, and aliases of such events, are left out and noted in the record.

    Returns
    -------
    list of tuple
        node, entity, timestamp, embedding, reward, namespace, visibility, tags, action, whether
        it advises.
    """
    between, bounds = "WHERE node BETWEEN ? AND ? ORDER BY node", (first, last)
    found = [_node_row(row) for row in record.whole("events", between, bounds)]
    for node, event, _, embedding, *_ in record.whole("aliases", between, bounds):
        for row in record.whole("events", "WHERE event_id = ?", (event,)):
            _, entity, time, _, *rest = _node_row(row)
            found.append((node, entity, time, embedding, *rest))
    return sorted(found, key=lambda row: row[0])


def _node_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    advises = bool(row[_AT["recallable"]]) and row[_AT["state"]] == "active"
    return (*_of_a_node(row), advises)


def _insert(record: Record, index: RawIndex, first: int, last: int, *, link: bool) -> None:
    for run in _runs(_node_rows(record, first, last)):
        _fill(index, run[0][0])
        try:
            _insert_rows(index, run, link=link)
        except _REFUSED:
            _insert_one_by_one(record, index, run, link=link)


def _runs(found: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Yield the rows of nodes in parts in which no number is left out."""
    at = 0
    while at < len(found):
        end = at + 1
        while end < len(found) and found[end][0] == found[end - 1][0] + 1:
            end += 1
        yield found[at:end]
        at = end


def _insert_one_by_one(
    record: Record, index: RawIndex, found: Sequence[tuple[Any, ...]], *, link: bool
) -> None:
    """Insert what can be, and name the rows that the index refuses: no row stops a store."""
    for row in found:
        _fill(index, row[0])
        try:
            _insert_rows(index, [row], link=link)
        except _REFUSED as error:
            _blame(record, error, _OF_NODE, row[:1])
            _refuse(record, row[0], str(error))


_OF_ENDS = {"links": "WHERE from_node = ? AND to_node = ? AND kind = ?"}
_OF_NODE = {
    "events": "WHERE event_id IN (SELECT event_id FROM aliases WHERE node = ?1) OR node = ?1",
    "aliases": "WHERE node = ?1",
}


def _blame(
    record: Record, error: Exception, rows_of: Mapping[str, str], key: Sequence[object]
) -> None:
    """Raise an error again that none of these rows is to blame for: the program is."""
    if isinstance(error, CvxError):
        return
    check = RowCheck.of(record.database.connection())
    for table, where in rows_of.items():
        if any(check.refusal(table, row[:-1]) for row in record.whole(table, where, key)):
            return
    raise error


def _refuse(record: Record, node: int, why: str) -> None:
    record.refused.add(node)
    record.damaged[f"the event of node {node} ({why})"] = None


def _fill(index: RawIndex, until: int) -> None:
    missing = until - int(index.stats()["ids_given"])
    if missing > 0:
        index.skip_ids(missing)


def _joined(changes: Iterable[tuple[int, int, str, Any]]) -> Iterator[tuple[int, str, list[Any]]]:
    """Make one insert of those that follow each other: many at once cost less."""
    last: tuple[int, str, list[Any]] | None = None
    for seq, _, op, body in changes:
        if last is not None and last[1] == op == "insert" and last[2][-1][1] + 1 == body[0][0]:
            *runs, (first, _) = last[2]
            body[:1] = [*runs, [first, body[0][1]]]
        elif last is not None:
            yield last
        last = seq, op, body
    if last is not None:
        yield last


def _insert_rows(index: RawIndex, found: Sequence[tuple[Any, ...]], *, link: bool) -> None:
    _, entities, times, blobs, rewards, names, seen, tags, actions, advise = zip(
        *found, strict=True
    )
    given = [blob for blob in blobs if blob is not None]
    vectors: Any
    if len(given) == len(blobs):
        vectors = np.frombuffer(b"".join(given), dtype="<f4").reshape(len(given), -1)
    else:
        vectors = [None if blob is None else np.frombuffer(blob, dtype="<f4") for blob in blobs]
    index.bulk_insert(
        np.array(entities, dtype=np.uint64),
        np.array(times, dtype=np.int64),
        vectors,
        rewards=rewards,
        namespaces=[space(name, visibility) for name, visibility in zip(names, seen, strict=True)],
        tags=[[] if labels == "[]" else json.loads(labels) for labels in tags],
        actions=actions,
        recallable=[bool(value) for value in advise],
        link=link,
    )


def _link(index: RawIndex, a: int, b: int, kind: str, weight: float) -> None:
    if a not in index or b not in index:
        return
    if kind not in index.edge_kinds:
        index.declare_edge_kind(kind)
    index.add_edge(a, b, kind, weight)
