"""One advisor for each namespace, kept up to date with closed episodes and saved."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache, lru_cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.errors import InvalidInputError
from cvx.learn.advisor import Advisor, Observation
from cvx.learn.advisor.types import Run, goal_alone, restored_action
from cvx.learn.episode_recorder import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.learn.model_sync import LearnedModels, TakenBackError
from cvx.memory.advice import Precedents
from cvx.memory.observations import (
    action_of,
    read_observation,
    same_observation,
    seen_in,
    state_of,
)
from cvx.memory.settings import OwnVectors
from cvx.store.learned_state import checksum_of, read_state, write_state
from cvx.types import Episode, Event, Hit, Vector

if TYPE_CHECKING:
    from cvx.memory.resources import Resources

_MOST_TEXTS = 4096
_SOME, _SHARE = 1000, 0.02
"""When a memory is closed, what was learned is saved if that spares so many steps, and so large a
share of what was saved before; and"""
_MANY, _MUCH = 5000, 0.25
"""when an episode ends."""


@cache
def _learner() -> str:
    """Return a checksum of the code that learns: another one might learn something else."""
    here, cvx = Path(__file__).parent, Path(__file__).parent.parent
    files = [
        *sorted((cvx / "learn").rglob("*.py")),
        *(here / name for name in ("advice.py", "namespace_advisors.py", "observations.py")),
        *(cvx / name for name in ("statistics.py", "embed/lexical.py", "store/learned_state.py")),
    ]
    return checksum_of(files)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let the collector of cycles rest while many objects are made that stay."""
    resting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if resting:
            gc.enable()


