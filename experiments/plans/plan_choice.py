"""Chooses one of the plans that memory returns, or makes one of parts of others: what was learned
for one kind of goal is lent to another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from cvx.memory import Option
from cvx.types import Hit
from experiments.plans.attempt import plan_of
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
_UNFIT = 0.3  # and one that names something where it never stood, see `Lexicon.unfit`
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
    unfit : collection of (position, int)
        Where in commands which of the goal's things never stood, see `Lexicon.unfit`.
    """

    def __init__(
        self,
        steps: Iterable[str],
        goal: Sequence[str],
        n: int,
        *,
        proven: Collection[str] = (),
        spoken: Iterable[str] = (),
        unfit: Collection[tuple[tuple[str, int], int]] = (),
    ) -> None:
        known = (s for s in steps if all(slot_of(v) < n for v in variables_of(s)))
        self.steps, self.n, self.proven, self.unfit = list(known), n, proven, unfit
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
        used = {
            (part.position, slot_of(part.word))
            for subgoal in plan
            for part in arguments(subgoal)
            if part.word.startswith("{")
        }
        covered = {slot for _, slot in used}.issuperset(range(self.n))
        return (1.0 if covered else _UNNAMED) * (1.0 if used.isdisjoint(self.unfit) else _UNFIT)


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


Advised = Callable[[Iterable[str]], Mapping[str, Option]]

_SURE = 0.6  # what is worth more is not changed
_BEFORE = 0.9  # of the worth of a plan that is tried before: a changed one
_LENDERS = 2  # of how many plans parts are changed


class _Option(NamedTuple):
    worth: float
    place: int
    hit: Hit
    plan: tuple[str, ...]


def choose(
    hits: Sequence[Hit],
    lexicon: Lexicon,
    rejected: dict[str, frozenset[str]],
    advised: Advised | None = None,
    parts: Parts | None = None,
) -> tuple[Hit | None, tuple[str, ...]]:
    """Return the most promising plan that was not rejected, and whose it is.

    Parameters
    ----------
    hits : sequence of Hit
        Starts of attempts, best first; what follows them are plans.
    lexicon : Lexicon
        Knows the ways in which a plan can be read.
    rejected : dict of str to frozenset of str
        Signatures of plans, and the verbs of those that were carried out in vain: a plan of the
        same verbs comes last, unless it is longer; or the step that could not be done: so does a
        plan with that step. It is emptied where no other plan is left.
    advised : callable, optional
        What memory advises: from signatures of plans to what each is worth. Default the scores of
        the hits. Another reading that was never tried is worth what the plan is, by its odds.
    parts : Parts, optional
        The steps that plans may be changed by, which is thought of where memory advises and no plan
        that is left promises more.

    Returns
    -------
    tuple of (Hit or None, tuple of str)
        None and no subgoals where there is no plan at all.
    """
    readings = [
        (hit, -place, plan, odds, signature(plan_of(hit)))
        for place, hit in enumerate(hits)
        for plan, odds in (lexicon.readings(plan_of(hit)) if hit.successors else [((), 1.0)])
    ]
    told = advised({signature(one[2]) for one in readings}) if advised and readings else None
    options: dict[str, _Option] = {}
    fresh = [1.0]
    for hit, place, plan, odds, shown in readings:
        name, worth = signature(plan), hit.score * odds
        if told is not None:
            worth = told[name].value if told[name].trials else told[shown].value * odds
            if parts is not None and not told[name].trials:
                share = parts.share(plan)
                worth *= share
                # What won elsewhere is tried before it is changed, where nothing speaks against it.
                fresh += [worth] if odds == share == 1 else []
        if name not in options or options[name].worth < worth:
            options[name] = _Option(worth, place, hit, plan)
    if told is not None and advised is not None and parts is not None:
        _borrow(options, rejected, advised, parts, _BEFORE * min(fresh))
    left = [option for name, option in options.items() if name not in rejected]
    if not left:
        rejected.clear()
        left = list(options.values())
    other = [option for option in left if not _in_vain(option.plan, rejected)]
    best = max(other or left, key=lambda option: option[:2], default=None)
    return (None, ()) if best is None else (best.hit, best.plan)


def _in_vain(plan: Sequence[str], rejected: Mapping[str, frozenset[str]]) -> bool:
    """Whether all that a plan does was in vain, or a step of it could not be done."""
    steps = {signature([subgoal]) for subgoal in plan}
    return any(
        # To do it all twice is more than was in vain.
        (verbs(plan) == vain and len(plan) <= name.count(",") + 1) or (vain and vain <= steps)
        for name, vain in rejected.items()
    )


def _borrow(
    options: dict[str, _Option],
    rejected: Collection[str],
    advised: Advised,
    parts: Parts,
    most: float,
) -> None:
    """Add the plans that the best ones become with parts of others.

    Those without a step that the goal names are worth at most ``most``.
    """
    if max((o.worth for name, o in options.items() if name not in rejected), default=0) > _SURE:
        return
    ranked = sorted(options.values(), key=lambda option: option[:2], reverse=True)
    best: dict[frozenset[str], _Option] = {}
    for option in ranked:
        if len(best) < _LENDERS and len(option.plan) > 1:
            best.setdefault(verbs(option.plan), option)
    made = [(one, plan, odds) for one in best.values() for plan, odds in parts.lent(one.plan)]
    told = advised({signature(plan) for _, plan, _ in made}) if made else {}
    for one, plan, odds in made:
        name = signature(plan)
        worth = told[name].value if told[name].trials else min(odds, most * parts.order(odds))
        if name not in options or options[name].worth < worth:
            options[name] = _Option(worth, one.place, one.hit, plan)
