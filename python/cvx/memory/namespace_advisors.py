"""Advisors of a memory, one for each namespace that asks, kept up to date with closed episodes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.learn.advisor import Advisor, Observation
from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.learn.model_sync import LearnedModels, TakenBackError
from cvx.memory.advice import Precedents, same
from cvx.memory.observations import (
    action_of,
    read_observation,
    restored_action,
    same_observation,
    seen_in,
    state_of,
)
from cvx.memory.settings import OwnVectors
from cvx.types import Episode, Event, Hit, Vector

if TYPE_CHECKING:
    from cvx.memory.resources import SharedState

_MOST_TEXTS = 4096


class NamespaceAdvisor:
    """The `Advisor` of one namespace, kept up to date with the closed episodes that it may read.

    Parameters
    ----------
    advisors : Advisors
        Of the memory.
    namespace, also
        Who asks.
    history : int, optional
        As for `Advisor`.
    """

    def __init__(
        self, advisors: Advisors, namespace: str, also: tuple[str, ...], history: int | None
    ) -> None:
        self.advisors, self.namespace, self.also, self.history = advisors, namespace, also, history
        self.lock = threading.RLock()
        self._live: dict[str, OpenEpisode] = {}
        self._models: LearnedModels | None = None
        self._unlearned = -1
        self._forget()

    def _forget(self) -> None:
        embedder = self.advisors.shared.embedder
        self.advisor = Advisor(
            seed=self.advisors.seed,
            history=self.history,
            embed=None if self.advisors.own_vectors else embedder.embed,
        )
        self.precedents = Precedents()
        self.episodes: dict[str, Episode] = {}
        self.sizes: dict[str, int] = {}
        self._read = 0

    def begin(self, run: OpenEpisode) -> None:
        """Let an open episode teach itself from now on, by the steps that it has so far."""
        with self.lock:
            self.discard(run)
            self._live[str(run.episode_id)] = run
            self._tell(str(run.episode_id), run.steps, run.goal, task_of(run), run)

    def _tell(
        self,
        key: str,
        steps: Sequence[Event],
        goal: str,
        task: str,
        of: OpenEpisode | Event | None,
    ) -> None:
        trust, source = (1.0, "") if of is None else (of.trust, of.source)
        self.advisor.begin(key, goal=goal, task=task, trust=trust, source=source)
        actions: list[Hashable] | None = None
        for step in steps:
            if step.action is None:
                continue
            told = step.metadata
            if "actions" in told:
                listed = told["actions"]
                actions = None if listed is None else [restored_action(one) for one in listed]
            seen = seen_in(told, step.text, step.vector)
            self._size(task, seen)
            self.advisor.step(
                key,
                seen,
                action_of(step),
                float(told.get("reward", 0.0)),
                followed=told.get("followed"),
                actions=actions,
            )

    def _size(self, task: str, seen: Observation) -> None:
        if seen.text is None and seen.vector is not None:
            self.sizes.setdefault(task, len(seen.vector))

    def step(
        self,
        run: OpenEpisode,
        event: Event,
        reward: float,
        followed: bool | None,
        actions: list[Hashable] | None,
    ) -> None:
        """Teach an episode what it just did."""
        with self.lock:
            seen = seen_in(event.metadata, event.text, event.vector)
            self._size(task_of(run), seen)
            self.advisor.step(
                str(run.episode_id),
                seen,
                action_of(event),
                reward,
                followed=followed,
                actions=actions,
            )

    def discard(self, run: OpenEpisode) -> None:
        """Take back what an open episode taught."""
        with self.lock:
            if self._live.pop(str(run.episode_id), None) is not None:
                self.advisor.discard(str(run.episode_id))

    def catch_up(self) -> None:
        """Learn from what was closed since, by anybody; anew where something was taken away."""
        with ExitStack() as held:
            for episode in self._unread(held):
                self._learn(episode)

    def _unread(self, held: ExitStack) -> list[Episode]:
        """Return the closed episodes that are yet to be learned, with the lock held.

        Learning them may take long, and needs the record no more: others can go on with it.
        """
        with ExitStack() as read:
            # Whoever holds the record waits for no lock whose holder may wait for the record.
            while True:
                models = self.advisors.caught_up().models
                with self.lock:
                    pass
                read.enter_context(self.advisors.shared.record.reading())
                if not models.taken_back and self.lock.acquire(blocking=False):
                    held.callback(self.lock.release)
                    break
                read.close()
            log = models.recorder.log
            known = models is self._models and models.unlearned == self._unlearned
            if not known or len(log) < self._read:
                self._forget()
                self._models, self._unlearned = models, models.unlearned
                for run in self._live.values():
                    self._drop_erased(run)
                    stored = [step for step in run.steps if step.event_id is not None]
                    self._tell(str(run.episode_id), stored, run.goal, task_of(run), run)
            if self._read == len(log):
                return []
            new = models.readable(self.namespace, also=self.also, since=self._read)
            self._read = len(log)
            return new

    def _drop_erased(self, run: OpenEpisode) -> None:
        """Let an open episode forget the steps that were erased."""
        # In this order: its own thread may be adding a step, which has no id until it is stored.
        gone = {step.event_id for step in run.steps} - {None}
        found = self.advisors.shared.record.query(
            "SELECT event_id FROM events WHERE episode = ?", (run.episode_id,)
        )
        gone.difference_update(event for (event,) in found)
        for at, step in reversed([*enumerate(run.steps)]):
            if step.event_id in gone:
                del run.steps[at]

    def _learn(self, episode: Episode) -> None:
        key, told = str(episode.episode_id), episode.metadata
        task = task_of(episode)
        run = self._live.pop(key, None)
        if run is not None and len(run.steps) > len(episode.steps):
            # Some of it was put away while it was played.
            self.advisor.discard(key)
            run = None
        if run is None:
            first = episode.steps[0] if episode.steps else None
            self._tell(key, episode.steps, episode.goal, task, first)
        outcome = None if "return" in told else float(episode.reward or 0.0)
        last = told.get("last")
        self.advisor.end(
            key,
            outcome,
            observation=None if last is None else self._last(last),
            truncated=bool(told.get("truncated")),
        )
        self.episodes[key] = episode
        seen = [state_of(seen_in(one.metadata, one.text, one.vector)) for one in episode.steps]
        failed = outcome is not None and outcome <= 0.5 and not told.get("truncated")
        worth = float(told["return"]) if outcome is None else outcome
        self.precedents.note(task, episode, worth, failed=failed, seen=seen)

    def _last(self, told: Any) -> Observation:
        if isinstance(told, list):
            return Observation(None, np.array(told, dtype=np.float32))
        if isinstance(told, Mapping):
            return Observation(told["state"], None)
        return self.advisors.observed(told)

    def hits(
        self, action: Hashable, episodes: Sequence[str], seen: Observation, value: float, k: int
    ) -> tuple[Hit, ...]:
        """Return the steps of these episodes in which an action was taken, at most k of them."""
        found: list[Hit] = []
        for key in reversed(list(dict.fromkeys(episodes))):
            episode = self.episodes.get(key)
            if episode is None:
                continue
            taken = [step for step in episode.steps if same(action_of(step), action)]
            if not taken:
                continue
            alike = (
                step
                for step in taken
                if same_observation(seen_in(step.metadata, step.text, step.vector), seen)
            )
            found.append(_hit(next(alike, taken[0]), seen, value))
            if len(found) == k:
                break
        return tuple(found)


def _hit(step: Event, seen: Observation, value: float) -> Hit:
    similarity = 0.0
    if step.vector is not None and seen.vector is not None and len(seen.vector) == len(step.vector):
        lengths = float(np.linalg.norm(step.vector)) * float(np.linalg.norm(seen.vector))
        similarity = float(step.vector @ seen.vector) / lengths if lengths else 0.0
    return Hit(
        node=-1 if step.node is None else step.node,
        distance=1.0 - similarity,
        score=value,
        similarity=similarity,
        entity_id=step.entity_id,
        timestamp=step.timestamp,
        reward=step.reward,
        action=step.action,
        event=step,
    )


def task_of(episode: Episode | OpenEpisode) -> str:
    """Return the task by which an episode learns: the one it names, or else its goal."""
    return episode.goal if episode.task_type is None else episode.task_type


class Advisors:
    """The advisors of a memory, one for each namespace that asks, and the loop that ends episodes.

    Parameters
    ----------
    shared : SharedState
        Of the memory.
    """

    def __init__(self, shared: SharedState) -> None:
        self.shared = shared
        self.seed = int(shared.kind.settings.get("seed", 0))
        self._lock, self._making = threading.RLock(), threading.RLock()
        self._loop: ActiveMemory | None = None
        self._learners: dict[tuple[str, tuple[str, ...], int | None], NamespaceAdvisor] = {}
        self._embedded: OrderedDict[str, Vector] = OrderedDict()

    @property
    def own_vectors(self) -> bool:
        """Whether the memory was made with ``dim=``, and nothing embeds texts."""
        return isinstance(self.shared.embedder, OwnVectors)

    @property
    def loop(self) -> ActiveMemory:
        """The loop that writes and learns from closed episodes, made at its first use.

        One that has learned from what was taken back is made anew.
        """
        shared = self.shared
        # Whoever is in a block of transactions holds the record, for which the maker may wait.
        with nullcontext() if shared.record.block is not None else self._making:
            loop = self._loop
            if loop is None or loop.models.taken_back:
                shared.store.refresh()
                loop = ActiveMemory(
                    shared.store.index, shared.embedder, shared.record, clock=shared.record.now
                )
                loop.on_render = shared.hand_out_text
                self._loop = loop
            return loop

    def caught_up(self) -> ActiveMemory:
        """Return the loop when it has learned from all that was closed, by anybody."""
        while True:
            loop = self.loop
            try:
                loop.catch_up()
            except TakenBackError:
                continue
            return loop

    def learner(
        self, namespace: str, also: tuple[str, ...], history: int | None
    ) -> NamespaceAdvisor:
        """Return what an asker knows, up to what was closed last."""
        with self._lock:
            key = (namespace, also, history)
            found = self._learners.get(key)
            if found is None:
                found = self._learners[key] = NamespaceAdvisor(self, *key)
        found.catch_up()
        return found

    def ended(self) -> None:
        """Let all learners take in what was closed."""
        with self._lock:
            learners = list(self._learners.values())
        for learner in learners:
            learner.catch_up()

    def observed(self, value: Any) -> Observation:
        """Return an observation as it is learned from; see ``read_observation``."""
        return read_observation(value, self._vector)

    def _vector(self, text: str) -> Vector | None:
        """Return where a text lies; nowhere if it says nothing, or nothing embeds texts."""
        if self.own_vectors or not text.strip():
            return None
        with self._lock:
            known = self._embedded.get(text)
            if known is not None:
                self._embedded.move_to_end(text)
                return known
        (made,) = self.shared.embed([text])
        with self._lock:
            self._embedded[text] = made
            if len(self._embedded) > _MOST_TEXTS:
                self._embedded.popitem(last=False)
        return made


def advisors_of(shared: SharedState) -> Advisors:
    """Return the advisors of a memory, made at the first call."""
    with shared.mutex:
        if shared.advisors is None:
            shared.advisors = Advisors(shared)
        return shared.advisors
