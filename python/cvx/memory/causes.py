"""Links that the memory draws itself, and what they rest on."""

from __future__ import annotations

from functools import cache

from cvx.arguments import a_text, an_event, checked, number, one_of, optional
from cvx.causal.events import Link
from cvx.causal.evidence import Evidence
from cvx.causal.judges import Judge, as_judge
from cvx.causal.linker import CauseSearch, Linked, Linker
from cvx.memory.base import Base


@cache
def _shipped() -> Judge:
    from cvx.causal.judges.statistical import StatisticalJudge

    return StatisticalJudge.shipped(prior=0.2)


class Causes(Base):
    """The half that finds causes."""

    causal_judge: Judge | None = None
    """Who judges where a call names nobody; ``None`` for the statistical judge that ships with cvx,
    which expects one of five candidates to be a cause."""

    @checked(event_id=an_event, search=optional(one_of(CauseSearch, called="a CauseSearch")))
    def link_causes(
        self, event_id: int, *, judge: object = None, search: CauseSearch | None = None
    ) -> Linked:
        """Look for what led to an event among earlier ones, and link what a judge confirms.

        The most similar and the most recent events are judged. A link's weight is the mean of a
        posterior over all that was said of it: the same judgement again raises it, a denial
        lowers it.

        Parameters
        ----------
        event_id : int
            The effect.
        judge : object, optional
            A ``Judge``, or a language model's client of any shape; default ``causal_judge``.
        search : CauseSearch, optional
            Which events are judged.

        Returns
        -------
        Linked
            Links that were confirmed, causes that were denied, and those that nobody could judge,
            which are kept for ``retry_causes``.

        Raises
        ------
        UnknownEventError
            No such event.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> drain = memory.add("the drain was blocked", timestamp=1)
        >>> flood = memory.add("the cellar flooded because the drain was blocked", timestamp=2)
        >>> [link.cause for link in memory.link_causes(flood).links]
        [1]
        """
        asked = self._judge(judge)
        return self._linker().link(self.get(event_id), asked, search or CauseSearch())

    def retry_causes(self, judge: object = None) -> list[Linked]:
        """Ask again about every pair that nobody could judge; see ``link_causes``."""
        return self._linker().retry(self._judge(judge))

    def unjudged_causes(self) -> list[tuple[int, int]]:
        """Return the pairs of cause and effect that nobody could judge, oldest first."""
        return self._linker().open_pairs()

    @checked(
        cause=an_event,
        effect=an_event,
        supports=number(0.0),
        counters=number(0.0),
        kind=a_text,
        evidence=a_text,
        note=a_text,
    )
    def observe(
        self,
        cause: int,
        effect: int,
        *,
        supports: float = 0.0,
        counters: float = 0.0,
        kind: str = "caused",
        evidence: str = "repetition",
        note: str = "",
    ) -> Link:
        """Count cases for or against a link, which moves its weight; it is made if it is not.

        Parameters
        ----------
        cause, effect : int
            Events.
        supports, counters : float, default 0.0
            Cases for and against it, at least 0.
        kind : str, default "caused"
            Kind of the edge.
        evidence : str, default "repetition"
            What kind of evidence it is; see ``cvx.causal.Observation``.
        note : str
            What it rests on.

        Returns
        -------
        Link
            With the weight that follows.

        Raises
        ------
        UnknownEventError, UnknownEdgeKindError, InvalidEdgeError, InvalidParameterError
            No such event or kind; a link to itself; cases below 0.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> rain, flood = memory.add("rain"), memory.add("flood")
        >>> memory.observe(rain, flood, supports=2).weight
        0.75
        >>> memory.observe(rain, flood, counters=4, evidence="counterexample").weight
        0.375
        """

        def more(known: Evidence) -> Evidence:
            return known.add(evidence, supports=supports, counters=counters, note=note)

        return self._linker().observe(cause, effect, more, kind)

    def _judge(self, given: object) -> Judge:
        if given is not None:
            return as_judge(given)
        return _shipped() if self.causal_judge is None else self.causal_judge

    def _linker(self) -> Linker:
        return Linker(self.record, lambda: self.index)
