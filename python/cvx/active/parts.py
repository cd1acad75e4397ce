"""The parts of the loop, how they are put together, and which episodes are running."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from cvx.active.attribution import Outcome, Taken
from cvx.active.history import History
from cvx.active.logged import logged_samples
from cvx.active.protocol import ActiveIndex
from cvx.decay import ContextAwareDecay, DecayLedger, DecayPolicy
from cvx.embed import Embedder, LexicalEmbedder
from cvx.episodes import EpisodeRecorder, OpenEpisode
from cvx.errors import (
    DimensionError,
    EpisodeClosedError,
    ForeignEpisodeError,
    InvalidParameterError,
    NonFiniteVectorError,
    RecordMismatchError,
    UnknownFeatureError,
    ZeroVectorError,
)
from cvx.mdp import RegionMDP, classify_action
from cvx.recall.sampling import PlackettLuce
from cvx.scoring import LearnedWeights, Scorer, UsageTracker
from cvx.store import Record
from cvx.types import DEFAULT_NAMESPACE, Episode, Hit, Vector

Default = Literal["default"]


def task_and_entity(hit: Hit, task_type: str | None) -> Hashable:
    """Return the context in which use is counted by default: the family of goals and the entity."""
    return (task_type, hit.entity_id)


class Parts:
    """Everything a loop is made of; ``ActiveMemory`` has the parameters."""

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
        order: PlackettLuce | None = None,
    ) -> None:
        for name, value in (("k", k), ("pool", pool)):
            if value < 1:
                raise InvalidParameterError(f"{name} is {value}: give at least 1")
        if not 0.0 <= success_above < 1.0:
            raise InvalidParameterError(
                f"success_above is {success_above}: rewards lie in [0, 1], give 0 <= value < 1"
            )
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
            RegionMDP(index, classify=action_type, success_above=success_above, on_stale="gradual")
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
        self.order = order
        self.history = History(index)
        self.ledger = DecayLedger(index)
        self.recorder = EpisodeRecorder(first_entity=0)
        self._taken: dict[int, list[Taken]] = {}
        self._open: dict[int, OpenEpisode] = {}
        self._closed: set[int] = set()
        self._acted: set[int] = set()
        self._current: OpenEpisode | None = None
        self._seen = 0
        self._blocks_taken_back = self.record.blocks_taken_back
        self._known: set[int | None] = set()
        self._own_entities: set[int] = set()
        self._restore()

    def _restore(self) -> None:
        self._seen = self.record.tail().seq
        episodes = self.record.episodes()
        first_episode, first_entity = self.record.next_ids()
        self.recorder = EpisodeRecorder(first_episode=first_episode, first_entity=first_entity)
        learned = [episode for episode in episodes if self._remember(episode)]
        if not episodes:
            return
        if self.mdp is not None and not len(self.mdp):
            self.mdp.learn_from_episodes(self.index, learned)
        self._restore_counts()

    def _remember(self, episode: Episode) -> bool:
        """Take in a closed episode of the record; tell whether all of it is in the index."""
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
        self._known.add(episode.episode_id)
        return bool(nodes) and None not in nodes

    def _restore_counts(self) -> None:
        if self.usage is not None:
            self.usage.load(self.record)
        self.ledger.load(self.record.decays())
        state = self.record.state("weights")
        if state is None or self.weights is None or self.scorer is None:
            return
        if tuple(state["names"]) == self.weights.names:
            weights = LearnedWeights.from_dict(state)
            self.weights = weights.refill(*logged_samples(self, weights))
            self.scorer = self.scorer.with_weights(self.weights.blend(self.prior_weights))

    def catch_up(self) -> None:
        """Learn from the episodes that others closed in the same record meanwhile.

        Raises
        ------
        RecordMismatchError
            What this loop has learned from was taken back.
        """
        self.record.refresh()
        if self.record.blocks_taken_back != self._blocks_taken_back:
            raise RecordMismatchError(
                "what this loop may have learned from was taken back, with all that was written "
                "together: make a new one"
            )
        seen, self._seen = self._seen, self.record.tail().seq
        if seen == self._seen:
            return
        changes = self.record.journal(seen, op="episode")
        closed = {number for *_, body in changes for number in body} - self._known
        if not closed:
            return
        for episode in self.record.episodes(closed):
            if self._remember(episode) and self.mdp is not None:
                self.mdp.update(episode)
        self._restore_counts()
        self.recorder.start_at(*self.record.next_ids())

    def renumbered(self, outcome: Outcome) -> Outcome:
        """Return an outcome with numbers that no other process has used meanwhile."""
        episode, number = outcome.episode, outcome.episode.episode_id
        if number is None or number not in self._known:
            return outcome
        new_number, new_entity = self.record.next_ids()
        entity = new_entity if number in self._own_entities else episode.entity_id
        episode = replace(
            episode,
            episode_id=new_number,
            entity_id=entity,
            steps=tuple(
                replace(step, episode_id=new_number, entity_id=entity) for step in episode.steps
            ),
        )
        taken = [
            replace(one, decision=replace(one.decision, episode_id=new_number))
            for one in outcome.taken
        ]
        self.recorder.start_at(new_number + 1, entity + 1)
        return Outcome(episode, taken, outcome.won)

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
        self.catch_up()
        run = self.recorder.begin(
            goal,
            task_type,
            entity_id=entity_id,
            namespace=namespace,
            kind=kind,
            metadata=metadata,
        )
        if entity_id is None:
            self._own_entities.add(run.episode_id)
        self._open[run.episode_id] = run
        self._taken[run.episode_id] = []
        self._current = run
        return run

    def checked(self, vector: Vector) -> Vector:
        """Refuse what the index would refuse, at the step rather than at the end of the episode."""
        row = np.asarray(vector, dtype=np.float32)
        if row.shape != (self.index.dim,):
            raise DimensionError(
                f"the vector has shape {row.shape}, the index holds ({self.index.dim},): embed it "
                "with the model the index was built with"
            )
        if not np.isfinite(row).all():
            raise NonFiniteVectorError("the vector holds NaN or infinity: give finite numbers")
        if self.index.metric == "cosine" and not row.any():
            raise ZeroVectorError("the vector is zero and has no direction: give another one")
        return row

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