class Kept:
    """What was learned, in a file beside the index.

    Parameters
    ----------
    advisors : Advisors
        Of the memory.
    asker : list
        Whose it is, by which its file is found.
    """

    def __init__(self, advisors: Advisors, asker: list[Any]) -> None:
        self.advisors, self.asker = advisors, asker
        # How many steps it is of; and since when nothing may have been taken away.
        self.steps, self.since = 0, advisors.shared.record.tail().seq

    def _of(self) -> dict[str, Any]:
        shared = self.advisors.shared
        return {
            "asker": self.asker,
            "learner": _learner(),
            "embedder": shared.kind.embedder,
            "seed": self.advisors.seed,
        }

    def write(
        self,
        steps: int,
        models: LearnedModels | None,
        state: Callable[[LearnedModels], dict[str, Any] | None],
        enough: tuple[int, float],
        lock: Any,
    ) -> None:
        """Write a state of so many steps, where enough of them are new.

        Parameters
        ----------
        steps : int
        models : LearnedModels
            Of the episodes that it was learned from.
        state : callable
            From the models to the state, None where it is not complete.
        enough : (int, float)
            How many new steps are not worth it, and how many of those that were kept before.
        lock : RLock
            Held while it is read.
        """
        shared = self.advisors.shared
        folder, record = shared.beside_index(_learner), shared.record
        most, share = enough
        if folder is None or steps - self.steps < max(most, share * self.steps) or record.writing:
            return
        # What others erase meanwhile must not come back by this file.
        with record.locked():
            # Whoever holds the record waits for no lock whose holder may wait for the record.
            if not lock.acquire(blocking=False):
                return
            try:
                if models is None or models.taken_back:
                    return
                made = state(models)
                # Asked last: it reads all that was written since, however little is learned yet.
                if made is None or not models.unchanged_since(self.since):
                    return
                with suppress(OSError, TypeError, ValueError):
                    write_state(folder, record, {**self._of(), "steps": steps}, made)
                    self.steps, self.since = steps, record.tail().seq
            finally:
                lock.release()

    def read(self, models: LearnedModels) -> dict[str, Any] | None:
        """Return the state that was written last, None where there is none that still holds."""
        shared = self.advisors.shared
        folder, record = shared.beside_index(_learner), shared.record
        found = None if folder is None else read_state(folder, record, self._of())
        if found is None or not models.unchanged_since(found[2]):
            return None
        told, of, end = found
        with suppress(ValueError, TypeError, LookupError):
            self.since, self.steps = end, int(of["steps"])
            return told
        return None


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
        self.advisor = self._new()
        self.precedents = Precedents()
        self.sizes: dict[str, int] = {}
        self.returns: dict[str, list[float]] = {}
        self._read = 0
        self._kept = Kept(self.advisors, [self.namespace, list(self.also), self.history])
        self._steps = 0

    def _new(self) -> Advisor:
        embedder = self.advisors.shared.embedder
        return Advisor(
            seed=self.advisors.seed,
            history=self.history,
            embed=None if self.advisors.own_vectors else embedder.embed,
            read=self._runs,
        )

    def _runs(self, keys: Sequence[str]) -> list[Run]:
        """Return episodes that were learned, by their keys, as an advisor is told them."""
        aside, runs = self._new(), []
        for episode in self._known(keys):
            self._tell(aside, episode, episode.steps)
            run = aside.running(str(episode.episode_id))
            run.outcome, run.last, run.truncated = self._ending(episode)
            runs.append(run)
        return runs

    # --- what was learned, in a file

    def save(self, *, most: int = _SOME, share: float = _SHARE) -> None:
        """Write down what was learned, where that spares learning many steps again.

        Parameters
        ----------
        most : int
            How many new steps are not worth it.
        share : float
            How many are not, of those that were saved before.
        """
        self._kept.write(self._steps, self._models, self._state, (most, share), self.lock)

    def _state(self, models: LearnedModels) -> dict[str, Any]:
        return {
            "advisor": self.advisor.saved(),
            "precedents": self.precedents.saved(),
            "read": np.array(models.recorder.log.numbers[: self._read], dtype=np.int64),
            "sizes": [*self.sizes.items()],
            "returns": [*self.returns.items()],
        }

    def _restore(self, models: LearnedModels) -> list[int] | None:
        """Be as when it was saved last; return the episodes that are new, None where it was not."""
        told = self._kept.read(models)
        if told is None:
            return None
        try:
            # A third of the time went to looking for cycles, of which there are none.
            with _uncollected():
                self.advisor.restore(told["advisor"])
                self.precedents = Precedents.restored(told["precedents"])
            self.sizes = dict(told["sizes"])
            self.returns = dict(told["returns"])
            self._steps = self._kept.steps
            known = dict.fromkeys(told["read"].tolist())
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
            self._forget()
            return None
        return [number for number in models.recorder.log.numbers if number not in known]

    def begin(self, run: OpenEpisode) -> None:
        """Let an open episode teach itself from now on, by the steps that it has so far."""
        with self.lock:
            self.discard(run)
            self._live[str(run.episode_id)] = run
            self._tell(self.advisor, run, run.steps)

    def _tell(
        self, advisor: Advisor, episode: Episode | OpenEpisode, steps: Sequence[Event]
    ) -> None:
        key, task = str(episode.episode_id), task_of(episode)
        first = steps[0] if steps else None
        of = first if isinstance(episode, Episode) else episode
        trust, source = (1.0, "") if of is None else (of.trust, of.source)
        advisor.begin(key, goal=episode.goal, task=episode.task_type, trust=trust, source=source)
        actions: list[Hashable] | None = None
        for step in steps:
            if step.action is None:
                continue
            if "actions" in step.metadata:
                listed = step.metadata["actions"]
                actions = None if listed is None else [restored_action(one) for one in listed]
            self._step(advisor, key, task, step, actions)

    def _step(
        self,
        advisor: Advisor,
        key: str,
        task: str,
        step: Event,
        actions: list[Hashable] | None,
    ) -> None:
        told = step.metadata
        seen = seen_in(told, step.text, step.vector)
        if seen.text is None and seen.vector is not None:
            self.sizes.setdefault(task, len(seen.vector))
        advisor.step(
            key,
            seen,
            action_of(step),
            float(told.get("reward", 0.0)),
            followed=told.get("followed"),
            actions=actions,
        )

    def step(self, run: OpenEpisode, event: Event, actions: list[Hashable] | None) -> None:
        """Teach an episode what it just did, and what else it could have done."""
        with self.lock:
            self._step(self.advisor, str(run.episode_id), task_of(run), event, actions)

    def discard(self, run: OpenEpisode) -> None:
        """Take back what an open episode taught."""
        with self.lock:
            if self._live.pop(str(run.episode_id), None) is not None:
                self.advisor.discard(str(run.episode_id))

    def catch_up(self) -> None:
        """Learn from what was closed since, by anybody; anew where something was taken away."""
        with ExitStack() as held:
            new = self._unread(held)
            try:
                for episode in new:
                    self._learn(episode)
            except BaseException:
                # Half of it is learned: the next one learns anew, and nothing of it is saved.
                self._models = None
                raise

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
            restored = None
            if not known or len(log) < self._read:
                self._forget()
                self._models, self._unlearned = models, models.unlearned
                restored = self._restore(models)
                for run in self._live.values():
                    self._drop_erased(run)
                    # Of one that is stored, a step without an id is just being written.
                    told = [one for one in run.steps if one.event_id is not None or not run.stored]
                    self._tell(self.advisor, run, told)
            if self._read == len(log):
                return []
            numbers = log.numbers[self._read :] if restored is None else restored
            new = models.readable(self.namespace, also=self.also, numbers=numbers)
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

    def _ending(self, episode: Episode) -> tuple[float | None, Observation | None, bool]:
        """Return the outcome, None where rewards count; what was seen last; whether it was cut."""
        told = episode.metadata
        outcome = None if "return" in told else float(episode.reward or 0.0)
        last = told.get("last")
        seen = None if last is None else self._last(last)
        return outcome, seen, bool(told.get("truncated"))

    def _learn(self, episode: Episode) -> None:
        key, told = str(episode.episode_id), episode.metadata
        task = task_of(episode)
        run = self._live.pop(key, None)
        if run is not None and len(run.steps) > len(episode.steps):
            # Some of it was put away while it was played.
            self.advisor.discard(key)
            run = None
        if run is None:
            try:
                self._tell(self.advisor, episode, episode.steps)
            except (TypeError, ValueError):
                # The metadata of a step were changed to what no step says: it teaches nothing.
                self.advisor.discard(key)
                return
        outcome, last, truncated = self._ending(episode)
        try:
            self.advisor.end(key, outcome, observation=last, truncated=truncated)
        except InvalidInputError:
            # Two processes ended the first episodes of a task, one by an outcome, one by rewards.
            self.advisor.discard(key)
            return
        self._steps += len(episode.steps)
        if outcome is None and episode.namespace == self.namespace:
            self.returns.setdefault(task, []).append(float(told["return"]))
        seen = [state_of(seen_in(one.metadata, one.text, one.vector)) for one in episode.steps]
        failed = outcome is not None and outcome <= 0.5 and not truncated
        worth = float(told["return"]) if outcome is None else outcome
        self.precedents.note(task, episode, worth, failed=failed, seen=seen)

    def _last(self, told: Any) -> Observation:
        if isinstance(told, list):
            return Observation(None, np.array(told, dtype=np.float32))
        if isinstance(told, Mapping):
            return Observation(told["state"], None)
        return self.advisors.observed(told)

    def _known(self, keys: Sequence[str]) -> list[Episode]:
        """Return episodes that were learned, by their keys."""
        models, numbers = self._models, [int(key) for key in keys]
        if models is None or not numbers:
            return []
        # Another thread may be taking in what was closed or erased meanwhile.
        with self.advisors.shared.record.reading():
            return models.readable(self.namespace, also=self.also, numbers=numbers)

    def hits(
        self, action: Hashable, episodes: Sequence[str], seen: Observation, value: float, k: int
    ) -> tuple[Hit, ...]:
        """Return the steps of these episodes in which an action was taken, at most k of them."""
        found: list[Hit] = []
        for episode in self._known([*dict.fromkeys(episodes)][::-1][:k]):
            taken = [step for step in episode.steps if action_of(step) == action]
            if not taken:
                continue
            alike = (
                step
                for step in taken
                if same_observation(seen_in(step.metadata, step.text, step.vector), seen)
            )
            found.append(_hit(next(alike, taken[0]), seen, value))
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
    """Return the task that an episode names, or else what its goal is known by."""
    return goal_alone(episode.goal) if episode.task_type is None else episode.task_type


