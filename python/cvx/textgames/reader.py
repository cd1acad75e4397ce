"""A language model that plays with what memory recalls for it in words."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cvx.plans import Demonstrations, Observation
from cvx.textgames.game import Game, Result
from cvx.types import Cue

if TYPE_CHECKING:
    from cvx.active import ActiveMemory


class Policy(Protocol):
    """Chooses among commands by what it reads."""

    def act(
        self, observation: Observation, *, context: str, history: Sequence[tuple[str, str]]
    ) -> str:
        """Return one of the admissible commands.

        Parameters
        ----------
        observation : Observation
            What is seen.
        context : str
            What memory says.
        history : sequence of (command, text)
            What was done in this game, and what came of it.
        """
        ...


class Reader:
    """Plays games by asking a language model, with recalled episodes as evidence.

    Parameters
    ----------
    memory : ActiveMemory
        Its steps are texts as the engine tells them, its actions the commands themselves.
    policy : Policy
        Chooses among the admissible commands.
    k : int, default 3
        Episodes shown at each step.
    """

    def __init__(self, memory: ActiveMemory, policy: Policy, *, k: int = 3) -> None:
        self.memory = memory
        self.policy = policy
        self.k = k

    def learn(self, demonstrations: Demonstrations) -> None:
        """Remember won games that somebody else played."""
        for goal, steps in demonstrations:
            run = self.memory.begin(goal, kind="demonstration")
            for seen, command in steps:
                self.memory.step(run, f"{goal} {seen.text}", command)
            self.memory.close(run, 1.0)

    def state(self) -> dict[str, Any]:
        """Return nothing: all that it learned is in the memory."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from the memory alone."""

    def play(self, game: Game) -> Result:
        """Play one game to its end; the episode is one of the memory."""
        seen, reward, over, seconds = game.reset(), 0.0, False, 0.0
        run = self.memory.begin(seen.goal)
        history: list[tuple[str, str]] = []
        while not over:
            cue = Cue(goal=seen.goal, step=seen.text)
            start = time.perf_counter()
            decision = self.memory.recall(cue, k=self.k)
            seconds += time.perf_counter() - start
            context = self.memory.render(decision)
            command = self.policy.act(seen, context=context, history=history)
            self.memory.act(decision, command, rendered=context)
            seen, reward, over = game.step(command)
            history.append((command, seen.text))
        self.memory.close(run, reward)
        return Result(reward > 0, len(history), 1, len(history), seconds)
