"""Configurations of the learning loop that the arms compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cvx.learn.decay import BlindDecay, ContextAwareDecay
from cvx.memory import Memory
from cvx.scoring import Feature, Scorer, ScoringContext, UsageTracker, beta_mean, use_posterior
from cvx.types import Hit
from experiments.harness.memories import EverythingMemory, PausableMemory, UnscoredMemory
from experiments.plans import Choices, shape, use_key

Loop = Callable[[Memory], PausableMemory]

STRENGTH = 0.3
"""How many uses the prior of a posterior is worth: a weak one lets a single failure speak."""

# A plan is all that follows the start of an episode: 128 is more than any of them has.
_COMMON: dict[str, Any] = {"action_type": shape, "usage_key": use_key, "temporal_context": 128}
_NO_LEARNING: dict[str, Any] = {
    "decay": None, "mdp": None, "usage": None, "weights": None,
    "learn_from_failures": False, "edges": False,
}  # fmt: skip
# RFC-013's weights of the two factors that its experiments vary.
_AS_PUBLISHED = {"similarity": 1.0, "reward": 0.5}


def loop(kind: type[PausableMemory], memory: Memory, **options: Any) -> PausableMemory:
    """Return a loop of a kind on a memory, with the options that all of them share."""
    made = kind(memory.index, memory.embedder, memory.record, **{**_COMMON, **options})
    made.choices = Choices(memory)
    return made


def by_similarity(memory: Memory, kind: type[PausableMemory] = PausableMemory) -> PausableMemory:
    """Rank by similarity; keep what succeeded; learn nothing else."""
    return loop(kind, memory, scorer=None, **_NO_LEARNING)


def everything(memory: Memory) -> PausableMemory:
    """RFC-013's E7c: all experience advises; every reward recalled in a failure times 0.85."""
    options = {**_NO_LEARNING, "decay": BlindDecay(0.85), "learn_from_failures": True}
    return loop(EverythingMemory, memory, scorer=Scorer(_AS_PUBLISHED), **options)


def wins_blind(memory: Memory) -> PausableMemory:
    """RFC-013's E7d: wins advise; every reward recalled in a failure times 0.85."""
    options = {**_NO_LEARNING, "decay": BlindDecay(0.85)}
    return loop(PausableMemory, memory, scorer=Scorer(_AS_PUBLISHED), **options)


def wins_aware(memory: Memory) -> PausableMemory:
    """RFC-013's E7e: wins advise; followed advice of the same family decays by its region.

    Failures are in the index, where they advise nothing: the quality of regions needs them.
    """
    options = {**_NO_LEARNING, "decay": ContextAwareDecay(), "mdp": "default"}
    options["learn_from_failures"] = True
    return loop(UnscoredMemory, memory, scorer=Scorer(_AS_PUBLISHED), **options)


def region_model(memory: Memory) -> PausableMemory:
    """RFC-013's E8: E7d, with P(success | region, action) in the score and in the exploring."""
    scorer = Scorer({**_AS_PUBLISHED, "action_success": 1.0})
    options = {**_NO_LEARNING, "decay": BlindDecay(0.85), "mdp": "default"}
    options["learn_from_failures"] = True
    return loop(PausableMemory, memory, scorer=scorer, **options)


def full(
    memory: Memory,
    kind: type[PausableMemory] = PausableMemory,
    *,
    besides: Mapping[str, float] | None = None,
    features: Mapping[str, Feature] | None = None,
    **options: Any,
) -> PausableMemory:
    """All of the loop: failures teach, plans are scored by the posterior of following them.

    Parameters
    ----------
    memory : Memory
    kind : type, default PausableMemory
    besides : mapping, optional
        Weights of further features; the posterior's is 1.
    features : mapping, optional
        Features of one's own; ``advice`` replaces the posterior.
    **options
        Of `ActiveMemory`; what the loop would have otherwise.
    """
    usage = UsageTracker(strength=STRENGTH, mean="similarity")
    own = {"advice": use_posterior(usage, use_key), **(features or {})}
    scorer = Scorer({"advice": 1.0, **(besides or {})}, features=own)
    return loop(kind, memory, **{"scorer": scorer, "usage": usage, "weights": None, **options})


def by_edges(memory: Memory) -> PausableMemory:
    """The full loop with its posterior counted off the typed edges of each memory.

    What a memory did for goals of another family says nothing: those edges are left out.
    """
    playing = full(memory, usage=None)
    index, history = memory.index, playing.history

    def feature(hit: Hit, context: ScoringContext) -> float:
        def times(kind: str) -> int:
            ends = [edge.to_node for edge in index.typed_neighbors(hit.node, kind)]
            found = [history.episode(node) for node in ends]
            return sum(e is not None and e.task_type == context.task_type for e in found)

        helped, failed = times("caused_success"), times("caused_failure")
        expected = min(max(hit.similarity, 0.0), 1.0)
        return beta_mean(helped, helped + failed, STRENGTH, expected)

    playing.scorer = Scorer({"advice": 1.0}, features={"advice": feature})
    return playing
