"""ActiveMemory: recall, act, close; every close makes the next recall better."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from cvx.active.advice import advise, locate
from cvx.active.attribution import Taken
from cvx.active.history import History
from cvx.active.learning import Outcome, learn
from cvx.active.protocol import ActiveIndex
from cvx.active.render import render_decision
from cvx.decay import ContextAwareDecay, DecayLedger, DecayPolicy
from cvx.embed import Embedder, LexicalEmbedder
from cvx.episodes import EpisodeRecorder, OpenEpisode
from cvx.errors import (
    DecisionTakenError,
    EpisodeClosedError,
    ForeignEpisodeError,
    InvalidParameterError,
    RecordMismatchError,
    UnknownFeatureError,
)
from cvx.mdp import RegionMDP, classify_action
from cvx.scoring import LearnedWeights, Scorer, UsageTracker
from cvx.store import Record
from cvx.types import (
    DEFAULT_NAMESPACE,
    Cue,
    Decision,
    Episode,
    Event,
    Filter,
    Hit,
    Vector,
)

Default = Literal["default"]


def task_and_entity(hit: Hit, task_type: str | None) -> Hashable:
    """Return the context in which use is counted by default: the family of goals and the entity."""
    return (task_type, hit.entity_id)


class ActiveMemory:
    """An agent's memory that learns from every episode what to recall in the next.

    One round: ``begin`` an episode; for each step ``recall`` what was done in moments like this
    one, ``render`` it if the agent reads text, ``act``; then ``close`` the episode with its
    outcome. Closing writes the episode down and learns from it, in one transaction.

    Every part can be replaced, and switched off with ``None``.

    Parameters
    ----------
    index : TemporalIndex
        Where the steps become nodes. It must be empty, or be the one that ``record`` fits.
    embedder : Embedder, optional
        For cues without a vector; default ``LexicalEmbedder(dim=index.dim)``.
    record : Record, optional
        Where everything is written down; default one in memory.
    scorer : Scorer, optional
        Makes the score; ``None`` ranks by similarity alone.
    decay : DecayPolicy, optional
        What a failure does to rewards; default ``ContextAwareDecay()``.
    mdp : RegionMDP, optional
        Scores kinds of action by region; default ``RegionMDP(index)``.
    usage : UsageTracker, optional
        Success of following a memory; default a weak Beta prior.
    weights : LearnedWeights, optional
        Learns the scorer's weights from what was followed; default over all of its features.
    learn_from_failures : bool, default True
        Whether failed episodes go into the index (where they never advise), the MDP, the edges,
        the usage and the weights. Decay is apart from this.
    edges : bool, default True
        Whether outcomes become typed edges.
    edge_boost : mapping of str to float, optional
        Recall follows edges of these kinds too, with these boosts; off by default.
    k : int, default 10
        Hits a recall.
    temporal_context : int, default 50
        Steps before and after each hit.
    distinct : {"entity", None}, default "entity"
        Keep only the best hit of each entity.
    pool : int, default 4
        How many times k candidates are scored.
    action_type : callable, default classify_action
        From a command to a kind of action; the default MDP uses it too.
    usage_key : callable, default task_and_entity
        From (hit, family of goals) to the context in which its use is counted.
    success_above : float, default 0.5
        A reward above it is a success.
    log_decisions : bool, default True
        Whether decisions go into the record.

    Raises
    ------
    InvalidParameterError
        A parameter outside its bound.
    UnknownFeatureError
        Weights are to be learned for a feature that the scorer does not compute.
    RecordMismatchError
        The record knows nodes that the index does not have.

    References
    ----------
    RFC-013, part F.
    """

    def __init__(
        self,
        index: ActiveIndex,
        embedder: Embedder | None = None,
        record: Record | None = None,
        *,
        scorer: Scorer | Default | None = "default",
        decay: DecayPolicy | Default | None = "default",
        mdp: RegionMDP | Default | None = "default",
        usage: UsageTracker | Default | None = "default",
        weights: LearnedWeights | Default | None = "default",
        learn_from_failures: bool = True,
        edges: bool = True,
        edge_boost: Mapping[str, float] | None = None,
        k: int = 10,
        temporal_context: int = 50,
        distinct: Literal["entity"] | None = "entity",
        pool: int = 4,
        action_type: Callable[[str], str] = classify_action,
        usage_key: Callable[[Hit, str | None], Hashable] = task_and_entity,
        success_above: float = 0.5,
        log_decisions: bool = True,
    ) -> None:
        for name, value in (("k", k), ("pool", pool)):
            if value < 1:
                raise InvalidParameterError(f"{name} is {value}: give at least 1")
        if temporal_context < 0:
            raise InvalidParameterError(f"temporal_context is {temporal_context}: give 0 or more")
        if distinct not in ("entity", None):
            raise InvalidParameterError(f"distinct is {distinct!r}: give 'entity' or None")
        self.index = index
        self.embedder = LexicalEmbedder(dim=index.dim) if embedder is None else embedder
        self.record = Record() if record is None else record
        self.scorer = Scorer() if scorer == "default" else scorer
        self.decay = ContextAwareDecay() if decay == "default" else decay
        self.mdp = (
            RegionMDP(index, classify=action_type, success_above=success_above)
            if mdp == "default"
            else mdp
        )
        self.usage = UsageTracker() if usage == "default" else usage
        self.prior_weights = dict(self.scorer.weights) if self.scorer else {}
        if weights == "default":
            weights = LearnedWeights(self.scorer.names) if self.scorer else None
        self.weights = weights
        if weights is not None:
            missing = [name for name in weights.names if not self.prior_weights.get(name)]
            if missing:
                raise UnknownFeatureError(
                    f"weights are to be learned for {missing[0]!r}, which the scorer does not "
                    "compute: give it a weight there"
                )
        self.learn_from_failures = learn_from_failures
        self.edges = edges
        self.edge_boost = edge_boost
        self.k = k
        self.temporal_context = temporal_context
        self.distinct = distinct
        self.pool = pool
        self.action_type = action_type
        self.usage_key = usage_key
        self.success_above = success_above
        self.log_decisions = log_decisions
        self.history = History(index)
        self.ledger = DecayLedger(index)
        self.recorder = EpisodeRecorder(first_entity=0)
        self._taken: dict[int, list[Taken]] = {}
        self._open: dict[int, OpenEpisode] = {}
        self._closed: set[int] = set()
        self._acted: set[int] = set()
        self._current: OpenEpisode | None = None
        self._next_decision = 0
        self._restore()

    def _restore(self) -> None:
        episodes = self.record.episodes()
        first_episode, first_entity, self._next_decision = self.record.next_ids()
        self.recorder = EpisodeRecorder(first_episode=first_episode, first_entity=first_entity)
        learned = []
        for episode in episodes:
            nodes = [step.node for step in episode.steps]
            unknown = [node for node in nodes if node is not None and node not in self.index]
            if unknown:
                raise RecordMismatchError(
                    f"the record has node {unknown[0]}, the index has not: load the index that "
                    "was saved with it"
                )
            self.history.add(episode)
            self.recorder.log.append(episode)
            if episode.steps:
                last = episode.steps[-1].timestamp
                self.recorder.clock = max(self.recorder.clock, last + 1)
            if nodes and None not in nodes:
                learned.append(episode)
        if not episodes:
            return
        if self.mdp is not None and not len(self.mdp):
            self.mdp.learn_from_episodes(self.index, learned)
        if self.usage is not None:
            self.usage.load(self.record)
        self.ledger.load(self.record.decays())
        state = self.record.state("weights")
        if state is None or self.weights is None or self.scorer is None:
            return
        if tuple(state["names"]) == self.weights.names:
            self.weights = LearnedWeights.from_dict(state)
            self.scorer = self.scorer.with_weights(self.weights.blend(self.prior_weights))

    @property
    def episodes(self) -> Sequence[Episode]:
        """The closed episodes, oldest first."""
        return self.recorder.log

    def episode_of(self, hit: Hit) -> Episode | None:
        """Return the whole episode that a hit is a step of, None if it came from elsewhere."""
        return self.history.episode(hit.node)

    def begin(
        self,
        goal: str = "",
        task_type: str | None = None,
        *,
        entity_id: int | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        kind: str = "experience",
        metadata: Mapping[str, Any] | None = None,
    ) -> OpenEpisode:
        """Start an episode; see ``EpisodeRecorder.begin``. Recall is for the one begun last."""
        run = self.recorder.begin(
            goal,
            task_type,
            entity_id=entity_id,
            namespace=namespace,
            kind=kind,
            metadata=metadata,
        )
        self._open[run.episode_id] = run
        self._taken[run.episode_id] = []
        self._current = run
        return run

    def _running(self, run: OpenEpisode) -> OpenEpisode:
        if run.closed:
            raise EpisodeClosedError(
                f"episode {run.episode_id} is closed: begin another one for further steps"
            )
        if self._open.get(run.episode_id) is not run:
            raise ForeignEpisodeError(
                f"episode {run.episode_id} was begun elsewhere: use the memory that began it"
            )
        return run

    def recall(
        self,
        cue: Cue,
        where: Filter | None = None,
        k: int | None = None,
        *,
        distinct: Literal["entity"] | Default | None = "default",
        episode: OpenEpisode | None = None,
        outcome: Literal["success", "failure"] = "success",
    ) -> Decision:
        """Find what was done in moments like this one, best first.

        Parameters
        ----------
        cue : Cue
            Its vector, or else its words, say where to look.
        where : Filter, optional
            What may come back; ``recallable`` is set by ``outcome``, and namespaces that it does
            not name are those of the episode.
        k : int, optional
            How many hits; default that of the memory.
        distinct : {"entity", None}, optional
            Keep only the best hit of each entity, or all; default that of the memory.
        episode : OpenEpisode, optional
            The one it is for; default the one begun last.
        outcome : {"success", "failure"}, default "success"
            What may advise, or the failed episodes that must not; their events are of kind
            "failed_step".

        Returns
        -------
        Decision
            ``hits`` with the continuation of each as ``successors``; ``action_scores``; ``cue``
            with its vector.

        Raises
        ------
        EpisodeClosedError, ForeignEpisodeError
            The episode is over, or another memory's.
        InvalidParameterError
            k below 1, another outcome, another ``distinct``.
        """
        if k is not None and k < 1:
            raise InvalidParameterError(f"k is {k}: give at least 1")
        if outcome not in ("success", "failure"):
            raise InvalidParameterError(f"outcome is {outcome!r}: give 'success' or 'failure'")
        run = self._current if episode is None else self._running(episode)
        if run is not None and run.closed:
            run = None
        cue = locate(self, cue, run)
        where = replace(where or Filter(), recallable=outcome == "success")
        if where.namespaces is None and run is not None and run.namespace:
            where = replace(where, namespaces=(run.namespace,))
        if distinct == "default":
            distinct = self.distinct
        elif distinct not in ("entity", None):
            raise InvalidParameterError(f"distinct is {distinct!r}: give 'entity' or None")
        found = advise(self, cue, where, k or self.k, each_entity=distinct == "entity")
        number, self._next_decision = self._next_decision, self._next_decision + 1
        return Decision(
            number,
            cue,
            tuple(found.hits),
            tuple(found.action_scores),
            None if run is None else run.episode_id,
            found.region,
        )

    def render(self, decision: Decision, *, limit: int = 12) -> str:
        """Return a decision as text for an agent that reads: evidence, never an order.

        Parameters
        ----------
        decision : Decision
            From ``recall``.
        limit : int, default 12
            Actions a chain at the most.
        """
        strategy: Sequence[str] = ()
        if self.mdp is not None and decision.region is not None:
            strategy = self.mdp.strategy_for(decision.region, decision.cue.task_type)
        return render_decision(decision, strategy, self._label, limit=limit)

    def _label(self, hit: Hit) -> str:
        episode = self.episode_of(hit)
        if episode is None:
            return "event"
        won = episode.reward is not None and episode.reward > self.success_above
        family = f" ({episode.task_type})" if episode.task_type else ""
        return f"{episode.kind} that {'succeeded' if won else 'failed'}{family}"

    def act(
        self,
        decision: Decision,
        action: str | None,
        followed: Hit | Iterable[Hit] | None = None,
        *,
        vector: Vector | None = None,
        tags: Sequence[str] = (),
        rendered: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Record what the agent did on a decision: the step, and whose advice it took.

        Parameters
        ----------
        decision : Decision
            From ``recall``, within a running episode.
        action : str or None
            What was done; ``None`` where the decision was not about a single action.
        followed : Hit or iterable of Hit, optional
            The hits whose advice it was; an empty one says that it was nobody's. ``None`` takes
            the hits that name exactly this action.
        vector : ndarray of shape (dim,), float32, optional
            Where the step will be found again; by default where the cue lies.
        tags : sequence of str, optional
            What the node of the step will be tagged with, beside its family of goals.
        rendered : str, optional
            What was shown to the agent, for the record.
        metadata : mapping, optional
            Kept with the step; anything JSON can hold.

        Returns
        -------
        Decision
            With ``action``, ``followed`` and ``rendered``.

        Raises
        ------
        EpisodeClosedError
            The episode of the decision is over.
        DecisionTakenError
            There was an action on this decision already.
        ForeignEpisodeError
            The decision was made outside of any episode, or by another memory.
        InvalidParameterError
            A hit was followed that the decision does not have.
        """
        number = -1 if decision.episode_id is None else decision.episode_id
        if number in self._closed:
            raise EpisodeClosedError(
                f"episode {number} is closed: begin another one for further steps"
            )
        run = self._open.get(number)
        if run is None:
            raise ForeignEpisodeError(
                f"decision {decision.decision_id} belongs to no episode of this memory: "
                "begin an episode before recall"
            )
        if followed is None:
            nodes = [h.node for h in decision.hits if action is not None and h.action == action]
        else:
            chosen = (followed,) if isinstance(followed, Hit) else tuple(followed)
            nodes = [hit.node for hit in chosen]
            own = {hit.node for hit in decision.hits}
            if not own.issuperset(nodes):
                raise InvalidParameterError(
                    f"node {min(set(nodes) - own)} was followed, but decision "
                    f"{decision.decision_id} has no such hit: give hits of this decision"
                )
        if decision.decision_id in self._acted:
            raise DecisionTakenError(
                f"decision {decision.decision_id} was acted on already: recall again, or record "
                "the step without advice with step()"
            )
        place = len(run.steps)
        cue = decision.cue
        self.recorder.step(
            run,
            cue.words(),
            action=action,
            vector=cue.vector if vector is None else vector,
            tags=tags,
            metadata=metadata,
        )
        done = replace(
            decision,
            action=action,
            followed=tuple(nodes),
            rendered=decision.rendered if rendered is None else rendered,
        )
        self._taken[run.episode_id].append(Taken(done, place))
        self._acted.add(decision.decision_id)
        return done

    def step(
        self,
        run: OpenEpisode,
        text: str,
        action: str | None = None,
        vector: Vector | None = None,
        *,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Event:
        """Record a step that was taken without asking memory.

        Parameters
        ----------
        run : OpenEpisode
            A running episode.
        text : str
            What was seen.
        action : str, optional
            What was done.
        vector : ndarray of shape (dim,), float32, optional
            Where it lies; by default the text is embedded.
        tags : sequence of str, optional
            What the node of the step will be tagged with, beside its family of goals.
        metadata : mapping, optional
            Kept with the step; anything JSON can hold.

        Raises
        ------
        EpisodeClosedError, ForeignEpisodeError
            The episode is over, or another memory's.
        """
        self._running(run)
        if vector is None:
            vector = self.embedder.embed([text])[0]
        return self.recorder.step(
            run, text, action=action, vector=vector, tags=tags, metadata=metadata
        )

    def close(self, run: OpenEpisode, reward: float) -> Episode:
        """Give an episode its outcome, write it down and learn from it: all of that or nothing.

        A success goes into the index with its reward on every step; a failure goes in too, but
        never advises. What was recalled in a failure decays; the MDP, the weights and the counts
        of use learn; followed advice gets a ``caused_success`` or ``caused_failure`` edge to the
        step that followed it, ignored advice in a failure an ``irrelevant`` one.

        Parameters
        ----------
        run : OpenEpisode
            A running episode.
        reward : float
            The outcome in [0, 1].

        Returns
        -------
        Episode
            With the nodes of its steps, if they went into the index.

        Raises
        ------
        EpisodeClosedError
            It is closed already.
        ForeignEpisodeError
            It was begun elsewhere.
        RewardRangeError
            The reward is outside [0, 1].
        """
        episode = self.recorder.outcome(run, reward)
        self._running(run)
        won = float(reward) > self.success_above
        episode = learn(self, Outcome(episode, self._taken[run.episode_id], won))
        self.recorder.seal(run, episode)
        done = self._taken.pop(run.episode_id)
        del self._open[run.episode_id]
        self._closed.add(run.episode_id)
        self._acted.difference_update(taken.decision.decision_id for taken in done)
        return episode

    def add_demonstration(
        self,
        goal: str,
        steps: Iterable[tuple[str, str | None] | tuple[str, str | None, Vector | None]],
        task_type: str | None = None,
        *,
        reward: float = 1.0,
        entity_id: int | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        metadata: Mapping[str, Any] | None = None,
    ) -> Episode:
        """Take in an episode that somebody else played.

        Parameters
        ----------
        goal : str
            What was to be reached.
        steps : iterable of (text, action) or (text, action, vector)
            What was seen and what was done; texts without a vector are embedded.
        task_type : str, optional
            Which family of goals it belongs to.
        reward : float, default 1.0
            The outcome in [0, 1].
        entity_id : int, optional
            Whose timeline; by default one of its own.
        namespace : str, default ""
            Which memory it is part of.
        metadata : mapping, optional
            Kept with the episode; anything JSON can hold.

        Returns
        -------
        Episode
        """
        current = self._current
        run = self.begin(
            goal,
            task_type,
            entity_id=entity_id,
            namespace=namespace,
            kind="demonstration",
            metadata=metadata,
        )
        self._current = current
        for text, action, *vector in steps:
            self.step(run, text, action, vector[0] if vector else None)
        return self.close(run, reward)

    def reset_decay(self, nodes: Iterable[int] | None = None) -> dict[int, float]:
        """Restore the rewards that decay lowered, of these nodes or of all.

        Returns
        -------
        dict of int to float
            The restored rewards, by node.
        """
        with self.record.transaction() as write:
            restored = self.ledger.reset(nodes)
            write.set_rewards(restored.items())
            write.clear_decays(restored)
        return restored
