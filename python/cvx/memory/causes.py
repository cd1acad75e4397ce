"""Links that a memory draws itself, what they rest on, and what they tell: ``memory.causes``."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from cvx.arguments import a_text, an_event, checked, number, one_of, optional, whole
from cvx.causal.events import Link
from cvx.causal.evidence import Evidence
from cvx.causal.graph import CausalGraph
from cvx.causal.ground import StoreGround
from cvx.causal.judges import Judge, as_judge
from cvx.causal.linker import CauseSearch, Linked, Linker
from cvx.causal.narrative import Story
from cvx.causal.reflection import KINDS, Reflector
from cvx.memory.backend import Backend, Identity
from cvx.memory.writes import add_events
from cvx.store import Record
from cvx.types import AnEvent, Event


@cache
def _shipped() -> Judge:
    from cvx.causal.judges.statistical import StatisticalJudge

    return StatisticalJudge.shipped(prior=0.2)


class Causes:
    """Finds causes, counts what speaks for and against them, and tells what they amount to.

    Parameters
    ----------
    backend : Backend
        Of the memory.
    identity : Identity
        Who asks.

    Attributes
    ----------
    judge : Judge or None
        Who judges where a call names nobody; ``None`` for the statistical judge that ships with
        cvx, which expects one of five candidates to be a cause.
    """

    def __init__(self, backend: Backend, identity: Identity) -> None:
        self._backend, self._identity = backend, identity
        self.judge: Judge | None = None

    @checked(search=optional(one_of(CauseSearch, called="a CauseSearch")))
    def propose(
        self, effect: AnEvent, *, judge: object = None, search: CauseSearch | None = None
    ) -> Linked:
        """Look for what led to an event among earlier ones, and link what a judge confirms.

        The most similar and the most recent events are judged. A link's weight is the mean of a
        posterior over all that was said of it: the same judgement again raises it, a denial
        lowers it.

        Parameters
        ----------
        effect : Event, Hit or int
        judge : object, optional
            A ``Judge``, or a language model's client of any shape; default ``judge``.
        search : CauseSearch, optional
            Which events are judged.

        Returns
        -------
        Linked
            Links that were confirmed, causes that were denied, and those that nobody could judge,
            which are kept for ``retry``.

        Raises
        ------
        UnknownError
            No such event.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> drain = memory.add("the drain was blocked", timestamp=1)
        >>> flood = memory.add("the cellar flooded because the drain was blocked", timestamp=2)
        >>> [link.cause for link in memory.causes.propose(flood).links]
        [1]
        """
        asked = self._judge(judge)
        return self._linker().link(self._own(effect), asked, search or CauseSearch())

    def retry(self, judge: object = None) -> list[Linked]:
        """Ask again about every pair that nobody could judge; see ``propose``."""
        self._identity.need_root("retry")
        return self._linker().retry(self._judge(judge))

    def pending(self) -> list[tuple[int, int]]:
        """Return the pairs of cause and effect that nobody could judge, oldest first."""
        self._identity.need_root("pending")
        return self._linker().open_pairs()

    @checked(
        supports=number(0.0),
        counters=number(0.0),
        kind=a_text,
        evidence=a_text,
        note=a_text,
    )
    def observe(
        self,
        cause: AnEvent,
        effect: AnEvent,
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
        cause, effect : Event, Hit or int
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
        UnknownError, InvalidInputError
            No such event or kind; a link to itself; cases below 0.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> rain, flood = memory.add("rain"), memory.add("flood")
        >>> memory.causes.observe(rain, flood, supports=2).weight
        0.75
        >>> memory.causes.observe(rain, flood, counters=4, evidence="counterexample").weight
        0.375
        """

        def more(known: Evidence) -> Evidence:
            return known.add(evidence, supports=supports, counters=counters, note=note)

        ends = an_event("cause", cause), an_event("effect", effect)
        self._backend.check_own(ends, self._identity)
        return self._linker().observe(*ends, more, kind)

    @checked(effect_first=a_text)
    def graph(
        self,
        *,
        namespace: str | None = None,
        effect_first: str = "refuse",
    ) -> CausalGraph:
        """Return the causal graph over the memory's own events and links, as a namespace sees it.

        Parameters
        ----------
        namespace : str, optional
            Who asks; default the memory's own.
        effect_first : {"refuse", "flag", "allow"}, default "refuse"
            What becomes of a link to an effect that happened before its cause; see ``CausalGraph``.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> _ = memory.link(memory.add("rain"), memory.add("mud"), weight=0.5)
        >>> memory.causes.graph().predecessors(2)
        {1: 1}
        """
        asker, also = self._identity.seeing(namespace)
        ground = StoreGround(
            self._backend.record,
            lambda: self._backend.index.edge_kinds,
            namespace=asker,
            also=also,
            may_link=lambda ends: self._backend.check_own(ends, self._identity),
        )
        return CausalGraph(ground, effect_first=effect_first)

    @checked(max_depth=whole(1), after=whole(0))
    def story(
        self,
        event: AnEvent,
        *,
        namespace: str | None = None,
        max_depth: int = 5,
        after: int = 2,
    ) -> Story:
        """Return an event with what led to it and what came of it; see ``CausalGraph.story``."""
        return self.graph(namespace=namespace).story(
            an_event("event", event), max_depth, after=after
        )

    @checked(
        reflector=optional(one_of(Reflector, called="a Reflector")), timestamp=optional(whole())
    )
    def reflect(
        self,
        reflector: Reflector | None = None,
        *,
        namespace: str | None = None,
        timestamp: int | None = None,
    ) -> list[int]:
        """Add what is to be learned of many events, once enough of weight has come together.

        Parameters
        ----------
        reflector : Reflector, optional
            When it is time and who writes; by default counts, from a summed importance of 100 up.
        namespace : str, optional
            Whose events are looked at, and whose the reflections are; default the memory's own.
        timestamp : int, optional
            Of the reflections; default now.

        Returns
        -------
        list of int
            The new events, of kind "reflection"; the ids of the events that each rests on are its
            ``metadata["sources"]``.

        Examples
        --------
        >>> from cvx.causal import Reflector
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> for day in range(4):
        ...     _ = memory.add(f"the well is dry, day {day}", timestamp=day, salience=0.8)
        >>> made = memory.causes.reflect(Reflector(threshold=30))
        >>> memory.get(made[0]).metadata
        {'sources': [1, 2, 3, 4]}
        """
        namespace = self._identity.named(namespace)
        now = self._backend.record.now() if timestamp is None else timestamp
        seen = [
            event if event.kind in KINDS else replace(event, kind="event")
            for event in active_events(self._backend.record, namespace)
        ]
        made = (reflector or Reflector()).reflect(seen, now)
        return add_events(self._backend, made) if made else []

    def _own(self, event: AnEvent) -> Event:
        found = self._backend.event(an_event("effect", event), self._identity)
        self._backend.check_own([found.id], self._identity)
        return found

    def _judge(self, given: object) -> Judge:
        if given is not None:
            return as_judge(given)
        return _shipped() if self.judge is None else self.judge

    def _linker(self) -> Linker:
        return Linker(self._backend.record, lambda: self._backend.index)


def active_events(record: Record, namespace: str) -> list[Event]:
    """Return the active events of a namespace."""
    found = record.query(
        "SELECT event_id FROM events WHERE namespace = ? AND state = 'active'", (namespace,)
    )
    return record.events(row[0] for row in found)
