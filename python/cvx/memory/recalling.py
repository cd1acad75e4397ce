"""What comes out of a memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from cvx.arguments import (
    Check,
    a_filter,
    a_mapping,
    checked,
    number,
    one_of,
    optional,
    some_texts,
    whole,
    wrong,
)
from cvx.embed import embed_query
from cvx.errors import InvalidKError, InvalidParameterError, PipelineNotKeptWarning
from cvx.memory.base import Base
from cvx.memory.tuning import NAME, NotKept, pipeline_state, stored, stored_at, weights_state
from cvx.recall import Candidates, Floor, Pipeline
from cvx.recall.corpus import Corpus
from cvx.recall.pipeline import Others
from cvx.recall.recalled import Ground, Recalled, hits_of, recall_once
from cvx.recall.scope import Asker
from cvx.recall.signals import COLUMNS, DEFAULT_WEIGHTS, Answerable, attentive
from cvx.recall.trace import Hits
from cvx.store.spaces import check_also
from cvx.types import DEFAULT_NAMESPACE, Cue, Filter, Source

Outcome: TypeAlias = Literal["success", "failure", "any"]
Sources: TypeAlias = Sequence[str] | Mapping[str, Source | None]
_RECALLABLE = {"success": True, "failure": False, "any": None}


def _sources(name: str, value: Any) -> Any:
    return value if isinstance(value, Mapping) else some_texts(name, value)


def _floor(name: str, value: Any) -> float | Floor:
    return value if isinstance(value, Floor) else number()(name, value)


RECALL: Mapping[str, Check] = {
    "k": whole(1, error=InvalidKError),
    "where": a_filter,
    "sources": optional(_sources),
    "floor": optional(_floor),
    "pipeline": optional(one_of(Pipeline, called="a cvx.recall.Pipeline")),
}
"""What the parameters of a recall may be."""
_answerable = one_of(Answerable, called="an Answerable, as calibrated_floor returns it")


class Recalling(Base):
    """The reading half. It notes counts and times of use, for the next write to store."""

    _corpus: Corpus | None = None
    _pipeline: tuple[int | None, Pipeline] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """How this memory recalls: what was set or tuned last, by any process, else the default.

        What is set is kept with the store. A part of your own (a function, a source) cannot be:
        then it holds until the memory is closed, or another is stored, which a
        ``PipelineNotKeptWarning`` says. ``dataclasses.replace`` gives one with another part.
        """
        when = stored_at(self.record)
        if self._pipeline is None or self._pipeline[0] != when:
            self._pipeline = when, stored(self.record)
        return self._pipeline[1]

    @pipeline.setter
    def pipeline(self, pipeline: Pipeline) -> None:
        try:
            state = None if self.record.frozen else pipeline_state(self.record, pipeline)
        except NotKept as error:
            state = None
            if self.folder is not None:
                warnings.warn(
                    f"the store cannot keep {error} of this pipeline: it holds until the memory "
                    "is closed; set it after each opening, or pass it with each call",
                    PipelineNotKeptWarning,
                    stacklevel=2,
                )
        self._recall_with(pipeline, state)

    def _recall_with(self, pipeline: Pipeline, state: Mapping[str, Any] | None) -> None:
        when = stored_at(self.record)
        if state is not None:
            with self.record.transaction() as write:
                write.set_state(NAME, state)
                when = write.recorded
        self._pipeline = when, pipeline

    @checked(weights=optional(a_mapping), answerable=optional(_answerable))
    def tune(
        self, weights: Mapping[str, float] | None = None, answerable: Answerable | None = None
    ) -> None:
        """Store the weights and the calibrated floor that this memory recalls with from now on.

        Parameters
        ----------
        weights : mapping of str to float, optional
            Of the signals; default the shipped ones.
        answerable : Answerable, optional
            When to answer nothing. It holds for the embedder it was calibrated with: a memory that
            moves to another one recalls without it.

        Raises
        ------
        InvalidParameterError
            Weights that are empty, not finite, or of no signal; nothing is stored.
        """
        unknown = sorted((weights or {}).keys() - set(COLUMNS))
        if unknown:
            raise InvalidParameterError(
                f"weights name {', '.join(unknown)}: give some of {', '.join(COLUMNS)}"
            )
        pipeline = attentive(DEFAULT_WEIGHTS if weights is None else weights, answerable)
        self._recall_with(pipeline, weights_state(self.record, weights, answerable))

    @checked(**RECALL)
    def recall(
        self,
        cue: str | Cue,
        k: int = 10,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
        where: Filter | None = None,
        outcome: Outcome = "success",
        sources: Sources | None = None,
        floor: float | Floor | None = None,
        pipeline: Pipeline | None = None,
    ) -> Hits:
        """Find what fits a cue: near to it, or in its words; best first.

        Parameters
        ----------
        cue : str or Cue
            What is asked; a cue's own vector is used if it has one.
        k : int, default 10
            How many events, at least 1. An event with aliases counts once.
        namespace : str, default ""
            Whose memory asks: everything of it can come back, and what others made public.
        also : sequence of str
            Further namespaces, of which what is shared can come back.
        where : Filter, optional
            Times, entities, rewards, tags; ``ids`` are events; namespaces narrow what the others
            let be seen. ``recallable`` is set by ``outcome``.
        outcome : {"success", "failure", "any"}, default "success"
            What may advise; failed episodes, which may not; or both.
        sources : sequence of str, or mapping of str to callable, optional
            Where to look: "dense", "lexical", "words", "graph", "aliases", "recent", and any
            ``Callable[[Cue], list[Hit]]`` under a name of its own (None for a built-in one);
            default those of the pipeline.
        floor : float or Floor, optional
            Events no more similar than this are found by their words only, if at all; default the
            floor of the pipeline.
        pipeline : Pipeline, optional
            How to recall; default ``self.pipeline``.

        Returns
        -------
        Hits
            A list of `Hit`, each with its ``event``; the shares of the ``factors`` add up to the
            score, into which the trust in the event's source enters. Empty where nothing fits.
            ``trace`` says what happened.

        Raises
        ------
        InvalidKError, InvalidFilterError, InvertedRangeError, InvalidParameterError
            A parameter outside its bounds.
        InvalidInputError
            Namespaces that cannot be some.
        """
        asker = asker_of(namespace, also, where, outcome)
        plan = plan_of(pipeline or self.pipeline, sources, floor)
        recalled, hits = recall_once(
            self._ground(), plan, asker, cue, k, lambda found: head_of(found, k)
        )
        events = [hit.event for hit in hits if hit.event is not None]
        self._remember_handing_out(namespace, events)
        if plan.serving.refresh == "retrieved" and not self.record.frozen:
            with self.record.mutex:
                self._noted.use((one.event_id for one in events if one.event_id), recalled.view.now)
        return hits

    @checked(k=RECALL["k"], where=a_filter, pipeline=RECALL["pipeline"])
    def candidates(
        self,
        cue: str | Cue,
        k: int = 10,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
        where: Filter | None = None,
        outcome: Outcome = "success",
        pipeline: Pipeline | None = None,
    ) -> Candidates:
        """Return everything that a recall weighs, before the floors: its table of columns.

        Parameters and errors are those of ``recall``.
        """
        asker = asker_of(namespace, also, where, outcome)
        plan = pipeline or self.pipeline
        return recall_once(self._ground(), plan, asker, cue, k, lambda found: found.ranking.table)[
            1
        ]

    def _ground(self) -> Ground:
        if self._corpus is None:
            self._corpus = Corpus(self.record)
        others = Others(partial(embed_query, self.embedder), self._checked, self._calls)
        return Ground(self._corpus, lambda: self.index, others, self.record.now, self._noted.used)


def head_of(recalled: Recalled, k: int) -> Hits:
    """Return the first k of a ranking."""
    hits = hits_of(recalled, recalled.ranking.order[:k].tolist())
    trace = recalled.trace
    trace.hits, trace.beyond_k = hits, trace.candidates - trace.below_floor - len(hits)
    return Hits(hits, trace)


def asker_of(namespace: str, also: Sequence[str], where: Filter | None, outcome: str) -> Asker:
    """Return who asks."""
    if not isinstance(outcome, str) or outcome not in _RECALLABLE:
        raise wrong("outcome", outcome, "success, failure or any")
    return Asker(namespace, check_also(also), where or Filter(), _RECALLABLE[outcome])


def plan_of(pipeline: Pipeline, sources: Sources | None, floor: float | Floor | None) -> Pipeline:
    """Return a pipeline with what one call wants otherwise."""
    if floor is not None:
        floor = floor if isinstance(floor, Floor) else Floor(similarity=floor)
        pipeline = replace(pipeline, floor=floor)
    return pipeline if sources is None else pipeline.looking_in(sources)
