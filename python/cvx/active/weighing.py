"""The scorer of one namespace, and the weights that its own episodes teach it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cvx.scoring import LearnedWeights, Scorer

if TYPE_CHECKING:
    from cvx.active.following import Following
    from cvx.store import Writer


class Taught(NamedTuple):
    """What decisions teach of weights: samples of ``LearnedWeights``, oldest first."""

    features: Sequence[Sequence[float]]
    labels: Sequence[float]
    propensities: Sequence[float]


class Weighing:
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
    """

    def __init__(
        self, namespace: str, prior: Scorer | None, weights: LearnedWeights | None
    ) -> None:
        self.namespace = namespace
        self.prior = dict(prior.weights) if prior else {}
        self.scorer, self.weights = prior, weights
        # Stores of one namespace have it under the plain name.
        self._name = f"weights:{namespace}" if namespace else "weights"

    def of(self, namespace: str) -> Weighing:
        """Return that of another namespace, which has learned nothing yet."""
        scorer, weights = self.scorer, self.weights
        if weights is not None:
            weights = LearnedWeights(
                weights.names,
                strength=weights.strength,
                bound=weights.bound,
                window=weights.window,
            )
        return Weighing(namespace, scorer.with_weights(self.prior) if scorer else None, weights)

    def learn(self, taught: Taught, write: Writer) -> Callable[[], None]:
        """Learn from an episode and write it down; returns what takes it back."""
        weights, scorer = self.weights, self.scorer
        if weights is None or scorer is None or not taught.labels:
            return lambda: None
        state = weights.snapshot()

        def take_back() -> None:
            weights.restore(state)
            self.scorer = scorer

        try:
            weights.update(*taught)
            self._blend()
            write.set_state(self._name, weights.to_dict())
        except BaseException:
            take_back()
            raise
        return take_back

    def restore(self, memory: Following, *, anew: bool = False) -> None:
        """Take over what a record knows.

        Parameters
        ----------
        memory : ActiveMemory
            Whose record it is.
        anew : bool, default False
            Learn from what the record has of decisions, instead of taking over its weights: they
            were taught by what was taken back since.
        """
        weights = self.weights
        if weights is None or self.scorer is None:
            return
        state = memory.record.state(self._name)
        if anew:
            fresh = self.of(self.namespace).weights
            assert fresh is not None
            taught = logged(memory, self.namespace, fresh)
            self.weights = fresh.update(*taught) if taught.labels else fresh
        elif state is not None and tuple(state["names"]) == weights.names:
            self.weights = LearnedWeights.from_dict(state)
            self.weights.refill(*logged(memory, self.namespace, self.weights))
        else:
            return
        self._blend()

    def _blend(self) -> None:
        if self.scorer is not None and self.weights is not None:
            self.scorer = self.scorer.with_weights(self.weights.blend(self.prior))


def logged(memory: Following, namespace: str, weights: LearnedWeights) -> Taught:
    """Return what the decisions of a namespace teach, as ``weight_samples`` gave it.

    The newest samples, as many as the window of the weights holds; none of a source in quarantine.
    """
    rows: list[list[float]] = []
    labels: list[float] = []
    propensities: list[float] = []
    whose = {
        episode.episode_id: (episode.namespace, {step.source for step in episode.steps})
        for episode in memory.recorder.log
    }
    for decision in memory.record.newest_decisions():
        if decision["outcome"] is None:
            # A recall for a prompt of which nobody said what became of it.
            continue
        own, sources = whose.get(
            decision["episode"], (decision["record"].get("namespace", ""), set[str]())
        )
        if own != namespace or not sources.isdisjoint(memory.distrusted):
            continue
        won = float(decision["outcome"]) > memory.success_above
        if not won and not memory.learn_from_failures:
            continue
        chances: Any = decision["record"].get("propensities", ())
        if len(chances) != len(decision["hits"]):
            # Not sampled; or a context, which keeps the chances of what it showed alone.
            chances = [math.nan] * len(decision["hits"])
        for (node, _, _, _, factors), chance in reversed(
            [*zip(decision["hits"], chances, strict=True)]
        ):
            values = {name: value for name, value, _ in factors}
            if node in decision["followed"] and values.keys() >= set(weights.names):
                rows.append([values[name] for name in weights.names])
                labels.append(float(won))
                propensities.append(chance)
        if len(rows) >= weights.window:
            break
    return Taught(rows[::-1], labels[::-1], propensities[::-1])
