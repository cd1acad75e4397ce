"""A language model that plays with recalled episodes in its prompt."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cvx.types import Cue, Decision
from experiments.plans import Demonstrations, Observation, arguments, complete, template
from experiments.plans.words import spans
from experiments.textgames.game import Game, Result
from experiments.textgames.llm import Chosen

if TYPE_CHECKING:
    from cvx.learn.loop import ActiveMemory
    from experiments.chat import AuditLog


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

    def close(self) -> None:
        """Let go of what it holds open."""
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
    budget_tokens : int, default 512
        How much of a prompt they may take up.
    log : AuditLog, optional
        Where every decision and every outcome is noted.
    """

    def __init__(
        self,
        memory: ActiveMemory,
        policy: Policy,
        *,
        k: int = 3,
        budget_tokens: int = 512,
        log: AuditLog | None = None,
    ) -> None:
        self.memory = memory
        self.policy = policy
        self.k = k
        self.budget_tokens = budget_tokens
        self.log = log
        self._names: set[str] = set()
        self._told: set[str] = set()
        self._unlearned = -1
        self._read()

    def _read(self) -> None:
        """Take the names of things from the episodes that may be read, as they are now."""
        self.memory.notice()
        if self._unlearned != self.memory.unlearned:
            self._unlearned = self.memory.unlearned
            said = (action for episode in self.memory.readable() for action in episode.actions)
            self._told = _names_in(said)

    def learn(self, demonstrations: Demonstrations) -> None:
        """Remember won games that somebody else played."""
        for goal, steps in demonstrations:
            self._told |= _names_in(step.command for step in steps)
            told = [(f"{goal} {step.observation.text}", step.command) for step in steps]
            self.memory.add_demonstration(goal, told, self._family(goal))

    def close(self) -> None:
        """Close the policy and the log."""
        self.policy.close()
        if self.log is not None:
            self.log.close()

    def state(self) -> dict[str, Any]:
        """Return what is not in the memory: the names that it heard in the commands of games."""
        return {"names": sorted(self._names)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as the player that gave this state did; it had the same memory."""
        self._names = set(state["names"])

    def play(self, game: Game) -> Result:
        """Play one game to its end; the episode is one of the memory."""
        seen, score, over, seconds = game.reset(), 0.0, False, 0.0
        self._read()
        self._names |= _names_in(seen.admissible_commands)
        run = self.memory.begin(seen.goal, self._family(seen.goal))
        history: list[tuple[str, str]] = []
        try:
            while not over:
                cue = Cue(goal=seen.goal, step=seen.text)
                start = time.perf_counter()
                decision = self.memory.recall(cue, k=self.k)
                seconds += time.perf_counter() - start
                context = self.memory.render(decision, budget_tokens=self.budget_tokens)
                command = self.policy.act(seen, context=context, history=history)
                done = self.memory.act(decision, str(command), rendered=context)
                if self.log is not None:
                    self.log.note("decision", **audited(done, command, len(history)))
                seen, reward, over = game.step(command)
                score += reward
                history.append((command, seen.text))
        except BaseException:
            self.memory.discard(run)
            raise
        self.memory.close(run, min(max(score, 0.0), 1.0))
        if self.log is not None:
            self.log.note("outcome", episode=run.episode_id, reward=score, steps=len(history))
        return Result(complete(score), len(history), 1, len(history), seconds, score)

    def _family(self, goal: str) -> str:
        """Return a goal with gaps for what commands name, as far as was heard."""
        named = [word for word, known in spans(goal, self._names | self._told) if known]
        return template(goal, list(dict.fromkeys(named)))


def _names_in(commands: Iterable[str]) -> set[str]:
    return {part.word for command in commands for part in arguments(command)}


def audited(decision: Decision, command: str, place: int) -> dict[str, Any]:
    """Return what a decision rested on, as JSON can hold it.

    Parameters
    ----------
    decision : Decision
        With what was recalled and shown, and what was expected.
    command : str
        What was chosen; a `Chosen` tells what was asked and answered for it.
    place : int
        Number of the step in its game.
    """
    exchanges = command.exchanges if isinstance(command, Chosen) else ()
    return {
        "decision": decision.decision_id,
        "episode": decision.episode_id,
        "step": place,
        "goal": decision.cue.goal,
        "task_type": decision.cue.task_type,
        "recalled": [
            {"node": hit.node, "entity": hit.entity_id, "score": hit.score} for hit in decision.hits
        ],
        "context": decision.rendered,
        "asked": [{"messages": list(one.messages), "answer": one.answer.text} for one in exchanges],
        "how": command.how if isinstance(command, Chosen) else "answered",
        "command": str(command),
        "followed": list(decision.followed),
        "predicted": decision.predicted,
    }
