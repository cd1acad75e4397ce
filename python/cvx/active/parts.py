"""The parts of the loop, how they are put together, and which episodes are running."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from cvx.active.advice import Distinct
from cvx.active.attribution import Taken
from cvx.active.edges import edge_bonus, edge_kinds
from cvx.active.following import Following
from cvx.active.history import History
from cvx.active.weighing import Weighing
from cvx.embed import Embedder, LexicalEmbedder
from cvx.errors import (
    DimensionError,
    EpisodeClosedError,
    ForeignEpisodeError,
    InvalidParameterError,
    NonFiniteVectorError,
    UnknownFeatureError,
    ZeroVectorError,
)
from cvx.index import TemporalIndex
from cvx.learn.decay import ContextAwareDecay, DecayLedger, DecayPolicy
from cvx.learn.episodes import EpisodeRecorder, OpenEpisode, an_open_episode
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.traces import classify_action
from cvx.recall.sampling import PlackettLuce
from cvx.scoring import DEFAULT_WEIGHTS, LearnedWeights, Scorer, UsageTracker
from cvx.store import Record
from cvx.store.spaces import check_also, check_namespace, least_visible, readers, reads
from cvx.types import DEFAULT_NAMESPACE, Episode, Hit, Vector

Default = Literal["default"]


def task_and_entity(hit: Hit, task_type: str | None) -> Hashable:
    """Return the context in which use is counted by default: the family of goals and the entity."""
    return (task_type, hit.entity_id)


def _default_scorer(edge_boost: Mapping[str, float] | None) -> Scorer:
    if edge_boost is None:
        return Scorer()
    return Scorer({**DEFAULT_WEIGHTS, "edge_bonus": 1.0}, features={"edge_bonus": edge_bonus})


def _check_parts(parts: Mapping[str, tuple[object, type]]) -> None:
    """Refuse a part of another kind: it would fail in the middle of a game."""
    for name, (part, kind) in parts.items():
        if part not in (None, "default") and not isinstance(part, kind):
            raise InvalidParameterError(
                f"{name} is {part!r}: give a {kind.__name__}, None to do without, or leave it out"
            )


class Parts(Following):
    """Everything a loop is made of; ``ActiveMemory`` has the parameters."""

    def __init__(
        self,
        index: TemporalIndex,
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
        phase: bool = False,
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
        for name, value in (("k", k), ("pool", pool)):
            if value < 1:
                raise InvalidParameterError(f"{name} is {value}: give at least 1")
        if not 0.0 <= success_above < 1.0:
            raise InvalidParameterError(
                f"success_above is {success_above}: rewards lie in [0, 1], give 0 <= value < 1"
            )
        if temporal_context < 0:
            raise InvalidParameterError(f"temporal_context is {temporal_context}: give 0 or more")
        if distinct not in ("episode", "entity", None):
            raise InvalidParameterError(
                f"distinct is {distinct!r}: give 'episode', 'entity' or None"
            )
        _check_parts(
            {
                "scorer": (scorer, Scorer),
                "decay": (decay, DecayPolicy),
                "mdp": (mdp, RegionMDP),
                "usage": (usage, UsageTracker),
                "weights": (weights, LearnedWeights),
                "order": (order, PlackettLuce),
            }
        )
        self.index = index
        self.embedder = LexicalEmbedder(dim=index.dim) if embedder is None else embedder
        self.record = Record() if record is None else record
        if scorer == "default":
            scorer = _default_scorer(edge_boost)
        self.decay = ContextAwareDecay() if decay == "default" else decay
        self.mdp = (
            RegionMDP(index, classify=action_type, success_above=success_above, on_stale="gradual")
            if mdp == "default"
            else mdp
        )
        self.usage = UsageTracker() if usage == "default" else usage
        if weights == "default":
            weights = LearnedWeights(scorer.names) if scorer else None
        if weights is not None:
            known = scorer.weights if scorer else {}
            missing = [name for name in weights.names if not known.get(name)]
            if missing:
                raise UnknownFeatureError(
                    f"weights are to be learned for {missing[0]!r}, which the scorer does not "
                    "compute: give it a weight there"
                )
        self.learn_from_failures = learn_from_failures
        self.edges = edge_kinds(edges)
        self.phase = phase
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
        self.clock = clock
        self.namespace = check_namespace(namespace)
        self.also = check_also(also)
        self._weighing = {self.namespace: Weighing(self.namespace, scorer, weights)}
        self.distrusted: frozenset[str] = frozenset()
        self.history = History(index)
        self.ledger = DecayLedger(index)
        self.recorder = EpisodeRecorder(first_entity=0)
        self._taken: dict[int, list[Taken]] = {}
        self._open: dict[int, OpenEpisode] = {}
        self._closed: set[int] = set()
        self._acted: set[int] = set()
        self._current: OpenEpisode | None = None
        self._seen = self._noticed = 0
        self._asked = self._outdated = -1
        self.unlearned = 0
        self.on_render: Callable[[str, str, Sequence[int]], None] | None = None
        self._blocks_taken_back = self.record.blocks_taken_back
        self._known: set[int | None] = set()
        self._own_entities: set[int] = set()
        self._restore()

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
        asker = reads(self.namespace if namespace is None else namespace, self.also)
        away = self.history.away
        told = []
        for episode in self.episodes:
            seen = readers(
                episode.namespace, least_visible(step.visibility for step in episode.steps)
            )
            left = tuple(step for step in episode.steps if step.node not in away)
            if seen in asker and (left or not episode.steps):
                told.append(episode if left == episode.steps else replace(episode, steps=left))
        return told

    @property
    def scorer(self) -> Scorer | None:
        """What makes the score for the loop's own namespace."""
        return self.weighing(self.namespace).scorer

    @scorer.setter
    def scorer(self, scorer: Scorer | None) -> None:
        self.weighing(self.namespace).scorer = scorer

    @property
    def weights(self) -> LearnedWeights | None:
        """What the episodes of the loop's own namespace have taught of the scorer's weights."""
        return self.weighing(self.namespace).weights

    def weighing(self, namespace: str) -> Weighing:
        """Return the scorer and the weights of a namespace."""
        found = self._weighing.get(namespace)
        if found is None:
            found = self._weighing[namespace] = self._weighing[self.namespace].of(namespace)
            self._restore_weights(found)
        return found

    def usage_of(self, namespace: str) -> UsageTracker | None:
        """Return what a namespace may know of the counts of use."""
        if self.usage is None:
            return None
        return self.usage.within(reads(namespace, self.also), self.distrusted)

    def mdp_of(self, namespace: str) -> RegionMDP | None:
        """Return what the region model knows of the episodes that a namespace may read."""
        return None if self.mdp is None else self.mdp.within(reads(namespace, self.also))

    def episode_of(self, hit: Hit) -> Episode | None:
        """Return the whole episode that a hit is a step of, None if it came from elsewhere."""
        return self.history.episode(hit.node)

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
        self.catch_up()
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
        an_open_episode("run", run)
        if run.closed:
            raise EpisodeClosedError(
                f"episode {run.episode_id} is closed: begin another one for further steps"
            )
        if self._open.get(run.episode_id) is not run:
            raise ForeignEpisodeError(
                f"episode {run.episode_id} was begun elsewhere: use the memory that began it"
            )
        return run
