"""The public data types: Event, Episode, Edge, Region, Cue, Hit, Decision and Filter.

Every noun is immutable. ``Step`` and ``Factor`` are named tuples, because a single recall makes
hundreds of them; the others are frozen dataclasses with slots.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cvx.errors import UnknownError
from cvx.escaping import html_table, html_text, one_line

Vector: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int64]
Column: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Clock: TypeAlias = Literal["microseconds", "seconds", "turn", "tick"]
"""What timestamps count. The default of a memory is microseconds since 1970-01-01 UTC."""

EventId: TypeAlias = str | int

DEFAULT_NAMESPACE = ""

UNNAMED_ENTITIES = 2**61
"""From here up to twice as many, numbers are of timelines that nobody named, as an episode's."""

ENTITY_KEY = "@entity"
"""Under it, a record keeps the name of an entity with the metadata; no key of a user's own."""

_NAMED_ENTITIES = 2 * UNNAMED_ENTITIES
_DIGITS = len(str(UNNAMED_ENTITIES))


@lru_cache(maxsize=1 << 16)
def entity_number(name: str | None) -> int:
    """Return the number by which an index knows an entity.

    It follows from the name alone, so that every process and every store gives the same one: a
    name in digits is its own number, any other is hashed to 61 bits beyond those.

    Examples
    --------
    >>> entity_number(None), entity_number("7"), entity_number("ana") == entity_number("ana")
    (0, 7, True)
    """
    if name is None:
        return 0
    digits = name.isascii() and name.isdigit() and name[0] != "0"
    # Python reads no int of thousands of digits.
    if digits and len(name) <= _DIGITS and int(name) < UNNAMED_ENTITIES:
        return int(name)
    hashed = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return _NAMED_ENTITIES + int.from_bytes(hashed, "little") % _NAMED_ENTITIES


def entity_name(number: int) -> str | None:
    """Return the name of a number that stands for itself, None for any other.

    Examples
    --------
    >>> entity_name(7), entity_name(0)
    ('7', None)
    """
    return str(number) if 0 < number < UNNAMED_ENTITIES else None


class Step(NamedTuple):
    """One event of a timeline, as it is seen from a neighbour or a trajectory.

    Attributes
    ----------
    node_id : int
        Index row of the event.
    entity_id : int
        Whose timeline it is part of.
    timestamp : int
        When it happened, in the store's own unit.
    action : str or None
        What was done there.
    reward : float or None
        The outcome attached to it, in [0, 1].
    """

    node_id: int
    entity_id: int
    timestamp: int
    action: str | None
    reward: float | None


class Factor(NamedTuple):
    """One part of a score.

    Attributes
    ----------
    name : str
        The feature.
    value : float
        What the feature was for this hit.
    weight : float
        What the scorer gave it.
    share : float
        What it contributed. The shares of a hit add up to its score.
    """

    name: str
    value: float
    weight: float
    share: float


class Filter(NamedTuple):
    """What a search may return. The fields are joined by *and*; a field left ``None`` is open.

    Where several values are listed, one of them is enough, but for tags; an empty list matches
    nothing. A single value may stand alone. ``ids`` are nodes for an index and events for a
    memory; ``kind``, ``source``, ``metadata``, ``min_trust`` and ``outcome`` are for a memory.

    Parameters
    ----------
    since, until : int or aware datetime, optional
        ``since <= timestamp < until``. One of them alone is a one-sided range. A datetime becomes
        microseconds since 1970-01-01 UTC, as a memory counts.
    entities : str or sequence of str, optional
        Whose it is; for an index, their numbers.
    ids : int or sequence of int, optional
        Itself.
    namespaces : str or sequence of str, optional
        For an index, ``None`` means the default namespace only, never all of them. For a memory,
        they only narrow what the asker may see.
    min_reward, max_reward : float, optional
        Both inclusive. What has no reward passes neither.
    tags : str or sequence of str, optional
        All of these.
    recallable : bool or None, default True
        Of an index. ``True``: what may advise. ``False``: only what may not (failed episodes).
        ``None``: both.
    outcome : {"success", "failure", "any"}, optional
        Steps of failed episodes alone, all but these, or both; by default what the verb says.
    kind, source : str or sequence of str, optional
        Which kind of event; where it comes from.
    metadata : mapping of str to value, optional
        By key: a text, number, bool or None that is stored there, or a mapping of conditions:
        ``gt``, ``gte``, ``lt``, ``lte``, ``ne`` (another one, or none), ``in`` (a list) and
        ``exists``.
    min_trust : float, optional
        Trusted so much at least.

    Examples
    --------
    >>> Filter(kind="note", metadata={"topic": "home", "turn": {"gte": 5}}).kind
    'note'
    """

    since: int | datetime | None = None
    until: int | datetime | None = None
    entities: str | Sequence[str] | int | Sequence[int] | IntArray | None = None
    namespaces: str | Sequence[str] | None = None
    min_reward: float | None = None
    max_reward: float | None = None
    tags: str | Sequence[str] | None = None
    ids: int | Sequence[int] | IntArray | None = None
    recallable: bool | None = True
    outcome: str | None = None
    kind: str | Sequence[str] | None = None
    source: str | Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    min_trust: float | None = None

    def __repr__(self) -> str:
        plain = self._field_defaults
        said = {name: one for name, one in self._asdict().items() if one is not plain[name]}
        return f"Filter({', '.join(f'{name}={one!r}' for name, one in said.items())})"


