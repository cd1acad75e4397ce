"""Finds likely causes of an event among earlier ones and stores them as links or candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cvx.arguments import check_fields, number, optional, whole
from cvx.causal.cause_probability import Known, PairModel, Told, at_most, reasons, words_of
from cvx.causal.evidence import Evidence, following
from cvx.causal.graph_data import HIDDEN, NOT_WALKED, causal_kinds, link_of, state_of, store_links
from cvx.causal.judges import Judge, Judgement, Pair, judgements
from cvx.causal.judges.offline import leaves_open
from cvx.index import RawIndex
from cvx.store import Record
from cvx.store.namespaces import visible_spaces, visible_sql
from cvx.store.prompt_injection import ORDER
from cvx.types import Edge, Event, EventId, Filter, Vector

_RECENT, _SIMILAR = 20, 20
_DISORDER = 200
_REPEATS, _BEFORE_REPEAT, _MOST_FORMS = 4, 6, 3


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


class Setting(NamedTuple):
    """An event with its candidate causes.

    Attributes
    ----------
    effect : Told
        What is to be explained.
    events : tuple of Event
        What happened before it, or is told at the same time.
    pool : tuple of Told
        The same, as the pair model sees them.
    known : Known or None
        Links that somebody stated or confirmed, of events like the effect.
    """

    effect: Told
    events: tuple[Event, ...]
    pool: tuple[Told, ...]
    known: Known | None


class Surroundings:
    """Collects candidate causes of an event: recent ones and similar ones.

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
        self._read: dict[int, Event] = {}

    def of(self, effect: Event) -> Setting:
        """Return the latest and the most similar events that are no later than an event."""
        index, vector = self._index(), _unit(effect.vector)
        self._read = {}
        until = effect.timestamp + 1
        similar = [] if vector is None else self._near(index, effect, _SIMILAR, effect, until)
        wanted = dict.fromkeys([*self._around(effect), *similar])
        found = self._events(wanted)
        listed = [one for one in found if one.text.strip() and one.id != effect.id]
        order = sorted(listed, key=lambda one: (one.timestamp, one.id))
        before = [one for one in order if (one.timestamp, one.id) < (effect.timestamp, effect.id)]
        after = order[len(before) :]
        steps = {one.id: float(place) for place, one in enumerate(after)}
        steps |= dict(
            zip((one.id for one in reversed(before)), self._steps(effect, before), strict=True)
        )
        counted = self._counted(index, effect, order)
        words = effect.text.casefold().split()
        order = [one for one in order if one.text.casefold().split() != words]
        pool = [
            Told(
                one.text,
                _unit(one.vector),
                float(steps[one.id]),
                one.timestamp == effect.timestamp,
                *counted.get(one.id, (0.0, 0.0)),
            )
            for one in order
        ]
        known = None if vector is None else self._known(index, effect, similar)
        return Setting(Told(effect.text, vector), tuple(order), tuple(pool), known)

    def _events(self, ids: Iterable[int]) -> list[Event]:
        """Events in the order of their ids; each is read once."""
        wanted = sorted(set(ids))
        new = self.record.events(one for one in wanted if one not in self._read)
        self._read |= {one.id: one for one in new}
        return [self._read[one] for one in wanted if one in self._read]

    def _around(self, effect: Event, most: int = _RECENT, *, later: bool = True) -> list[int]:
        """What was recorded last before an event, and what was recorded after but no later."""
        visible, values = visible_sql(effect.namespace, [])
        found: list[int] = []
        number = effect.id
        sides = (0, number - 1, "DESC"), (number + 1, number + _DISORDER, "ASC")
        for first, last, order in sides[: 1 + later]:
            rows = self.record.query(
                f"SELECT event_id FROM events WHERE event_id BETWEEN ? AND ? AND {visible}"
                " AND state = 'active' AND node IS NOT NULL AND timestamp <= ?"
                f" ORDER BY event_id {order} LIMIT ?",
                (first, last, *values, effect.timestamp, most),
            )
            found += [row[0] for row in rows]
        return found

    def _steps(self, effect: Event, before: Sequence[Event]) -> Iterator[float]:
        """How many events lie between an event and each before it, the latest first.

        Beyond the latest it is what the time between them says.
        """
        latest = before[-_RECENT:]
        gap = (effect.timestamp - latest[0].timestamp) / len(latest) if latest else 0.0
        for place, one in enumerate(reversed(before)):
            if place < len(latest):
                yield float(place)
            else:
                yield max(float(place), (effect.timestamp - one.timestamp) / max(gap, 1e-9))

    def _near(self, index: RawIndex, one: Event, most: int, effect: Event, until: int) -> list[int]:
        """Return the events nearest to one, of what could be seen where the effect happened."""
        spaces = visible_spaces(effect.namespace, [], self.record.public_namespaces())
        where = Filter(until=until, namespaces=spaces, recallable=None)
        nodes, _ = index.search(np.asarray(one.vector), most, where=where)
        owners = self.record.events_of_nodes(nodes.tolist(), active=True)
        return [owners[node] for node in nodes.tolist() if node in owners]

    def _known(self, index: RawIndex, effect: Event, similar: Sequence[int]) -> Known | None:
        """The links into events like this one that a person stated or confirmed."""
        others = [one for one in similar if one != effect.id]
        nodes = [own[0] for own in self.record.nodes_of_events(others).values()]
        links = self.record.links_of(nodes, incoming=True) if nodes else []

        def unit_at(node: int) -> Vector | None:
            return _unit(index.vector(node) if node in index else None)

        ends = [
            (a, b)
            for link in links
            if link.kind == "caused" and state_of(link) in ("stated", "confirmed")
            for a, b in [(unit_at(link.from_node), unit_at(link.to_node))]
            if a is not None and b is not None
        ]
        if not ends:
            return None
        return Known(np.stack([a for a, _ in ends]), np.stack([b for _, b in ends]))

    def _counted(
        self, index: RawIndex, effect: Event, events: Sequence[Event]
    ) -> dict[int, tuple[float, float]]:
        """How often the like of each event was followed by the like of the effect, and not.

        Nothing is counted for an effect whose like never happened before.
        """
        own = words_of(effect.text).form
        form_of = {one.id: words_of(one.text).form for one in events}
        again = [one for one in events if one.id != effect.id and form_of[one.id] == own]
        if not again:
            return {}
        past = self._events(
            number
            for one in again[-_REPEATS:]
            for number in self._around(one, _BEFORE_REPEAT, later=False)
        )
        times = sorted({effect.timestamp, *(one.timestamp for one in again)})
        counted = {}
        forms = {words_of(other.text).form for other in past} - {own}
        when: dict[str, list[int]] = {}
        for one in reversed(events):
            form = form_of[one.id]
            if one.timestamp >= effect.timestamp or form not in forms:
                continue
            if form not in when:
                if len(when) == _MOST_FORMS:
                    continue
                when[form] = self._times(index, one, effect)
            window = max(1, 3 * (effect.timestamp - one.timestamp))
            found = following(when[form], times, window)
            beyond = max(0.0, found.followed - max(1.0, found.expected))
            counted[one.id] = beyond, float(found.causes - found.followed)
        return counted

    def _times(self, index: RawIndex, one: Event, effect: Event) -> list[int]:
        """When the like of an event happened, before the effect."""
        if one.vector is None or not one.vector.any():
            return [one.timestamp]
        # What says the same counts, whatever its numbers.
        form = words_of(one.text).form
        found = self._events(self._near(index, one, 4 * _REPEATS, effect, effect.timestamp))
        return [own.timestamp for own in found if own is one or words_of(own.text).form == form]


