"""The read pipeline: sources, signals, fusion, score, floors, from a cue to ranked hits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from cvx.arguments import an_event, whole
from cvx.causal.graph_data import link_of
from cvx.cue import cue_hash, dense_text, lexical_text, sound_cue
from cvx.errors import EmbedderWarning, InvalidInputError, InvalidVectorError, UnknownError, warn
from cvx.index import RawIndex, recall_columns
from cvx.recall.context import Serving
from cvx.recall.corpus import Corpus
from cvx.recall.floor import Floor, JudgeOfAnswers, length_of, relevance_of
from cvx.recall.fusion import Candidates, FloatArray, Fusion, Weighting, by_rank
from cvx.recall.poisoning import Guard
from cvx.recall.question import AnyQuestion, PlainQuestion, Question, content_words
from cvx.recall.ranking_signals import both_sides
from cvx.recall.sources import (
    BUILT_IN,
    Dense,
    Finder,
    Found,
    Lexical,
    UserSource,
    finder_of,
    joined,
)
from cvx.recall.trace import SourceReport, Trace
from cvx.recall.visible_events import Asker, VisibleEvents, scope_of
from cvx.scoring.feedback import ODDS, FeedbackRanker
from cvx.scoring.scorer import Scored
from cvx.store import Record
from cvx.store.history import Versions
from cvx.store.namespaces import readers, reads
from cvx.time_limits import Calls, Outcome
from cvx.types import Column, Cue, Edge, Event, Factor, Hit, IntArray, Source, Vector

Signal: TypeAlias = Callable[[Any, Candidates, VisibleEvents], Mapping[str, FloatArray]]
"""From the reader's question and what is known of the candidates to further named columns."""
Reader: TypeAlias = Callable[[VisibleEvents], AnyQuestion]
"""What the cue asks for; called before any source."""
Embed: TypeAlias = Callable[[str], Vector]


_FURTHEST = 1_000
"""Neighbours on either side that may become candidates."""