def shorten(text: str, most: int) -> str:
    """Return a text of so many characters at the most, cut between words.

    Examples
    --------
    >>> shorten("it rained all night", 12)
    'it rained...'
    """
    if len(text) <= most:
        return text
    head = text[: most - 2].rpartition(" ")[0] or text[: most - 3]
    return f"{head[: most - 3]}..."


def telling(self: Any) -> str:
    """Return a repr that shows only fields that differ from their defaults."""
    told = []
    for one in fields(self):
        plain = one.default if one.default_factory is MISSING else one.default_factory()
        value = getattr(self, one.name)
        if one.repr and (plain is MISSING or value != plain):
            told.append(f"{one.name}={shorten(repr(value), 200)}")
    return f"{type(self).__name__}({', '.join(told)})"


def steps_html(caption: str, steps: Iterable[Event]) -> str:
    """Return the steps of an episode as a table for a page."""
    rows = (
        (at, step.text, step.action or "", "" if step.reward is None else f"{step.reward:g}")
        for at, step in enumerate(steps, start=1)
    )
    return html_table(caption, ["step", "text", "action", "reward"], rows)


def _name_entity(thing: Event | Episode) -> None:
    """Let the name and the number of an entity say the same; the name has the last word."""
    if isinstance(thing.entity, str):
        object.__setattr__(thing, "entity_id", entity_number(thing.entity))
    elif thing.entity is None and isinstance(thing.entity_id, int):
        object.__setattr__(thing, "entity", entity_name(thing.entity_id))


if TYPE_CHECKING:

    class Timestamp:
        """A field that takes a time in the store's unit or an aware datetime."""

        def __get__(self, thing: object, owner: type) -> int: ...
        def __set__(self, thing: object, value: int | datetime) -> None: ...

    class OptionalTimestamp:
        """The same, or None."""

        def __get__(self, thing: object, owner: type) -> int | None: ...
        def __set__(self, thing: object, value: int | datetime | None) -> None: ...

else:
    # A reader finds a number in what a store returns; whoever writes may give a datetime.
    Timestamp, OptionalTimestamp = int, int | None

