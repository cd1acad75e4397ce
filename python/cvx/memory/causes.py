"""``memory.causes``: proposes, confirms, rejects, observes and tells causal links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cvx.arguments import (
    a_share,
    a_text,
    among,
    an_event,
    checked,
    number,
    one_of,
    optional,
    whole,
)
from cvx.causal import CausalGraph, Evidence, Reached, Reflector
from cvx.causal import Story as Told
from cvx.causal.graph import digraph
from cvx.causal.graph_data import HIDDEN, GraphInRecord
from cvx.causal.judges import as_judge
from cvx.causal.linker import Linker
from cvx.causal.reflection import KINDS
from cvx.errors import UnjudgedWarning, warn
from cvx.escaping import html_text
from cvx.memory.namespace_access import Identity
from cvx.memory.resources import Resources, noun_repr
from cvx.memory.write_verbs import add_events
from cvx.store import Record
from cvx.store.row_validation import explains
from cvx.types import AnEvent, Edge, Event

if TYPE_CHECKING:
    import polars as pl

_an_edge = one_of(Edge, called="an edge that link, propose or pending returned")


@explains(lambda causes: causes._shared.record)
class Causes:
    """Finds causes, counts what speaks for and against them, and tells what they amount to.

    Parameters
    ----------
    shared : Resources
        Of the memory.
    identity : Identity
        Who asks.
    meant : callable
        From an event or words, and the namespace that asks, to the event that is meant.

    Attributes
    ----------
    judge : object or None
        Who is asked where a call of ``propose`` names nobody: a ``Judge``, or a language model's
        client; by default nobody, and the pair model that ships with cvx decides alone.
    """

    __repr__ = noun_repr

    def __init__(
        self,
        shared: Resources,
        identity: Identity,
        meant: Callable[[AnEvent | str, str | None], Event],
    ) -> None:
        self._shared, self._identity, self._meant = shared, identity, meant
        self.judge: object = None
        self._unjudged = 0

    @checked(k=whole(1), draw=optional(a_share))
    def propose(
        self, effect: AnEvent | str, k: int = 5, *, judge: object = None, draw: float | None = 0.5
    ) -> list[Edge]:
        """Look for what led to an event among earlier ones; link what is likely.

        The chance that is told is calibrated: of links told at 60%, about that share are causes
        (``docs/causal.md`` says on what it was measured). What somebody stated, confirmed or
        rejected is not proposed.

        Parameters
        ----------
        effect : Event, Hit, int or str
            What is to be explained; of words, the event that a recall finds first, as ``why``
            takes them: the ``effect`` of each link says which.
        k : int, default 5
            How many causes at the most, at least 1.
        judge : object, optional
            Who is asked about each of them: a ``Judge``, or a language model's client of any
            shape; default ``judge``. A clear word decides, and the pair model says how surely.
        draw : float or None, default 0.5
            From this chance up a link is drawn (state "judged"); weaker ones are kept as
            candidates that no ranking follows and no story tells. ``None`` draws none.

        Returns
        -------
        list of Edge
            The likeliest first, each with its ``probability``, ``why`` and ``state``: "judged",
            "candidate", or "unjudged" where the judge had no clear word. What has a chance below
            5% is left out.

        Raises
        ------
        UnknownError
            No such event, or none that fits the words.
        InvalidInputError
            Something that cannot be asked; a value outside its bounds.

        Warns
        -----
        UnjudgedWarning
            Once, where a judge has had no clear word on the first ten pairs.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> drain = memory.add("the drain was blocked", timestamp=1)
        >>> flood = memory.add("the cellar flooded because the drain was blocked", timestamp=2)
        >>> [(link.cause, link.state) for link in memory.causes.propose(flood)]
        [(1, 'judged')]
        """
        asked = self.judge if judge is None else judge
        who = None if asked is None else as_judge(asked)
        made = self._linker().propose(self._own(effect), k, who, draw)
        if who is not None and made:
            self._warn_if_unjudged(made, who.name)
        return made

    @checked(state=among(*HIDDEN))
    def pending(self, state: str = "candidate") -> list[Edge]:
        """Return what is kept but told to nobody, the likeliest first.

        Parameters
        ----------
        state : {"candidate", "unjudged", "rejected"}, default "candidate"
            Too unlikely to be told; without a clear word of the judge; or refused by a person.
        """
        seen = self.graph()
        return [
            link
            for link in self._linker().kept(state)
            if link.cause in seen and link.effect in seen
        ]

    @checked(edge=_an_edge, why=optional(a_text))
    def confirm(self, edge: Edge, why: str | None = None) -> Edge:
        """Take a link, or a candidate, for certain; it is told without "probably" from then on.

        Parameters
        ----------
        edge : Edge
            Of ``propose``, ``pending`` or a story.
        why : str, optional
            How the one led to the other; default what was said before.
        """

        def confirmed(link: Edge) -> Edge:
            evidence = Evidence.of(link.weight, link.evidence).confirmed()
            return _with(link, evidence, "confirmed", why)

        return self._settled(edge.cause, edge.effect, confirmed)

    @checked(edge=_an_edge, why=optional(a_text))
    def reject(self, edge: Edge, why: str | None = None) -> Edge:
        """Say that one event did not lead to the other: that is never proposed or told again.

        Parameters
        ----------
        edge : Edge
            Of ``propose``, ``pending`` or a story. ``memory.link`` states the opposite again.
        why : str, optional
            Why not.
        """
        return self._settled(
            edge.cause,
            edge.effect,
            lambda link: replace(link, weight=0.0, state="rejected", why=why or "", recorded=None),
        )

    @checked(supports=number(0.0), counters=number(0.0))
    def observe(
        self, cause: AnEvent, effect: AnEvent, *, supports: float = 0.0, counters: float = 0.0
    ) -> Edge:
        """Count cases for or against a link, which moves its weight; it is made if it is not.

        A link that rests on nothing but cases is a guess: below .5 it is a candidate.

        Parameters
        ----------
        cause, effect : Event, Hit or int
        supports, counters : float, default 0.0
            Cases for and against it, at least 0.

        Returns
        -------
        Edge
            With the weight that follows: the mean of a Beta posterior.

        Raises
        ------
        UnknownError, InvalidInputError
            No such event; a link to itself; cases below 0.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> rain, flood = memory.add("rain"), memory.add("flood")
        >>> memory.causes.observe(rain, flood, supports=2).weight
        0.75
        >>> memory.causes.observe(rain, flood, counters=4).state
        'candidate'
        """

        def counted(link: Edge) -> Edge:
            known = Evidence() if link.evidence == "" and link.state in HIDDEN else None
            known = known or Evidence.of(link.weight, link.evidence)
            if supports:
                known = known.add("repetition", supports=supports)
            if counters:
                known = known.add("counterexample", counters=counters)
            if link.state == "rejected":
                return replace(link, evidence=known.to_text(), recorded=None)
            state = "candidate" if known.state == "judged" and known.weight < 0.5 else known.state
            return _with(link, known, state, None)

        return self._settled(cause, effect, counted)

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
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> _ = memory.link(memory.add("rain"), memory.add("mud"), weight=0.5)
        >>> memory.causes.graph().predecessors(2)
        {1: 1}
        """
        asker, also = self._identity.seeing(namespace)
        seen = GraphInRecord(
            self._shared.record,
            lambda: self._shared.index.edge_kinds,
            namespace=asker,
            also=also,
            may_link=lambda ends: self._shared.check_own(ends, self._identity),
        )
        return CausalGraph(seen, effect_first=effect_first)

    @checked(before=whole(1), after=whole(0))
    def story(
        self, event: AnEvent, before: int = 5, after: int = 2, *, namespace: str | None = None
    ) -> Told:
        """Return an event with what led to it and what came of it; see ``CausalGraph.story``."""
        return self.graph(namespace=namespace).story(an_event("event", event), before, after=after)

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
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> for day in range(4):
        ...     _ = memory.add(f"the well is dry, day {day}", timestamp=day, salience=0.8)
        >>> made = memory.causes.reflect(Reflector(threshold=30))
        >>> memory.get(made[0]).metadata
        {'sources': [1, 2, 3, 4]}
        """
        namespace = self._identity.named(namespace)
        now = self._shared.record.now() if timestamp is None else timestamp
        seen = [
            event if event.kind in KINDS else replace(event, kind="event")
            for event in self._shared.active_events(namespace)
        ]
        made = (reflector or Reflector()).reflect(seen, now)
        return add_events(self._shared, made).ids if made else []

    def _own(self, event: AnEvent | str) -> Event:
        if isinstance(event, str):
            event = self._meant(event, None)
        found = self._shared.event(an_event("effect", event), self._identity)
        self._shared.check_own([found.id], self._identity)
        return found

    def _settled(self, cause: Any, effect: Any, change: Callable[[Edge], Edge]) -> Edge:
        ends = an_event("cause", cause), an_event("effect", effect)
        self._shared.check_own(ends, self._identity)
        return self._linker().settle(*ends, change)

    def _warn_if_unjudged(self, made: Sequence[Edge], judge: str) -> None:
        if any(link.state != "unjudged" for link in made):
            self._unjudged = -_MANY
        before, self._unjudged = self._unjudged, self._unjudged + len(made)
        if 0 <= before < _MANY <= self._unjudged:
            warn(
                f"the judge {judge!r} has had no clear word on {self._unjudged} pairs "
                f"({made[0].why:.80}): causes.pending('unjudged') lists them",
                UnjudgedWarning,
            )

    def _linker(self) -> Linker:
        return Linker(self._shared.record, lambda: self._shared.index, self._shared.embedder.info())


_MANY = 10


def _with(link: Edge, evidence: Evidence, state: str, why: str | None) -> Edge:
    return replace(
        link,
        weight=evidence.weight,
        evidence=evidence.to_text(),
        state=state,
        why=link.why if why is None else why,
        recorded=None,
    )


class StoryStep(NamedTuple):
    """One step of a story.

    Attributes
    ----------
    event : Event
        The cause, or the consequence.
    edge : Edge
        What leads to it from the step before.
    depth : int
        Edges away from the event that was asked about.
    weight : float
        The product of the weights on the best way to it.
    """

    event: Event
    edge: Edge
    depth: int
    weight: float


class Story(list[Event]):
    """The causes of an event, or its consequences: nearest first, of one depth the surest first.

    ``str(story)`` tells it in sentences.

    Parameters
    ----------
    of : Event
        What was asked about, or found by words.
    steps : sequence of StoryStep
        How each event was reached.
    told : cvx.causal.Story
        The same, to be told.

    Attributes
    ----------
    of, steps, told
        As given.
    """

    def __init__(self, of: Event, steps: Sequence[StoryStep], told: Told) -> None:
        super().__init__(step.event for step in steps)
        self.of, self.steps, self.told = of, list(steps), told

    @property
    def edges(self) -> list[Edge]:
        """The link that leads to each event from the step before, in their order."""
        return [step.edge for step in self.steps]

    @property
    def truncated(self) -> bool:
        """Whether the walk was cut off by its budget: there is more."""
        return self.told.truncated

    @property
    def deeper(self) -> bool:
        """Whether links lead on from where ``max_depth`` ended the walk."""
        return self.told.deeper

    def frame(self) -> pl.DataFrame:
        """Return it as a table; see ``cvx.causal.Story.frame``."""
        return self.told.frame()

    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``; see ``CausalGraph.to_networkx``.

        Raises
        ------
        MissingExtraError
            networkx is not installed.
        """
        return digraph(self.told.events.values(), (*self.told.causes, *self.told.effects))

    def draw(self, path: str | Path) -> None:
        """Write it as a picture; see ``cvx.causal.Story.draw``."""
        self.told.draw(path)

    def __str__(self) -> str:
        return self.told.narrative()

    def __repr__(self) -> str:
        return f"<Story of event {self.of.event_id}: {len(self)} events>"

    def _repr_html_(self) -> str:
        told = "".join(
            f"<li>{html_text(step.event.text)} <small>{html_text(step.edge.why)}</small></li>"
            for step in self.steps
        )
        return f"<p>{html_text(self.of.text)}</p><ol>{told}</ol>"


def story_of(record: Record, of: Event, told: Told, found: Sequence[Reached]) -> Story:
    """Return what a walk found, with the events of a record."""
    events = {event.event_id: event for event in record.events(int(one.id) for one in found)}
    steps = [StoryStep(events[int(one.id)], one.path[-1], one.depth, one.weight) for one in found]
    return Story(of, steps, told)