def read_plainly(view: VisibleEvents) -> PlainQuestion:
    """Return the cue as it is, without parsing."""
    return PlainQuestion(lexical_text(view.cue), dense_text(view.cue))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How a cue becomes ranked candidates; ``dataclasses.replace`` changes a part.

    Parameters
    ----------
    reader : callable
        From the view of a recall to its question.
    sources : mapping of str to Finder or callable
        Where to look; those of the user are any ``Callable[[Cue], list[Hit]]``.
    net : int, optional
        How many of what the sources found are weighed, or three for each hit, by reciprocal rank
        over them; by default all.
    reach : int, default 0
        How many neighbours in time, on either side, of the best found become candidates too;
        from 0 to 1,000.
    follow : tuple of str
        Kinds of links over which, one step in their direction, more become candidates.
    signals : tuple of callable
        Each adds columns, in order.
    fusion : callable
        From the table to the columns that are weighed.
    weighting : Weighting
        From columns to scores.
    guard : Guard, optional
        What lets planted memories count less; none for the formulas of the source documents.
    passages : Weighting, optional
        The same for a memory of passages; see `Corpus.kind`. By default there is no
        difference.
    statements : Weighting, optional
        The same for a memory of statements that stand alone; see `Corpus.kind`.
    floor : Floor
        What is dropped before anything is cut.
    timeout_s : float, default 2.0
        How long the embedder and the sources of the user may take, which are asked all at once.
    serving : Serving
        From hits to a block for a prompt.

    Raises
    ------
    InvalidInputError
        A ``reach`` outside its bounds.
    """

    reader: Reader = read_plainly
    sources: Mapping[str, Finder | Source | None] = field(
        default_factory=lambda: {"dense": Dense(), "lexical": Lexical()}
    )
    net: int | None = None
    reach: int = 0
    follow: tuple[str, ...] = ()
    signals: tuple[Signal, ...] = ()
    fusion: Fusion = field(default_factory=by_rank)
    weighting: Weighting = field(default_factory=lambda: Weighting({"dense": 1.0, "lexical": 1.0}))
    guard: Guard | None = None
    passages: Weighting | None = None
    statements: Weighting | None = None
    floor: Floor = field(default_factory=Floor)
    timeout_s: float = 2.0
    serving: Serving = field(default_factory=Serving)

    def __post_init__(self) -> None:
        whole(0, _FURTHEST)("reach", self.reach)

    def answering(self, answerable: JudgeOfAnswers | None) -> Pipeline:
        """Return the same with another judge of whether there is an answer, and its threshold."""
        least = getattr(answerable, "threshold", self.floor.least)
        return replace(self, floor=replace(self.floor, answerable=answerable, least=least))

    def asks_outside(self, cue: Cue, question: AnyQuestion) -> bool:
        """Return whether the embedder or a source of the user has to be asked."""
        unplaced = cue.vector is None and bool(question.bare.strip())
        return unplaced or any(isinstance(one, UserSource) for one in self.finders().values())

    def looking_in(self, sources: Sequence[str] | Mapping[str, Source | None]) -> Pipeline:
        """Return the same pipeline with these sources and nothing that stands beside their finds.

        A source without a weight weighs as much as the weightiest column.

        Raises
        ------
        InvalidInputError
            No source at all, or one that is neither built in, nor of this pipeline, nor a callable.
        """
        named = dict(sources) if isinstance(sources, Mapping) else dict.fromkeys(sources)
        if not named:
            raise InvalidInputError("sources are empty: name at least one")
        chosen = {
            name: finder_of(name, one or self.sources.get(name)) for name, one in named.items()
        }
        known = self.weighting.weights
        most = max(map(abs, known.values()))
        # Where there are signals, it is they that weigh what our own sources found.
        unweighed = chosen.keys() - (BUILT_IN.keys() if self.signals else set())
        weights = {**dict.fromkeys(unweighed, most), **known}
        return replace(
            self,
            sources=chosen,
            reach=0,
            follow=(),
            weighting=self.weighting.with_weights(weights),
            passages=None,
            statements=None,
            # What there is an answer by was calibrated on what our own sources find.
            floor=replace(self.floor, answerable=None),
        )

    def finding_causes(self) -> Pipeline:
        """Return the same where the cue names an event: what led to it comes first."""
        weights = self.weighting.weights
        if "causes" in self.sources and "causes" in weights:
            return self
        most = sum(weight for weight in weights.values() if weight > 0)
        return replace(
            self,
            sources={**self.sources, "causes": self.sources.get("causes") or BUILT_IN["causes"]},
            weighting=self.weighting.with_weights({**weights, "causes": most}),
            passages=None,
            statements=None,
            # What there is an answer by was calibrated on questions.
            floor=replace(self.floor, answerable=None),
        )

    def finders(self) -> dict[str, Finder]:
        """Return the sources, each as a `Finder`."""
        return {name: finder_of(name, source) for name, source in self.sources.items()}


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of one recall in order.

    Parameters
    ----------
    table : Candidates
        With every column.
    scored : Scored
        Their scores and what made them.
    order : ndarray of shape (m,), int64
        Places in the table of what passed the floors, best first; see `best`.
    relevance : ndarray of shape (n,), float64, or None
        The chance of each that it is wanted, where the pipeline knows.
    columns : mapping of str to ndarray of shape (n,)
        What was weighed, without what feedback adds.
    weights : mapping of str to float
        By which they were.
    """

    table: Candidates
    scored: Scored
    order: IntArray
    relevance: Column | None
    columns: Mapping[str, Column]
    weights: Mapping[str, float]

    def best(self) -> IntArray:
        """Return all places of the table, best first; of equals the salient, then the newest."""
        return _best(self.table, self.scored.total)


def gather(
    pipeline: Pipeline,
    view: VisibleEvents,
    hits: Mapping[str, Outcome[list[Hit]]],
    trace: Trace,
) -> Candidates:
    """Ask every source and signal.

    Parameters
    ----------
    pipeline : Pipeline
        Which ones.
    view : VisibleEvents
        What they may see, with its question and vector.
    hits : mapping of str to Outcome
        What the user's sources said.
    trace : Trace
        Told what happened.

    Returns
    -------
    Candidates
        With the columns ``dense`` (similarity to the cue), ``<source>.rank`` (from 1; NaN where it
        did not find it), ``<source>.score``, ``votes`` (reciprocal ranks over the
        sources), ``trust``, ``salience``, ``reward``, ``time``, and
        those of the signals.
    """
    found: dict[str, Found] = {}
    for name, finder in pipeline.finders().items():
        begun = time.perf_counter()
        problem, waited = "", 0.0
        if isinstance(finder, UserSource):
            said = hits[name]
            problem, waited = said.problem, said.seconds
            found[name] = finder.resolve(view, said.value or [])
        else:
            found[name] = finder.find(view)
        seconds = waited + time.perf_counter() - begun
        trace.sources.append(SourceReport(name, len(found[name].rows), seconds, problem))
    table = _table(view, found, pipeline)
    for signal in pipeline.signals if len(table) else ():
        table.update(signal(view.question, table, view))
    return table


