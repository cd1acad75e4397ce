"""In which task a goal is learned that names none: with others where it can be, else alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cvx.learn.advisor.types import Run, Unit, plain


def _named(unit: Unit, goal: str | None = None) -> str:
    """Return the name of the task of all goals, or of one: no task of a user begins like that."""
    return f"\0{unit}" if goal is None else f"\0{unit}\0{goal}"


def _unit(task: str) -> Unit:
    return "return" if task.split("\0")[1] == "return" else "P(success)"


class GoalTasks:
    """The tasks of goals that name none.

    Goals learn together whose observations are texts, or ints that name a state, and that are paid
    on one scale: by an outcome, or by rewards of at most 1. Any other goal learns alone, and does
    so from then on. It is the asker's own episodes that decide: what doubted sources tell is
    learned where it fits, but moves no goal.
    """

    def __init__(self) -> None:
        # Of each goal its task, and whether that is by an episode of the asker's own.
        self._homes: dict[str, tuple[str, bool]] = {}
        # How many episodes each task of all goals has, first those of the asker's own.
        self._own: Counter[str] = Counter()
        self._all: Counter[str] = Counter()

    def place(self, goal: str, *, numbers: bool = False) -> str:
        """Return the task in which an open episode is played."""
        usual, other = _named("P(success)"), _named("return")
        if (self._own[other], self._all[other]) > (self._own[usual], self._all[usual]):
            usual = other
        home, _ = self._homes.get(plain(goal), (usual, False))
        return _named(_unit(home), plain(goal)) if numbers else home

    def settled(self, goal: str) -> bool:
        """Return whether an episode of the asker's own has said how the goal is told."""
        return self._homes.get(plain(goal), ("", False))[1]

    def settle(self, run: Run, unit: Unit) -> bool:
        """Give an episode that ended its task; return whether its goal learns alone from now on.

        Then what was told of the goal so far has to follow.
        """
        goal, (before, own) = plain(run.goal), self._homes.get(plain(run.goal), ("", False))
        together, alone = _named(unit), _named(unit, goal)
        texts = all(step.observation.text is not None for step in run.steps)
        small = unit != "return" or all(abs(step.reward) <= 1.0 for step in run.steps)
        fits = texts and small and not (own and before == alone)
        run.task = together if fits else alone
        self.note(run)
        return own and before == together and self._homes[goal][0] == alone

    def note(self, run: Run) -> None:
        """Count an episode whose task is known."""
        goal = plain(run.goal)
        if not (run.doubted and self._homes.get(goal, ("", False))[1]):
            self._homes[goal] = run.task, not run.doubted
        self._all[run.task] += 1
        self._own[run.task] += not run.doubted

    def follow(self, past: Iterable[Run], run: Run) -> None:
        """Move the earlier episodes of a goal to the task that it learns in alone."""
        goal, together = plain(run.goal), _named(_unit(run.task))
        for one in past:
            if one.untasked and one.task == together and plain(one.goal) == goal:
                one.task = run.task
