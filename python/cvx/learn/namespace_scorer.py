"""The scorer of one namespace, with weights learned from its own episodes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from cvx.learn.attribution import Taken, Taught, decision_of, weight_samples
from cvx.scoring import LearnedWeights, Scorer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cvx.learn.model_sync import LearnedModels


class NamespaceScorer:
    """A scorer whose weights move from a prior to what was learned.

    What followed advice came to in one namespace says nothing to another one: each has its own.

    Parameters
    ----------
    namespace : str
        Whose it is.
    prior : Scorer or None
        With the weights to begin with.
    weights : LearnedWeights or None
        Of features of the scorer; ``None`` learns none.

    Attributes
    ----------
    scorer : Scorer or None
        With the weights in force.
    name : str
        Of the weights' state in the record.
    """

    def __init__(
        self, namespace: str, prior: Scorer | None, weights: LearnedWeights | None
    ) -> None:
        self.namespace = namespace
        self.prior = dict(prior.weights) if prior else {}
        self.scorer, self.weights = prior, weights
        # Stores of one namespace have it under the plain name.
        self.name = f"weights:{namespace}" if namespace else "weights"

    def of(self, namespace: str) -> NamespaceScorer:
        """Return that of another namespace, which has learned nothing yet."""
        scorer, weights = self.scorer, self.weights
        if weights is not None:
            weights = LearnedWeights(
                weights.names,
                strength=weights.strength,
                bound=weights.bound,
                window=weights.window,
            )
        return NamespaceScorer(
            namespace, scorer.with_weights(self.prior) if scorer else None, weights
        )

    def after(self, taught: Taught) -> NamespaceScorer:
        """Return it with what an episode teaches; this one stays as it is."""
        if self.weights is None or self.scorer is None or not taught.labels:
            return self
        return self._with(copy.copy(self.weights).update(*taught))

    def _with(self, weights: LearnedWeights) -> NamespaceScorer:
        made = copy.copy(self)
        made.weights = weights
        if self.scorer is not None:
            made.scorer = self.scorer.with_weights(weights.blend(self.prior))
        return made

    def restored(self, models: LearnedModels, *, anew: bool = False) -> NamespaceScorer:
        """Return it with what a record knows.

        Parameters
        ----------
        models : LearnedModels
            Whose record it is.
        anew : bool, default False
            Learn from what the record has of decisions, instead of taking over its weights: they
            were taught by what was taken back since.
        """
        if self.weights is None or self.scorer is None:
            return self
        state = models.record.state(self.name)
        if anew:
            fresh = self.of(self.namespace).weights
            assert fresh is not None
            taught = logged(models, self.namespace, fresh)
            return self._with(fresh.update(*taught) if taught.labels else fresh)
        if state is None:
            return self
        weights = LearnedWeights.from_dict(state)
        if weights.names != self.weights.names:
            return self
        return self._with(weights.refill(*logged(models, self.namespace, weights)))


def logged(models: LearnedModels, namespace: str, weights: LearnedWeights) -> Taught:
    """Return what the decisions of a namespace teach, as ``weight_samples`` gave it.

    The newest samples, as many as the window of the weights holds; none of a source in quarantine.
    """
    found: list[tuple[Sequence[float], float, float]] = []
    whose = dict(models.record.query("SELECT episode_id, namespace FROM episodes"))
    doubted = models.doubted()
    for decision in models.record.newest_decisions():
        if decision["outcome"] is None:
            # A recall for a prompt of which nobody said what became of it.
            continue
        own = whose.get(decision["episode"], decision["record"].get("namespace", ""))
        if own != namespace or decision["episode"] in doubted:
            continue
        won = float(decision["outcome"]) > models.rules.success_above
        if not won and not models.rules.learn_from_failures:
            continue
        taught = weight_samples([Taken(decision_of(decision), 0)], weights.names, won)
        found += reversed([*zip(*taught, strict=True)])
        if len(found) >= weights.window:
            break
    return Taught(*([*told] for told in zip(*found[::-1], strict=True)) if found else ([], [], []))