def _unit(row: Vector | None) -> Vector | None:
    """A vector of length 1; None where there is none, or none with a direction."""
    length = 0.0 if row is None else float(np.sqrt(row @ row))
    return None if row is None or length == 0.0 else np.asarray(row / np.float32(length))


class Linker:
    """Draws links between a memory's events, and keeps the evidence on them.

    Parameters
    ----------
    record : Record
        Where events and links are.
    index : callable
        Returns the index, level with the record.
    embedder : mapping
        What the embedder says of itself (``Embedder.info``).
    """

    def __init__(
        self, record: Record, index: Callable[[], RawIndex], embedder: Mapping[str, Any]
    ) -> None:
        self.record = record
        self._index = index
        self._space = str(embedder.get("id", ""))
        self._family = "semantic" if embedder.get("semantic") else "lexical"

    def propose(self, effect: Event, k: int, judge: Judge | None, draw: float | None) -> list[Edge]:
        """Link an event to what may have led to it, or keep that as candidates.

        Parameters
        ----------
        effect : Event
            What is to be explained.
        k : int
            How many causes at the most.
        judge : Judge, optional
            Who is asked about each; what it says moves the chance that the pair model gives.
        draw : float, optional
            From this chance up a link is drawn; by default none is.

        Returns
        -------
        list of Edge
            The likeliest first, each with its ``state``.
        """
        seen = Surroundings(self.record, self._index).of(effect)
        model = PairModel.shipped()
        rows = model.evidence(seen.effect, seen.pool, seen.known, self._space)
        _, chances = model.parts(rows, self._family)
        chances = at_most(seen.effect, seen.pool, chances)
        known = self._linked(effect)
        order = [
            at
            for at in np.argsort(-chances, kind="stable").tolist()
            if judge is not None or chances[at] >= LEAST
            if (old := known.get(seen.events[at].id, _NEW)) is not None and old.state in _GUESSED
        ][:k]
        said = _asked(judge, effect, [seen.events[at] for at in order])
        made = []
        for at, word in zip(order, said, strict=True):
            cause = seen.events[at].id
            why = reasons(seen.effect, seen.pool[at], rows[at], seen.pool)
            chance, why = _weighed(float(chances[at]), why, word)
            before = known.get(cause) or _NEW
            note = "cvx" if judge is None else judge.name
            evidence = Evidence.from_text(before.evidence).judged(chance, note)
            state = "judged" if draw is not None and evidence.weight >= draw else "candidate"
            sure = word is not None and word.confirmed
            # An order that somebody planted happened, but nobody knows that it led to anything.
            ordered = ORDER in seen.events[at].tags
            if not sure and (ordered or leaves_open(seen.pool[at].text, effect.text)):
                state = "candidate"
            if word is not None and word.verdict == "unjudged":
                state = "unjudged"
            link = Edge(
                cause, effect.id, "caused", evidence.weight, why, evidence.to_text(), state=state
            )
            if state != "candidate" or evidence.weight >= LEAST or before is not _NEW:
                made.append(link)
        changed = [
            one for one in made if one != replace(known.get(one.cause) or _NEW, recorded=None)
        ]
        if changed:
            with self.record.transaction() as write:
                store_links(write, changed, causal_kinds(self._index().edge_kinds))
        return sorted(made, key=lambda link: -link.weight)

    def _linked(self, effect: Event) -> dict[EventId, Edge | None]:
        """The links into an event by cause; None for what it led to itself."""
        nodes = self.record.nodes_of_events([effect.id]).get(effect.id, [])
        into = self.record.links_of(nodes, incoming=True) if nodes else []
        out = self.record.links_of(nodes, incoming=False) if nodes else []
        ends = {node for edge in (*into, *out) for node in (edge.from_node, edge.to_node)}
        owner = self.record.events_of_nodes(sorted(ends))
        found: dict[EventId, Edge | None] = {
            owner[edge.to_node]: None
            for edge in out
            if edge.to_node in owner and edge.kind not in NOT_WALKED
        }
        kinds = {"caused", *HIDDEN.values()}
        return found | {
            owner[edge.from_node]: link_of(edge, owner[edge.from_node], effect.id)
            for edge in into
            if edge.from_node in owner and edge.kind in kinds
        }

    def settle(self, cause: int, effect: int, change: Callable[[Edge], Edge]) -> Edge:
        """Change the state of a link or a candidate, and return it.

        Parameters
        ----------
        cause, effect : int
            Events.
        change : callable
            From the link as it is, or a new one in the state "candidate" with no evidence, to what
            it is to be.

        Raises
        ------
        UnknownError
            No such event.
        InvalidInputError
            A link to itself.
        """
        # Read and written in one transaction: of two who count at once neither is lost.
        with self.record.transaction() as write:
            nodes = self.record.nodes_of_events([cause, effect])
            into = self.record.links_of(nodes.get(effect, [-1]), incoming=True)
            ours = nodes.get(cause, [])
            kinds = {"caused", *HIDDEN.values()}
            old = next((e for e in into if e.kind in kinds and e.from_node in ours), None)
            fresh = Edge(cause, effect, weight=0.5, state="candidate")
            link = change(fresh if old is None else link_of(old, cause, effect))
            store_links(write, [link], causal_kinds(self._index().edge_kinds))
        return link

    def kept(self, state: str) -> list[Edge]:
        """Return candidates and rejected links, the most probable first."""
        edges = [edge for edge in self.record.links() if edge.kind == HIDDEN[state]]
        ends = {node for edge in edges for node in (edge.from_node, edge.to_node)}
        owner = self.record.events_of_nodes(sorted(ends), active=True)
        found = [
            link_of(edge, owner[edge.from_node], owner[edge.to_node])
            for edge in edges
            if edge.from_node in owner and edge.to_node in owner
        ]
        found.sort(key=lambda link: (-link.weight, str(link.effect), str(link.cause)))
        old = self.record.state(_OPEN) if state == "unjudged" else None
        if old is not None:
            ends = {end for pair in old["pairs"] for end in pair}
            there = {one.id for one in self.record.events(ends)}
            found += [
                Edge(cause, effect, weight=0.0, state=state)
                for cause, effect in old["pairs"]
                if {cause, effect} <= there
            ]
        return found