class Advisors:
    """The advisors of a memory, one for each namespace that asks, and the loop that ends episodes.

    Parameters
    ----------
    shared : Resources
        Of the memory.

    Attributes
    ----------
    unrecorded : iterator of int
        Numbers of episodes that leave nothing behind.
    """

    def __init__(self, shared: Resources) -> None:
        self.shared = shared
        self.seed = int(shared.kind.settings.get("seed", 0))
        self._lock, self._making = threading.RLock(), threading.RLock()
        self._loop: ActiveMemory | None = None
        self._learners: dict[tuple[str, tuple[str, ...], int | None], NamespaceAdvisor] = {}
        self._known_vector = lru_cache(maxsize=_MOST_TEXTS)(self._vector)
        self.unrecorded = count(-1, -1)

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
                loop = new_loop(shared)
                self._kept = Kept(self, ["regions"])
                loop.models.kept_regions = partial(self._kept.read, loop.models)
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
        if not self.shared.record.frozen:
            # After learning much anew nobody should wait for this at the end of an episode.
            found.save(most=_MANY, share=_MUCH)
        return found

    def _all(self) -> list[NamespaceAdvisor]:
        with self._lock:
            return list(self._learners.values())

    def ended(self) -> None:
        """Let all learners take in what was closed."""
        for learner in self._all():
            learner.catch_up()
            learner.save(most=_MANY, share=_MUCH)
        self._save_regions(_MANY, _MUCH)

    def save(self) -> None:
        """Write down what was learned, before the store is closed."""
        if not self.shared.record.frozen:
            for learner in self._all():
                learner.save()
            self._save_regions(_SOME, _SHARE)

    def _save_regions(self, *enough: Any) -> None:
        if self._loop is not None:
            models = self._loop.models
            self._kept.write(
                models.region_steps, models, LearnedModels.regions, enough, models.mutex
            )

    def observed(self, value: Any) -> Observation:
        """Return an observation as it is learned from; see ``read_observation``."""
        return read_observation(value, self._known_vector)

    def _vector(self, text: str) -> Vector | None:
        """Return where a text lies; nowhere if it says nothing, or nothing embeds texts."""
        if self.own_vectors or not text.strip():
            return None
        (made,) = self.shared.embed([text])
        return made


def new_loop(shared: Resources, **options: Any) -> ActiveMemory:
    """Return a loop that runs on a memory; options are those of ``ActiveMemory``."""
    shared.store.refresh()
    options = {"clock": shared.record.now, **options}
    made = ActiveMemory(shared.store.index, shared.embedder, shared.record, **options)
    made.on_render = shared.hand_out_text
    return made


def advisors_of(shared: Resources) -> Advisors:
    """Return the advisors of a memory, made at the first call."""
    with shared.mutex:
        if shared.advisors is None:
            shared.advisors = Advisors(shared)
        return shared.advisors
