"""The clauses of a goal: which are done, which are open, which plans failed for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from experiments.plans.attempt import Attempt
from experiments.plans.clauses import clauses
from experiments.plans.command_history import PastCommand


@dataclass(slots=True)
class Item:
    """One clause of a goal.

    Attributes
    ----------
    clause : str
    over : bool
        Whether its plan was carried out.
    earned : bool
        Whether it was rewarded for that.
    rejected : dict of str to frozenset of str
        Plans that were in vain, by signature, with their verbs where the plan itself was wrong,
        or the step that could not be done.
    stuck : Attempt, optional
        The latest attempt, if it was broken off.
    done : Attempt, optional
        The latest attempt, if it was carried out.
    deeds : list of PastCommand
        What was done for it since it was begun, or last reached.
    """

    clause: str
    over: bool = False
    earned: bool = False
    rejected: dict[str, frozenset[str]] = field(default_factory=dict)
    stuck: Attempt | None = None
    done: Attempt | None = None
    deeds: list[PastCommand] = field(default_factory=list)


class OpenClauses:
    """The clauses of a goal, in the order in which they are to be gone through.

    Parameters
    ----------
    goal : str
        As it was stated; one clause if it has a single sentence.
    """

    def __init__(self, goal: str) -> None:
        self.items = [Item(clause) for clause in clauses(goal)] or [Item(goal)]
        self._place = 0

    @property
    def current(self) -> Item:
        """The clause to go on with."""
        return self.items[self._place]

    @property
    def last(self) -> bool:
        """Whether all the other clauses are over."""
        return all(item.over for item in self.items if item is not self.current)

    def read(self, text: str) -> None:
        """Take in instructions: what they say comes after the clause that led to them."""
        known = {item.clause for item in self.items}
        told = clauses(text)
        if not known.issuperset(told):
            self.items[self._place + 1 : self._place + 1] = [Item(clause) for clause in told]

    def undone(self, commands: Iterable[str]) -> bool:
        """Open clauses again of which a step could be done anew, that could not once it was done.

        Parameters
        ----------
        commands : iterable of str
            What has become possible.

        Returns
        -------
        bool
            Whether there is one.
        """
        fresh, found = list(commands), False
        for item in self.items:
            if item.over and item.done is not None and item.done.again(fresh) is not None:
                item.over = item.earned = False
                found = True
        return found

    def turn(self, *, over: bool) -> None:
        """Go on with the first clause that is not over, or the next one if this one is not.

        If there is none, begin again; what was rewarded is not done again, unless all was.

        Parameters
        ----------
        over : bool
            Whether the current one is; else it will be come back to.
        """
        self.current.over = over
        if all(item.over for item in self.items):
            earned = all(item.earned for item in self.items)
            for item in self.items:
                item.over = item.earned and not earned
        n, first = len(self.items), 0 if over else self._place + 1
        places = ((first + i) % n for i in range(n))
        self._place = next(place for place in places if not self.items[place].over)
