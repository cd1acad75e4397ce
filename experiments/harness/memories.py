"""Variants of memory for the arms: learning paused, failures recalled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.types import Cue, Decision, Episode, Filter
from experiments.plans import Choices
from experiments.textgames.controls import ShuffledMemory


class Held(NamedTuple):
    """How many episodes a memory holds.

    Attributes
    ----------
    wins, failures : int
        In the index, by outcome.
    advising : int
        How many of the failures may be returned as advice.
    """

    wins: int = 0
    failures: int = 0
    advising: int = 0


class PausableMemory(ActiveMemory):
    """A loop that can be asked without learning from how it went.

    While ``learning`` is false, own episodes are forgotten when they end; demonstrations are kept.
    ``choices`` is who advises the agent on the same memory.
    """

    learning: bool = True
    choices: Choices | None = None
    failures_advise: bool = False

    def close(self, run: OpenEpisode, reward: float, *, exposure: float = 1.0) -> Episode:
        """Learn from an episode, or only say what it was."""
        if self.learning or run.kind == "demonstration":
            return super().close(run, reward, exposure=exposure)
        episode = self.recorder.outcome(run, reward)
        self.discard(run)
        return episode

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Learn nothing from the episodes that end within the block."""
        before, self.learning = self.learning, False
        try:
            yield
        finally:
            self.learning = before

    def held(self) -> Held:
        """Count the episodes that it holds."""
        kept = [e.reward for e in self.readable() if e.steps and e.steps[0].node is not None]
        wins = sum(reward is not None and reward > self.success_above for reward in kept)
        failures = len(kept) - wins
        return Held(wins, failures, failures if self.failures_advise else 0)


class FrozenMemory(PausableMemory):
    """Keeps demonstrations, and nothing of its own experience."""

    learning = False


class ShuffledOutcomes(PausableMemory, ShuffledMemory):
    """A pausable memory in which plans and outcomes hang on wrong goals."""


class EverythingMemory(PausableMemory):
    """Lets failures advise like successes, as RFC-013's E7c does: a control, not a way to play."""

    failures_advise = True

    def recall(
        self, cue: Cue, where: Filter | None = None, k: int | None = None, **options: Any
    ) -> Decision:
        """Find what was done in moments like this one, whatever came of it."""
        found = super().recall(cue, where, k, **options)
        if options.get("outcome") == "failure":
            return found
        failed = super().recall(cue, where, k, **{**options, "outcome": "failure"})
        hits = sorted([*found.hits, *failed.hits], key=lambda hit: (-hit.score, hit.node))
        return replace(found, hits=tuple(hits[: k or self.k]))


class UnscoredMemory(PausableMemory):
    """Keeps the region model's opinion on actions to itself: decay alone may read the model."""

    def recall(self, *asked: Any, **options: Any) -> Decision:
        """Find what was done in moments like this one; no action is scored."""
        return replace(super().recall(*asked, **options), action_scores=())