def _table(view: VisibleEvents, found: Mapping[str, Found], pipeline: Pipeline) -> Candidates:
    corpus, every = view.corpus, [*found.values()]
    found_in_all = sum(len(one.rows) for one in every)
    net = found_in_all if pipeline.net is None else view.pool(pipeline.net)
    rows, columns = joined(view, every, net, pipeline.reach, pipeline.follow)
    table = Candidates(rows, corpus.event_ids[rows])
    names = [f"{name}.{what}" for name in found for what in ("rank", "score")]
    table.update(dict(zip([*names, "votes"], columns, strict=True)))
    for one in every:
        table.paths.update(one.paths)
    table.update(
        {
            "dense": view.similarity(rows),
            "trust": corpus.trust[rows],
            "salience": corpus.salience[rows],
            "reward": corpus.rewards[rows],
            "time": corpus.timestamps[rows],
        }
    )
    return table


_DECIMALS = 9
"""Scores that differ by less are equal."""
_NO_SCORES = Scored((), *(np.zeros((0, 0)),) * 3, *(np.zeros(0),) * 2)


def _best(table: Candidates, total: Column) -> IntArray:
    ties = table["salience"], table["time"], table["votes"], table.event_ids
    return recall_columns.best(total, np.arange(len(table)), *ties, _DECIMALS)


def rank(
    pipeline: Pipeline,
    view: VisibleEvents,
    table: Candidates,
    trace: Trace,
    learned: FeedbackRanker | None = None,
) -> Ranking:
    """Fuse, weigh, and drop what does not pass the floors.

    What feedback taught is added as a column of its own, ``feedback``, where it is trusted; so is
    ``between``, of the two memories between which a question asks for the time.
    """
    columns: Mapping[str, Column] = {}
    scored, lift = _NO_SCORES, np.zeros(len(table))
    taught = np.zeros(len(table), dtype=bool)
    weighting = pipeline.weighting
    if pipeline.passages is not None and view.kind == "passages":
        weighting = pipeline.passages
    elif pipeline.statements is not None and view.kind == "statements":
        weighting = pipeline.statements
    weights = weighting.weights
    if len(table):
        columns = dict(pipeline.fusion(table, weighting.names))
        weighed = dict(columns)
        if learned is not None and learned.fits(weights):
            words = words_of(view.question)
            weighed["feedback"] = learned.offsets(columns, words, table.event_ids)
            taught = learned.helped_before(words, table.event_ids) > 0.0
        if "feedback" in weighed and weighed["feedback"].any():
            share = sum(weight for weight in weights.values() if weight > 0) / ODDS
            weighting = weighting.with_weights({**weights, "feedback": share})
        scored = weighting.score(weighed, table)
        if isinstance(view.question, Question) and view.question.sides:
            between = both_sides(view.question, table, scored.total, view)
            if between is not None:
                most = sum(weight for weight in weights.values() if weight > 0)
                weighting = weighting.with_weights({**weighting.weights, "between": most})
                lift = -scored.total
                scored = weighting.score({**weighed, "between": between}, table)
                lift += scored.total
    total, order = scored.total, _best(table, scored.total)
    if pipeline.guard is not None and len(table):
        scored = pipeline.guard.doubted(view, table, scored, order)
        if scored.total is not total:
            total, order = scored.total, _best(table, scored.total)
    trace.candidates = len(table)
    floor = pipeline.floor.of_cue(view.cue)
    trace.floor = str(floor)
    trace.answerable = floor.probability(view, table)
    length = length_of(view, table)
    relevance = relevance_of(table, total - lift, trace.answerable, view.size, length)
    order = order[(floor.kept(table, total, relevance) | taught)[order]]
    # What helped when this was asked is an answer, whatever the floor thinks.
    if trace.answerable is not None and trace.answerable < floor.least and not taught.any():
        order = order[:0]
    trace.below_floor, trace.held = len(table) - len(order), view.size
    if pipeline.guard is not None:
        order = pipeline.guard.ordered(view, table, scored, order)
    return Ranking(table, scored, order, relevance, columns, weights)


