"""An agent without a language model that plays by what memory returns.

No word of any game stands in its code: what to do for a goal (plans), how to go on when the next
step of a plan is not possible yet (moments), and where things were found (finds) are recalled from
a `PlanMemory`. With an empty memory it draws at random.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from cvx.active import ActiveMemory
from cvx.plans import Attempt, Demonstrations, PlanMemory, Wish, signature, verbs
from cvx.textgames.explore import worth
from cvx.textgames.game import Game, Result
from cvx.textgames.sight import Sight


class Agent:
    """Plays games with an `ActiveMemory`, and closes every attempt with its outcome.

    An attempt starts with the recall of a plan, goes on with the steps of the plan and, in
    between, with explored ones; it ends when the game is won, or when the plan was carried out, or
    got stuck, in vain. The game then goes on with another plan. An attempt that was broken off
    teaches nothing, since its plan was not followed to the end.

    Parameters
    ----------
    memory : ActiveMemory
        Its default embedder, `action_type=shape` and `usage_key=use_key` suit this agent.
    neighbours : int, default 15
        How many moments, and how many finds, have a vote.
    exponent : float, default 1.0
        The vote of a neighbour is its score to this power.
    plans : int, default 64
        How many episodes are looked at for a plan.
    patience : int, default 8
        When a plan counts as stuck: every command on the way to a subgoal that was given before,
        or is about the very thing that is wanted, is one more doubt.
    seed : int, default 0
        Decides between equals.
    """

    def __init__(
        self,
        memory: ActiveMemory,
        *,
        neighbours: int = 15,
        exponent: float = 1.0,
        plans: int = 64,
        patience: int = 8,
        seed: int = 0,
    ) -> None:
        self.memory = memory
        self.plans = PlanMemory(memory, looked_at=plans, neighbours=neighbours, exponent=exponent)
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
        """
        plans = self.plans
        decisions, seconds = plans.decisions, plans.seconds
        sight = Sight(game.reset())
        attempt: Attempt | None = None
        stuck: Attempt | None = None
        attempts, won, over = 0, False, False
        while not over:
            slots = sight.listen(plans.lexicon)
            if attempt is None:
                attempt = plans.begin(sight.seen.goal, slots, sight.rejected, stuck)
                attempts += 1
            attempt.binding.slots = list(slots)
            command = self._command(attempt, sight)
            sight.do(command)
            sight.seen, reward, over = game.step(command)
            won = reward > 0
            hopeless = bool(attempt.plan) and attempt.doubts > self.patience
            if won or over or attempt.done or hopeless:
                self._end(attempt, sight, won)
                stuck, attempt = (None if attempt.done else attempt), None
        spent = plans.decisions - decisions, plans.seconds - seconds
        return Result(won, len(sight.done), attempts, *spent)

    def _command(self, attempt: Attempt, sight: Sight) -> str:
        """Return the next command of the plan, or one that may make it possible."""
        text = sight.moment(attempt.subgoal)
        command = attempt.next_command(sight.commands, sight.tried, self._rng)
        if command is not None:
            self.plans.advance(attempt, command, text, sight.last)
            return command
        consulted, wish = self.plans.consult(attempt, text), Wish.of(attempt)
        command = (
            self._rng.choice(sight.commands)
            if not consulted.advice.votes
            else max(
                sight.commands,
                key=lambda c: (
                    worth(c, sight, wish, consulted.advice, self.plans.lexicon),
                    self._rng.random(),
                ),
            )
        )
        self.plans.explored(attempt, consulted, command)
        attempt.doubts += (sight.tried[command] > 0) + wish.about(command)
        return command

    def _end(self, attempt: Attempt, sight: Sight, won: bool) -> None:
        """Close an attempt that is over or in vain; one that is broken off leaves nothing."""
        # Carried out in vain, the plan is wrong; stuck, perhaps only this reading of it.
        vain = verbs(attempt.plan) if attempt.done else frozenset[str]()
        sight.rejected[signature(attempt.plan)] = vain
        if won or attempt.done or not attempt.plan:
            self.plans.close(attempt, won)
        else:
            self.plans.discard(attempt)

    def state(self) -> dict[str, Any]:
        """Return what is not in the memory: how the next draw will fall."""
        version, numbers, _ = self._rng.getstate()
        return {"draws": [version, numbers]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as the agent that gave this state did; it had the same memory."""
        version, numbers = state["draws"]
        self._rng.setstate((version, tuple(numbers), None))
