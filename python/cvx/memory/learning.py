"""``memory.learning``: evaluates and tunes recall, reads and resets what was learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from cvx.arguments import (
    among,
    an_event,
    are_several,
    checked,
    number,
    optional,
    some_events,
    some_texts,
    some_weights,
    whole,
    wrong,
)
from cvx.cue import sound_cue
from cvx.errors import NotLoggedError, UnknownError
from cvx.learn.attribution import Attribution
from cvx.memory.feedback import a_decision, attribution_of, decisions_that_showed
from cvx.memory.namespace_access import Identity
from cvx.memory.recall_verbs import RECALL, RecallVerbs, asker_of
from cvx.memory.resources import Resources, noun_repr
from cvx.recall import Candidates, Context, Hits, Pipeline, PlackettLuce
from cvx.scoring import (
    Calibration,
    LoggedChoice,
    OffPolicyEstimate,
    UsageTracker,
    logged_calibration,
    logged_choices,
    off_policy_value,
    plackett_luce,
    relevance_calibration,
)
from cvx.store.row_validation import explains
from cvx.types import AnEvent, Cue, Decision, Vector, Where

if TYPE_CHECKING:
    from cvx.evaluation import Label, Report, Tuning
    from cvx.learn.decay import DecayPolicy
    from cvx.learn.loop import ActiveMemory
    from cvx.learn.region_mdp import RegionMDP
    from cvx.memory.memory import Memory


@explains(lambda learning: learning._shared.record)
class Learning:
    """Evaluates and tunes recall; reads, explains and resets what was learned.

    Parameters
    ----------
    shared : Resources
        Of the memory.
    recaller : RecallVerbs
        The one whose pipeline is kept.
    identity : Identity
        Who asks.
    """

    __repr__ = noun_repr

    def __init__(self, shared: Resources, recaller: RecallVerbs, identity: Identity) -> None:
        self._shared, self._recaller, self._identity = shared, recaller, identity

    @property
    def pipeline(self) -> Pipeline:
        """How this memory recalls: what was set or tuned last, by any process, else the default.

        What is set is kept with the store. A part of your own (a function, a source) cannot be:
        then it holds until the memory is closed, or another is stored, which a
        ``PipelineNotKeptWarning`` says. ``dataclasses.replace`` gives one with another part.
        """
        return self._recaller.pipeline

    @pipeline.setter
    def pipeline(self, pipeline: Pipeline) -> None:
        self._identity.need_root("pipeline")
        self._recaller.keep_pipeline(pipeline)

    @checked(weights=optional(some_weights))
    def recall_with(self, weights: Mapping[str, float] | None = None) -> None:
        """Store the weights that this memory recalls with from now on.

        Parameters
        ----------
        weights : mapping of str to float, optional
            Of the signals; default the shipped ones, or those of the preset.

        Raises
        ------
        InvalidInputError
            Weights that are empty, not finite, or of no signal. Nothing is stored.
        """
        self._identity.need_root("recall_with")
        self._recaller.keep_weights(weights)

    def reset(self, what: str = "recall") -> None:
        """Forget what was learned, in the namespace of whoever asks.

        Parameters
        ----------
        what : {"recall", "sources"}, default "recall"
            "recall": what feedback taught of ranking; recall goes by the shipped or tuned weights
            again, and learns anew. "sources": whose advice failed; recall leaves no source out
            until more of it fails. What was counted and written down stays.

        Raises
        ------
        InvalidInputError
            Something else.
        """
        forget = {
            "recall": self._recaller.forget_feedback,
            "sources": self._recaller.forget_sources,
        }
        among(*forget)("what", what)
        forget[what](self._identity.namespace)

    @checked(k=RECALL["k"], pipeline=RECALL["pipeline"])
    def candidates(
        self,
        cue: str | Cue | Vector,
        k: int = 10,
        *,
        namespace: str | None = None,
        where: Where | None = None,
        pipeline: Pipeline | None = None,
    ) -> Candidates:
        """Return everything that a recall weighs, before the floors: its table of columns.

        Parameters and errors are those of ``Memory.recall``.
        """
        asker = asker_of(self._identity, namespace, where)
        return self._recaller.candidates(cue, k, asker, lambda: pipeline or self.pipeline)

    @checked(k=RECALL["k"], pipeline=RECALL["pipeline"])
    def ranked(
        self,
        cue: str | Cue | Vector,
        k: int = 10,
        *,
        namespace: str | None = None,
        where: Where | None = None,
        pipeline: Pipeline | None = None,
    ) -> Hits:
        """Return what a recall would, without counting or noting that it was asked.

        Parameters and errors are those of ``Memory.recall``.
        """
        asker = asker_of(self._identity, namespace, where)
        return self._recaller.ranked(cue, k, asker, lambda: pipeline or self.pipeline)[1]

    @property
    def weights(self) -> dict[str, float]:
        """What each signal weighs in a recall: as shipped, or as they were tuned or set."""
        return dict(self.pipeline.weighting.weights)

    @checked(weights=optional(some_weights))
    def weighed(self, weights: Mapping[str, float] | None = None) -> Pipeline:
        """Return how this memory would recall after ``recall_with``; nothing is stored.

        Parameters and errors are those of ``recall_with``.
        """
        return self._recaller.weighed(weights)

    @checked(weights=optional(some_weights))
    def evaluate(
        self,
        questions: Iterable[tuple[str | Cue, AnEvent | Iterable[AnEvent]] | Label],
        k: int | Sequence[int] = (5, 10, 20),
        *,
        weights: Mapping[str, float] | None = None,
    ) -> Report:
        """Measure how well this memory recalls what answers questions; nothing in it changes.

        Parameters
        ----------
        questions : iterable of (cue, events)
            What is asked, and the events that answer it; none: nothing does. Or labels, as
            ``cvx.evaluation.read_labels`` reads them.
        k : int or sequence of int, default (5, 10, 20)
            Where rankings are cut.
        weights : mapping of str to float, optional
            Of the signals; default those that it recalls with.

        Returns
        -------
        Report
            Its ``metrics``, "recall@5" among them, each a mean with an interval; ``print(report)``
            is a table.

        Raises
        ------
        InvalidInputError
            No questions, something that is no such pair, a weight of no signal.
        UnknownError
            No such event, or none that may be seen.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> key = memory.add("the spare key is under the green pot")
        >>> rain = memory.add("it rained all night")
        >>> report = memory.learning.evaluate([("where is the key?", key), ("did it rain?", rain)])
        >>> report.metrics["recall@5"].mean
        1.0
        """
        from cvx.evaluation.metrics import measure, recalling

        labels, gold = self._labels(questions)
        cuts = [whole(1)("k", one) for one in (k if are_several(k) else [k])]
        pipeline = self.pipeline if weights is None else self.weighed(weights)
        memory = cast("Memory", SimpleNamespace(learning=self))
        return measure("this memory", recalling(memory, pipeline), labels, gold, at=cuts)

    @checked(folds=whole(2))
    def tune(
        self,
        questions: Iterable[tuple[str | Cue, AnEvent | Iterable[AnEvent]] | Label],
        folds: int = 5,
    ) -> Tuning:
        """Fit the weights of the signals to questions; ``apply()`` of the answer takes them over.

        Parameters
        ----------
        questions : iterable of (cue, events)
            As for ``evaluate``.
        folds : int, default 5
            ``after`` measures each fifth of them by weights that were fitted to the others.

        Returns
        -------
        Tuning
            ``before`` and ``after``, the ``weights``, and ``apply()``.

        Raises
        ------
        InvalidInputError
            Fewer questions than folds; as for ``evaluate``.
        """
        from cvx.evaluation.tuning import cross_validated

        labels, gold = self._labels(questions)
        memory = cast("Memory", SimpleNamespace(learning=self))
        made = cross_validated(memory, labels, gold, folds)
        return replace(made, keep=self.recall_with)

    def _labels(self, questions: Any) -> tuple[list[Label], list[frozenset[int]]]:
        """Return questions as labels, and the events that answer each."""
        from cvx.evaluation.labels import Label

        if isinstance(questions, str | Mapping) or not are_several(questions):
            raise wrong("questions", questions, "a list of (cue, events)")
        labels: list[Label] = []
        for place, one in enumerate(questions):
            if isinstance(one, Label):
                labels.append(one)
                continue
            if not isinstance(one, Sequence) or isinstance(one, str) or len(one) != 2:
                raise wrong(f"questions[{place}]", one, "a pair (cue, events)")
            cue, wanted = sound_cue(one[0]), some_events(f"questions[{place}]", one[1])
            whose = self._identity.namespace
            words = cue.text or cue.words()
            labels.append(Label(query=words, gold=frozenset(wanted), namespace=whose, cue=cue))
        gold = [
            frozenset(self._event_id(item, label.namespace) for item in label.gold)
            for label in labels
        ]
        return labels, gold

    def _event_id(self, item: int | str, namespace: str) -> int:
        """Return the id of an event that a label names by it, or by its key."""
        record = self._shared.record
        number = record.event_of_key(item, namespace) if isinstance(item, str) else item
        if number is None:
            raise UnknownError(f"no event of {namespace!r} has the key {item!r}")
        return self._shared.event(int(number), self._identity).id

    @checked(of=among("advice", "recall"))
    def calibration(self, of: str = "advice") -> Calibration | None:
        """Compare what was predicted with what happened.

        Parameters
        ----------
        of : {"advice", "recall"}, default "advice"
            The success that decisions of episodes predicted, with how these ended; or the
            ``relevance`` of what was recalled, with the feedback on it.

        Returns
        -------
        Calibration or None
            None if no decision has both a prediction and an outcome.
        """
        self._identity.need_root("calibration")
        if of == "recall":
            self._shared.flush()
            return relevance_calibration(self._shared.record)
        return logged_calibration(self._shared.record)

    @checked(decision=a_decision)
    def attribution(self, decision: Context | Decision | int) -> Attribution:
        """Return which memories drove a decision of a context or of a loop, and whether it paid.

        Raises
        ------
        UnknownError
            No such decision; those of a loop are there once their episode is closed.
        """
        assert isinstance(decision, int)
        return attribution_of(self._shared, decision, self._identity)

    def decisions_with(self, event: AnEvent) -> list[Attribution]:
        """Return the decisions of contexts and of loops that a memory was shown in, oldest first.

        Those of a loop count once their episode is closed.
        """
        shown = self._shared.event(an_event("event", event), self._identity).id
        return decisions_that_showed(self._shared, shown, self._identity)

    @checked(names=some_texts)
    def logged_choices(self, names: Sequence[str]) -> list[LoggedChoice]:
        """Return what was sampled and has a known outcome; see ``cvx.scoring.logged_choices``."""
        self._identity.need_root("logged_choices")
        return logged_choices(self._shared.record, names)

    def loop(self, **options: Any) -> ActiveMemory:
        """Return a loop (recall, act, close, learn) that runs on this memory.

        Parameters
        ----------
        **options
            As for ``ActiveMemory``, ``namespace`` among them; ``clock`` is by default the memory's
            own, so that steps lie among the events that were added.

        Raises
        ------
        NamespaceError
            The memory is bound to a namespace: a loop is of the whole store.
        """
        from cvx.memory.namespace_advisors import new_loop

        self._identity.need_root("a loop")
        return new_loop(self._shared, **options)

    @property
    def active(self) -> ActiveMemory:
        """The memory's own loop, made at its first use; it closes ``Memory.episode`` too."""
        from cvx.memory.namespace_advisors import advisors_of

        self._identity.need_root("a loop")
        return advisors_of(self._shared).loop

    @property
    def mdp(self) -> RegionMDP | None:
        """What its episodes taught of regions and actions: the Markov decision process."""
        from cvx.memory.namespace_advisors import advisors_of

        self._identity.need_root("a loop")
        # What was forgotten since counts no more.
        return advisors_of(self._shared).caught_up().mdp

    @property
    def usage(self) -> UsageTracker | None:
        """How often what was recalled was followed, and helped, as its episodes counted it."""
        return self.active.usage

    @property
    def decay(self) -> DecayPolicy | None:
        """How failed episodes lower what their steps are worth."""
        return self.active.decay

    @property
    def sampling(self) -> float:
        """How far the order of a context is drawn: a temperature, 0.0 for the best always first.

        Above 0, a context puts hits first with a chance of softmax(score / temperature), and logs
        that chance; ``off_policy`` needs it. What is set is kept with the store.
        """
        drawn = self.pipeline.serving.sampling
        return 0.0 if drawn is None else drawn.temperature

    @sampling.setter
    def sampling(self, temperature: float) -> None:
        heat = number(0.0)("sampling", temperature)
        serving = replace(self.pipeline.serving, sampling=PlackettLuce(0, heat) if heat else None)
        self.pipeline = replace(self.pipeline, serving=serving)

    @checked(weights=some_weights)
    def off_policy(self, weights: Mapping[str, float]) -> OffPolicyEstimate:
        """Estimate the mean outcome that contexts would have had with other weights.

        Parameters
        ----------
        weights : mapping of str to float
            Of the signals, by which hits are put first.

        Returns
        -------
        OffPolicyEstimate
            Doubly robust, with an interval; see ``cvx.scoring.off_policy_value``.

        Raises
        ------
        NotLoggedError
            Fewer than two decisions were sampled with these signals and have an outcome: set
            ``sampling`` above 0 while deciding, and give feedback.
        InvalidInputError
            A weight that is no finite number, or of no signal.
        """
        self._identity.need_root("off_policy")
        self._shared.flush()
        record = self._shared.record
        sampled = [row["record"].get("drawn_from") for row in record.decisions()]
        known = {name for drawn in sampled if drawn is not None for name in drawn["names"]}
        if known and not {*weights} <= known:
            raise wrong("weights", [*weights], f"some of {', '.join(sorted(known))}")
        log = logged_choices(record, list(weights)) if weights else []
        if len({choice.group for choice in log}) < 2:
            raise NotLoggedError(
                f"{len(log)} contexts were sampled with {', '.join(weights) or 'no signal'} and "
                "have an outcome, 2 are needed: set memory.learning.sampling above 0 before "
                "memory.context, whose order is drawn then (that of recall is not), and give "
                "feedback with an outcome"
            )
        return off_policy_value(log, plackett_luce(list(weights.values()), self.sampling or 0.1))
