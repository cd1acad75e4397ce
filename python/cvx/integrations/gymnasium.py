"""A Gymnasium wrapper that records and advises: ``pip install gymnasium``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat

from cvx.errors import InvalidInputError
from cvx.extras import needs
from cvx.learn.episodes import OpenEpisode
from cvx.learn.loop import ActiveMemory
from cvx.types import Cue, Decision

with needs("gymnasium"):
    import gymnasium


def plain_text(observation: object) -> str:
    """Return an observation that is a text.

    Raises
    ------
    InvalidInputError
        It is something else.
    """
    if not isinstance(observation, str):
        raise InvalidInputError(
            f"the observation is of type {type(observation).__name__}: give MemoryWrapper a "
            "reading=Reading(text=...) that turns it into a str"
        )
    return observation


def clipped(total: float) -> float:
    """Return a sum of rewards cut to [0, 1], what outcomes are measured in.

    Examples
    --------
    >>> clipped(-3.0), clipped(0.25), clipped(7.0)
    (0.0, 0.25, 1.0)
    """
    return min(max(total, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Reading:
    """How an environment is put into the words of a memory.

    Parameters
    ----------
    text : callable, default `plain_text`
        From an observation to what is seen.
    action : callable, default ``str``
        From an action to what is done, such as ``["left", "right"].__getitem__``.
    outcome : callable, default `clipped`
        From the sum of an episode's rewards to its outcome in [0, 1].
    """

    text: Callable[[Any], str] = plain_text
    action: Callable[[Any], str] = str
    outcome: Callable[[float], float] = clipped


class MemoryWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Records the episodes of a text environment, and says what memory knows of each moment.

    ``reset`` begins an episode, a step that terminates or truncates it closes it with its outcome.
    ``info["memory"]`` is what memory has to say about the observation that comes with it (a text,
    empty where it has nothing), ``info["decision"]`` the `Decision` behind that. An agent that
    never looks at it is recorded all the same: advice counts as followed where it names the action
    that was taken.

    Nothing is learned of an episode that is broken off: by an exception of the environment, by
    ``reset`` before its end, or by ``close``.

    Parameters
    ----------
    env : gymnasium.Env
    memory : ActiveMemory
        It may hold other episodes, and be used by others between episodes.
    goal : str, default ""
        What is to be reached.
    task_type : str, optional
        Which family of goals that belongs to.
    reading : Reading, optional
        How observations, actions and rewards are read.
    k : int, default 3
        Episodes recalled at each step.

    Raises
    ------
    InvalidInputError
        ``k`` is below 1, or ``memory`` is no `ActiveMemory`.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        memory: ActiveMemory,
        *,
        goal: str = "",
        task_type: str | None = None,
        reading: Reading | None = None,
        k: int = 3,
    ) -> None:
        if k < 1:
            raise InvalidInputError(f"k is {k}: give at least 1")
        if not isinstance(memory, ActiveMemory):
            raise InvalidInputError(
                f"memory is of type {type(memory).__name__}: give an ActiveMemory, "
                "such as Memory.loop() makes on a store"
            )
        super().__init__(env)
        self.memory = memory
        self.goal, self.task_type, self.k = goal, task_type, k
        self.reading = Reading() if reading is None else reading
        self._run: OpenEpisode | None = None
        self._decision: Decision | None = None
        self._total = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; one that is still running is broken off."""
        self._break_off()
        observation, info = self.env.reset(seed=seed, options=options)
        self._run, self._total = self.memory.begin(self.goal, self.task_type), 0.0
        return observation, self._advised(observation, info)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step, and learn from the episode if it was the last.

        Raises
        ------
        gymnasium.error.ResetNeeded
            No episode is running.
        """
        if self._run is None or self._decision is None:
            raise gymnasium.error.ResetNeeded("no episode is running: call reset() before step()")
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
            self.memory.act(self._decision, self.reading.action(action))
            self._total += float(reward)
            if not (terminated or truncated):
                return observation, reward, False, False, self._advised(observation, info)
            self.memory.close(self._run, self.reading.outcome(self._total))
        except BaseException:
            self._break_off()
            raise
        self._run = self._decision = None
        return observation, reward, terminated, truncated, {**info, "memory": "", "decision": None}

    def close(self) -> None:
        """Break off a running episode, and close the environment."""
        self._break_off()
        super().close()

    def _advised(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        """Return what the environment says, with what memory does."""
        try:
            cue = Cue(goal=self.goal, step=self.reading.text(observation), task_type=self.task_type)
            self._decision = self.memory.recall(cue, k=self.k, episode=self._run)
        except BaseException:
            self._break_off()
            raise
        said = self.memory.render(self._decision) if self._decision.hits else ""
        return {**info, "memory": said, "decision": self._decision}

    def _break_off(self) -> None:
        if self._run is not None and not self._run.closed:
            self.memory.discard(self._run)
        self._run = self._decision = None
