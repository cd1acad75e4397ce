"""What was done for a clause, over all attempts at it, and what of that lasted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cvx.plans.binding import Binding, signature
from cvx.plans.lexicon import Lexicon
from cvx.plans.words import variables_of


class Deed(NamedTuple):
    """One command that was given for a clause.

    Attributes
    ----------
    command : str
    moment : str
        In which it was given, see `moment`.
    opened : frozenset of str
        The commands that became possible by it.
    """

    command: str
    moment: str
    opened: frozenset[str]


def lasting(
    deeds: Iterable[Deed], slots: Sequence[str], lexicon: Lexicon
) -> list[tuple[str, str]]:
    """Return the moments and the abstract commands of what was done to a goal's things, and lasted.

    Where a deed made possible to do an earlier one anew, and that was done, the two cancel out:
    of take, clean, put down, take, put there remains take, clean, put there.

    Parameters
    ----------
    deeds : iterable of Deed
        In the order in which they were done.
    slots : sequence of str
        The names of the goal's things, see `Lexicon.slots`.
    lexicon : Lexicon

    Returns
    -------
    list of (str, str)
    """
    binding = Binding(slots, lexicon)
    left: list[tuple[Deed, str]] = []
    for deed in deeds:
        if not variables_of(action := binding.abstract(deed.command)):
            continue
        does = signature([action])
        undid = next((n for n, (d, _) in enumerate(left) if deed.command in d.opened), 0)
        if any(signature([earlier]) == does for _, earlier in left[:undid]):
            left.pop(undid)
        else:
            left.append((deed, action))
    binding = Binding(slots, lexicon)
    return [(deed.moment, binding.abstract(deed.command)) for deed, _ in left]
