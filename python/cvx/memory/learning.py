"""What a memory has learned of recalling, and what its decisions rest on: ``memory.learning``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cvx.arguments import a_mapping, an_event, checked, number, one_of, optional, some_texts, wrong
from cvx.errors import InvalidInputError, NotLoggedError
from cvx.learn.attribution import Attribution
from cvx.memory.backend import Backend, Identity
from cvx.memory.feedback import a_decision, attribution_of, decisions_that_showed
from cvx.memory.recaller import RECALL, Recaller, asker_of
from cvx.recall import Candidates, Pipeline
from cvx.recall.context import Context
from cvx.recall.signals import Answerable
from cvx.scoring import (
    Calibration,
    LoggedChoice,
    OffPolicyEstimate,
    logged_calibration,
    logged_choices,
    off_policy_value,
    plackett_luce,
)
from cvx.scoring.sampling import PlackettLuce
from cvx.store.rowcheck import explains
from cvx.types import AnEvent, Cue, Decision, Vector, Where

if TYPE_CHECKING:
    from cvx.learn.decay import DecayPolicy
    from cvx.learn.loop import ActiveMemory
    from cvx.learn.region_mdp import RegionMDP
    from cvx.scoring import UsageTracker

_answerable = one_of(Answerable, called="an Answerable, as calibrated_floor returns it")


@explains(lambda learning: learning._backend.record)
class Learning:
    """How a memory recalls, what it learned, and which memories drove which decision.

    Parameters
    ----------
    backend : Backend
        Of the memory.
    recaller : Recaller
        The one whose pipeline is kept.
    identity : Identity
        Who asks.
    """

    def __init__(self, backend: Backend, recaller: Recaller, identity: Identity) -> None:
        self._backend, self._recaller, self._identity = backend, recaller, identity

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

    @checked(weights=optional(a_mapping), answerable=optional(_answerable))
    def recall_with(
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
        InvalidInputError
            Weights that are empty, not finite, or of no signal; nothing is stored.
        """
        self._identity.need_root("recall_with")
        self._recaller.keep_weights(weights, answerable)

    def reset(self, what: str = "recall") -> None:
        """Forget what was learned, in the namespace of whoever asks.

        Parameters
        ----------
        what : {"recall"}, default "recall"
            What feedback taught of ranking: recall goes by the shipped or tuned weights again, and
            learns anew. What was counted and written down stays.

        Raises
        ------
        InvalidInputError
            Something else.
        """
        if not isinstance(what, str) or what != "recall":
            raise InvalidInputError(f"what is {what!r:.60}: give 'recall'")
        self._recaller.forget_feedback(self._identity.namespace)

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
        return self._recaller.candidates(cue, k, asker, pipeline or self.pipeline)

    def calibration(self) -> Calibration | None:
        """Compare the predictions of success of all logged decisions with what happened.

        Returns
        -------
        Calibration or None
            None if no decision has both a prediction and an outcome.
        """
        self._identity.need_root("calibration")
        return logged_calibration(self._backend.record)

    @checked(decision=a_decision)
    def attribution(self, decision: Context | Decision | int) -> Attribution:
        """Return which memories drove a decision of a context or of a loop, and whether it paid.

        Raises
        ------
        UnknownError
            No such decision; those of a loop are there once their episode is closed.
        """
        assert isinstance(decision, int)
        return attribution_of(self._backend, decision, self._identity)

    def decisions_with(self, event: AnEvent) -> list[Attribution]:
        """Return the decisions of contexts and of loops that a memory was shown in, oldest first.

        Those of a loop count once their episode is closed.
        """
        shown = self._backend.event(an_event("event", event), self._identity).id
        return decisions_that_showed(self._backend, shown, self._identity)

    @checked(names=some_texts)
    def logged_choices(self, names: Sequence[str]) -> list[LoggedChoice]:
        """Return what was sampled and has a known outcome; see ``cvx.scoring.logged_choices``."""
        self._identity.need_root("logged_choices")
        return logged_choices(self._backend.record, names)

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
        from cvx.learn.loop import ActiveMemory

        backend = self._backend
        backend.store.refresh()
        self._identity.need_root("a loop")
        options = {"clock": backend.record.now, **options}
        made = ActiveMemory(backend.store.index, backend.embedder, backend.record, **options)
        made.on_render = backend.hand_out_text
        return made

    @property
    def active(self) -> ActiveMemory:
        """The memory's own loop, made at its first use; it closes ``Memory.episode`` too."""
        from cvx.memory.learner import agents_of

        self._identity.need_root("a loop")
        return agents_of(self._backend).loop

    @property
    def mdp(self) -> RegionMDP | None:
        """What its episodes taught of regions and actions: the Markov decision process."""
        return self.active.mdp

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

    @checked(weights=a_mapping)
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
        values = [number()(f"weights[{name!r}]", one) for name, one in weights.items()]
        self._backend.flush()
        record = self._backend.record
        sampled = [row["record"].get("drawn_from") for row in record.decisions()]
        known = {name for drawn in sampled if drawn is not None for name in drawn["names"]}
        if known and not {*weights} <= known:
            raise wrong("weights", [*weights], f"some of {', '.join(sorted(known))}")
        log = logged_choices(record, list(weights)) if weights else []
        if len({choice.group for choice in log}) < 2:
            raise NotLoggedError(
                f"{len(log)} decisions were sampled with {', '.join(weights) or 'no signal'} and "
                "have an outcome, 2 are needed: set memory.learning.sampling above 0 while "
                "deciding, and give feedback with an outcome"
            )
        return off_policy_value(log, plackett_luce(values, self.sampling or 0.1))