_UNTIMED = cast(Timestamp, None)


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """Something that happened to someone: a step of an episode, a cause, a line, a trait.

    Parameters
    ----------
    text : str
        What it says.
    entity : str, optional
        Who: whose timeline it is on.
    timestamp : int or aware datetime, optional
        When it happened, in the store's own unit; by default when it is added.
    vector : ndarray of shape (dim,), float32, optional
        Where it lies. An event without a vector can carry edges but is never found by similarity.
    action : str, optional
        What was done there.
    reward : float, optional
        Outcome in [0, 1].
    kind : str, default "event"
        Free label, such as "step" or "observation".
    namespace : str, default ""
        Which memory it is part of.
    metadata : mapping, optional
        Anything JSON can hold.
    episode_id : int, optional
        The episode it is a step of.
    event_id, node, recorded : int, optional
        Given by the store: the event's id, its index row, and when it was written (microseconds
        since 1970-01-01 UTC).
    entity_id : int
        The number of its entity in the index; follows from ``entity`` where that is given.
    tags : tuple of str
        Labels to filter by.
    source : str, default ""
        Where it comes from: a document, a tool, another agent.
    trust : float, default 1.0
        How far the source is believed, in [0, 1].
    visibility : {"private", "shared", "public"}, default "private"
        Who may see it beside its own namespace: nobody, those who name the namespace, all.
    salience : float, optional
        How much it mattered, in [0, 1].
    state : {"active", "archived", "quarantined"}, default "active"
        Only what is active is recalled.
    key : str, optional
        What the event is called elsewhere; unique in its namespace.
    version : int, default 1
        Counts its texts; and
    history : sequence of Event
        its earlier versions, oldest first, which are read when they are first looked at.
    """

    text: str = ""
    entity: str | None = None
    # None until it is stored: whoever reads an event of a store finds a number.
    timestamp: Timestamp = _UNTIMED
    vector: Vector | None = field(default=None, compare=False, repr=False)
    action: str | None = None
    reward: float | None = None
    kind: str = "event"
    namespace: str = DEFAULT_NAMESPACE
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    episode_id: int | None = None
    event_id: int | None = None
    node: int | None = None
    recorded: int | None = None
    tags: tuple[str, ...] = ()
    source: str = ""
    trust: float = 1.0
    visibility: str = "private"
    salience: float | None = None
    state: str = "active"
    key: str | None = None
    version: int = field(default=1, compare=False)
    history: Sequence[Event] = field(default=(), compare=False, repr=False)
    entity_id: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        _name_entity(self)

    __repr__ = telling

    def _repr_html_(self) -> str:
        told = {"id": self.event_id, "entity": self.entity, "time": self.timestamp}
        facts = ", ".join(f"{k} {html_text(v)}" for k, v in told.items() if v is not None)
        return f"<p>{html_text(self.text)} <small>{facts}</small></p>"

    @property
    def id(self) -> int:
        """Its id in the store.

        Raises
        ------
        UnknownError
            It was not stored.
        """
        if self.event_id is None:
            raise UnknownError(f"event {self.text[:60]!r} was not stored: add it first")
        return self.event_id

    def keys(self) -> list[str]:
        """Return the names of its items: ``dict(event)`` and ``event["text"]`` work.

        JSON can hold all of them; vector and history, which it cannot, are items apart.
        """
        return ["id", *(name for name in Event.__slots__ if name not in _APART)]

    def __contains__(self, name: object) -> bool:
        return name == "id" or name in Event.__slots__

    def __getitem__(self, name: str) -> Any:
        if name in self:
            return getattr(self, name)
        raise KeyError(f"an event has no {name!r}: it has {', '.join(self.keys())}")

    def as_version(self, version: int, history: Sequence[Event] = ()) -> Event:
        """Return the same event with what is known of its versions."""
        return replace(self, version=version, history=history)

    @property
    def importance(self) -> float | None:
        """Salience as the streams of generative agents give it, on a scale up to 10.

        Examples
        --------
        >>> Event(salience=0.8).importance
        8.0
        """
        return None if self.salience is None else 10.0 * self.salience