def words_of(question: AnyQuestion) -> list[str]:
    """Return the words by which feedback knows a question again."""
    return sorted({*content_words(question.asked)}) if isinstance(question, Question) else []


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecallEngine:
    """What a recall runs on: corpus, index, external calls, clock, feedback.

    Parameters
    ----------
    corpus : Corpus
        All events, as columns.
    index : callable
        Returns the index, level with the record.
    embed : callable or None
        From a text to a vector; None where every cue brings its own.
    checked : callable
        From that to one that can be searched with; raises where it is none.
    calls : Calls
        How the embedder and the user's sources are called, one for each memory: what hangs in one
        does not silence another.
    clock : callable
        Now, in the unit of the timestamps.
    pending : mapping of int to int
        When events were used, where that is not written down yet.
    learned : callable
        From who asks to what feedback taught of its recalls, or None.
    failing : callable
        From who asks to the sources that it is not shown, each with the reason.
    """

    corpus: Corpus
    index: Callable[[], RawIndex]
    embed: Embed | None
    checked: Callable[[Vector], Vector]
    calls: Calls
    clock: Callable[[], int]
    pending: Mapping[int, int]
    learned: Callable[[str], FeedbackRanker | None] = lambda _: None
    failing: Callable[[str], Mapping[str, str]] = lambda _: {}

    def view(self, asker: Asker, cue: Cue, k: int) -> VisibleEvents:
        """Return what an asker sees at this moment, inside ``Record.reading``."""
        index = self.index()
        if cue.vector is not None and len(cue.vector) != index.dim:
            raise InvalidVectorError(
                f"the cue is a vector of {len(cue.vector)} numbers, this memory's have {index.dim}:"
                " embed it with the memory's embedder; ids are no cue, give the text of the event"
            )
        self.corpus.refresh()
        now = self.clock() if cue.timestamp is None else cue.timestamp
        scope = scope_of(self.corpus, asker)
        return VisibleEvents(self.corpus, index, scope, cue, now, k, self.pending)


