"""Links for the events of a memory: who may have led to this, who says so, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple, TypeVar

from cvx.arguments import check_fields, number, optional, whole
from cvx.causal.events import Link, causal_kinds
from cvx.causal.evidence import Evidence
from cvx.causal.ground import StoreGround, store_links
from cvx.causal.judges import Judge, Judgement, Pair, judgements
from cvx.index import RawIndex
from cvx.store import Record
from cvx.store.namespaces import visible_spaces, visible_sql
from cvx.types import Edge, Event, Filter

T = TypeVar("T")
_OPEN = "unjudged_causes"
_MOST_OPEN = 10_000


@dataclass(frozen=True, slots=True)
class CauseSearch:
    """Which earlier events are judged as causes of a new one.

    Parameters
    ----------
    most : int, default 5
        How many, the most similar and the most recent in turn; at least 1.
    threshold : float, default 0.3
        What is less similar comes in as recent only; in [-1, 1].
    window : int, optional
        How long before the effect they may have happened, in the unit of the timestamps, at least
        1; by default any time. In a ``CausalMemoryCore`` (microseconds) it bounds what is recent.
    latest : int, default 50
        How many of those recorded last count as recent.
    """

    most: int = 5
    threshold: float = 0.3
    window: int | None = None
    latest: int = 50

    def __post_init__(self) -> None:
        check_fields(
            self,
            most=whole(1),
            threshold=number(-1.0, 1.0),
            window=optional(whole(1)),
            latest=whole(0),
        )


def in_turn(similar: Iterable[T], recent: Iterable[T]) -> Iterator[T]:
    """Yield the most similar and the most recent in turn.

    Examples
    --------
    >>> list(in_turn([1, 2, 3], [9]))
    [1, 9, 2, 3]
    """
    turns = zip_longest(similar, recent)
    return (one for turn in turns for one in turn if one is not None)


class Linked(NamedTuple):
    """What came of looking for the causes of an event.

    Attributes
    ----------
    links : tuple of Link
        What was confirmed, as it is stored.
    denied, unjudged : tuple of int
        Events that did not lead to it, and those of which nobody could say.
    """

    links: tuple[Link, ...]
    denied: tuple[int, ...]
    unjudged: tuple[int, ...]


class Linker:
    """Judges pairs of a memory's events, and keeps the evidence on their links.

    Parameters
    ----------
    record : Record
        Where events and links are.
    index : callable
        Returns the index, level with the record.
    """

    def __init__(self, record: Record, index: Callable[[], RawIndex]) -> None:
        self.record = record
        self._index = index

    def link(self, effect: Event, judge: Judge, search: CauseSearch) -> Linked:
        """Judge what may have led to an event, and store what is confirmed.

        A link that exists already gains or loses by the new judgement. Pairs that nobody could
        judge are kept for ``retry``.
        """
        return self._settled(effect, self.candidates(effect, search), judge)

    def candidates(self, effect: Event, search: CauseSearch) -> list[Event]:
        """Return earlier events, the most similar and the most recent in turn."""
        mixed = [
            *dict.fromkeys(in_turn(self._similar(effect, search), self._recent(effect, search)))
        ]
        # One more than needed: a repetition of the effect's own words is left out.
        known = {event.event_id: event for event in self.record.events(mixed[: search.most * 2])}
        words = effect.text.casefold().split()
        found = [known[number] for number in mixed if number in known]
        return [event for event in found if event.text.casefold().split() != words][: search.most]

    def _since(self, effect: Event, search: CauseSearch) -> int | None:
        return None if search.window is None else effect.timestamp - search.window

    def _similar(self, effect: Event, search: CauseSearch) -> list[int]:
        index = self._index()
        if effect.vector is None or not effect.vector.any():
            return []
        spaces = visible_spaces(effect.namespace, [], self.record.public_namespaces())
        where = Filter(
            since=self._since(effect, search),
            until=effect.timestamp + 1,
            namespaces=spaces,
            recallable=None,
        )
        nodes, distances = index.search(effect.vector, 2 * search.most + 1, where=where)
        near = [
            node
            for node, distance in zip(nodes.tolist(), distances.tolist(), strict=True)
            if self._similarity(index, distance) >= search.threshold
        ]
        events = self.record.events_of_nodes(near, active=True)
        owners = [events[node] for node in near if node in events]
        return [event for event in dict.fromkeys(owners) if event != effect.event_id]

    @staticmethod
    def _similarity(index: RawIndex, distance: float) -> float:
        return 1.0 / (1.0 + distance) if index.metric == "l2" else 1.0 - distance

    def _recent(self, effect: Event, search: CauseSearch) -> list[int]:
        visible, values = visible_sql(effect.namespace, [])
        since = self._since(effect, search)
        found = self.record.query(
            f"SELECT event_id FROM events WHERE event_id <> ? AND timestamp <= ? AND {visible}"
            " AND state = 'active' AND node IS NOT NULL AND (? IS NULL OR timestamp >= ?)"
            " ORDER BY event_id DESC LIMIT ?",
            (effect.event_id, effect.timestamp, *values, since, since, search.latest),
        )
        return [row[0] for row in found]

    def _settled(self, effect: Event, causes: Sequence[Event], judge: Judge) -> Linked:
        assert effect.event_id is not None
        pairs = [_pair(cause, effect) for cause in causes]
        made = judgements(judge, pairs) if pairs else []
        ids = [event.event_id for event in causes if event.event_id is not None]
        ground = StoreGround(
            self.record, lambda: self._index().edge_kinds, namespace=effect.namespace
        )
        into = ground.links([effect.event_id], backward=True)
        known = {link.cause: link for link in into if link.kind == "caused"}
        changed: dict[int, Link] = {}
        by_verdict: dict[str, list[int]] = {"yes": [], "no": [], "unjudged": []}
        for cause, one in zip(ids, made, strict=True):
            by_verdict[one.verdict].append(cause)
            if one.confirmed or (one.verdict == "no" and cause in known):
                fresh = Link(cause, effect.event_id, Evidence().weight)
                changed[cause] = _judged(known.get(cause, fresh), one, judge.name)
        still = [(cause, effect.event_id) for cause in by_verdict["unjudged"]]
        asked = [(cause, effect.event_id) for cause in ids]
        self._store(list(changed.values()), asked, still)
        links = tuple(changed[cause] for cause in by_verdict["yes"])
        return Linked(links, tuple(by_verdict["no"]), tuple(by_verdict["unjudged"]))

    def observe(
        self, cause: int, effect: int, evidence: Callable[[Evidence], Evidence], kind: str
    ) -> Link:
        """Change the evidence on a link, and with it its weight; the link is made if it is not.

        Parameters
        ----------
        cause, effect : int
            Events.
        evidence : callable
            From what is known to what is known then.
        kind : str
            Kind of the edge.

        Raises
        ------
        UnknownError, InvalidInputError
            No such event or kind; a link to itself.
        """
        # Read and written in one transaction: of two who count at once neither is lost.
        with self.record.transaction() as write:
            old = self._kept(cause, effect, kind)
            before = Evidence() if old is None else Evidence.of(old.weight, old.evidence)
            after = evidence(before)
            why = "" if old is None else old.why
            link = Link(cause, effect, after.weight, kind, why, after.to_text())
            store_links(write, [link], self._kinds())
        return link

    def _kept(self, cause: int, effect: int, kind: str) -> Edge | None:
        """The link as it is stored: cases count whether or not both ends can be seen."""
        nodes = self.record.nodes_of_events([cause, effect])
        into = self.record.links_of(nodes.get(effect, []), incoming=True)
        ours = nodes.get(cause, [])
        return next((e for e in into if e.kind == kind and e.from_node in ours), None)

    def open_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of cause and effect that nobody could judge, oldest first."""
        state = self.record.state(_OPEN)
        return [] if state is None else [(a, b) for a, b in state["pairs"]]

    def retry(self, judge: Judge) -> list[Linked]:
        """Judge the open pairs again, by effect; those of events that are gone are dropped."""
        causes_of: dict[int, list[int]] = {}
        for cause, effect in self.open_pairs():
            causes_of.setdefault(effect, []).append(cause)
        out = []
        for effect, causes in causes_of.items():
            events = {event.event_id: event for event in self.record.events([effect, *causes])}
            gone = [(cause, effect) for cause in causes if not {cause, effect} <= set(events)]
            if gone:
                self._store([], gone, [])
            if effect in events:
                there = [events[cause] for cause in causes if cause in events]
                out.append(self._settled(events[effect], there, judge))
        return out

    def _store(
        self,
        links: Sequence[Link],
        settled: Sequence[tuple[int, int]],
        open_: Sequence[tuple[int, int]],
    ) -> None:
        before = self.open_pairs()
        kept = [pair for pair in before if pair not in set(settled)]
        after = [*kept, *open_][-_MOST_OPEN:]
        if not links and after == before:
            return
        with self.record.transaction() as write:
            store_links(write, links, self._kinds())
            if after != before:
                write.set_state(_OPEN, {"pairs": [list(pair) for pair in after]})

    def _kinds(self) -> tuple[str, ...]:
        return causal_kinds(self._index().edge_kinds)


def _pair(cause: Event, effect: Event) -> Pair:
    lag = effect.timestamp - cause.timestamp
    return Pair(cause.text, effect.text, cause.vector, effect.vector, lag)


def _judged(link: Link, made: Judgement, judge: str) -> Link:
    """The link after one more judgement of it."""
    likely = made.probability if made.probability is not None else float(made.confirmed)
    before = Evidence.of(link.weight, link.evidence)
    after = before.add("judged", supports=likely, counters=1.0 - likely, note=judge)
    why = made.why if made.confirmed and made.why else link.why
    return Link(link.cause, link.effect, after.weight, link.kind, why, after.to_text())
