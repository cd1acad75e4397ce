"""`ActiveMemory`, the learning loop: recall, act, close; each outcome improves the next recall."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from cvx.arguments import (
    Check,
    a_share,
    among,
    are_several,
    checked,
    one_of,
    optional,
    whole,
    wrong,
)
from cvx.cue import checked_cue
from cvx.embed import Embedder, LexicalEmbedder
from cvx.errors import (
    EpisodeEndedError,
    InvalidInputError,
    UnknownError,
)
from cvx.index import RawIndex
from cvx.learn.attribution import Attribution, Taken, without
from cvx.learn.decay import ContextAwareDecay, DecayPolicy
from cvx.learn.edges import (
    REGION,
    audience_of,
    edge_bonus,
    edge_kinds,
    granger_edges,
    region_edges,
)
from cvx.learn.episode_recorder import OpenEpisode, an_open_episode
from cvx.learn.model_sync import LearnedModels, Rules
from cvx.learn.namespace_scorer import NamespaceScorer
from cvx.learn.ranking import Distinct, Ranker
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import classify_action
from cvx.render.decision import render_decision
from cvx.scoring import (
    DEFAULT_WEIGHTS,
    LearnedWeights,
    Scorer,
    UsageTracker,
    logged_calibration,
)
from cvx.scoring.off_policy import PlackettLuce, drawn_from
from cvx.scoring.scorer import HOUR_US
from cvx.store import Record
from cvx.store.namespaces import check_also, narrowed, visible_spaces
from cvx.store.row_validation import explains
from cvx.tokens import CountTokens, estimate_tokens
from cvx.types import (
    DEFAULT_NAMESPACE,
    Cue,
    Decision,
    Edge,
    Episode,
    Event,
    Filter,
    Hit,
    Vector,
)
from cvx.validation import storable_namespace

Default = Literal["default"]

a_decision = one_of(Decision, called="a decision that recall() returned")


def task_and_entity(hit: Hit, task_type: str | None) -> Hashable:
    """Return the context in which use is counted by default: the family of goals and the entity."""
    return (task_type, hit.entity_id)


def _part(kind: type) -> Check:
    """Return a check for a part of a loop: a wrong one would fail in the middle of a game."""

    def check(name: str, value: Any) -> Any:
        if value is None or value == "default" or isinstance(value, kind):
            return value
        raise wrong(name, value, f"a {kind.__name__}, None to do without, or leave it out")

    return check


def some_hits(name: str, value: Any) -> tuple[Hit, ...]:
    """Check one hit or several.

    Raises
    ------
    InvalidInputError
        Something else, such as the numbers of nodes.
    """
    several = are_several(value) and not isinstance(value, Hit)
    hits = tuple(value) if several else (value,)
    if not all(isinstance(hit, Hit) for hit in hits):
        raise wrong(name, value, "hits of the decision")
    return hits


def a_shown_step(name: str, value: Any) -> tuple[Any, ...]:
    """Check that a step of a demonstration is a text, an action and perhaps a vector.

    Raises
    ------
    InvalidInputError
        Of another length, or no tuple nor list: a str would fall apart into its letters.
    """
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        raise wrong(name, value, "(text, action) or (text, action, vector)")
    return tuple(value)


@explains(lambda loop: loop.record)
class ActiveMemory:
    """An agent's memory that learns from every episode what to recall in the next.

    One round: ``begin`` an episode; for each step ``recall`` what was done in moments like this
    one, ``render`` it if the agent reads text, ``act``; then ``close`` the episode with its
    outcome. Closing writes the episode down and learns from it, in one transaction.

    Every part can be replaced, and switched off with ``None``.

    Parameters
    ----------
    index : RawIndex
        Where the steps become nodes. What ``record`` has and it has not is inserted; nodes that
        somebody else inserted are recalled too.
    embedder : Embedder, optional
        For cues without a vector; default ``LexicalEmbedder(dim=index.dim)``.
    record : Record, optional
        Where everything is written down; default one in memory.
    scorer : Scorer, optional
        Makes the score; ``None`` ranks by similarity alone.
    decay : DecayPolicy, optional
        What a failure does to rewards; default ``ContextAwareDecay()``.
    mdp : RegionMDP, optional
        Scores kinds of action by region; default ``RegionMDP(index, on_stale="gradual")``, which
        never learns everything again within one ``close``.
    usage : UsageTracker, optional
        Success of following a memory; default a weak Beta prior.
    weights : LearnedWeights, optional
        Learns the scorer's weights from what was followed; default over all of its features.
    learn_from_failures : bool, default True
        Whether failed episodes go into the index (where they never advise), the MDP, the edges,
        the usage and the weights. Decay is apart from this.
    edges : bool or iterable of str, default True
        Whether outcomes become typed edges, or which of ``cvx.learn.edges.ALL_EDGES`` are made.
    edge_boost : mapping of str to float, optional
        Recall follows edges of these kinds too, with these boosts (such as
        ``cvx.learn.edges.HELPFUL``), and the default scorer then counts what they add; off by
        default.
    k : int, default 10
        Hits a recall.
    temporal_context : int, default 50
        Steps before and after each hit.
    distinct : {"episode", "entity", None}, default "episode"
        Keep only the best hit of each episode (of each entity among nodes of no episode), of each
        entity, or all.
    pool : int, default 4
        How many times k candidates are scored.
    action_type : callable, default classify_action
        From a command to a kind of action; the default MDP uses it too.
    usage_key : callable, default task_and_entity
        From (hit, family of goals) to the context in which its use is counted; it is counted
        under ("node", node) and under the plain entity id too, where ``usage[entity]`` and
        ``bayesian_search(usage=)`` find it.
    success_above : float, default 0.5
        A reward above it is a success.
    log_decisions : bool, default True
        Whether decisions go into the record.
    clock : callable, optional
        Returns the time of a step in microseconds, by which ages are told in hours; by default
        steps are counted, and ages in steps. The loops of a ``Memory`` have the memory's clock.
    order : PlackettLuce, optional
        Draws the order of the hits, from ``pool`` times as many, and keeps the chance of each, and
        what it was drawn from: the weights then compare with what might have been recalled, and
        ``cvx.scoring.logged_choices`` tells what others would have achieved. Default: the best come
        first.
    namespace : str, default ""
        Who asks and learns where ``begin`` names nobody: it sees its own episodes and events, and
        what others made public.
    also : sequence of str
        Further namespaces, of which what they share is seen too.

    Attributes
    ----------
    index, embedder, record, mdp, usage, decay
        As given, or made.
    recorder : EpisodeRecorder
        Numbers episodes, and has the closed ones.
    history : EpisodeLookup
        The closed episodes, by the nodes of their steps.
    models : LearnedModels
        The closed episodes and what they taught, which it shares with ``memory.episode``.
    unlearned : int
        How often something was put away, brought back or erased: whoever learned from
        ``readable`` episodes learns anew when it has changed.
    on_render : callable or None
        Is told of each text that ``render`` returns: who asked, the text, and the nodes it shows.

    Raises
    ------
    InvalidInputError
        A parameter outside its bound.
    UnknownError
        Weights are to be learned for a feature that the scorer does not compute.
    StoreError
        The index has other nodes than the record in the same places, or cannot hold them.

    References
    ----------
    RFC-013, part F.
    """

    @checked(
        scorer=_part(Scorer),
        decay=_part(DecayPolicy),
        mdp=_part(RegionMDP),
        usage=_part(UsageTracker),
        weights=_part(LearnedWeights),
        order=_part(PlackettLuce),
        k=whole(1),
        temporal_context=whole(0),
        distinct=among("episode", "entity", None),
        pool=whole(1),
        namespace=storable_namespace,
    )
    def __init__(
        self,
        index: RawIndex,
        embedder: Embedder | None = None,
        record: Record | None = None,
        *,
        scorer: Scorer | Default | None = "default",
        decay: DecayPolicy | Default | None = "default",
        mdp: RegionMDP | Default | None = "default",
        usage: UsageTracker | Default | None = "default",
        weights: LearnedWeights | Default | None = "default",
        learn_from_failures: bool = True,
        edges: bool | Iterable[str] = True,
        edge_boost: Mapping[str, float] | None = None,
        k: int = 10,
        temporal_context: int = 50,
        distinct: Distinct | None = "episode",
        pool: int = 4,
        action_type: Callable[[str], str] = classify_action,
        usage_key: Callable[[Hit, str | None], Hashable] = task_and_entity,
        success_above: float = 0.5,
        log_decisions: bool = True,
        order: PlackettLuce | None = None,
        clock: Callable[[], int] | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
    ) -> None:
        if not 0.0 <= success_above < 1.0:
            raise InvalidInputError(
                f"success_above is {success_above}: rewards lie in [0, 1], give 0 <= value < 1"
            )
        self.index = index
        self.embedder = LexicalEmbedder(dim=index.dim) if embedder is None else embedder
        self.record = Record() if record is None else record
        if scorer == "default":
            besides = {} if edge_boost is None else {"edge_bonus": 1.0}
            scorer = Scorer({**DEFAULT_WEIGHTS, **besides}, features={"edge_bonus": edge_bonus})
        if mdp == "default":
            mdp = RegionMDP(
                index, classify=action_type, success_above=success_above, on_stale="gradual"
            )
        if weights == "default":
            weights = LearnedWeights(scorer.names) if scorer else None
        if weights is not None:
            known = scorer.weights if scorer else {}
            missing = [name for name in weights.names if not known.get(name)]
            if missing:
                raise UnknownError(
                    f"weights are to be learned for {missing[0]!r}, which the scorer does not "
                    "compute: give it a weight there"
                )
        self.k = k
        self.distinct = distinct
        self.order = order
        self.namespace = namespace
        self.also = check_also(also)
        self.success_above = success_above
        self.on_render: Callable[[str, str, Sequence[int]], None] | None = None
        self.models = LearnedModels(
            index,
            self.record,
            Rules(
                learn_from_failures,
                edge_kinds(edges),
                action_type,
                usage_key,
                success_above,
                log_decisions,
            ),
            mdp=mdp,
            usage=UsageTracker() if usage == "default" else usage,
            decay=ContextAwareDecay() if decay == "default" else decay,
            learned=NamespaceScorer(self.namespace, scorer, weights),
            also=self.also,
            clock=clock,
        )
        self._ranker = Ranker(
            self.models,
            self.embedder,
            edge_boost,
            temporal_context,
            pool,
            1.0 if clock is None else HOUR_US,
        )
        self.usage, self.decay = self.models.usage, self.models.decay
        self.recorder, self.history = self.models.recorder, self.models.history
        self._open: dict[int, OpenEpisode] = {}
        self._closed: set[int] = set()
        self._current: OpenEpisode | None = None

    @property
    def mdp(self) -> RegionMDP | None:
        """The region model, as given or made; it learns when it is asked for first."""
        return self.models.mdp

    @property
    def scorer(self) -> Scorer | None:
        """What makes the score for the loop's own namespace."""
        return self.models.scorer_of().scorer

    @scorer.setter
    def scorer(self, scorer: Scorer | None) -> None:
        self.models.scorer_of().scorer = scorer

    @property
    def weights(self) -> LearnedWeights | None:
        """What the episodes of the loop's own namespace have taught of the scorer's weights."""
        return self.models.scorer_of().weights

    @property
    def unlearned(self) -> int:
        """How often something was put away, brought back or erased."""
        return self.models.unlearned

    @property
    def episodes(self) -> Sequence[Episode]:
        """The closed episodes, oldest first."""
        return self.recorder.log

    def readable(self, namespace: str | None = None) -> list[Episode]:
        """Return the closed episodes that a namespace may read, oldest first.

        They are without what was put away; ``unlearned`` changes when that does.

        Parameters
        ----------
        namespace : str, optional
            Who asks; default the loop's own.
        """
        return self.models.readable(self.namespace if namespace is None else namespace)

    def catch_up(self) -> None:
        """Learn from the episodes that others closed in the same record meanwhile.

        Raises
        ------
        StoreError
            What this loop has learned from was taken back.
        """
        self.models.catch_up()

    def notice(self) -> None:
        """Leave out what was put away or erased in the record since, and take back the rest."""
        self.models.notice()

    def begin(
        self,
        goal: str = "",
        task_type: str | None = None,
        *,
        entity_id: int | None = None,
        namespace: str | None = None,
        kind: str = "experience",
        metadata: Mapping[str, Any] | None = None,
        source: str = "",
        trust: float = 1.0,
        visibility: str = "private",
    ) -> OpenEpisode:
        """Start an episode; see ``EpisodeRecorder.begin``. Recall is for the one begun last.

        The namespace is by default the loop's own: it is who asks, and who learns.
        """
        self.models.catch_up()
        with self.models.mutex:
            run = self.recorder.begin(
                goal,
                task_type,
                entity_id=entity_id,
                namespace=self.namespace if namespace is None else namespace,
                kind=kind,
                metadata=metadata,
                source=source,
                trust=trust,
                visibility=visibility,
            )
            self._current = run
            self._open[run.episode_id] = run
        return run

    def _running(self, run: OpenEpisode) -> OpenEpisode:
        an_open_episode("run", run)
        if run.closed:
            raise EpisodeEndedError(
                f"episode {run.episode_id} is closed: begin another one for further steps"
            )
        if self._open.get(run.episode_id) is not run:
            raise UnknownError(
                f"episode {run.episode_id} was begun elsewhere: use the memory that began it"
            )
        return run

    @checked(
        cue=lambda _, value: checked_cue(value),
        where=optional(one_of(Filter, called="a cvx.Filter or None")),
        k=optional(whole(1)),
        distinct=among("episode", "entity", None, "default"),
        outcome=among("success", "failure"),
    )
    def recall(
        self,
        cue: Cue,
        where: Filter | None = None,
        k: int | None = None,
        *,
        distinct: Distinct | Default | None = "default",
        episode: OpenEpisode | None = None,
        outcome: Literal["success", "failure"] = "success",
    ) -> Decision:
        """Find what was done in moments like this one, best first.

        Parameters
        ----------
        cue : Cue
            Its vector, or else its words, say where to look.
        where : Filter, optional
            What may come back; ``recallable`` is set by ``outcome``. The namespace of the episode
            asks (the loop's own, outside of one): its own, what ``also`` shares and what is public
            can come back, and namespaces of the filter narrow that.
        k : int, optional
            How many hits; default that of the memory.
        distinct : {"episode", "entity", None}, optional
            Keep only the best hit of each episode, of each entity, or all; default that of the
            memory.
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
        EpisodeEndedError, UnknownError
            The episode is over, or another memory's.
        InvalidInputError
            A cue that is no Cue or has a part of another type, a filter that is no Filter, k
            below 1, another outcome, another ``distinct``.
        InvalidVectorError
            A vector that cannot be compared.
        """
        self.notice()
        run = self._current if episode is None else self._running(episode)
        if run is not None and run.closed:
            run = None
        cue = self._ranker.locate(cue, run)
        asker = self.namespace if run is None else run.namespace
        where = where or Filter()
        spaces = visible_spaces(asker, self.also, self.record.public_namespaces())
        if where.namespaces is not None:
            spaces = narrowed(spaces, where.namespaces)
        where = where._replace(recallable=outcome == "success", namespaces=spaces)
        if distinct == "default":
            distinct = self.distinct
        number, k = self.record.take_decision_number(), k or self.k
        self.models.asked = number
        most = k if self.order is None else k * self._ranker.pool
        # What was found must still be there when it is read.
        with self.record.reading():
            found, scores, region = self._ranker.rank(
                cue, where, most, asker=asker, distinct=distinct
            )
        hits, chances, drawn = found, None, None
        if self.order is not None:
            hits, chances = self.order.draw(found, k, number)
            drawn = drawn_from(found, hits, chances)
        return Decision(
            number,
            cue,
            tuple(hits),
            tuple(scores),
            None if run is None else run.episode_id,
            region,
            propensities=chances,
            namespace=asker,
            drawn_from=drawn,
        )

    @checked(limit=whole(2), budget_tokens=optional(whole(0)))
    def render(
        self,
        decision: Decision,
        *,
        limit: int = 12,
        budget_tokens: int | None = None,
        count: CountTokens = estimate_tokens,
    ) -> str:
        """Return a decision as text for an agent that reads: evidence, never an order.

        Parameters
        ----------
        decision : Decision
            From ``recall``.
        limit : int, default 12
            Actions a chain at the most.
        budget_tokens : int, optional
            Tokens at the most, of which nothing is fit at 0; by default as many as it takes.
        count : callable, default estimate_tokens
            From a text to tokens.

        Raises
        ------
        InvalidInputError
            A limit below 2, or a budget below 0.
        """
        self.notice()
        strategy: Sequence[str] = ()
        region, mdp = decision.region, self.models.mdp_of(decision.namespace)
        # A decision may be older than the regions in force.
        if mdp is not None and region is not None and mdp.knows(region):
            strategy = mdp.strategy_for(region, decision.cue.task_type)
        told = self._still_told(decision)
        text = render_decision(
            told,
            strategy,
            self._label,
            limit=limit,
            budget_tokens=budget_tokens,
            count=count,
        )
        if text and self.on_render is not None:
            self.on_render(decision.namespace, text, [hit.node for hit in told.hits])
        return text

    def _still_told(self, decision: Decision) -> Decision:
        """Return a decision without what was put away or erased after it was made."""
        if decision.decision_id > self.models.outdated:
            return decision
        away, region, mdp = (
            self.history.away,
            decision.region,
            self.models.mdp_of(decision.namespace),
        )
        known: dict[str, float] = {}
        if mdp is not None and region is not None and mdp.knows(region):
            known = dict(mdp.best_action(region, decision.cue.task_type))
        scores = [(kind, known[kind]) for kind, _ in decision.action_scores if kind in known]
        return replace(
            without(decision, away.__contains__),
            action_scores=tuple(sorted(scores, key=lambda pair: (-pair[1], pair[0]))),
        )

    def _label(self, hit: Hit) -> str:
        episode = self.history.episode(hit.node)
        if episode is None:
            return "event"
        won = episode.reward is not None and episode.reward > self.success_above
        family = f" ({episode.task_type})" if episode.task_type else ""
        doubt = ""
        if hit.event is not None and hit.event.trust < 1.0:
            source = f" in {hit.event.source}" if hit.event.source else ""
            doubt = f", trust {hit.event.trust:.2f}{source}"
        return f"{episode.kind} that {'succeeded' if won else 'failed'}{family}{doubt}"

    @checked(decision=a_decision)
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
        reward: float | None = None,
    ) -> Decision:
        """Record what the agent did on a decision: the step, and whose advice it took.

        A decision that is never acted on counts as not asked: nothing is learned from it.

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
        reward : float, optional
            What the step itself brought, in [0, 1], of which the region model keeps the mean; by
            default the outcome of the episode.

        Returns
        -------
        Decision
            With ``action``, ``followed``, ``rendered`` and ``predicted``.

        Raises
        ------
        EpisodeEndedError
            The episode of the decision is over.
        EpisodeEndedError
            There was an action on this decision already.
        InvalidVectorError
            A vector that the index could not hold.
        UnknownError
            The decision was made outside of any episode, or by another memory.
        InvalidInputError
            A hit was followed that the decision does not have; an empty action.
        InvalidInputError
            The reward is outside [0, 1].
        """
        number = -1 if decision.episode_id is None else decision.episode_id
        if number in self._closed:
            raise EpisodeEndedError(
                f"episode {number} is closed: begin another one for further steps"
            )
        run = self._open.get(number)
        if run is None:
            raise UnknownError(
                f"decision {decision.decision_id} belongs to no episode of this memory: "
                "begin an episode before recall"
            )
        if followed is None:
            nodes = [h.node for h in decision.hits if action is not None and h.action == action]
        else:
            nodes = [hit.node for hit in some_hits("followed", followed)]
            own = {hit.node for hit in decision.hits}
            if not own.issuperset(nodes):
                raise InvalidInputError(
                    f"node {min(set(nodes) - own)} was followed, but decision "
                    f"{decision.decision_id} has no such hit: give hits of this decision"
                )
        if any(one.decision.decision_id == decision.decision_id for one in run.taken):
            raise EpisodeEndedError(
                f"decision {decision.decision_id} was acted on already: recall again, or record "
                "the step without advice with step()"
            )
        place = len(run.steps)
        cue = decision.cue
        self.recorder.step(
            run,
            cue.words(),
            action=action,
            vector=cue.vector if vector is None else self._ranker.checked(vector),
            tags=tags,
            metadata=metadata,
            reward=reward,
        )
        done = replace(
            decision,
            action=action,
            followed=tuple(nodes),
            rendered=decision.rendered if rendered is None else rendered,
            predicted=self._ranker.expected_success(decision, action, nodes),
        )
        run.taken.append(Taken(done, place))
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
        reward: float | None = None,
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
        reward : float, optional
            As for ``act``.

        Raises
        ------
        EpisodeEndedError, UnknownError
            The episode is over, or another memory's.
        InvalidVectorError
            A vector that the index could not hold.
        """
        self._running(run)
        vector = self.embedder.embed([text])[0] if vector is None else vector
        vector = self._ranker.checked(vector)
        return self.recorder.step(
            run, text, action=action, vector=vector, tags=tags, metadata=metadata, reward=reward
        )

    @checked(exposure=a_share)
    def close(self, run: OpenEpisode, reward: float, *, exposure: float = 1.0) -> Episode:
        """Give an episode its outcome, write it down and learn from it, all of it or nothing.

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
        exposure : float, default 1.0
            Below 1 the episode was cut off before its outcome was known: the chance, in [0, 1],
            that a success had shown by then, such as `cvx.scoring.Durations` gives. What was
            followed then counts as failed by as much as is likely, by what ``usage`` expects of
            it; all else learns from the reward as it is, since what was done and what came of it
            was seen.

        Returns
        -------
        Episode
            With the nodes of its steps, if they went into the index.

        Raises
        ------
        EpisodeEndedError
            It is closed already.
        UnknownError
            It was begun elsewhere.
        InvalidInputError
            The reward is outside [0, 1].
        InvalidInputError
            The exposure is outside [0, 1].
        """
        self._running(run)
        try:
            return self.models.close(run, reward, exposure)
        finally:
            if run.closed:
                self._end(run)

    def discard(self, run: OpenEpisode) -> None:
        """End an episode without an outcome: nothing of it is kept, and nothing is learned.

        Parameters
        ----------
        run : OpenEpisode
            A running episode.

        Raises
        ------
        EpisodeEndedError, UnknownError
            The episode is over, or another memory's.
        """
        self._running(run)
        run.closed = True
        self._end(run)

    def _end(self, run: OpenEpisode) -> None:
        del self._open[run.episode_id]
        self._closed.add(run.episode_id)

    def add_demonstration(
        self,
        goal: str,
        steps: Iterable[tuple[str, str | None] | tuple[str, str | None, Vector | None]],
        task_type: str | None = None,
        *,
        reward: float = 1.0,
        entity_id: int | None = None,
        namespace: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: str = "",
        trust: float = 1.0,
        visibility: str = "private",
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
        namespace : str, optional
            Which memory it is part of; default the loop's own.
        metadata : mapping, optional
            Kept with the episode; anything JSON can hold.
        source : str, default ""
            Whose demonstration it is: by it ``Memory.audit`` finds the steps, and ``quarantine``
            and ``roll_back`` take them back.
        trust : float, default 1.0
            How far its source is to be believed, in [0, 1].
        visibility : {"private", "shared", "public"}, default "private"
            Who else may read it.

        Returns
        -------
        Episode

        Raises
        ------
        InvalidInputError
            A step that is no tuple of two or three, or what ``begin`` and ``step`` refuse.
        InvalidInputError
            The reward is outside [0, 1].
        InvalidVectorError
            A vector that the index could not hold.
        """
        listed = [a_shown_step(f"steps[{n}]", step) for n, step in enumerate(steps)]
        current = self._current
        run = self.begin(
            goal,
            task_type,
            entity_id=entity_id,
            namespace=namespace,
            kind="demonstration",
            metadata=metadata,
            source=source,
            trust=trust,
            visibility=visibility,
        )
        self._current = current
        try:
            for text, action, *vector in listed:
                self.step(run, text, action, vector[0] if vector else None)
            return self.close(run, reward)
        except BaseException:
            if not run.closed:
                self.discard(run)
            raise

    def attribution(self, decision: Decision | int) -> Attribution:
        """Return which memories drove a decision, and whether it paid; memories are nodes.

        Parameters
        ----------
        decision : Decision or int
            Or its number; of a running episode of this loop, or of the record.

        Raises
        ------
        UnknownError
            No such decision: it was never acted on, its episode was discarded, or the loop does
            not log decisions.
        """
        number = decision if isinstance(decision, int) else decision.decision_id
        for run in self._open.values():
            for one in run.taken:
                if one.decision.decision_id == number:
                    return Attribution.of(one.decision, {})
        row = self.record.decision(number)
        if row is None:
            raise UnknownError(
                f"there is no decision {number} in the record: act on it and close its episode, "
                "with log_decisions on"
            )
        return Attribution.logged(row)

    @checked(min_moves=whole(1))
    def link_regions(self, *, min_moves: int = 3) -> list[Edge]:
        """Link the regions between which episodes moved, in the place of the links made before.

        The edge is from hub to hub, its weight the share of the moves out of the one region that
        led into the other, as whoever may read both hubs knows it. Hubs are those of the loop's
        namespace and public ones.

        Parameters
        ----------
        min_moves : int, default 3
            How often a move must have been made to be linked; at least 1.

        Returns
        -------
        list of Edge
            Of the kind "region_transition"; empty without a region model.

        Raises
        ------
        InvalidInputError
            ``min_moves`` below 1.
        """
        with self.record.transaction() as write:
            # Nodes are named as they are while nobody else writes.
            self.catch_up()
            edges = region_edges(self.models, self.namespace, min_moves)
            wanted = {(edge.from_node, edge.to_node) for edge in edges}
            write.remove_links(
                (edge.from_node, edge.to_node, REGION)
                for edge in self.index.edges()
                if edge.kind == REGION
                and (edge.from_node, edge.to_node) not in wanted
                and audience_of(self.index, self.namespace, edge.from_node, edge.to_node)
            )
            write.add_links(edges)
        self.record.refresh()
        return edges

    def link_granger(
        self,
        entities: Sequence[int],
        width: int,
        *,
        max_lag: int = 4,
        alpha: float = 0.05,
        namespace: str | None = None,
    ) -> list[Edge]:
        """Link entities where one's activity helps to foretell another's; see ``granger_edges``.

        Returns
        -------
        list of Edge
            Of the kind "granger_causal", those that passed the test; what did not pass gets none.
        """
        with self.record.transaction() as write:
            self.catch_up()
            edges = granger_edges(
                self.index, entities, width, max_lag=max_lag, alpha=alpha, namespace=namespace
            )
            write.add_links(edges)
        self.record.refresh()
        return edges

    def reset_decay(self, nodes: Iterable[int] | None = None) -> dict[int, float]:
        """Restore the rewards that decay lowered, of these nodes or of all.

        Returns
        -------
        dict of int to float
            The restored rewards, by node.
        """
        return self.models.reset_decay(nodes)

    def stats(self) -> dict[str, Any]:
        """Return how much was learned, on what it rests, and how its predictions turned out.

        Returns
        -------
        dict
            ``episodes``, ``won``; ``samples``, ``weights`` and ``selection`` of the learned
            weights; ``calibration`` of the logged decisions. None for what is switched off or
            has nothing to tell.
        """
        learned, found = self.weights, logged_calibration(self.record)
        return {
            "episodes": len(self.episodes),
            "won": sum((one.reward or 0.0) > self.success_above for one in self.episodes),
            "samples": None if learned is None else learned.samples,
            "weights": None if self.scorer is None else dict(self.scorer.weights),
            "selection": None if learned is None else str(learned.selection),
            "calibration": None if found is None else found.to_dict(),
        }
