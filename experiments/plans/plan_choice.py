"""Chooses one of the plans that memory returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cvx.types import Hit
from experiments.plans.attempt import plan_of
from experiments.plans.binding import signature, verbs
from experiments.plans.lexicon import Lexicon


def choose(
    hits: Sequence[Hit],
    lexicon: Lexicon,
    nouns_of: Callable[[Hit], Mapping[int, str]],
    rejected: dict[str, frozenset[str]],
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
        same verbs comes last. It is emptied where no other plan is left.

    Returns
    -------
    tuple of (Hit or None, tuple of str)
        None and no subgoals where there is no plan at all.
    """
    options: dict[str, tuple[float, int, Hit, tuple[str, ...]]] = {}
    for place, hit in enumerate(hits):
        if not hit.successors:
            options.setdefault("", (hit.score, -place, hit, ()))
        for plan, odds in lexicon.readings(plan_of(hit), nouns_of(hit)):
            known = options.get(signature(plan))
            if known is None or known[0] < hit.score * odds:
                options[signature(plan)] = (hit.score * odds, -place, hit, plan)
    left = [option for name, option in options.items() if name not in rejected]
    if not left:
        rejected.clear()
        left = list(options.values())
    vain = set(rejected.values())
    other = [option for option in left if verbs(option[3]) not in vain]
    best = max(other or left, key=lambda option: option[:2], default=None)
    return (None, ()) if best is None else best[2:]
