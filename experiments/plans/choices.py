"""Choices by the memory's own advice: which plan is tried, where to look for what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cvx.memory import Memory, Option, RunningEpisode

NAMESPACE = "choices"


class Choices:
    """Asks a memory for advice, and tells it what came of what was chosen.

    A choice is an episode of one step. They stand in a namespace of their own: they are no
    attempts, and no plan is recalled from them.

    Parameters
    ----------
    memory : Memory

    Attributes
    ----------
    told : callable, optional
        Hears every advice: its task, its state, its options.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._asking: dict[str, RunningEpisode] = {}
        self.told: Callable[[str, str, Iterable[Option]], None] | None = None

    def advise(self, task: str, state: str, actions: Iterable[str]) -> Mapping[str, Option]:
        """Return what each action is worth in a state of a task.

        Parameters
        ----------
        task, state : str
        actions : iterable of str
            At least one.
        """
        asking = self._asking.get(task)
        if asking is None:
            asking = self._asking[task] = self.memory.episode(task=task, namespace=NAMESPACE)
        advice = asking.advise(state, sorted(set(actions)))
        if self.told is not None:
            self.told(task, state, advice)
        return {str(option.action): option for option in advice}

    def tell(self, task: str, state: str, action: str, outcome: float, trust: float = 1.0) -> None:
        """Remember how a choice ended; it counts as much as it is trusted, from 0 to 1."""
        episode = self.memory.episode(task=task, namespace=NAMESPACE, trust=trust)
        episode.act(action, observation=state)
        episode.end(outcome)

    def rest(self) -> None:
        """Let go of what is open: nothing is asked until the next game."""
        asking, self._asking = self._asking, {}
        for episode in asking.values():
            episode.discard()
