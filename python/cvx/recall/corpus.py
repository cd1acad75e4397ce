"""The corpus: all events of a record as columns in RAM, for filters and signals.

Texts and vectors stay where they are. Words come from the postings of the full-text index.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from cvx.recall.corpus_indexes import (
    NAMES_SQL,
    GrowingColumn,
    NameIndex,
    Postings,
    Timelines,
    renames,
)
from cvx.store import Record
from cvx.store.lock import Tail
from cvx.store.namespaces import space
from cvx.store.prompt_injection import ORDER
from cvx.store.rows import AMONG, listed
from cvx.store.transactions import Follower
from cvx.types import Column, IntArray, Mask

if TYPE_CHECKING:
    from cvx.recall.poisoning import TypicalEvents
    from cvx.recall.visible_events import Scope

GAP_US = 30 * 60 * 1_000_000
"""Events of no session and no episode that lie further apart are not neighbours."""


_PUBLIC = space("", "public")
_MOST_TEXTS = 20_000
_FEWEST_PASSAGES, _LONG = 30, 250
"""Events, and characters of one, from which on a memory may be one of passages."""
_FEW_ASK = 0.05
"""Up to which share of texts with a question mark a memory is not taken for a conversation."""
Kind: TypeAlias = Literal["passages", "statements", "turns"]
_AT_ONCE = 20_000
"""Rows of so many events are in memory while they become columns."""
_BLOCK = 1 << 13
"""Of so many rows it is known which namespaces are among them."""
_READ = (
    "SELECT event_id, ifnull(node, -1), timestamp, entity, namespace, visibility,"
    " ifnull(episode, -1), trust, salience, reward, recallable, state = 'active', length(text),"
    f" instr(text, '?') > 0, instr(tags, '\"{ORDER}\"') > 0, source,"
    f" {NAMES_SQL} FROM events"
)
_PLAIN: tuple[tuple[str, int, type[np.generic]], ...] = (
    ("event_ids", 0, np.int64),
    ("nodes", 1, np.int64),
    ("timestamps", 2, np.int64),
    ("entities", 3, np.int64),
    ("episodes", 6, np.int64),
    ("trust", 7, np.float64),
    ("salience", 8, np.float64),
    ("rewards", 9, np.float64),
    ("recallable", 10, np.bool_),
    ("active", 11, np.bool_),
    ("lengths", 12, np.int64),
    ("asks", 13, np.bool_),
    ("orders", 14, np.bool_),
)

_CODED = ("spaces", "sources")
"""Columns of numbers that stand for a text."""


class Corpus(Follower):
    """Columns over all events of a record, in the order of their ids; follows the record.

    Parameters
    ----------
    record : Record
        What is followed.

    Attributes
    ----------
    event_ids, nodes, timestamps, entities, episodes, lengths : ndarray of shape (n,), int64
        ``nodes`` and ``episodes`` are -1 where there is none; ``lengths`` counts characters.
    trust, salience, rewards : ndarray of shape (n,), float64
        NaN where there is none.
    recallable, active, asks, orders : ndarray of shape (n,), bool
        Whether it may advise; whether it is neither archived nor quarantined; whether it holds a
        question mark; whether it reads like an order.
    sources : ndarray of shape (n,), int64
        Codes of the sources by ``source_codes``, 0 for none.
    spaces : ndarray of shape (n,), int64
        Codes of namespace and visibility together; `code_of` knows them.
    timelines : Timelines
        Who is whose neighbour in time.
    naming : NameIndex
        Names of entities, and titles.
    linked : bool
        Whether there is any link at all.
    saved_rows : int
        How many rows were restored.
    """

    event_ids: IntArray
    nodes: IntArray
    timestamps: IntArray
    entities: IntArray
    spaces: IntArray
    sources: IntArray
    episodes: IntArray
    lengths: IntArray
    trust: Column
    salience: Column
    rewards: Column
    recallable: Mask
    active: Mask
    asks: Mask
    orders: Mask

    def __init__(self, record: Record) -> None:
        self.record = record
        self._version: Tail | None = None
        self._behind = True
        self._reset()
        record.follow(self)

    def _reset(self) -> None:
        self.seq, self.saved_rows = -1, 0
        kinds = {name: kind for name, _, kind in _PLAIN} | dict.fromkeys(_CODED, np.int64)
        self._columns = {name: GrowingColumn(kind) for name, kind in kinds.items()}
        for name, column in self._columns.items():
            setattr(self, name, column.rows)
        self._codes: dict[str, int] = {}
        # Which codes occur in which blocks of rows, some more than once: code, then block.
        self._occurs = GrowingColumn(np.int64)
        self.source_codes: dict[str, int] = {"": 0}
        self.timelines = Timelines(GAP_US)
        self.naming = NameIndex()
        self.linked = False
        self._row_of_node = GrowingColumn(np.int64)
        self._named: dict[tuple[str, ...], dict[str, frozenset[int]]] = {}
        self.alias_nodes = np.zeros(0, dtype=np.int64)
        self._postings = Postings(self.record, self)
        self._masks: dict[tuple[tuple[str, ...], bool | None], Mask] = {}
        self._spans: dict[tuple[tuple[str, ...], bool | None], slice] = {}
        # By who asks: what may be seen where no filter narrows it.
        self.scopes: dict[tuple[object, ...], Scope] = {}
        self._kinds: dict[tuple[str, ...], Kind] = {}
        self._texts: OrderedDict[int, str] = OrderedDict()
        # By spaces: how many events there were, and how like two of them are; see `VisibleEvents`.
        self.backgrounds: dict[tuple[str, ...], tuple[int, tuple[float, float] | None]] = {}
        # By spaces: what a sample of the events is like.
        self.usual: dict[tuple[str, ...], TypicalEvents] = {}

    def __len__(self) -> int:
        return len(self.event_ids)

    def saved(self) -> dict[str, Any]:
        """Return the columns as ``cvx.store.learned_state`` keeps them: not to read them again."""
        rows = [one.rows for one in self._columns.values()]
        return {
            "columns": [one.view(np.uint8) if one.dtype == np.bool_ else one for one in rows],
            "codes": [*self._codes],
            "occurs": np.array(sorted({*self._occurs.rows.tolist()}), dtype=np.int64),
            "source_codes": [*self.source_codes],
            "row_of_node": self._row_of_node.rows,
            "alias_nodes": self.alias_nodes,
            "timelines": self.timelines.saved(),
            "naming": self.naming.saved(),
            "linked": self.linked,
        }

    def restore(self, told: Mapping[str, Any], seq: int) -> None:
        """Hold what was saved when the record ended so; what came later is read at the next use."""
        for (name, column), rows in zip(self._columns.items(), told["columns"], strict=True):
            setattr(self, name, column.hold(rows))
        self._codes = {name: code for code, name in enumerate(told["codes"])}
        self._occurs.hold(told["occurs"])
        self.source_codes = {name: code for code, name in enumerate(told["source_codes"])}
        self._row_of_node.hold(told["row_of_node"])
        self.alias_nodes = told["alias_nodes"]
        self.timelines.restore(told["timelines"])
        self.naming.restore(told["naming"])
        self.linked = told["linked"]
        self.seq, self.saved_rows, self._behind = seq, len(self), True

    # What a record asks of those that follow it.

    def ended(self) -> None:
        """Look again at the next use."""
        self._behind = True

    def taken_back(self) -> None:
        """Forget everything: some of it may never have been."""
        self._reset()
        self._behind = True

    def refresh(self) -> None:
        """Be level with the record; costs microseconds where nothing was committed since."""
        with self.record.reading():
            version = self.record.version()
            if self._behind or version != self._version:
                self._catch_up()
                self._version, self._behind = version, False

    def _catch_up(self) -> None:
        tail = self.record.tail().seq
        if tail == self.seq:
            return
        # Rows of other tables than that of the events are none of the columns.
        changes = self.record.journal(self.seq, but=("row",)) if self.seq >= 0 else []
        if not self.record.keeps_changes_after(max(self.seq, 0)) or any(
            self._moved(op, body) for _, _, op, body in changes
        ):
            self._reset()
        known, last = len(self), int(self.event_ids[-1]) if len(self) else -1
        later = True
        while later:
            found = self.record.query(
                f"{_READ} WHERE event_id > ? ORDER BY event_id LIMIT ?", (last, _AT_ONCE + 1)
            )
            later = len(found) > _AT_ONCE
            self._append(found[:_AT_ONCE], later=later)
            last = int(self.event_ids[-1]) if len(self) else -1
        changed: set[int] = set()
        for _, _, op, body in changes:
            if op in ("state", "recallable", "version"):
                changed.update(event for event, *_ in body)
            elif op == "reward":
                rows = self.rows_of_nodes(np.array([node for node, *_ in body]))
                changed.update(self.event_ids[rows[rows >= 0]].tolist())
        self._renew(sorted(changed))
        aliases = len(self.alias_nodes)
        self._map_aliases()
        self.linked = bool(self.record.query("SELECT EXISTS (SELECT 1 FROM links)")[0][0])
        if changed or len(self.alias_nodes) != aliases:
            self._postings.forget()
        if changed:
            self._masks.clear()
        if changed or len(self) != known:
            of_all = self._spans, self._postings.extents, self.scopes, self._named, self._kinds
            for kept in of_all:
                kept.clear()
        self.seq = tail

    def _moved(self, op: str, body: list[Any]) -> bool:
        """Return whether a change moves rows, neighbours in time, or names."""
        if op == "version":
            now = self.record.columns(
                "events", f"WHERE event_id {AMONG}", (listed(one[0] for one in body),)
            )
            times = dict(zip(now["event_id"], now["timestamp"], strict=True))
            told = dict(zip(now["event_id"], now["metadata"], strict=True))
            return any(
                times.get(event) != before["timestamp"]
                or renames([[event, before["metadata"], told.get(event, "{}")]])
                for event, before, _ in body
            )
        return op == "erase" or (op == "metadata" and renames(body))

    def _append(self, found: list[tuple[Any, ...]], *, later: bool) -> None:
        if not found:
            return
        first = len(self)
        columns = list(zip(*found, strict=True))
        for name, at, kind in _PLAIN:
            setattr(self, name, self._columns[name].extend(np.array(columns[at], dtype=kind)))
        codes = self._codes
        pairs = [*zip(columns[4], columns[5], strict=True)]
        own = {one: codes.setdefault(space(*one), len(codes)) for one in dict.fromkeys(pairs)}
        spaces = [own[one] for one in pairs]
        self.spaces = self._columns["spaces"].extend(spaces)
        blocks = np.arange(first, len(self)) // _BLOCK
        occurs = {*(self.spaces[first:] << 32 | blocks).tolist()}
        self._occurs.extend(sorted(occurs.difference(self._occurs.rows[-1000:].tolist())))
        known = self.source_codes
        codes_of_sources = [known.setdefault(one, len(known)) for one in columns[15]]
        self.sources = self._columns["sources"].extend(codes_of_sources)
        if self.record.refused:
            self.nodes[np.isin(self.nodes, list(self.record.refused))] = -1
            self._masks.clear()
        self._map(self.nodes[first:], np.arange(first, len(self)))
        sessions: list[object] = []
        spoken: list[bool] = []
        # Many say the same: (session, speaker, name, title), and what is noted of it.
        told = {one: None if one is None else json.loads(one) for one in {*columns[16]}}
        noted: dict[tuple[int, int, str], object] = {}
        for row, key in enumerate(zip(spaces, columns[3], columns[16], strict=True), start=first):
            said = told[key[2]]
            if said is not None and (said[3] is not None or key not in noted):
                noted[key] = self.naming.note(row, key[0], key[1], said)
            sessions.append(noted.get(key))
            spoken.append(said is not None and said[1] is not None)
        self.timelines.extend(
            self.spaces[first:],
            sessions,
            spoken,
            self.episodes[first:],
            self.timestamps,
            later=later,
        )

    def _renew(self, events: Sequence[int]) -> None:
        if not events:
            return
        found = self.record.query(
            f"{_READ} WHERE event_id IN (SELECT value FROM json_each(?))", (str(list(events)),)
        )
        for one in found:
            row = int(np.searchsorted(self.event_ids, one[0]))
            for name, at, kind in _PLAIN:
                getattr(self, name)[row] = np.array(one[at], dtype=kind)
            self._texts.pop(one[0], None)
            for usual in self.usual.values():
                usual.known.pop(row, None)
            self._map(self.nodes[row : row + 1], np.array([row]))

    def _map_aliases(self) -> None:
        last = int(self.alias_nodes[-1]) if len(self.alias_nodes) else -1
        found = self.record.query(
            "SELECT node, event_id FROM aliases WHERE node > ? AND typeof(event_id) = 'integer'"
            " ORDER BY node",
            (last,),
        )
        found = [row for row in found if row[0] not in self.record.refused]
        if found:
            nodes, events = np.array(found, dtype=np.int64).T
            self.alias_nodes = np.concatenate([self.alias_nodes, nodes])
            self._map(nodes, self.rows_of(events))

    def _map(self, nodes: IntArray, rows: IntArray) -> None:
        top = int(nodes.max(initial=-1)) + 1
        missing = max(top - len(self._row_of_node.rows), 0)
        table = self._row_of_node.extend(np.full(missing, -1, dtype=np.int64))
        has = nodes >= 0
        table[nodes[has]] = rows[has]

    def rows_of(self, events: Sequence[int] | IntArray) -> IntArray:
        """Return the rows of these events, -1 for those that do not exist."""
        wanted = np.asarray(events, dtype=np.int64)
        if not len(self):
            return np.full(len(wanted), -1, dtype=np.int64)
        first, last = int(self.event_ids[0]), int(self.event_ids[-1])
        if last - first + 1 == len(self):
            # Nothing was ever erased: the place is the difference.
            at = np.clip(wanted - first, 0, len(self) - 1)
        else:
            at = np.searchsorted(self.event_ids, wanted)
            at[at == len(self)] = 0
        return np.where(self.event_ids[at] == wanted, at, -1)

    def rows_of_nodes(self, nodes: IntArray) -> IntArray:
        """Return the rows of the events of these nodes, aliases included; -1 where unknown."""
        wanted, table = np.asarray(nodes, dtype=np.int64), self._row_of_node.rows
        if not len(table):
            return np.full(len(wanted), -1, dtype=np.int64)
        inside = (wanted >= 0) & (wanted < len(table))
        return np.where(inside, table[np.where(inside, wanted, 0)], -1)

    def nodes_of(self, rows: IntArray) -> IntArray:
        """Return the nodes of these rows, those of their aliases included, ascending."""
        own = self.nodes[rows]
        own = own[own >= 0]
        if len(self.alias_nodes):
            chosen = np.isin(self._row_of_node.rows[self.alias_nodes], rows)
            own = np.concatenate([own, self.alias_nodes[chosen]])
        return np.sort(own)

    def public_namespaces(self) -> list[str]:
        """Return the namespaces that hold something public."""
        return [name[: -len(_PUBLIC)] for name in self._codes if name.endswith(_PUBLIC)]

    def base_mask(self, spaces: tuple[str, ...], recallable: bool | None) -> Mask:
        """Return which rows lie in these spaces, are active, and advise (or not, or either)."""
        known = before = self._masks.get((spaces, recallable), np.zeros(0, dtype=np.bool_))
        first = len(before)
        if first < len(self):
            # What came later is looked at alone.
            known = np.zeros(len(self), dtype=np.bool_)
            known[:first] = before
            inside = np.zeros(len(self._codes), dtype=np.bool_)
            codes = [self._codes[name] for name in spaces if name in self._codes]
            inside[codes] = True
            # Blocks of others' rows are not looked at.
            occurs, blocks = self._occurs.rows, np.zeros(len(self) // _BLOCK + 1, dtype=np.bool_)
            blocks[occurs[inside[occurs >> 32]] & (2**32 - 1)] = True
            blocks[: first // _BLOCK] = False
            ends = np.flatnonzero(np.diff(blocks, prepend=False, append=False)) * _BLOCK
            for part in map(slice, np.maximum(ends[::2], first), ends[1::2]):
                own = inside[self.spaces[part]] & self.active[part] & (self.nodes[part] >= 0)
                known[part] = (
                    own if recallable is None else own & (self.recallable[part] == recallable)
                )
            self._masks[(spaces, recallable)] = known
        return known

    def span(self, spaces: tuple[str, ...], recallable: bool | None) -> slice:
        """Return the rows from the first to the last of a ``base_mask``: others' lie around it."""
        name = spaces, recallable
        if name not in self._spans:
            rows = np.flatnonzero(self.base_mask(*name))
            self._spans[name] = slice(*(rows[[0, -1]] + (0, 1))) if len(rows) else slice(0)
        return self._spans[name]

    def names(self, spaces: tuple[str, ...]) -> dict[str, frozenset[int]]:
        """Return the words that name an entity in these spaces; see `NameIndex.names`."""
        known = self._named.get(spaces)
        if known is None:
            codes = [self._codes[name] for name in spaces if name in self._codes]
            known = self._named[spaces] = self.naming.names(codes)
        return known

    def kind(self, spaces: tuple[str, ...], rows: Mask) -> Kind:
        """Return what these rows of some spaces are.

        Passages of documents, if of at least 30 events most are long. Statements, if most are
        short, at most one in twenty holds a question mark (or one in all), and the embedder is not
        the default one, which compares spelling. Turns, if somebody is named to have said one, if
        most belong to episodes, and else.
        """
        known = self._kinds.get(spaces)
        if known is None:
            known = "turns"
            lengths = self.lengths[rows]
            if len(lengths) and not self.names(spaces) and np.mean(self.episodes[rows] >= 0) < 0.5:
                if np.median(lengths) >= _LONG:
                    known = "passages" if len(lengths) >= _FEWEST_PASSAGES else "turns"
                elif self.asks[rows].sum() <= max(1, _FEW_ASK * len(lengths)) and not (
                    self.record.meta("embedder") or ""
                ).startswith("cvx-lexical-1/"):
                    known = "statements"
            self._kinds[spaces] = known
        return known

    def postings(
        self, word: str, spaces: tuple[str, ...], recallable: bool | None
    ) -> IntArray | None:
        """Return the rows of a ``base_mask`` that hold a word; None where they are too many."""
        mask = self.base_mask(spaces, recallable)
        return self._postings.rows(word, mask, (spaces, recallable))

    def texts(self, rows: Sequence[int] | IntArray) -> list[str]:
        """Return the texts of these rows."""
        events = self.event_ids[np.asarray(rows, dtype=np.int64)].tolist()
        known = self._texts
        missing = [event for event in events if event not in known]
        if missing:
            marks = ", ".join("?" * len(missing))
            known.update(
                self.record.query(
                    f"SELECT event_id, text FROM events WHERE event_id IN ({marks})", missing
                )
            )
        out = [known[event] for event in events]
        while len(known) > _MOST_TEXTS:
            known.popitem(last=False)
        return out
