"""`cvx.TemporalIndex`: the raw index plus Bayesian search and the region model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.arguments import (
    a_function,
    a_text,
    checked,
    number,
    one_of,
    optional,
    whole,
    wrong,
)
from cvx.errors import InvalidInputError, UnknownError
from cvx.index import RawIndex
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import classify_action, default_level, timelines
from cvx.scoring import SEED_WEIGHTS, Scorer, ScoringContext, UsageTracker
from cvx.types import Hit, Where

_SEED_FEATURES = ("similarity", "recency", "reward", "region_match", "usage_success")


def _weights(name: str, value: Any) -> Any:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise wrong(name, value, "five numbers, or a mapping from features to numbers")
    for one in value.values() if isinstance(value, Mapping) else value:
        number()(name, one)
    return value


class TemporalIndex(RawIndex):
    """A temporal index that also ranks by posterior and learns which actions succeed where.

    Everything of ``cvx.index.RawIndex``, and ``bayesian_search``, ``transition_model``,
    ``best_action``.

    Examples
    --------
    >>> ix = TemporalIndex(dim=2)
    >>> nodes = ix.bulk_insert([0, 0, 1], [0, 1, 2], [[1, 0], [0, 1], [1, 0.1]],
    ...                        rewards=[1.0, 1.0, 0.0], actions=["open box", "take key", "sing"])
    >>> [hit.node for hit in ix.bayesian_search([1, 0], k=2)]
    [0, 2]
    >>> model = ix.transition_model()
    >>> model.best_action(model.assign([1, 0]))[0][0]
    'open'
    """

    _learned: tuple[tuple[int, int], RegionMDP] | None = None
    """The changes and the epoch of regions there had been, and the model learned then."""

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the region model, which speaks of this index and no copy."""
        return super().__getstate__() | {"_learned": None}

    @checked(
        k=whole(1),
        weights=optional(_weights),
        now=optional(whole()),
        usage=optional(one_of(UsageTracker, Mapping, called="a UsageTracker or a mapping")),
        level=optional(whole(0)),
        pool=whole(1),
    )
    def bayesian_search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        weights: Sequence[float] | Mapping[str, float] | None = None,
        now: int | None = None,
        usage: UsageTracker | Mapping[int, float] | None = None,
        level: int | None = None,
        where: Where | None = None,
        *,
        pool: int = 4,
    ) -> list[Hit]:
        """Find nodes by similarity, recency, reward, region and use together.

        The ``pool * k`` nearest nodes are scored by ``bayesian_score``'s formula, with
        exp(-distance) as similarity.

        Parameters
        ----------
        query : array_like of shape (dim,)
            Where to look.
        k : int, default 10
            How many hits, at least 1.
        weights : sequence of 5 floats or mapping, optional
            In the order similarity, recency, reward, region match, use; or by the names of the
            scorer's features. Default (1.0, 0.3, 0.5, 0.2, 0.4).
        now : int, optional
            For ages, in the unit of the timestamps; ``None`` leaves age out of the ranking.
        usage : UsageTracker or mapping, optional
            From an entity id to how well following it went, in [0, 1], as a loop counts it
            (``loop.usage``); 0.5 for all without it.
        level : int, optional
            Level of the regions that are compared; default that of ``transition_model``.
        where : Filter, mapping of its fields, or list of these, optional
            What may come back.
        pool : int, default 4
            How many times k candidates are scored.

        Returns
        -------
        list of Hit
            Best score first; the shares of ``factors`` add up to the score.

        Raises
        ------
        InvalidInputError, InvalidVectorError
            As for ``search``; other than five weights; a pool below 1.
        UnknownError
            A weight for an unknown feature; a level without regions.

        References
        ----------
        RFC-013, part C.
        """
        scorer = Scorer(_named(SEED_WEIGHTS if weights is None else weights))
        # What another thread takes away meanwhile is left out.
        found = self.causal_search(query, k * pool, 0, where)
        rows = {hit.node: self.vector(hit.node) for hit in found if hit.node in self}
        hits = [hit for hit in found if rows.get(hit.node) is not None]
        if not hits:
            return []
        at = default_level(self) if level is None else level
        vectors = np.stack([np.asarray(query), *(np.asarray(rows[hit.node]) for hit in hits)])
        own, *others = np.atleast_1d(self.assign_region(vectors, at)).tolist()
        regions = {hit.node: region for hit, region in zip(hits, others, strict=True)}

        def usage_of(hit: Hit) -> float:
            if usage is None:
                return 0.5
            if isinstance(usage, UsageTracker):
                return usage.success(hit.entity_id)
            return usage.get(hit.entity_id, 0.5)

        context = ScoringContext(
            now=now, region=own, region_of=lambda hit: regions[hit.node], usage_of=usage_of
        )
        return scorer.rank(hits, context)[:k]

    @checked(level=optional(whole(0)), classify=optional(a_function))
    def transition_model(
        self, level: int | None = None, *, classify: Callable[[str], str] | None = None
    ) -> RegionMDP:
        """Learn a region model from every timeline in the index, of all namespaces.

        Each timeline counts as one episode; the reward of each node is its outcome; the family of
        goals is the ``task_type`` of its first node.

        Parameters
        ----------
        level : int, optional
            Level of the regions; default the one whose regions hold some dozens of nodes.
        classify : callable, optional
            From an action to its kind, such as ``str``: each action a kind of its own. Default
            `classify_action`, RFC-013's kinds of household commands, and ``str`` where no action in
            the index is one of these.

        Returns
        -------
        RegionMDP

        Raises
        ------
        UnknownError
            A level without regions.
        """
        if level is not None:
            self.regions(level)
        nodes = self.region_assignments(0)[0].tolist() if len(self) else ()
        episodes = timelines(self, nodes)
        if classify is None:
            actions = (step.action for one in episodes for step in one.steps if step.action)
            household = any(classify_action(action) != "other" for action in actions)
            classify = classify_action if household else str
        model = RegionMDP(self, level, classify=classify)
        model.learn_from_episodes(self, episodes)
        return model

    @checked(region=whole(), task_type=optional(a_text))
    def best_action(self, region: int, task_type: str | None = None) -> list[tuple[str, float]]:
        """Return kinds of action with their chance of success in a region, best first.

        Regions are those of the default level of ``transition_model``, which is learned at the
        first call and again after changes.

        Parameters
        ----------
        region : int
            As ``assign_region`` returns it for that level.
        task_type : str, optional
            Only what was seen in this family of goals, while that has seen anything.

        Raises
        ------
        UnknownError
            No region of that level.
        """
        # Taken before the model is learned: what changes meanwhile is learned at the next question.
        state = self.changes, self.region_epoch
        learned = self._learned
        if learned is None or learned[0] != state:
            learned = self._learned = state, self.transition_model()
        model = learned[1]
        if region not in self.regions(model.level):
            raise UnknownError(
                f"node {region} is no region of level {model.level}: ask assign_region for one"
            )
        return model.best_action(region, task_type)


def _named(weights: Sequence[float] | Mapping[str, float]) -> Mapping[str, float]:
    if isinstance(weights, Mapping):
        return weights
    weights = list(weights)
    if len(weights) != len(_SEED_FEATURES):
        raise InvalidInputError(
            f"{len(weights)} weights: give five, for {', '.join(_SEED_FEATURES)}"
        )
    return dict(zip(_SEED_FEATURES, weights, strict=True))
