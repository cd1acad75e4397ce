"""Plans with variables: replaces names by variables, binds them to things in a game, and says
which of the commands that were given lasted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from experiments.plans.lexicon import Lexicon
from experiments.plans.words import (
    Argument,
    arguments,
    renamed,
    shape,
    slot_of,
    variables_of,
    words,
)


class Binding:
    """Which instances the variables of a plan stand for in one game.

    A variable ``{i.n}`` is the n-th different instance of the goal's i-th name: a demonstration
    thereby tells whether it wanted a fresh instance or the same again.

    Parameters
    ----------
    slots : sequence of str
        The names of the goal's things, in its order.
    lexicon : Lexicon
        Knows at which places of commands the goal's things are named.
    """

    def __init__(self, slots: Sequence[str], lexicon: Lexicon) -> None:
        self.slots = list(slots)
        self.lexicon = lexicon
        self.names: dict[str, str] = {}

    def _wanted(self, command: str, subgoal: str | None) -> list[Argument]:
        named = [a for a in arguments(command) if a.word in self.slots]
        if subgoal is None or shape(command) == shape(subgoal):
            # A step that was lent has a shape that nobody demonstrated.
            lent = subgoal is not None
            return [a for a in named if self.lexicon.aimed(a.position, unused=lent)]
        # Another way to say it: what the goal gave a name is taken to be what the subgoal means.
        return named[: len(variables_of(subgoal))]

    def abstract(self, command: str, subgoal: str | None = None) -> str:
        """Return a command with variables in the place of the goal's things, and bind them.

        Parameters
        ----------
        command : str
        subgoal : str, optional
            The abstract command that it does.
        """
        named = {}
        for part in self._wanted(command, subgoal):
            if part.instance not in self.names:
                slot = self.slots.index(part.word)
                number = sum(name.startswith(f"{{{slot}.") for name in self.names.values())
                self.names[part.instance] = f"{{{slot}.{number}}}"
            named[part.word] = self.names[part.instance]
        return renamed(command, named)

    def fits(self, command: str, subgoal: str) -> bool:
        """Whether a command does what an abstract one says, with the bindings so far."""
        wanted, variables = self._wanted(command, subgoal), variables_of(subgoal)
        if words(command)[0] != words(subgoal)[0] or len(wanted) != len(variables):
            return False
        named = {a.position: a.word for a in arguments(command)}
        for part in arguments(subgoal):
            free = part.word.startswith("{") or not self.lexicon.fixed(part.position)
            if not free and named.get(part.position, part.word) != part.word:
                return False
        bound = {name: instance for instance, name in self.names.items()}
        return all(
            self.noun(name) == part.word
            and bound.get(name, part.instance) == part.instance
            and self.names.get(part.instance, name) == name
            for name, part in zip(variables, wanted, strict=True)
        )

    def noun(self, variable: str) -> str | None:
        """Return the goal's name that a variable is an instance of."""
        place = slot_of(variable)
        return self.slots[place] if place < len(self.slots) else None


def signature(plan: Sequence[str]) -> str:
    """Return a plan without the kinds of places it happened to go through."""
    return ", ".join(
        " ".join(w for i, w in enumerate(words(p)) if i == 0 or w.startswith("{")) for p in plan
    )


def verbs(plan: Iterable[str]) -> frozenset[str]:
    """Return the first words of a plan's commands."""
    return frozenset(words(p)[0] for p in plan)


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
