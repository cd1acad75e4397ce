"""``memory.recall`` and ``memory.context``: runs the read pipeline and notes what was shown."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from cvx.arguments import Check, a_share, among, number, one_of, optional, some_texts, whole
from cvx.embed import embed_query
from cvx.errors import (
    DamagedStoreError,
    InvalidInputError,
    PipelineNotKeptWarning,
    StaleCueWarning,
    warn,
)
from cvx.learn.reputation import MOST_SOURCES, SOURCES, Reputation
from cvx.memory.namespace_access import Identity
from cvx.memory.resources import Resources
from cvx.memory.settings import (
    NAME,
    PRESETS,
    NotKept,
    OwnVectors,
    fitted,
    pipeline_state,
    preset_of,
    stored,
    stored_at,
    weights_state,
)
from cvx.recall import Candidates, Context, Floor, Hits, Pipeline, default_pipeline
from cvx.recall.context import Served, events_of
from cvx.recall.corpus import Corpus
from cvx.recall.floor import shipped_floor
from cvx.recall.pipeline import (
    RecallEngine,
    RecallResult,
    hits_of,
    run_recall,
    words_of,
)
from cvx.recall.question import AnyQuestion
from cvx.recall.ranking_signals import COLUMNS
from cvx.recall.visible_events import Asker, scope_of, ways_sql
from cvx.render.packing import Fitted
from cvx.scoring.feedback import FeedbackRanker, Floats, rows_of
from cvx.scoring.off_policy import drawn_from
from cvx.store import Writer
from cvx.store.history import Versions
from cvx.store.lock import Tail
from cvx.types import Cue, Decision, Event, Hit, IntArray, Source, Vector, Where

T = TypeVar("T")
Sources: TypeAlias = Sequence[str] | Mapping[str, Source | None]


NO_FLOOR = Floor(similarity=None)
"""What ``floor=False`` is."""


def _sources(name: str, value: Any) -> Any:
    return value if isinstance(value, Mapping) else some_texts(name, value)


def _floor(name: str, value: Any) -> float | Floor:
    if value is False:
        return NO_FLOOR
    return value if isinstance(value, Floor) else number()(name, value)


_KEPT_OPEN = 256
"""Decisions of which feedback can still teach the ranking."""
_PASSED_OVER = 50
FEWEST_SAVED, _SHARE = 10_000, 0.02
"""Columns are saved if that spares reading so many rows, and so large a share of those saved."""


@cache
def _columns() -> dict[str, str]:
    """Return what kept columns are of: other code might read others from the same record.

    Raises
    ------
    OSError
        An installation without sources.
    """
    from cvx.store.learned_state import checksum_of

    here = Path(__file__).parent.parent / "recall"
    reader = checksum_of(here / name for name in ("corpus.py", "corpus_indexes.py"))
    return {"asker": "columns", "reader": reader}


RECALL: Mapping[str, Check] = {
    "k": whole(1),
    "sources": optional(_sources),
    "floor": optional(_floor),
    "min_relevance": optional(a_share),
    "preset": optional(among(*PRESETS)),
    "pipeline": optional(one_of(Pipeline, called="a cvx.recall.Pipeline")),
}
"""What the parameters of a recall may be."""


class RecallVerbs:
    """Recalls from a memory. It notes counts and times of use, for the next write to store.

    Parameters
    ----------
    shared : Resources
        Of the memory.
    """

    def __init__(self, shared: Resources) -> None:
        self._shared = shared
        self._corpus: Corpus | None = None
        self._versions = shared.versions
        # By number: what was recalled, and is written down if feedback follows.
        self._open: OrderedDict[int, _Shown] = OrderedDict()
        # By name: the end of the journal, what was made of the record then, and of what of it.
        self._known: dict[str, tuple[Tail | None, object, Any]] = {}
        # By namespace: the last cue's hash, its turn, and how many turns it was asked.
        self._asked: dict[str, tuple[str, int, int]] = {}

    @property
    def pipeline(self) -> Pipeline:
        """What was set or tuned last, by any process, else the default."""
        record = self._shared.record
        return self._as_of_now(
            NAME, lambda: (stored_at(record), record.meta("embedder")), self._stored
        )

    def _as_of_now(self, name: str, stamp: Callable[[], object], made: Callable[[], T]) -> T:
        """Return what is made of the record: anew where the journal went on and its stamp changed.

        While what the journal tells may be taken back, the stamp is looked at each time.
        """
        record, known = self._shared.record, self._known.get(name)
        tail = None if record.writing else record.tail()
        if known is None or tail is None or known[0] != tail:
            now = stamp()
            what = known[2] if known is not None and known[1] == now else made()
            known = self._known[name] = tail, now, what
        found: T = known[2]
        return found

    def _stored(self) -> Pipeline:
        record = self._shared.record
        preset = preset_of(record) if stored_at(record) is None else None
        return fitted(preset or stored(record), record)

    def plan(
        self,
        preset: str | None,
        pipeline: Pipeline | None,
        sources: Sources | None,
        floor: float | Floor | None,
        min_relevance: float | None,
        budget_tokens: int | None = None,
    ) -> Pipeline:
        """Return how one call recalls: by a preset or a pipeline, or as the memory does.

        Raises
        ------
        InvalidInputError
            Both a preset and a pipeline.
        """
        plan = self._planned(preset, pipeline)
        if floor is not None:
            floor = floor if isinstance(floor, Floor) else Floor(similarity=floor)
            if floor is NO_FLOOR:
                # The chance of an answer is told all the same.
                floor = replace(floor, answerable=plan.floor.answerable, least=0.0)
            plan = replace(plan, floor=floor)
        if min_relevance is not None:
            plan = replace(plan, floor=replace(plan.floor, relevance=min_relevance))
        if budget_tokens is not None:
            budget = replace(plan.serving.budget, tokens=budget_tokens)
            plan = replace(plan, serving=replace(plan.serving, budget=budget))
        return plan if sources is None else plan.looking_in(sources)

    def _planned(self, preset: str | None, pipeline: Pipeline | None) -> Pipeline:
        if preset is None:
            return self.pipeline if pipeline is None else fitted(pipeline, self._shared.record)
        if pipeline is not None:
            raise InvalidInputError(f"preset is {preset!r}, and a pipeline is given: give one")
        record = self._shared.record
        made = preset_of(record, preset)
        if made is None:
            made = default_pipeline(answerable=shipped_floor(record.meta("embedder")))
        return fitted(made, record)

    def keep_pipeline(self, pipeline: Pipeline) -> None:
        """Recall by this pipeline from now on, and store it if all of it can be."""
        record = self._shared.record
        try:
            state = None if record.frozen else pipeline_state(record, pipeline)
        except NotKept as error:
            state = None
            if self._shared.folder is not None:
                warn(
                    f"the store cannot keep {error} of this pipeline: it holds until the memory "
                    "is closed; set it after each opening, or pass it with each call",
                    PipelineNotKeptWarning,
                )
        self._recall_with(pipeline, state)

    def keep_weights(self, weights: Mapping[str, float] | None) -> None:
        """Recall with these weights from now on, and store them."""
        record = self._shared.record
        pipeline = self.weighed(weights)
        if self._preset_with(weights) is None:
            self._recall_with(pipeline, weights_state(record, weights))
        else:
            self._recall_with(pipeline, pipeline_state(record, pipeline))

    def weighed(self, weights: Mapping[str, float] | None) -> Pipeline:
        """Return how this memory recalls with other weights: of its preset, or of the signals.

        Raises
        ------
        InvalidInputError
            A weight of no signal, and of nothing that the formula of the preset adds up.
        """
        made = self._preset_with(weights)
        if made is None:
            unknown = sorted((weights or {}).keys() - set(COLUMNS))
            if unknown:
                raise InvalidInputError(
                    f"weights name {', '.join(unknown)}: give some of {', '.join(COLUMNS)}"
                )
            floor = shipped_floor(self._shared.record.meta("embedder"))
            made = default_pipeline(weights, floor)
        return made

    def _preset_with(self, weights: Mapping[str, float] | None) -> Pipeline | None:
        """Return the preset of this memory with other weights of its formula, if they are such."""
        preset = preset_of(self._shared.record)
        own = {} if preset is None else preset.weighting.weights
        if preset is None or not (weights or {}).keys() <= own.keys():
            return None
        return replace(preset, weighting=preset.weighting.with_weights({**own, **(weights or {})}))

    def _recall_with(self, pipeline: Pipeline, state: Mapping[str, Any] | None) -> None:
        record = self._shared.record
        when = stored_at(record)
        if state is not None:
            with record.transaction() as write:
                write.set_state(NAME, state)
                when = write.recorded
        stamp = when, record.meta("embedder")
        # Another process may have set it since: at the next use that is looked up.
        self._known[NAME] = None, stamp, fitted(pipeline, record)

    def engine(self) -> RecallEngine:
        """Return what a recall stands on."""
        shared = self._shared
        with shared.mutex:
            if self._corpus is None or self._versions is not shared.versions:
                # At first; or the store was opened anew, with another embedder.
                self._corpus, self._versions = Corpus(shared.record), shared.versions
                self._restore(self._corpus)
        own = isinstance(shared.embedder, OwnVectors)
        embed = None if own else partial(embed_query, shared.embedder)
        return RecallEngine(
            self._corpus,
            lambda: shared.index,
            embed,
            shared.checked,
            shared.calls,
            shared.now,
            shared.noted.used,
            self.learned,
            self.failing,
        )

    def _restore(self, corpus: Corpus) -> None:
        """Take the columns from their file, where there is one that fits the record."""
        folder, record = self._shared.beside_index(_columns), self._shared.record
        if folder is None or record.refused or record.damaged:
            return
        from cvx.store.learned_state import read_state

        found = read_state(folder, record, _columns())
        if found is not None:
            told, _, end = found
            corpus.restore(told, end)

    def save(self) -> None:
        """Write the columns beside the index, where that spares reading many rows again."""
        folder, record, corpus = (
            self._shared.beside_index(_columns),
            self._shared.record,
            self._corpus,
        )
        if folder is None or corpus is None or record.writing or record.frozen or record.closed:
            return
        new = len(corpus) - corpus.saved_rows
        if new < max(FEWEST_SAVED, _SHARE * corpus.saved_rows) or record.refused or record.damaged:
            return
        from cvx.store.learned_state import write_state

        # What others erase meanwhile must not come back by this file.
        with record.locked():
            corpus.refresh()
            with suppress(OSError, TypeError, ValueError):
                write_state(folder, record, _columns(), corpus.saved())
                corpus.saved_rows = len(corpus)

    def learned(self, namespace: str) -> FeedbackRanker | None:
        """Return what feedback taught of the recalls of a namespace, and may be believed."""
        made = self._taught(namespace)
        if made is None:
            return None
        return self._as_of_now(f"believed:{namespace}", object, partial(self._believed, made))

    def _believed(self, taught: FeedbackRanker) -> FeedbackRanker:
        """Return what was taught, but for memories in quarantine."""
        doubted = self._shared.record.query(
            "SELECT event_id FROM events JOIN json_each(?) ON value = event_id"
            " WHERE state = 'quarantined'",
            (json.dumps(taught.helped),),
        )
        return taught.without({one for (one,) in doubted}) if doubted else taught

    def _taught(self, namespace: str) -> FeedbackRanker | None:
        """Return all that feedback taught of the recalls of a namespace."""
        return self._kept(f"{NAME}:{namespace}", FeedbackRanker.from_dict)

    def failing(self, namespace: str) -> Mapping[str, str]:
        """Return the sources that a namespace is not shown, each with the reason."""
        name = f"{SOURCES}{namespace}"
        return self._kept(name, lambda told: Reputation.from_dict(told).left_out()) or {}

    def _kept(self, name: str, made: Callable[[Mapping[str, Any]], T]) -> T | None:
        """Return what is made of a state of the record, made anew when it has changed."""
        shared = self._shared
        # An erase takes words out of it, and leaves the time.
        changed = "SELECT recorded, crc FROM model_state WHERE name = ?"
        return self._as_of_now(
            name,
            lambda: shared.record.query(changed, (name,)),
            lambda: shared.read_state(name, made),
        )

    def judge(self, write: Writer, namespace: str, change: Callable[[Reputation], object]) -> None:
        """Change what is known of the sources of a namespace, and store it."""
        known = self._reputation(namespace)
        change(known)
        write.set_state(f"{SOURCES}{namespace}", known.to_dict())

    def _reputation(self, namespace: str) -> Reputation:
        # Read anew: it is changed, and others may have changed it.
        return (
            self._shared.read_state(f"{SOURCES}{namespace}", Reputation.from_dict) or Reputation()
        )

    def find_false(self, namespace: str, sources: Collection[str]) -> None:
        """Leave out of recall what the advice of a namespace leaves out."""
        false = sorted(sources)[:MOST_SOURCES]
        if false != self._reputation(namespace).found_false:
            with self._shared.record.transaction() as write:
                self.judge(write, namespace, lambda known: known.find_false(false))

    def forget_sources(self, namespace: str) -> None:
        """Leave no source out for what was said or found up to now."""
        with self._shared.record.transaction() as write:
            with suppress(DamagedStoreError):
                self.judge(write, namespace, Reputation.reset)
                return
            write.set_state(f"{SOURCES}{namespace}", {})

    def learn(
        self,
        number: int,
        namespace: str,
        helped: Sequence[int],
        told: Iterable[int],
        before: Sequence[int] = (),
    ) -> None:
        """Learn from what helped of a decision, and what was shown beside it; see ``feedback``.

        What was said before to have helped is taken back. Nothing is learned where nothing helped,
        or where the recall was another process's: what was passed over is known to the one that
        recalled.
        """
        shown = self._open.get(number)
        if shown is None or not len(shown.rows):
            return
        rows = shown.rows.astype(np.float64)

        def parted(by: Sequence[int]) -> tuple[Floats, Floats, Floats, list[int]]:
            good = np.isin(shown.events, list(by))
            bad = np.isin(shown.events, list({*told} - {*by}))
            return rows[good], rows[bad], rows[~good & ~bad], shown.events[good].tolist()

        now, earlier = parted(helped), parted(before)
        if not (now[3] or earlier[3]):
            return
        with self._shared.record.transaction() as write:
            ranker = self._taught(namespace)
            if ranker is None or not ranker.fits(shown.weights):
                ranker = FeedbackRanker.beside(shown.weights)
            taught = replace(ranker, waiting=[*ranker.waiting])
            # Nobody can say any more whether a question quoted what was erased after it was asked.
            words = [] if write.erased_after(shown.asked) else words_of(shown.question)
            if earlier[3] and not taught.take_back(*earlier[:3], words, earlier[3]):
                # Also where nothing helped now, and something does later.
                shown.weighed = True
            if now[3]:
                taught.learn(*now[:3], words, now[3], weigh=not shown.weighed)
            write.set_state(f"{NAME}:{namespace}", taught.to_dict())

    def forget_feedback(self, namespace: str) -> None:
        """Recall as shipped or tuned again, whatever feedback there was."""
        with self._shared.record.transaction() as write:
            write.set_state(f"{NAME}:{namespace}", {})

    def recall(
        self, cue: str | Cue | Vector, k: int, asker: Asker, plan: Callable[[], Pipeline]
    ) -> Hits:
        """Return the k best hits; see ``Memory.recall``."""
        recalled, hits = self.ranked(cue, k, asker, plan)
        if not self._shared.record.frozen:
            hits.decision = self._shared.record.draw_decision_number()
        served = Served(hits, hits, (), [], Fitted("", 0, (), 0))
        self._hand_out(hits.decision, asker, recalled, served, hits.nearest)
        return hits

    def _hand_out(
        self,
        number: int | None,
        asker: Asker,
        recalled: RecallResult,
        served: Served,
        nearest: Sequence[Hit] = (),
    ) -> None:
        """Note what somebody was told, and under its number the decision, where one is kept."""
        shared, now = self._shared, recalled.view.now
        told = (hit.event for hit in served.hits if hit.event is not None)
        shared.hand_out(asker.namespace, recalled.asked, told, served.fitted.text)
        if number is not None:
            rendered = [served.hits[place] for place in served.fitted.shown]
            refresh = recalled.pipeline.serving.refresh
            used = {"rendered": rendered, "retrieved": served.hits}.get(refresh, [])
            self._keep_open(number, recalled, nearest)
            with shared.mutex:
                shared.noted.use(events_of(used), now)
                shared.noted.decide(*self._noted(number, recalled, served))
        shared.flush_if_much()

    def ranked(
        self, cue: str | Cue | Vector, k: int, asker: Asker, plan: Callable[[], Pipeline]
    ) -> tuple[RecallResult, Hits]:
        """Return the k best hits, without noting that they were asked for."""
        return run_recall(
            self.engine(),
            plan,
            asker,
            cue,
            k,
            partial(head_of, k=k, versions=self._shared.versions),
        )

    def nearest_of(self, number: int) -> list[int]:
        """Return the events that an empty recall of this process named as the nearest."""
        shown = self._open.get(number)
        return [] if shown is None else shown.nearest

    def _keep_open(self, number: int, recalled: RecallResult, nearest: Sequence[Hit]) -> None:
        """Keep in mind what feedback on a decision will be about."""
        ranking = recalled.ranking
        order = ranking.best() if nearest else ranking.order
        places = order[:_PASSED_OVER]
        weights = ranking.weights if recalled.pipeline.signals else {}
        rows = np.zeros((0, 0), dtype=np.float32)
        if weights and len(places):
            rows = rows_of(tuple(weights), ranking.columns)[places].astype(np.float32)
        events = ranking.table.event_ids[places]
        question, seq = recalled.view.question, recalled.asked
        shown = _Shown(weights, events, rows, question, seq, events_of(nearest))
        with self._shared.mutex:
            self._open[number] = shown
            while len(self._open) > _KEPT_OPEN:
                self._open.popitem(last=False)

    def candidates(
        self, cue: str | Cue | Vector, k: int, asker: Asker, plan: Callable[[], Pipeline]
    ) -> Candidates:
        """Return everything that a recall weighs, before the floors."""
        return run_recall(self.engine(), plan, asker, cue, k, lambda found: found.ranking.table)[1]

    def events(self, asker: Asker, *, newest: bool, limit: int | None) -> list[Event]:
        """Return the events that a recall could return, in the order of their times."""
        record = self._shared.record
        with record.reading():
            self._shared.store.refresh()
            corpus = self.engine().corpus
            corpus.refresh()
            rows = np.flatnonzero(scope_of(corpus, asker).visible)
            order = np.lexsort((corpus.event_ids[rows], corpus.timestamps[rows]))
            chosen = rows[order[::-1] if newest else order][:limit]
            ids: list[int] = corpus.event_ids[chosen].tolist()
            found = {event.event_id: event for event in record.events(ids)}
        return [found[one] for one in ids if one in found]

    def own(self, asker: Asker) -> list[int]:
        """Return the ids of all events of the asker's namespace that pass, whatever their state."""
        condition, values = ways_sql(asker)
        return self._shared.ids_where(f"namespace = ? AND {condition}", (asker.namespace, *values))

    def context(
        self, cue: str | Cue | Vector, k: int | None, asker: Asker, plan: Callable[[], Pipeline]
    ) -> Context:
        """Return memories as a block, and note the decision; see ``Memory.context``."""
        shared = self._shared
        recalled, hits = run_recall(
            self.engine(),
            plan,
            asker,
            cue,
            k or 10,
            partial(_to_serve, k=k, versions=shared.versions),
        )
        trace, serving = recalled.trace, recalled.pipeline.serving
        self._notice_staleness(asker.namespace, recalled, serving.stale_after)
        number = shared.record.take_decision_number()
        served = serving.serve(hits, k, recalled.view.cue.words(), trace, number)
        decision = None if shared.record.frozen else number
        self._hand_out(decision, asker, recalled, served)
        fitted = served.fitted
        return Context(fitted.text, fitted.tokens, tuple(served.shown), trace, decision)

    def _notice_staleness(self, namespace: str, recalled: RecallResult, stale_after: int) -> None:
        trace = recalled.trace
        if trace.turn is None:
            return
        asked, turn, times = self._asked.get(namespace, ("", -1, 0))
        if asked != trace.cue_hash:
            times = 1
        elif trace.turn != turn:
            times += 1
        self._asked[namespace] = (trace.cue_hash, trace.turn, times)
        if times >= stale_after:
            said = f"the same cue for {times} turns: build it anew from the agent's state"
            trace.problems.append(said)
            warn(said, StaleCueWarning)

    def _noted(
        self, number: int, recalled: RecallResult, served: Served
    ) -> tuple[Decision, dict[str, Any], int]:
        """Return a decision as it is written down, but for the text that was shown."""
        trace = recalled.trace
        decision = Decision(
            number,
            recalled.view.cue,
            tuple(served.shown),
            propensities=tuple(served.chances[at] for at in served.fitted.shown)
            if served.chances
            else None,
            drawn_from=drawn_from(served.pool, served.hits, served.chances)
            if served.pool
            else None,
        )
        noted: dict[str, Any] = {
            "cue_hash": trace.cue_hash,
            "turn": trace.turn,
            "namespace": trace.namespace,
            "now": recalled.view.now,
            "refresh": recalled.pipeline.serving.refresh,
            "retrieved": events_of(served.hits),
            "shown": events_of(served.shown),
            "relevance": [hit.relevance for hit in served.shown],
            "candidates": trace.candidates,
            "below_floor": trace.below_floor,
            "merged": trace.merged,
            "beyond_k": trace.beyond_k,
            "tokens": trace.tokens,
        }
        return decision, noted, recalled.asked


