"""Plans made of parts of others: what was learned for one kind of goal, lent to another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from experiments.plans.binding import signature, verbs
from experiments.plans.lexicon import Lexicon
from experiments.plans.words import arguments, shape, slot_of, unnumbered, variables_of, words

Offer = tuple[str, str, str]

_LENT = 0.15  # how likely another plan's change by one step is the right one; set by hand
_AGAIN = 0.3  # the same of doing it all with another instance: that goes on where the plan ended
_NAMED = 0.6  # the same where a word of the goal is the step's verb
_SHORT = 0.98  # for each step, so that among equals the shorter plan is tried first
_LACKING = 0.5  # what a plan is worth that lacks such a step, until it is tried for such a goal
_UNNAMED = 0.3  # and one that does nothing with something that the goal names
_PROVEN = 1.5  # how much likelier a step is that ever was part of a plan that won


class Parts:
    """The steps that may be put into plans for a goal.

    Parameters
    ----------
    steps : iterable of str
        As `parts_of` gives them.
    goal : sequence of str
        The words of the goal that name no thing.
    n : int
        How many things the goal names.
    proven : collection of str, optional
        The signatures of steps that ever were part of a plan that won.
    spoken : iterable of str, optional
        The words of all goals that were reached.
    """

    def __init__(
        self,
        steps: Iterable[str],
        goal: Sequence[str],
        n: int,
        *,
        proven: Collection[str] = (),
        spoken: Iterable[str] = (),
    ) -> None:
        known = (s for s in steps if all(slot_of(v) < n for v in variables_of(s)))
        self.steps, self.n, self.proven = list(known), n, proven
        self.named = verbs(self.steps).intersection(goal)
        self.unsaid = set(spoken).difference(goal)

    def lent(self, plan: Sequence[str]) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield a plan done twice, with one step more, or another one; with how likely each is.

        Examples
        --------
        >>> for plan, odds in Parts(["dye {0.0}"], ["dye"], 1).lent(["grab {0.0}", "hang {0.0}"]):
        ...     print(plan, round(odds, 2))
        ('grab {0.0}', 'hang {0.0}', 'grab {0.1}', 'hang {0.1}') 0.28
        ('grab {0.0}', 'dye {0.0}', 'hang {0.0}') 0.56
        ('grab {0.0}', 'dye {0.0}') 0.58
        """
        made = [((*plan, *(_another(subgoal, plan) for subgoal in plan)), _AGAIN)]
        done = {signature([subgoal]) for subgoal in plan}
        for part in self.steps:
            if signature([part]) not in done:
                likely = _LENT * (_PROVEN if signature([part]) in self.proven else 1)
                odds = _NAMED if words(part)[0] in self.named else likely
                about = variables_of(part)[0]
                place = next((i for i, s in enumerate(plan, 1) if about in variables_of(s)), 1)
                made.append(((*plan[:place], part, *plan[place:]), odds))
                made += [((*plan[:i], part, *plan[i + 1 :]), odds) for i in range(1, len(plan))]
        yield from ((one, odds * self._about(one) * _SHORT ** len(one)) for one, odds in made)

    def share(self, plan: Sequence[str]) -> float:
        """Return how much of its worth elsewhere a plan has for the goal.

        It is worth less where it lacks a step that the goal names, and where it has one that goals
        name which want it.
        """
        done = verbs(plan)
        fits = self.named <= done and self.unsaid.isdisjoint(done)
        return self._about(plan) * (1.0 if fits else _LACKING)

    def order(self, odds: float) -> float:
        """Return odds as a share of those that no step has which the goal names; inf for it."""
        return odds / _AGAIN if odds <= _AGAIN else float("inf")

    def _about(self, plan: Sequence[str]) -> float:
        named = {slot_of(name) for subgoal in plan for name in variables_of(subgoal)}
        return 1.0 if named.issuperset(range(self.n)) else _UNNAMED


def offers(commands: Iterable[str], slots: Sequence[str]) -> set[Offer]:
    """Return what could be done with a goal's things: a shape, which of them, with what else.

    Examples
    --------
    >>> sorted(offers(["dye hat 1 with vat 2", "open bin 1"], ["hat", "peg"]))
    [('dye # with #', '{0.0}', 'vat')]
    """
    found = set[Offer]()
    for command in set(map(unnumbered, commands)):
        first, other, *_ = [*(part.word for part in arguments(command)), "", ""]
        if first in slots:
            own = f"{{{slots.index(other)}.0}}" if other in slots else other
            found.update((shape(command), f"{{{slots.index(first)}.0}}", o) for o in (other, own))
    return found


def parts_of(offered: Iterable[Offer], lexicon: Lexicon) -> Iterator[str]:
    """Yield the steps that what could be done with goals' things may have been, in order.

    What could only ever be done with one other kind of thing is done with that, else with what the
    goal names.
    """
    for (form, first), group in groupby(sorted(offered), key=lambda offer: offer[:2]):
        others = [other for _, _, other in group]
        named = [other for other in others if other.startswith("{")]
        nouns = len(others) - len(named)
        if lexicon.aimed(form, unused=True):
            gaps = iter([first, named[0] if named and nouns > 1 else others[0]])
            yield " ".join(next(gaps, "") if w == "#" else w for w in form.split()).strip()


def _another(subgoal: str, plan: Sequence[str]) -> str:
    """Return a subgoal about another instance of the goal's first thing."""
    own = {name for step in plan for name in variables_of(step) if not slot_of(name)}
    names = {name: f"{{0.{number}}}" for number, name in enumerate(sorted(own), len(own))}
    return " ".join(names.get(word, word) for word in words(subgoal))
