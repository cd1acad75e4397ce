"""Reputation of sources in recall: sources whose advice keeps failing are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from cvx.statistics import Beta
from cvx.store.rows import MOST_ID

SOURCES = "sources:"
"""The state of a namespace is kept under this and its name."""
_HALF = 0.5
"""Advice fails where it helps in less than so much of its cases."""
_UNKNOWN = 0.25
"""The same where nothing is known of the memories of whoever asks."""
MOST_SOURCES = 1_000
"""Cases of so many sources are kept: all are written at each feedback, some 40 bytes a source."""
_LEAST_KNOWN = 2
"""Of fewer cases of theirs nothing is concluded."""
_TAIL = 0.02
"""How much of a belief may lie beyond the end that is compared. What is left out is shown only to
whoever names it, so that a mistake would last."""


@dataclass(slots=True)
class Reputation:
    """What feedback said of the advice of sources in a namespace, and what episodes found of it.

    A labelled source is left out while its advice helped in clearly less than half of its cases,
    and clearly less often than the unlabelled memories did, those of whoever asks. Only its own
    cases speak against a source, and of its failures those in which no other one was followed:
    whoever controls the feedback on one source brings no other one out.

    Attributes
    ----------
    cases : dict of str to list of int
        By source: how often its advice helped, and how often it failed; those that were followed
        last come last. Of more than 1,000 the first that is not left out is forgotten.
    found_false : list of str
        Sources that advice leaves out; see `cvx.learn.advisor.source_trust.SourceTrust`.
    forgiven : list of str
        Those of them that recall shows again, since it was reset.
    """

    cases: dict[str, list[int]] = field(default_factory=dict)
    found_false: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)

    def count(self, sources: Collection[str], *, helped: bool, by: int = 1) -> None:
        """Count one case: advice of these sources was followed, and helped or failed.

        ``by=-1`` takes it back.
        """
        for source in sources if helped or len(sources) == 1 else ():
            case = self.cases.pop(source, [0, 0])
            case[not helped] = min(max(0, case[not helped] + by), MOST_ID)
            self.cases[source] = case
        while len(self.cases) > MOST_SOURCES:
            out = self.left_out()
            labelled = [source for source in self.cases if source]
            del self.cases[next((one for one in labelled if one not in out), labelled[0])]

    def find_false(self, sources: Collection[str]) -> None:
        """Take over which sources advice leaves out."""
        self.found_false = sorted(sources)
        self.forgiven = [source for source in self.forgiven if source in sources]

    def reset(self) -> None:
        """Forget every case, and show again what was left out up to now."""
        self.cases, self.forgiven = {}, [*self.found_false]

    def left_out(self) -> dict[str, str]:
        """Return the sources that recall leaves out, each with the reason in words."""
        false = {*self.found_false} - {*self.forgiven}
        out = dict.fromkeys(sorted(false), "others found otherwise in episodes")
        own, bar = self.cases.get("", [0, 0]), _UNKNOWN
        if sum(own) >= _LEAST_KNOWN:
            bar = min(_HALF, _chance(*own).quantile(_TAIL))
        for source, (helped, failed) in self.cases.items():
            # Whose mean is above has nothing to be worked out.
            below = source and 1 + helped < bar * (2 + helped + failed)
            if below and _chance(helped, failed).quantile(1.0 - _TAIL) < bar:
                out[source] = f"its advice helped {helped} of {helped + failed} times"
        return out

    def told(self) -> dict[str, dict[str, Any]]:
        """Return, by source, how often its advice helped and failed, and whether it is left out."""
        out, none = self.left_out(), (0, 0)
        return {
            source: {
                "helped": self.cases.get(source, none)[0],
                "failed": self.cases.get(source, none)[1],
                "left_out": source in out,
            }
            for source in sorted({*self.cases, *out})
        }

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return what ``to_dict`` gave.

        Raises
        ------
        TypeError, ValueError
            Something else, as a file from elsewhere may hold.
        """
        made = cls(**stored)
        numbers = [one for pair in made.cases.values() for one in pair]
        names = [*made.cases, *made.found_false, *made.forgiven]
        if (
            any(len(pair) != 2 for pair in made.cases.values())
            or not all(type(one) is int and 0 <= one <= MOST_ID for one in numbers)
            or not all(isinstance(name, str) for name in names)
        ):
            raise ValueError("no counts of what helped and failed, by source")
        return made


def _chance(helped: int, failed: int) -> Beta:
    return Beta(1.0 + helped, 1.0 + failed)