def ask_external(
    engine: RecallEngine, pipeline: Pipeline, cue: Cue, question: AnyQuestion, trace: Trace
) -> tuple[Vector | None, dict[str, Outcome[list[Hit]]]]:
    """Ask the embedder and the user's sources, all at once, for a limited time.

    Returns
    -------
    ndarray of shape (dim,), float32, or None
        Where the cue lies.
    dict of str to Outcome
        What the user's sources said.
    """
    calls, seconds = engine.calls, pipeline.timeout_s
    asked = {
        name: calls.start(partial(source.hits, cue), seconds, f"source {name}")
        for name, source in pipeline.finders().items()
        if isinstance(source, UserSource)
    }
    vector = cue.vector
    if vector is None and engine.embed is None:
        trace.problems.append(
            "no vector was given to a memory made with dim=: words alone were searched"
        )
    elif vector is None and engine.embed is not None and question.bare.strip():
        outcome = calls.run(partial(engine.embed, question.bare), seconds, "embedder")
        trace.seconds["embed"] = outcome.seconds
        problem = outcome.problem
        if outcome.value is not None:
            try:
                vector = engine.checked(outcome.value)
            except InvalidVectorError as error:
                problem = f"{type(error).__name__}: {error}"
        if problem:
            trace.problems.append(f"embedder: {problem}: words alone were searched")
        if outcome.first:
            warn(
                f"the embedder failed ({problem}): recall goes by words alone until it answers "
                "again, as the trace of each result says; see to it, or give it more time "
                "(Pipeline.timeout_s)",
                EmbedderWarning,
            )
    return vector, {name: calls.wait(one) for name, one in asked.items()}


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The result of one recall: table, ranking, trace.

    Parameters
    ----------
    view : VisibleEvents
        What was seen, with the cue as it was asked.
    ranking : Ranking
        The candidates in order.
    trace : Trace
        What happened.
    pipeline : Pipeline
        How it was made.
    asked : int
        The number of the journal when it was asked.
    """

    view: VisibleEvents
    ranking: Ranking
    trace: Trace
    pipeline: Pipeline
    asked: int


def run_recall(
    engine: RecallEngine,
    plan: Callable[[], Pipeline],
    asker: Asker,
    cue: str | Cue | Vector,
    k: int,
    take: Callable[[RecallResult], T],
) -> tuple[RecallResult, T]:
    """Run the pipeline of a plan, and ``take`` what is wanted of the ranking.

    The embedder and the sources of the user are asked while nothing is locked; the rest, ``take``
    too, sees one state of the record.
    """
    asked = sound_cue(cue)
    whole, words = cue.words() if isinstance(cue, Cue) else cue, asked.words()
    trace = Trace(words, asker.namespace, cue_hash(asked), asked.place)
    if not words.strip() and asked.vector is None:
        trace.problems.append("the cue says nothing: nothing was looked for")
    if len(words) < len(whole):
        trace.problems.append(f"the cue has {len(whole)} characters: its beginning was used")
    record = engine.corpus.record
    with record.reading():
        seq, pipeline = record.tail().seq, plan()
        failing = engine.failing(asker.namespace)
        asker = replace(asker, failing=failing) if failing else asker
        trace.passed = asker.passed()
        if any(map(asker.left_out, asker.where)):
            trace.failing = asker.failing
        if asked.event is not None:
            asked, pipeline = _at_event(record, asker, asked), pipeline.finding_causes()
        view = engine.view(asker, asked, k)
        view.question = question = pipeline.reader(view)
        if not pipeline.asks_outside(asked, question):
            recalled = _ranked(engine, pipeline, view, {}, trace, seq)
            return recalled, take(recalled)
    vector, hits = ask_external(engine, pipeline, asked, question, trace)
    with record.reading():
        view = engine.view(asker, asked, k)
        view.question, view.vector = question, vector
        recalled = _ranked(engine, pipeline, view, hits, trace, seq)
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


def _ranked(
    engine: RecallEngine,
    pipeline: Pipeline,
    view: VisibleEvents,
    hits: Mapping[str, Outcome[list[Hit]]],
    trace: Trace,
    asked: int,
) -> RecallResult:
    table = gather(pipeline, view, hits, trace)
    ranking = rank(pipeline, view, table, trace, engine.learned(trace.namespace))
    return RecallResult(view, ranking, trace, pipeline, asked)


def hits_of(recalled: RecallResult, places: Sequence[int], versions: Versions) -> list[Hit]:
    """Return hits with their events and factors for places of the table, in that order."""
    ranking, at = recalled.ranking, np.array(places, dtype=np.int64)
    table, chances = ranking.table, ranking.relevance
    ids = table.event_ids[at].tolist()
    whole = versions.of_each(recalled.view.corpus.record.whole_events(ids))
    events = {event.event_id: event for event in whole if event.node is not None}
    dense = table["dense"][at]
    columns = (
        ids,
        recalled.view.to_distance(dense).tolist(),
        np.where(np.isnan(dense), 0.0, dense).tolist(),
        [None] * len(ids) if chances is None else chances[at].tolist(),
        ranking.scored.factors(at),
        [_with_reasons(recalled, table.paths.get(row, ())) for row in table.rows[at].tolist()],
    )
    return [
        _hit(events[number], *one)
        for number, *one in zip(*columns, strict=True)
        if number in events
    ]


def _hit(
    event: Event,
    distance: float,
    similarity: float,
    relevance: float | None,
    factors: tuple[Factor, ...],
    path: tuple[Edge, ...],
) -> Hit:
    assert event.node is not None
    return Hit(
        node=event.node,
        distance=distance,
        score=math.fsum([factor[3] for factor in factors]),
        similarity=similarity,
        entity_id=event.entity_id,
        timestamp=event.timestamp,
        reward=event.reward,
        action=event.action,
        factors=factors,
        path=path,
        event=event,
        relevance=relevance,
    )


def _with_reasons(recalled: RecallResult, path: tuple[Edge, ...]) -> tuple[Edge, ...]:
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
