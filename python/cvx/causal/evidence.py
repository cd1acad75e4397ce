"""What speaks for and against a link, and the weight that follows from it.

A link's weight is the mean of a Beta posterior: it rises with every support and falls with every
counter-example, the faster the less was known before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import NamedTuple

from cvx.errors import InvalidInputError, InvalidParameterError

KINDS = ("stated", "judged", "precedence", "repetition", "counterexample", "granger")


class Observation(NamedTuple):
    """All evidence of one kind.

    Attributes
    ----------
    kind : str
        "stated" (somebody said so), "judged" (a judge did), "precedence" (one came before the
        other), "repetition" (it happened again), "counterexample" (the cause came, the effect did
        not), "granger" (the past of one series helps to predict the other).
    supports, counters : float
        What it counts for and against the link, in cases.
    note : str
        What it rests on.
    """

    kind: str
    supports: float
    counters: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence on one link.

    Parameters
    ----------
    observations : tuple of Observation
        At most one of each kind.
    prior_mean : float, default 0.5
        The weight of a link of which nothing is known, in [0, 1].
    prior_strength : float, default 2.0
        How many cases that is worth; above 0.

    Examples
    --------
    >>> evidence = Evidence().add("repetition", supports=2)
    >>> evidence.weight
    0.75
    >>> evidence.add("counterexample", counters=4).weight
    0.375
    """

    observations: tuple[Observation, ...] = ()
    prior_mean: float = 0.5
    prior_strength: float = 2.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.prior_mean <= 1.0:
            raise InvalidParameterError(f"prior_mean is {self.prior_mean}: give one in [0, 1]")
        if not self.prior_strength > 0.0:
            raise InvalidParameterError(
                f"prior_strength is {self.prior_strength}: give one above 0"
            )

    @property
    def supports(self) -> float:
        """Cases for the link."""
        return sum(one.supports for one in self.observations)

    @property
    def counters(self) -> float:
        """Cases against the link."""
        return sum(one.counters for one in self.observations)

    @property
    def weight(self) -> float:
        """The mean of the posterior, in [0, 1]."""
        cases = self.supports + self.counters + self.prior_strength
        return (self.supports + self.prior_strength * self.prior_mean) / cases

    def add(
        self, kind: str, *, supports: float = 0.0, counters: float = 0.0, note: str = ""
    ) -> Evidence:
        """Return the evidence with more of one kind; a new note replaces an older one.

        Raises
        ------
        InvalidParameterError
            An unknown kind, or cases below 0.
        """
        if kind not in KINDS:
            raise InvalidParameterError(f"kind is {kind!r}: give one of {', '.join(KINDS)}")
        for name, value in (("supports", supports), ("counters", counters)):
            if not 0.0 <= value < float("inf"):
                raise InvalidParameterError(f"{name} is {value}: give a finite number from 0 up")
        known = {one.kind: one for one in self.observations}
        old = known.get(kind, Observation(kind, 0.0, 0.0))
        known[kind] = Observation(
            kind, old.supports + supports, old.counters + counters, note or old.note
        )
        return replace(self, observations=tuple(known.values()))

    @classmethod
    def of(cls, weight: float, text: str) -> Evidence:
        """Return the evidence of a link that has a weight.

        Where nobody has counted yet, the weight that somebody gave it is what is expected of it.

        Examples
        --------
        >>> Evidence.of(0.8, "the plumber").weight
        0.8
        """
        found = cls.from_text(text)
        counted = found.supports + found.counters > 0 or found.to_text() == text
        return found if counted else replace(found, prior_mean=weight)

    def to_text(self) -> str:
        """Return it as the ``evidence`` of an edge keeps it: JSON."""
        return json.dumps(
            {
                "prior": [self.prior_mean, self.prior_strength],
                "observations": [list(one) for one in self.observations],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_text(cls, text: str) -> Evidence:
        """Read what ``to_text`` wrote; words of a person become the note of what was stated.

        Raises
        ------
        InvalidInputError
            JSON of this form whose numbers cannot be.
        """
        try:
            read = json.loads(text)
            mean, strength = read["prior"]
            rows = [Observation(*row) for row in read["observations"]]
        except (ValueError, TypeError, LookupError):
            return cls().add("stated", note=text) if text.strip() else cls()
        made = cls(prior_mean=mean, prior_strength=strength)
        for row in rows:
            if row.kind not in KINDS:
                raise InvalidInputError(f"evidence of kind {row.kind!r}: written by a later cvx")
            made = made.add(row.kind, supports=row.supports, counters=row.counters, note=row.note)
        return made

    def __str__(self) -> str:
        return "; ".join(_phrase(one) for one in self.observations) or "nothing is known"


def _phrase(one: Observation) -> str:
    counts = [
        f"{value:g} {name}"
        for name, value in (("for", one.supports), ("against", one.counters))
        if value
    ]
    said = f" ({one.note})" if one.note else ""
    return f"{one.kind} {', '.join(counts) or '0'}{said}"
