"""One recall from beginning to end: a ranking, and the hits at its head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from cvx.arguments import an_event
from cvx.causal.events import link_of
from cvx.cue import cue_hash, sound_cue
from cvx.errors import UnknownError
from cvx.index import RawIndex
from cvx.recall.corpus import Corpus
from cvx.recall.pipeline import Others, Outside, Pipeline, Ranking, ask_outside, gather, rank
from cvx.recall.scope import Asker, scope_of
from cvx.recall.trace import Trace
from cvx.recall.view import View
from cvx.scoring.feedback import FeedbackRanker
from cvx.store import Record
from cvx.store.namespaces import readers, reads
from cvx.types import Cue, Edge, Event, Factor, Hit, Vector

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a recall stands on.

    Parameters
    ----------
    corpus : Corpus
        All events, as columns.
    index : callable
        Returns the index, level with the record.
    others : Others
        The embedder, and how it and the sources of the user are asked.
    clock : callable
        Now, in the unit of the timestamps.
    pending : mapping of int to int
        When events were used, where that is not written down yet.
    learned : callable
        From who asks to what feedback taught of its recalls, or None.
    """

    corpus: Corpus
    index: Callable[[], RawIndex]
    others: Others
    clock: Callable[[], int]
    pending: Mapping[int, int]
    learned: Callable[[str], FeedbackRanker | None] = lambda _: None

    def view(self, asker: Asker, cue: Cue, k: int) -> View:
        """Return what an asker sees at this moment, inside ``Record.reading``."""
        index = self.index()
        self.corpus.refresh()
        now = self.clock() if cue.timestamp is None else cue.timestamp
        view = View(self.corpus, index, scope_of(self.corpus, asker), cue, now, k)
        view.pending = self.pending
        return view


@dataclass(frozen=True, slots=True)
class Recalled:
    """What came of one recall.

    Parameters
    ----------
    cue : Cue
        As it was asked, with its vector.
    view : View
        What was seen.
    ranking : Ranking
        The candidates in order.
    trace : Trace
        What happened.
    """

    cue: Cue
    view: View
    ranking: Ranking
    trace: Trace


def recall_once(
    ground: Ground,
    pipeline: Pipeline,
    asker: Asker,
    cue: str | Cue | Vector,
    k: int,
    take: Callable[[Recalled], T],
) -> tuple[Recalled, T]:
    """Run a pipeline, and ``take`` what is wanted of the ranking.

    The embedder and the sources of the user are asked while nothing is locked; the rest, ``take``
    too, sees one state of the record.
    """
    asked = sound_cue(cue)
    whole = cue.words() if isinstance(cue, Cue) else cue
    trace = Trace(
        asked.words(), asker.namespace, cue_hash(asked), asked.place, passed=asker.passed()
    )
    if not asked.words().strip() and asked.vector is None:
        trace.problems.append("the cue says nothing: nothing was looked for")
    if len(asked.words()) < len(whole):
        trace.problems.append(f"the cue has {len(whole)} characters: its beginning was used")
    record = ground.corpus.record
    if asked.event is not None:
        asked, pipeline = _at_event(record, asker, asked), pipeline.finding_causes()
    with record.reading():
        view = ground.view(asker, asked, k)
        view.question = question = pipeline.reader(view)
        if not pipeline.asks_outside(asked, question):
            outside = Outside(asked.vector, {})
            recalled = _looked(pipeline, view, outside, trace, ground.learned(asker.namespace))
            return recalled, take(recalled)
    outside = ask_outside(pipeline, asked, question, ground.others, trace)
    with record.reading():
        view = ground.view(asker, asked, k)
        view.question = question
        recalled = _looked(pipeline, view, outside, trace, ground.learned(asker.namespace))
        return recalled, take(recalled)


def _at_event(record: Record, asker: Asker, cue: Cue) -> Cue:
    """Return a cue that names an event, lying where the event does if it says nothing else.

    Raises
    ------
    UnknownError
        There is no such event, or the asker may not know of it.
    """
    known = reads(asker.namespace, asker.also)
    for event in record.whole_events([an_event("cue.event", cue.event)]):
        if readers(event.namespace, event.visibility) in known:
            silent = cue.vector is None and not cue.words().strip()
            return replace(cue, vector=event.vector) if silent else cue
    raise UnknownError(f"there is no event {cue.event}: it was erased or never given")


def _looked(
    pipeline: Pipeline,
    view: View,
    outside: Outside,
    trace: Trace,
    learned: FeedbackRanker | None,
) -> Recalled:
    view.vector = outside.vector
    table = gather(pipeline, view, outside, trace)
    return Recalled(view.cue, view, rank(pipeline, view, table, trace, learned), trace)


def hits_of(recalled: Recalled, places: Sequence[int]) -> list[Hit]:
    """Return hits with their events and factors for places of the table, in that order."""
    ranking, corpus = recalled.ranking, recalled.view.corpus
    table = ranking.table
    ids = table.event_ids[list(places)].tolist()
    events = {event.event_id: event for event in corpus.record.whole_events(ids)}
    out = []
    for place, number in zip(places, ids, strict=True):
        event = events.get(number)
        if event is not None and event.node is not None:
            factors = ranking.scored.factors(place)
            out.append(_hit(recalled, place, event, factors))
    return out


def _hit(recalled: Recalled, place: int, event: Event, factors: tuple[Factor, ...]) -> Hit:
    table = recalled.ranking.table
    similarity = float(table["dense"][place])
    known = not math.isnan(similarity)
    assert event.node is not None
    chances = recalled.ranking.relevance
    return Hit(
        node=event.node,
        distance=recalled.view.to_distance(similarity) if known else math.inf,
        score=math.fsum([factor[3] for factor in factors]),
        similarity=similarity if known else 0.0,
        entity_id=event.entity_id,
        timestamp=event.timestamp,
        reward=event.reward,
        action=event.action,
        factors=factors,
        path=_with_reasons(recalled, table.paths.get(int(table.rows[place]), ())),
        event=event,
        relevance=None if chances is None else float(chances[place]),
    )


def _with_reasons(recalled: Recalled, path: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Return a path of the index as one of events, with what the record says of its edges."""
    if not path or path[0].boost is None:
        # Only a search of the index boosts edges; others come from the record.
        return path
    starts = [edge.from_node for edge in path]
    corpus = recalled.view.corpus
    links = corpus.record.links_of(starts, incoming=False)
    known = {(link.from_node, link.to_node, link.kind): link for link in links}
    out = []
    for edge in path:
        nodes = edge.from_node, edge.to_node
        rows = corpus.rows_of_nodes(np.array(nodes, dtype=np.int64))
        cause, effect = corpus.event_ids[rows].tolist()
        link = link_of(known.get((*nodes, edge.kind), edge), cause, effect)
        out.append(replace(link, boost=edge.boost, nodes=nodes))
    return tuple(out)
