"""``memory.episode``: a running episode with advise, act, end and discard."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cvx.arguments import a_flag, an_outcome, checked, number, optional, whole, wrong
from cvx.cue import cue_hash
from cvx.errors import (
    EpisodeDiscardedWarning,
    EpisodeEndedError,
    InvalidInputError,
    InvalidVectorError,
    UnknownError,
    warn,
)
from cvx.learn.advisor.types import MOST_REWARD, Observation, restored_action
from cvx.learn.attribution import Taken, decision_of
from cvx.learn.episode_recorder import EpisodeRecorder, OpenEpisode
from cvx.learn.model_sync import TakenBackError
from cvx.memory.advice import Advice, Asked, Option, as_text
from cvx.memory.aio import OF_AN_EPISODE, PLAIN, Aio
from cvx.memory.namespace_advisors import Advisors, NamespaceAdvisor, advisors_of, task_of
from cvx.memory.observations import (
    canonical_action,
    listed_action,
    same_observation,
    some_actions,
    state_of,
)
from cvx.store.prompt_injection import tags_with_mark
from cvx.store.rows import DISCARDED, OPEN
from cvx.tracing import watched
from cvx.types import Cue, Decision, Episode, Event, Hit, Where, entity_number, steps_html, task_tag

if TYPE_CHECKING:
    from cvx.memory.memory import Memory
    from cvx.memory.namespace_access import Identity
    from cvx.memory.resources import Resources
    from cvx.recall import Context, Hits
    from cvx.store import Writer

_MOST_LOGGED = 20
_a_reward = number(-MOST_REWARD, MOST_REWARD)


class RunningEpisode:
    """An episode that is being played: ask for advice, act, end. ``Memory.episode`` makes it.

    Each step is durable when ``act`` returns, and teaches its own episode at once. Others learn at
    ``end``, all of it or nothing. What is not ended counts as discarded; after a kill it can be
    taken up again: ``memory.episode(id=...)``.

    As a context manager it is discarded where an exception leaves the block, and, with a warning,
    where the block ends without ``end``.

    One that is begun with ``learn=False`` is played by the same advice and leaves nothing behind.

    Parameters
    ----------
    memory : Memory
        In whose name it asks.
    advisors : Advisors
        Of the memory.
    run : OpenEpisode
        Begun and stored.
    recorder : EpisodeRecorder
        What makes its steps.
    learner : NamespaceAdvisor
        Of whoever asks.
    holder : int
        How often it was taken up; 0 of one that leaves nothing behind.

    Attributes
    ----------
    id : int
        By which it is taken up again; negative of one that leaves nothing behind.
    goal, task, namespace : str
        As given; ``task`` is None where none was.
    events : tuple of Event
        Its steps so far.
    aio : Aio
        The same verbs to await.
    """

    def __init__(
        self,
        memory: Memory,
        advisors: Advisors,
        run: OpenEpisode,
        recorder: EpisodeRecorder,
        learner: NamespaceAdvisor,
        holder: int,
    ) -> None:
        self._memory, self._advisors, self._run, self._learner = memory, advisors, run, learner
        self._recorder, self._holder = recorder, holder
        self._lock = threading.RLock()
        self._discarded = False
        self._advice: tuple[Advice, Observation] | None = None
        self._seen: Observation | None = None
        self._given: list[Hashable] | None = None
        self._shown: list[tuple[int, tuple[Hit, ...]]] = []
        self._followed: dict[int, list[int]] = {}
        self._listed = _last_actions(run.steps)
        self._stored = len(run.steps)
        self.aio = Aio(self, OF_AN_EPISODE, PLAIN)
        learner.begin(run)

    @property
    def id(self) -> int:
        """The number of the episode."""
        return self._run.episode_id

    @property
    def goal(self) -> str:
        """What is to be reached."""
        return self._run.goal

    @property
    def task(self) -> str | None:
        """Which family of goals that belongs to."""
        return self._run.task_type

    @property
    def namespace(self) -> str:
        """Whose it is."""
        return self._run.namespace

    @property
    def events(self) -> tuple[Event, ...]:
        """Its steps so far, as they are stored."""
        return tuple(self._run.steps)

    @property
    def ended(self) -> bool:
        """Whether it has its outcome, or was discarded."""
        return self._run.closed

    def __repr__(self) -> str:
        state = "discarded" if self._discarded else "ended" if self.ended else "open"
        task = "" if self.task is None else f" ({self.task})"
        steps = len(self._run.steps)
        return f"<Episode {self.id} {self.goal!r:.60}{task}: {steps} steps, {state}>"

    def _repr_html_(self) -> str:
        return steps_html(repr(self)[1:-1], self._run.steps)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.ended:
            return
        if kind is None and self._holder:
            warn(
                f"episode {self.id} was left without an outcome and is discarded: call "
                "end(outcome) in the block",
                EpisodeDiscardedWarning,
            )
        if kind is None:
            self.discard()
            return
        # The error that broke it off is what is to be seen.
        with suppress(Exception):
            self.discard()
        self._run.closed = self._discarded = True

    @watched("advise", "observation")
    @checked(k=whole(1), budget_tokens=whole(0))
    def advise(
        self,
        observation: Any,
        actions: Sequence[Any] | None = None,
        *,
        k: int = 3,
        budget_tokens: int = 500,
    ) -> Advice:
        """Say what each action is worth from here for this goal, by every episode that ended.

        Parameters
        ----------
        observation : str, sequence of float of shape (n,), int, or tuple of int
            What is seen: a text, which the memory's embedder embeds; numbers, as many throughout a
            task; or what names a state exactly, an int or a tuple of these. What looks the same
            is the same state.
        actions : sequence of str, int, float, bool or tuples of these, optional
            What can be done now; it may change from step to step. What Python holds equal is one
            action: of 1, 1.0 and True the first is offered. Default: what is known to have been
            done near here.
        k : int, default 3
            How many earlier steps the ``hits`` of an option name at the most.
        budget_tokens : int, default 500
            Room for ``str(advice)``.

        Returns
        -------
        Advice
            The options, best first; ``choose()`` returns the one to take.

        Raises
        ------
        InvalidInputError
            No action, or one that is none of these.
        InvalidVectorError
            Numbers of another length than before, or NaN.
        EpisodeEndedError
            The episode is over.
        """
        with self._lock:
            self._check_open()
            listed = None if actions is None else some_actions(actions)
            known = self._learner
            learner = self._advisors.learner(known.namespace, known.also, known.history)
            seen = self._observe(observation)
            with learner.lock:
                made = learner.advisor.options(str(self.id), seen, listed)
                # Surer ones first of what is worth as much; last what nothing is known of.
                made.sort(key=lambda one: (not one.known, -one.value, -one.low))
                unit = learner.advisor.unit(str(self.id)) or "P(success)"
                asked = Asked(
                    self.goal,
                    self.task or "",
                    seen.text or "",
                    learner.precedents.plans(task_of(self._run), self.goal, state_of(seen)),
                    learner.precedents.failures(task_of(self._run), state_of(seen)),
                    budget_tokens,
                )
            options = [
                Option(
                    one.action,
                    one.value,
                    (one.low, one.high),
                    one.trials,
                    one.basis,
                    one.episodes,
                    partial(learner.hits, seen=seen, value=one.value, k=k),
                    one.source,
                )
                for one in made
            ]

            def choose(explore: bool) -> int:
                with learner.lock:
                    picked = learner.advisor.choose(str(self.id), made, explore=explore)
                return next(at for at, one in enumerate(made) if one.action == picked.action)

            number = self._advisors.shared.record.take_decision_number()

            def chances() -> Sequence[float]:
                with learner.lock:
                    return learner.advisor.chances(str(self.id), made)

            advice = Advice(options, unit, number, asked, choose, chances, self._handed_out)
            self._advice, self._seen, self._given = (advice, seen), seen, listed
            return advice

    def _handed_out(self, advice: Advice, text: str) -> None:
        """Let the text not be remembered as something new where the agent brings it back."""
        nodes = [hit.node for hit in advice.best.hits if hit.node >= 0] if advice.advised else []
        self._advisors.shared.hand_out_text(self.namespace, text, nodes)

    def recall(
        self, cue: str | Cue | None = None, k: int = 10, *, where: Where | None = None
    ) -> Hits:
        """Recall as ``Memory.recall`` does; by default for the goal and what was seen last."""
        with self._lock:
            self._check_open()
            found = self._memory.recall(self._cue(cue), k, where=where, namespace=self.namespace)
            self._note_shown(getattr(found, "decision", None), found)
            return found

    def context(
        self, cue: str | Cue | None = None, budget_tokens: int = 500, *, where: Where | None = None
    ) -> Context:
        """Recall for a prompt as ``Memory.context`` does; by default for the goal and what is seen.

        What became of the episode is the feedback on what it shows.
        """
        with self._lock:
            self._check_open()
            found = self._memory.context(
                self._cue(cue), budget_tokens, where=where, namespace=self.namespace
            )
            self._note_shown(found.decision, found.hits)
            return found

    def _cue(self, cue: str | Cue | None) -> str | Cue:
        if cue is not None:
            return cue
        seen = "" if self._seen is None else self._seen.text or ""
        if not (self.goal or seen):
            raise wrong("cue", cue, "one: the episode has no goal, and nothing was seen in words")
        return Cue(goal=self.goal, step=seen)

    def _note_shown(self, decision: int | None, hits: Any) -> None:
        if decision is not None:
            self._shown.append((decision, tuple(hits)))

    @checked(reward=_a_reward, followed=optional(a_flag))
    def act(
        self,
        action: Any,
        *,
        reward: float = 0.0,
        observation: Any = None,
        followed: bool | None = None,
        timestamp: Any = None,
    ) -> Event:
        """Record what was done and what it brought; call it after the environment's step.

        Parameters
        ----------
        action : str, int, float, bool, or a tuple of these
            What was done.
        reward : float, default 0.0
            What the step brought, in any range.
        observation : str, sequence of float, or int, optional
            What it was done in; default what ``advise`` was asked about last.
        followed : bool, optional
            Whether memory was followed; by default, whether it is the best action of the last
            advice or the one that it chose.
        timestamp : int or aware datetime, optional
            When; default now.

        Returns
        -------
        Event
            The step, as it is stored.

        Raises
        ------
        InvalidInputError
            An action that cannot be stored as JSON; no observation, and none was advised on.
        EpisodeEndedError
            The episode is over, or was taken up or ended elsewhere.
        """
        with self._lock:
            self._check_open()
            done = canonical_action("action", action)
            seen = self._seen if observation is None else self._observe(observation)
            if seen is None:
                raise wrong(
                    "observation", observation, "what it was done in, or ask advise() before acting"
                )
            advice = None
            if self._advice is not None and same_observation(self._advice[1], seen):
                advice = self._advice[0]
            option = None if advice is None else advice.option(done)
            if followed is None and advice is not None:
                followed = option is not None and option in (advice.best, advice.chosen)
            actions = None if advice is None else self._given
            event = self._store(done, reward, seen, timestamp, (advice, option, followed, actions))
            self._follow_shown(as_text(done))
            self._advice = self._seen = self._given = None
            self._learner.step(self._run, event, actions)
            return event

    def _store(
        self,
        done: Hashable,
        reward: float,
        seen: Observation,
        timestamp: int | None,
        by: tuple[Advice | None, Option | None, bool | None, list[Hashable] | None],
    ) -> Event:
        """Write a step down, and the advice that it was taken by."""
        run, (advice, option, followed, actions) = self._run, by
        told = _but_none(
            reward=reward or None,
            action=None if isinstance(done, str) else listed_action(done),
            followed=followed,
        )
        if actions != self._listed:
            told["actions"] = None if actions is None else [listed_action(one) for one in actions]
        vector, own = seen.vector, self._advisors.own_vectors
        if seen.text is None and vector is not None:
            told["observation"] = "vector" if own else [float(one) for one in vector]
            vector = vector if own else None
        # Advice that was never acted on is not written down.
        taken = None if advice is None else self._decided(advice, option, bool(followed), done)
        shared = self._advisors.shared
        if timestamp is not None or shared.clock != "utc":
            timestamp = shared.time(timestamp)
        event = self._recorder.step(
            run,
            seen.text or "",
            action=as_text(done),
            vector=vector,
            timestamp=timestamp,
            metadata=told,
        )
        if not self._holder:
            self._listed = actions
            return event
        try:
            with shared.writing() as write:
                self._check_held(write)
                family = [] if run.task_type is None else [task_tag(run.task_type)]
                event = replace(
                    event,
                    event_id=write.next_event,
                    recorded=write.recorded,
                    node=None if vector is None else write.take_nodes(1)[0],
                    tags=tags_with_mark(tuple(family), event.text),
                )
                write.add_events([event], recallable=False)
                if taken is not None:
                    write.add_decisions([(taken.decision, taken.noted or {})])
        except BaseException:
            run.steps.pop()
            raise
        run.steps[-1] = event
        self._stored += 1
        self._listed = actions
        if taken is not None:
            run.taken.append(taken)
        return event

    def _decided(
        self, advice: Advice, option: Option | None, followed: bool, done: Hashable
    ) -> Taken:
        """Return an advice that is acted on, with what it rests on and how likely it was."""
        looked_at = (*advice.advised[:1], advice.chosen, option)
        shown = {id(one): one for one in looked_at if one is not None}
        hits = {hit.node: hit for one in shown.values() for hit in one.hits if hit.node >= 0}
        rests_on = () if option is None or not followed else option.hits
        told = [*advice.advised[:_MOST_LOGGED], *shown.values()]
        scores = {as_text(one.action): one.value for one in told}
        # What was not chosen by the advice has no chance that it knows.
        chance = advice.chance if option is not None and option is advice.chosen else None
        seen = self._advice[1] if self._advice else None
        cue = Cue(
            goal=self.goal,
            step=(seen.text if seen else None) or "",
            task_type=self.task,
            place=len(self._run.steps),
        )
        decision = Decision(
            advice.decision,
            cue,
            tuple(hits.values()),
            action_scores=tuple(scores.items()),
            episode_id=self.id,
            action=as_text(done),
            followed=tuple(hit.node for hit in rests_on if hit.node >= 0),
            predicted=option.value if option and advice.unit == "P(success)" else None,
            namespace=self.namespace,
        )
        noted = _but_none(
            advice=advice.unit,
            cue_hash=cue_hash(cue),
            namespace=self.namespace,
            chance=chance,
            predicted=decision.predicted,
        )
        return Taken(decision, len(self._run.steps), noted)

    def _follow_shown(self, action: str) -> None:
        for decision, hits in self._shown:
            taken = [hit.event.id for hit in hits if hit.event and hit.event.action == action]
            self._followed.setdefault(decision, []).extend(taken)

    @watched("end", "observation")
    @checked(outcome=optional(an_outcome), truncated=a_flag)
    def end(
        self,
        outcome: float | np.bool | None = None,
        *,
        observation: Any = None,
        truncated: bool = False,
    ) -> None:
        """Give the episode its outcome; all other episodes learn from it, or nothing is changed.

        Parameters
        ----------
        outcome : float, optional
            In [0, 1], or a bool: 1 is a win. None: the sum of the rewards counts, in any range.
            The episodes of a task all end in one of these ways.
        observation : str, sequence of float, or int, optional
            What was seen last.
        truncated : bool, default False
            It was cut off: that is no failure of what was done.

        Raises
        ------
        InvalidInputError
            An outcome outside [0, 1]; or an outcome where the task counts rewards, or the reverse.
        EpisodeEndedError
            The episode is over, or was taken up or ended elsewhere.
        """
        with self._lock:
            self._check_open()
            run = self._run
            if not self._holder:
                self._check_unit(outcome)
                self._leave()
                return
            self._learner.catch_up()
            if len(run.steps) < self._stored:
                # What was decided went with the step that was erased.
                run.taken.clear()
            self._check_unit(outcome)
            total = math.fsum(float(step.metadata.get("reward", 0.0)) for step in run.steps)
            told = _but_none(
                **{"return": total if outcome is None else None},
                truncated=truncated or None,
                last=None if observation is None else _kept(self._observe(observation)),
            )
            reward = self._rank(total) if outcome is None else float(outcome)
            before, run.metadata = run.metadata, told
            # Neither a time that ran out nor a return below others' proves that advice was bad.
            exposure = 0.0 if truncated or outcome is None else 1.0
            try:
                run.steps[:] = self._closed(reward, exposure).steps
            finally:
                if not run.closed:
                    run.metadata = before
            self._advisors.ended()
            if not self._learner.also:
                # What is known of a namespace is found by whoever reads just that.
                failing = self._learner.advisor.source_trust.out
                self._memory._recaller.find_false(self.namespace, failing)
            self._give_feedback(reward)

    def _closed(self, reward: float, exposure: float) -> Episode:
        """Write the outcome down and learn from it; return the episode as it was closed."""
        while True:
            # Another thread may have taken back what the loop had learned meanwhile.
            with suppress(TakenBackError):
                return self._advisors.loop.models.close(self._run, reward, exposure)

    def _check_unit(self, outcome: float | np.bool | None) -> None:
        with self._learner.lock:
            unit = self._learner.advisor.settled_unit(str(self.id))
        wanted = "return" if outcome is None else "P(success)"
        if unit is not None and unit != wanted:
            cure = (
                "give end() no outcome" if unit == "return" else "give end() an outcome in [0, 1]"
            )
            raise InvalidInputError(
                f"outcome is {outcome}, but {self._learned_as} counts by {unit}: {cure}, or name "
                "another task"
            )

    @property
    def _learned_as(self) -> str:
        return f"goal {self.goal!r}" if self.task is None else f"task {self.task!r}"

    def _rank(self, total: float) -> float:
        """Return the share of the task's returns so far that are lower, equal ones counted half.

        The best so far is 1, unless nothing was ever gained.
        """
        known = self._learner.returns.get(task_of(self._run), [])
        lower = sum(one < total for one in known)
        if total >= max(known, default=total) and (lower or total > 0):
            return 1.0
        equal = 1 + sum(one == total for one in known)
        return (lower + equal / 2) / (len(known) + 1)

    def _give_feedback(self, reward: float) -> None:
        """Tell the memory what became of what it showed in the episode."""
        for decision, _ in self._shown:
            # Erased meanwhile, or said already.
            with suppress(UnknownError, EpisodeEndedError):
                self._memory.feedback(
                    decision, followed=self._followed.get(decision, ()), outcome=reward
                )

    def discard(self) -> None:
        """Break the episode off: its steps are put away, and nothing is learned from it.

        Raises
        ------
        EpisodeEndedError
            The episode is over, or was taken up or ended elsewhere.
        """
        with self._lock:
            self._check_open()
            run = self._run
            if self._holder:
                with self._advisors.shared.writing() as write:
                    self._check_held(write)
                    write.change_open_episode(
                        replace(_stored(run, self._holder), kind=f"{DISCARDED}{run.kind}")
                    )
            self._discarded = True
            self._leave()

    def _leave(self) -> None:
        """Be over, with nothing learned."""
        self._run.closed = True
        self._learner.discard(self._run)

    def _observe(self, value: Any) -> Observation:
        seen = self._advisors.observed(value)
        if seen.text is None and seen.vector is not None:
            task = task_of(self._run)
            dim = self._learner.sizes.get(task)
            if self._advisors.own_vectors:
                dim = self._advisors.shared.dim
            if dim not in (None, len(seen.vector)):
                raise InvalidVectorError(
                    f"the observation has {len(seen.vector)} numbers, those of {self._learned_as} "
                    f"have {dim}: give as many, or name another task"
                )
        return seen

    def _check_open(self) -> None:
        if self._run.closed:
            what = "was discarded" if self._discarded else "has its outcome"
            raise EpisodeEndedError(f"episode {self.id} {what}: begin another one")

    def _check_held(self, write: Writer) -> None:
        """Refuse to go on where another handle has."""
        found = write.connection.execute(
            "SELECT 1 FROM episodes WHERE episode_id = ? AND kind LIKE ?"
            " AND json_extract(metadata, '$.holder') = ?",
            (self.id, f"{OPEN}%", self._holder),
        ).fetchone()
        if found is None:
            self._run.closed = True
            raise EpisodeEndedError(
                f"episode {self.id} was ended, discarded, erased or taken up elsewhere: begin "
                "another one, or take it up with its id"
            )


def _last_actions(steps: Sequence[Event]) -> list[Hashable] | None:
    """Return the admissible actions as they were stored last; None where none were named."""
    for step in reversed(steps):
        if "actions" in step.metadata:
            told = step.metadata["actions"]
            return None if told is None else [restored_action(one) for one in told]
    return None


def _but_none(**told: Any) -> dict[str, Any]:
    """Return what is said of something, without what is None."""
    return {name: one for name, one in told.items() if one is not None}


def _kept(observation: Observation) -> Any:
    """Return an observation as the metadata of an episode keep it."""
    if observation.text is None:
        return [] if observation.vector is None else [float(one) for one in observation.vector]
    return observation.text if observation.vector is not None else {"state": observation.text}


def _stored(run: OpenEpisode, holder: int) -> Episode:
    """Return an open episode as the record keeps it."""
    return Episode(
        entity_id=run.entity_id,
        entity=run.entity,
        goal=run.goal,
        task_type=run.task_type,
        steps=tuple(run.steps),
        namespace=run.namespace,
        kind=f"{OPEN}{run.kind}",
        episode_id=run.episode_id,
        metadata={
            "holder": holder,
            "source": run.source,
            "trust": run.trust,
            "visibility": run.visibility,
        },
    )


def begin(
    memory: Memory,
    shared: Resources,
    identity: Identity,
    *,
    goal: str,
    task: str | None,
    entity: str | None,
    kind: str,
    source: str,
    trust: float,
    visibility: str,
    namespace: str | None,
    history: int | None,
    learn: bool,
) -> RunningEpisode:
    """Begin an episode, and write down that it began; see ``Memory.episode``."""
    advisors = advisors_of(shared)
    whose, also = identity.seeing(namespace)
    recorder = advisors.caught_up().recorder if learn else EpisodeRecorder(now=shared.record.now)
    run = recorder.begin(
        goal,
        task,
        entity_id=None if entity is None else entity_number(entity),
        namespace=whose,
        kind=kind,
        source=source,
        trust=trust,
        visibility=visibility,
    )
    run.entity, run.stored = entity, learn
    if learn:
        with advisors.shared.writing() as write:
            if entity is None:
                run.entity_id = max(run.entity_id, write.next_own_entity())
            run.episode_id = write.open_episode(replace(_stored(run, 1), kind=run.kind))
        recorder.start_at(run.episode_id + 1, run.entity_id + 1 if entity is None else 0)
    else:
        # Not a number of the record, where the next episode gets what it would have had.
        run.episode_id = next(advisors.unrecorded)
    learner = advisors.learner(whose, also, history)
    return RunningEpisode(memory, advisors, run, recorder, learner, int(learn))


def take_up(
    memory: Memory, shared: Resources, identity: Identity, number: int, history: int | None
) -> RunningEpisode:
    """Go on with an episode that was left open; see ``Memory.episode``."""
    advisors, record = advisors_of(shared), shared.record
    found = record.unfinished(number)
    if found is None or (identity.bound and found.namespace != identity.namespace):
        closed = record.query(
            "SELECT 1 FROM episodes WHERE episode_id = ? AND (namespace = ? OR NOT ?)",
            (number, identity.namespace, identity.bound),
        )
        if closed:
            raise EpisodeEndedError(f"episode {number} has its outcome: begin another one")
        raise UnknownError(f"there is no episode {number}: give the id of one that was left open")
    if found.kind.startswith(DISCARDED):
        raise EpisodeEndedError(f"episode {number} was discarded: begin another one")
    told = found.metadata
    run = OpenEpisode(
        number,
        found.entity_id,
        found.goal,
        found.task_type,
        found.namespace,
        found.kind.removeprefix(OPEN),
        source=told.get("source", ""),
        trust=told.get("trust", 1.0),
        visibility=told.get("visibility", "private"),
        steps=list(found.steps),
        entity=found.entity,
        stored=True,
        taken=[
            Taken(decision_of(row), row["cue"]["place"] or 0, row["record"])
            for row in record.decisions(number)
        ],
    )
    holder = int(told.get("holder", 0)) + 1
    with advisors.shared.writing() as write:
        write.change_open_episode(_stored(run, holder))
    recorder = advisors.caught_up().recorder
    also = identity.also if found.namespace == identity.namespace else ()
    learner = advisors.learner(found.namespace, also, history)
    return RunningEpisode(memory, advisors, run, recorder, learner, holder)