_OPEN = "unjudged_causes"
"""Where stores kept, before links had states, the pairs that nobody could judge."""
LEAST = 0.05
"""What is less likely than this is not kept, not even as a candidate."""
_GUESSED = ("judged", "candidate", "unjudged")
_NEW = Edge("", " ", state="candidate")
_YES, _CALM, _CLIP = 0.85, 0.5, 3.0


def _asked(judge: Judge | None, effect: Event, causes: Sequence[Event]) -> list[Judgement | None]:
    if judge is None:
        return [None] * len(causes)
    pairs = [
        Pair(one.text, effect.text, one.vector, effect.vector, effect.timestamp - one.timestamp)
        for one in causes
    ]
    return [*judgements(judge, pairs)] if pairs else []


def _weighed(chance: float, why: str, word: Judgement | None) -> tuple[float, str]:
    """The chance after a judge's word, and what is said for it.

    A clear yes or no counts as .85 or .15 where it comes without a number, and what else speaks
    for the pair half, so that it can lower a yes and raise a no, but turn round neither.
    """
    if word is None or word.verdict == "unjudged":
        return chance, why if word is None else word.why
    given = word.probability
    if given is None:
        given = _YES if word.confirmed else 1.0 - _YES
    given = min(max(given, 0.001), 0.999)
    own = np.clip(np.log(chance / (1.0 - chance)), -_CLIP, _CLIP)
    odds = np.log(given / (1.0 - given)) + _CALM * own
    odds = max(odds, 0.0) if word.confirmed else min(odds, -0.001)
    return float(1.0 / (1.0 + np.exp(-odds))), (word.why if word.confirmed else "") or why
