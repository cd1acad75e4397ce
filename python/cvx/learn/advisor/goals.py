"""In which task a goal is learned that names none: with others where it can be, else alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from cvx.learn.advisor.types import Run, Unit, plain


def _task(unit: Unit, goal: str | None = None) -> str:
    """Return the name of the task of all goals, or of one: no task of a user begins like that."""
    return f"\0{unit}" if goal is None else f"\0{unit}\0{goal}"


def _unit(task: str) -> Unit:
    return "return" if task.split("\0")[1] == "return" else "P(success)"


class GoalTasks:
    """The tasks of goals that name none.

    Goals learn together whose observations are texts, or ints that name a state, and that are paid
    on one scale: by an outcome, or by rewards of at most 1. A goal that was once seen in numbers,
    or once paid more, learns alone from then on. It is the asker's own episodes that decide on a
    goal: what doubted sources tell is learned where it fits.

    Parameters
    ----------
    doubted : callable
        Whether a source is one beside the asker's, as far as is known now.
    """

    def __init__(self, doubted: Callable[[str], bool]) -> None:
        self._doubted = doubted
        # Of each goal its task and the source that told so; how many episodes each task has.
        self._homes: dict[str, tuple[str, str]] = {}
        self._episodes: Counter[str] = Counter()

    def saved(self) -> list[Any]:
        """Return all of it as lists."""
        homes = [[goal, *home] for goal, home in self._homes.items()]
        return [homes, [*self._episodes.items()]]

    def restore(self, told: list[Any]) -> None:
        """Take over what was saved."""
        homes, episodes = told
        self._homes = {goal: (task, source) for goal, task, source in homes}
        self._episodes = Counter(dict(episodes))

    def place(self, goal: str, *, numbers: bool = False) -> str:
        """Return the task in which an open episode is played."""
        home = self._homes[plain(goal)][0] if self.settled(goal) else self._usual()
        return _task(_unit(home), plain(goal)) if numbers else home

    def _usual(self) -> str:
        """Return the task of all goals that has more episodes."""
        usual, other = _task("P(success)"), _task("return")
        return other if self._episodes[other] > self._episodes[usual] else usual

    def settled(self, goal: str) -> bool:
        """Return whether an episode of the asker's own has said how the goal is told."""
        home = self._homes.get(plain(goal))
        return home is not None and not self._doubted(home[1])

    def settle(self, run: Run, unit: Unit) -> None:
        """Give an episode that ended its task."""
        goal = plain(run.goal)
        before = self._homes[goal][0] if self.settled(run.goal) else ""
        together, alone = _task(unit), _task(unit, goal)
        texts = all(step.observation.text is not None for step in run.steps)
        small = unit != "return" or all(abs(step.reward) <= 1.0 for step in run.steps)
        run.task = together if texts and small and before != alone else alone
        if not run.doubted:
            self._episodes[run.task] += 1
        if not (before and run.doubted):
            self._homes[goal] = run.task, run.source