@dataclass(frozen=True, slots=True, repr=False)
class Episode:
    """The events of one entity in order, with an outcome.

    Parameters
    ----------
    entity : str, optional
        Whose timeline the steps are on.
    goal : str
        What was to be reached.
    task_type : str, optional
        Which family of goals it belongs to.
    reward : float, optional
        Outcome in [0, 1]; ``None`` while the episode is open.
    steps : tuple of Event
        In the order in which they happened.
    namespace : str, default ""
        Which memory it is part of.
    kind : str, default "experience"
        "experience" or "demonstration".
    episode_id : int, optional
        Given by the recorder.
    metadata : mapping, optional
        Anything JSON can hold.
    entity_id : int
        The number of the entity in the index; follows from ``entity`` where that is given.
    """

    goal: str = ""
    entity: str | None = None
    task_type: str | None = None
    reward: float | None = None
    steps: tuple[Event, ...] = field(default=(), repr=False)
    namespace: str = DEFAULT_NAMESPACE
    kind: str = "experience"
    episode_id: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    entity_id: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        _name_entity(self)

    __repr__ = telling

    def _repr_html_(self) -> str:
        ended = "open" if self.reward is None else f"outcome {self.reward:g}"
        return steps_html(f"{self.goal or 'Episode'}: {ended}", self.steps)

    @property
    def closed(self) -> bool:
        """Whether the outcome is known."""
        return self.reward is not None

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions taken, in order; steps without one are left out."""
        return tuple(step.action for step in self.steps if step.action is not None)


@dataclass(frozen=True, slots=True, repr=False)
class Edge:
    """A typed, weighted link: one event led to another; in an index, between two nodes.

    Parameters
    ----------
    cause, effect : int or str
        From the one to the other: from cause to effect, from earlier to later, from advice to
        outcome.
    kind : str, default "caused"
        "temporal", "caused", "caused_success", "caused_failure", "same_action_type",
        "region_transition", "granger_causal", "irrelevant", or a declared kind of one's own.
    weight : float, default 1.0
        How sure, in [0, 1].
    why : str
        How the one led to the other, in words.
    evidence : str
        What that rests on; ``cvx.causal.Evidence.from_text`` reads it.
    recorded : int, optional
        When it was written (microseconds since 1970-01-01 UTC).
    state : str, default "stated"
        "stated" by somebody, "judged" by cvx or a judge, "confirmed" by a person; or, walked by
        nothing and told by nobody, "candidate", "rejected", "unjudged".
    boost : float, optional
        What a graph search gave this kind while it walked the edge.
    nodes : tuple of (int, int), optional
        The rows of the index that the events have, where a search walked them.

    Examples
    --------
    >>> Edge(1, 2, why="the drain is small")
    Edge(cause=1, effect=2, why='the drain is small')
    """

    cause: EventId
    effect: EventId
    kind: str = "caused"
    weight: float = 1.0
    why: str = ""
    evidence: str = ""
    recorded: int | None = None
    state: str = "stated"
    boost: float | None = None
    nodes: tuple[int, int] | None = field(default=None, compare=False, repr=False)

    __repr__ = telling

    @property
    def probability(self) -> float | None:
        """How likely it is, of what was judged or is a candidate; None where somebody knows."""
        return self.weight if self.state in ("judged", "candidate") else None

    def keys(self) -> list[str]:
        """Return the names of its items: ``dict(edge)`` and ``edge["why"]`` work."""
        told = [name for name in Edge.__slots__ if name not in ("boost", "nodes")]
        return [*told, "probability"]

    def __getitem__(self, name: str) -> Any:
        if name in Edge.__slots__ or name == "probability":
            return getattr(self, name)
        raise KeyError(f"an edge has no {name!r}: it has {', '.join(self.keys())}")

    @property
    def from_node(self) -> int:
        """The node it leads from: of an edge in an index, its ``cause``."""
        return int(self.cause) if self.nodes is None else self.nodes[0]

    @property
    def to_node(self) -> int:
        """The node it leads to: of an edge in an index, its ``effect``."""
        return int(self.effect) if self.nodes is None else self.nodes[1]


@dataclass(frozen=True, slots=True)
class Region:
    """A cell of the vector space: a hub of one HNSW level and the nodes nearest to it.

    Parameters
    ----------
    region_id : int
        Node id of the hub.
    level : int
        HNSW level of the hubs; 0 makes every node its own region.
    epoch : int
        Snapshot of the hubs that the region belongs to.
    members : tuple of int
        Node ids.
    """

    region_id: int
    level: int
    epoch: int
    members: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class Cue:
    """What the agent is after right now.

    Parameters
    ----------
    text : str
        Raw words, where there is no structure.
    goal : str
        What is to be reached.
    step : str
        What the agent sees or does at this moment.
    questions : tuple of str
        What is still open.
    vector : ndarray of shape (dim,), float32, optional
        Where the cue lies; given, nothing is embedded.
    event : Event, Hit or int, optional
        What to find the causes of: what led to it, over causal links, comes first, and it itself
        does not. Where there are no words and no vector, the cue lies where the event does.
    entity : str, optional
        Whom it is about, as if its words named them.
    timestamp : int or aware datetime, optional
        Now, by the clock of the store, which ``None`` takes.
    task_type : str, optional
        Which family of goals it belongs to; ``None`` takes that of the running episode.
    place : int, optional
        Number of the step within its episode.
    """

    text: str = ""
    _: KW_ONLY
    goal: str = ""
    step: str = ""
    questions: tuple[str, ...] = ()
    vector: Vector | None = field(default=None, compare=False, repr=False)
    event: Event | Hit | int | None = None
    entity: str | None = None
    timestamp: OptionalTimestamp = None  # type: ignore[assignment]
    task_type: str | None = None
    place: int | None = None

    __repr__ = telling

    def words(self) -> str:
        """All its text in one line, for an embedder.

        Examples
        --------
        >>> Cue(goal="warm the mug", step="you hold the mug").words()
        'warm the mug you hold the mug'
        """
        return " ".join(part for part in (self.goal, self.step, *self.questions, self.text) if part)

    def silent(self) -> Cue:
        """Return the cue without its words: task type, time and place in its episode."""
        return Cue(task_type=self.task_type, timestamp=self.timestamp, place=self.place)


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """One thing that was found, with the evidence for it.

    Attributes and items both work, ``hit.score`` and ``hit["score"]``, those of its event too
    (``hit.text``), and so do ``dict(hit)`` and ``in``; ``hit["node_id"]`` is ``hit.node``.

    Parameters
    ----------
    node : int
        Index row.
    distance : float
        Lower is nearer, in the metric of the index.
    score : float
        Higher is better.
    similarity : float
        Higher is nearer: 1 - distance for cosine and inner product, 1 / (1 + distance) for l2.
    entity_id : int
        Whose event it is.
    timestamp : int
        When it happened.
    reward : float or None
        Its outcome, in [0, 1].
    action : str or None
        What was done there.
    predecessors, successors : tuple of Step
        What came before and after on the same timeline, each in time order.
    factors : tuple of Factor
        What made the score; the shares add up to it.
    path : tuple of Edge
        The edges walked to get there, if it was found over edges.
    event : Event or None
        The whole event, where a store knows it.
    relevance : float or None
        The chance that whoever asked wants it, in [0, 1], where the recall knows.

    Examples
    --------
    >>> hit = Hit(node=3, distance=0.25, score=0.75, similarity=0.75, entity_id=1, timestamp=9)
    >>> hit["score"] == hit.score, hit["node_id"]
    (True, 3)
    """

    node: int
    distance: float
    score: float
    similarity: float
    entity_id: int
    timestamp: int
    reward: float | None = None
    action: str | None = None
    predecessors: tuple[Step, ...] = field(default=(), repr=False)
    successors: tuple[Step, ...] = field(default=(), repr=False)
    factors: tuple[Factor, ...] = field(default=(), repr=False)
    path: tuple[Edge, ...] = ()
    event: Event | None = None
    relevance: float | None = None

    __repr__ = telling

    def _repr_html_(self) -> str:
        told = repr(self) if self.event is None else self.event.text
        return f"<p>{self.score:.2f} {html_text(told)}</p>"

    @property
    def node_id(self) -> int:
        """The same as ``node``."""
        return self.node

    def __getattr__(self, name: str) -> Any:
        # Of the event, which a hit of a raw index does not know.
        event = object.__getattribute__(self, "event") if name in _EVENT_FIELDS else None
        if event is None:
            raise AttributeError(f"a hit has no {name!r}: it has {', '.join(_HIT_FIELDS)}")
        return getattr(event, name)

    def explain(self, trace: Any = None) -> str:
        """Return what made the score, the greatest share first.

        The shares add up to the score; those below 0.0005 are joined in one line.

        Parameters
        ----------
        trace : Trace, optional
            Of the recall, ``hits.trace``: the filters and floors that it passed are named too.

        Examples
        --------
        >>> hit = Hit(node=3, distance=0.1, score=0.7, similarity=0.9, entity_id=1, timestamp=9,
        ...     factors=(Factor("similarity", 0.9, 0.5, 0.45), Factor("recency", 0.5, 0.5, 0.25)))
        >>> print(hit.explain())
        score 0.700 of node 3 (similarity 0.900, distance 0.100)
          similarity            0.900 x  0.500 =  0.450   64%
          recency               0.500 x  0.500 =  0.250   36%
        """
        event = self.event
        what = "" if event is None else f'event {event.event_id} "{one_line(event.text, 50)}", '
        lines = [
            f"score {self.score:.3f} of {what}node {self.node} "
            f"(similarity {self.similarity:.3f}, distance {self.distance:.3f})"
        ]
        large = [factor for factor in self.factors if abs(factor.share) >= _LEAST_TOLD]
        small = sum(factor.share for factor in self.factors if abs(factor.share) < _LEAST_TOLD)
        for name, value, weight, share in sorted(large, key=lambda factor: -abs(factor.share)):
            part = f"{share / self.score:>5.0%}" if self.score else ""
            lines.append(f"  {name:<20} {value:>6.3f} x {weight:>6.3f} = {share:>6.3f} {part}")
        if small:
            lines.append(f"  {'others':<20} {'':>6}   {'':>6} = {small:>6.3f}")
        lines += [
            f"  walked {edge.cause} -{one_line(edge.kind)} {edge.weight:.2f}-> {edge.effect}"
            + (f": {one_line(edge.why)}" if edge.why else "")
            for edge in self.path
        ]
        if trace is not None:
            passed = "; ".join([*trace.passed, f"floor {trace.floor}"])
            lines.append(f"  passed: {one_line(passed, 10_000)}")
        return "\n".join(lines)

    def keys(self) -> list[str]:
        """Return the names of its items, those of its event among them; JSON can hold all."""
        told = [*_HIT_FIELDS, *(_EVENT_FIELDS if self.event is not None else ())]
        return [name for name in told if name not in _APART]

    def __contains__(self, name: object) -> bool:
        return name in _HIT_FIELDS or (self.event is not None and name in _EVENT_FIELDS)

    def __getitem__(self, name: str) -> Any:
        if name == "path" and self.path:
            # As JSON can hold them.
            return tuple(dict(edge) for edge in self.path)
        if name in self:
            return getattr(self, name)
        raise KeyError(f"a hit has no {name!r}: it has {', '.join(self.keys())}")


Where: TypeAlias = Filter | Mapping[str, Any] | Sequence[Filter | Mapping[str, Any]]
"""A filter, a mapping of its fields, or several, of which one is enough."""

AnEvent: TypeAlias = Event | Hit | int
"""What names an event: itself, a hit on it, or its id."""

_LEAST_TOLD = 5e-4
_APART = {"event", "history", "vector"}
_HIT_FIELDS = (*Hit.__slots__, "node_id")
_EVENT_FIELDS = ("id", *(name for name in Event.__slots__ if name not in _HIT_FIELDS))


class Drawn(NamedTuple):
    """A logged sample of an order, for off-policy evaluation.

    Attributes
    ----------
    names : tuple of str
        Features of the candidates.
    features : tuple of tuples of float
        A row for each candidate.
    first : int
        Which of them came first.
    propensity : float
        The chance it had to, in (0, 1].
    """

    names: tuple[str, ...]
    features: tuple[tuple[float, ...], ...]
    first: int
    propensity: float


@dataclass(frozen=True, slots=True)
class Decision:
    """One recall and what became of it.

    Parameters
    ----------
    decision_id : int
        Counts up within one memory.
    cue : Cue
        What was asked.
    hits : tuple of Hit
        The candidates, best score first.
    action_scores : tuple of (str, float)
        Kinds of action with their expected success where the cue lies, best first.
    episode_id : int, optional
        The episode it was made in.
    region : int, optional
        The region that the cue lies in.
    rendered : str
        What was shown to the agent.
    action : str, optional
        What the agent then did.
    followed : tuple of int
        Nodes of the hits whose advice it took.
    outcome : float, optional
        How the episode ended.
    propensities : tuple of float, optional
        Probability of each hit's place, where the order was sampled.
    predicted : float, optional
        The chance of success of the episode, as expected when the agent acted.
    namespace : str, default ""
        Who asked.
    drawn_from : Drawn, optional
        The candidates, where the order was sampled.
    """

    decision_id: int
    cue: Cue
    hits: tuple[Hit, ...]
    action_scores: tuple[tuple[str, float], ...] = ()
    episode_id: int | None = None
    region: int | None = None
    rendered: str = ""
    action: str | None = None
    followed: tuple[int, ...] = ()
    outcome: float | None = None
    propensities: tuple[float, ...] | None = None
    predicted: float | None = None
    namespace: str = DEFAULT_NAMESPACE
    drawn_from: Drawn | None = None


_TASK_TAG = "task:"


def task_tag(task_type: str) -> str:
    """Return the tag by which an index knows the nodes of a family of goals."""
    return _TASK_TAG + task_type


def task_of_tags(tags: Iterable[str]) -> str | None:
    """Return the family of goals that tags name, None if they name none or several.

    Examples
    --------
    >>> task_of_tags({"kitchen", task_tag("clean")})
    'clean'
    """
    found = [tag.removeprefix(_TASK_TAG) for tag in tags if tag.startswith(_TASK_TAG)]
    return found[0] if len(found) == 1 else None


Source: TypeAlias = Callable[[Cue], list[Hit]]
"""Anything that answers a cue with hits."""
