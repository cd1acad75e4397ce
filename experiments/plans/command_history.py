"""The commands given for a clause in all attempts, and which of their effects lasted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from experiments.plans.binding import Binding, signature
from experiments.plans.lexicon import Lexicon
from experiments.plans.words import variables_of


class PastCommand(NamedTuple):
    """One command that was given for a clause.

    Attributes
    ----------
    command : str
    attempt : int
        In which attempt.
    aim : str or None
        The subgoal that it did; None if it was explored.
    opened : frozenset of str
        The commands that became possible by it.
    spent : bool
        Whether it was not possible any more then.
    """

    command: str
    attempt: int
    aim: str | None
    opened: frozenset[str]
    spent: bool

    def allowed(self, deed: PastCommand) -> bool:
        """Whether it made a deed possible, other than by the plan that goes on with that."""
        own_plan = self.aim is not None and self.attempt == deed.attempt
        return deed.command in self.opened and not own_plan


def settled(
    deeds: Iterable[PastCommand], slots: Sequence[str], lexicon: Lexicon
) -> list[PastCommand]:
    """Return deeds without those that cancelled out.

    Two do where each made the other possible again, as taking a thing and putting it back do.
    Where a deed made it possible to do an earlier one anew, which was spent, and that was done
    next, these two do as well: of take, clean, put down, take, put there remains take, clean, put
    there. What was done to another thing in between may have needed that, so then all is kept; so
    is what one and the same plan says. A deed that was there already and made nothing possible
    is left out.

    Parameters
    ----------
    deeds : iterable of PastCommand
        In the order in which they were done.
    slots : sequence of str
        The names of the goal's things, see `Lexicon.slots`.
    lexicon : Lexicon
    """
    binding = Binding(slots, lexicon)
    left: list[tuple[PastCommand, str]] = []
    for deed in deeds:
        action = binding.abstract(deed.command, deed.aim)
        does, about = signature([action]), set(variables_of(action))
        before = left[-1][0] if left else None
        if before is not None and before.allowed(deed) and about:
            if before.spent and before.command in deed.opened:
                left.pop()
                continue
            anew = any(d.spent and signature([earlier]) == does for d, earlier in left)
            if anew and about.issubset(variables_of(left[-1][1])):
                left.pop()
                continue
        if deed.opened or all(earlier != action for _, earlier in left):
            left.append((deed, action))
    return [deed for deed, _ in left]


def lasting(
    deeds: Iterable[PastCommand], slots: Sequence[str], lexicon: Lexicon
) -> list[tuple[str, str]]:
    """Return what was done to a goal's things and lasted, as it was said and abstract.

    Parameters
    ----------
    deeds, slots, lexicon
        As for `settled`.

    Returns
    -------
    list of (str, str)
    """
    binding = Binding(slots, lexicon)
    about = [d for d in deeds if variables_of(binding.abstract(d.command, d.aim))]
    binding = Binding(slots, lexicon)
    return [
        (deed.command, binding.abstract(deed.command, deed.aim))
        for deed in settled(about, slots, lexicon)
    ]
