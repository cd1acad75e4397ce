"""Chooses one of the plans that memory returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from cvx.memory import Option
from cvx.types import Hit
from experiments.plans.attempt import plan_of
from experiments.plans.binding import signature, verbs
from experiments.plans.lending import Parts
from experiments.plans.lexicon import Lexicon

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
    nouns_of: Callable[[Hit], Mapping[int, str]],
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
    nouns_of : callable
        What the variables of a hit's plan stood for.
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
        for plan, odds in (
            lexicon.readings(plan_of(hit), nouns_of(hit)) if hit.successors else [((), 1.0)]
        )
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
