"""An agent without a language model that plays by what memory returns.

No word of any game stands in its code: what to do for a goal, and what leads on where the next
step of a plan is not possible yet, a `PlanMemory` knows. With an empty memory it draws at random.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from cvx.learn.loop import ActiveMemory
from experiments.plans import Attempt, Demonstrations, PlaceMap, PlanMemory, Pursuit, shape
from experiments.textgames.explore import Explorer, GameState
from experiments.textgames.game import Game, Result, offered
from experiments.textgames.play_by_returns import play_by_returns


class Agent:
    """Plays games with an `ActiveMemory`, and closes every attempt with its outcome.

    It goes on with the next step of the plan that it pursues, or explores what may make that step
    possible. Which clause of the goal is next, and what becomes of an attempt, is a `Pursuit`'s.

    Parameters
    ----------
    memory : ActiveMemory
        Its default embedder, `action_type=shape` and `usage_key=use_key` suit this agent.
    patience : int, default 8
        When a plan counts as stuck: every command on the way to a subgoal that was explored for
        it before, or is about the very thing that is wanted, is one more doubt.
    seed : int, default 0
        Decides between equals.
    **options
        Of `PlanMemory`, such as whose advice is taken (``choices``).
    """

    def __init__(
        self, memory: ActiveMemory, *, patience: int = 8, seed: int = 0, **options: Any
    ) -> None:
        self.memory, self.plans = memory, PlanMemory(memory, **options)
        self.patience = patience
        self._rng = random.Random(seed)

    def learn(self, demonstrations: Demonstrations) -> None:
        """Remember won games that somebody else played."""
        self.plans.teach(demonstrations)

    def play(self, game: Game) -> Result:
        """Play one game to its end.

        Returns
        -------
        Result
            ``attempts`` is how many plans were tried, ``decisions`` how many commands were chosen
            with the help of memory, ``seconds`` what memory took for them, embedding apart.

        Raises
        ------
        GameError
            The game offers no command. This, and whatever the game itself raises, leaves nothing
            of the attempts whose outcome is open.
        """
        plans = self.plans
        decisions, seconds = plans.decisions, plans.seconds
        seen = game.reset()
        walk = plans.walk(seen.goal)
        if walk is not None:
            return play_by_returns(game, seen, walk, self._rng)
        sight = GameState(seen, PlaceMap(plans.lexicon.moves))
        pursuit, over = Pursuit(plans, sight.seen, self.patience), False
        try:
            while not over:
                attempt = pursuit.attempt(sight.heard, sight.texts)
                sight.notice(attempt.binding.slots)
                command = self._command(attempt, sight)
                sight.do(command)
                seen, reward, over = game.step(command)
                sight.see(seen)
                if pursuit.went(command, reward, seen, sight.before, over=over):
                    sight.undid.add(shape(command))
        finally:
            pursuit.stop()
            if plans.choices is not None:
                plans.choices.rest()
        spent = plans.decisions - decisions, plans.seconds - seconds
        return Result(pursuit.won, len(sight.done), pursuit.attempts, *spent, pursuit.score)

    def _command(self, attempt: Attempt, sight: GameState) -> str:
        """Return the next command of the plan, or one that may make it possible."""
        offered(sight.seen, sight.last)
        if attempt.redo in sight.commands:
            attempt.doubts += sight.tried[attempt.redo] > 0
            return attempt.redo
        command = attempt.next_command(sight.commands, sight.tried, self._rng)
        if command is not None:
            self.plans.advance(attempt, command)
            sight.since.clear()
            return command
        consulted = self.plans.consult(attempt, sight.moment(), sight.commands)
        if consulted.kinds or consulted.wish.things:
            explorer = Explorer(sight, consulted, self.plans.lexicon)
            command = max(sight.commands, key=lambda c: (explorer.worth(c), self._rng.random()))
        else:
            command = self._rng.choice(sight.commands)
        self.plans.explored(attempt, consulted, command)
        wish = consulted.wish
        attempt.doubts += (sight.repeated(wish.need, command) > 0) + (wish.about(command) > 0)
        # Where nothing is to be found any more, the step may not be possible at all.
        attempt.doubts += 0.5 * (not wish.unbound)
        sight.look(wish.need, command)
        return command

    def state(self) -> dict[str, Any]:
        """Return what is not in the memory: how the next draw will fall."""
        version, numbers, _ = self._rng.getstate()
        return {"draws": [version, numbers]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as the agent that gave this state did; it had the same memory."""
        version, numbers = state["draws"]
        self._rng.setstate((version, tuple(numbers), None))