@dataclass(slots=True)
class _Shown:
    """What feedback on a decision is about: the best fifty candidates and their columns.

    ``asked`` is the number of the journal when it was asked; ``nearest``, what an empty answer
    named; ``weighed``, whether weights learned from it that cannot forget it.
    """

    weights: Mapping[str, float]
    events: IntArray
    rows: Vector
    question: AnyQuestion
    asked: int
    nearest: list[int]
    weighed: bool = False


def head_of(recalled: RecallResult, k: int, versions: Versions) -> Hits:
    """Return the first k of a ranking; of an empty one, what stands below the floors."""
    ranking = recalled.ranking
    hits = hits_of(recalled, ranking.order[:k].tolist(), versions)
    trace = recalled.trace
    trace.hits, trace.beyond_k = hits, trace.candidates - trace.below_floor - len(hits)
    if hits or not len(ranking.table):
        return Hits(hits, trace)
    below = ranking.best()[:k].tolist()
    return Hits(hits, trace, hits_of(recalled, below, versions))


def _to_serve(recalled: RecallResult, k: int | None, versions: Versions) -> list[Hit]:
    """Return the head of a ranking that may have room in a block."""
    order = recalled.ranking.order
    most = recalled.pipeline.serving.head(
        recalled.view.corpus.lengths[recalled.ranking.table.rows[order]], k
    )
    return hits_of(recalled, order[:most].tolist(), versions)


def asker_of(
    identity: Identity, namespace: str | None, where: Where | None, outcome: str = "success"
) -> Asker:
    """Return who asks, and for what; ``outcome`` is what may come back unless a filter says."""
    return Asker(*identity.seeing(namespace), identity.passing(where), outcome)
