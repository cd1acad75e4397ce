"""The agent of docs/agents.md on any text game: what a user gets in ten lines, without plans."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from cvx.memory import Memory
from experiments.plans import Demonstrations, complete
from experiments.textgames.game import Game, Result, offered


class Learning(Protocol):
    """What says whether games are learned from now."""

    @property
    def learning(self) -> bool:
        """Whether they are."""
        ...


class TenLines:
    """Plays by ``memory.episode(goal)``, ``advise``, ``act`` and ``end``, and nothing else.

    A text game is won by a reward of 1, at once or in parts, so the sum of the rewards is what an
    episode was worth. What it is told is the last text that the game said.

    Parameters
    ----------
    loop : Learning
        Whether it is ``learning`` now: a game that is measured leaves nothing behind.
    memory : Memory
    max_steps : int
        After how many commands a game is cut off, which is no failure.
    """

    def __init__(self, loop: Learning, memory: Memory, max_steps: int) -> None:
        self.loop, self.memory, self.max_steps = loop, memory, max_steps

    def learn(self, demonstrations: Demonstrations) -> None:
        """Remember won games that somebody else played."""
        for goal, steps in demonstrations:
            with self.memory.episode(goal) as episode:
                for at, (seen, command, reward) in enumerate(steps):
                    if at + 1 == len(steps):
                        # Whoever shows how a game is won may not say what each step earned.
                        reward = 1.0 - sum(step.reward for step in steps[:-1])
                    episode.act(command, reward=reward, observation=seen.text)
                episode.end()

    def play(self, game: Game) -> Result:
        """Play one game to its end; a measured one by the best that is known."""
        seen, command, steps, score, over, seconds = game.reset(), None, 0, 0.0, False, 0.0
        with self.memory.episode(seen.goal, learn=self.loop.learning) as episode:
            while not over:
                start = time.perf_counter()
                advice = episode.advise(seen.text, offered(seen, command))
                command = str(advice.choose(explore=self.loop.learning).action)
                seconds += time.perf_counter() - start
                seen, reward, over = game.step(command)
                episode.act(command, reward=reward)
                steps, score = steps + 1, score + reward
            cut_off = not complete(score) and steps >= self.max_steps
            episode.end(observation=seen.text, truncated=cut_off)
        return Result(complete(score), steps, 1, steps, seconds, score)

    def state(self) -> Mapping[str, Any]:
        """Return nothing: all that it needs is in its memory."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on: all that it needs is in its memory."""
