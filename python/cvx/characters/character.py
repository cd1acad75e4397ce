"""One character: its memory tools, the lines it said and heard, the context of its turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cvx.arguments import a_share, among, checked, optional, some_texts, whole, wrong
from cvx.causal.cosine import cosine
from cvx.characters import prompts
from cvx.characters.appraisal import INFLUENCES, Appraisal, feeling_in, held, reinforced
from cvx.characters.definition import QUERIES, SCENE_QUERIES, about_queries, shown_name, some_words
from cvx.characters.distortion import (
    SOURCE,
    Distortion,
    DistortionFilter,
    Inverter,
    Telling,
)
from cvx.characters.filters import memory_filter
from cvx.embed import embed_query
from cvx.errors import InvalidInputError
from cvx.escaping import quoted
from cvx.recall import Context, Floor, Pipeline, VisibleEvents, Weighting, by_rank, by_scale
from cvx.recall.presets import similarity, with_recency
from cvx.recall.sources import Dense, Found, Recent
from cvx.recall.trace import Hits
from cvx.store.prompt_injection import ORDER, REMARK
from cvx.types import AnEvent, Cue, Event, Filter, Hit, Vector, entity_number

if TYPE_CHECKING:
    from cvx.characters.cast import Cast
    from cvx.memory import Memory

TYPES = (
    "episodic", "emotional", "procedural", "semantic",
    "observation", "action", "goal_progress", "emotional_response",
)  # fmt: skip
"""What a memory can be: of an episode, a feeling, a way to do something, a fact; or one kind of
episode: what was perceived, done, reached, felt about something that happened."""
_LASTING = ("emotional", "procedural", "semantic")
_FELT = ("emotional", "emotional_response")
ASSOCIATED = "mentions"
"""The kind of link by which one memory calls up another; recall follows it."""
BY_LIKENESS = Pipeline(
    sources={"dense": Dense(20)},
    signals=(similarity(),),
    fusion=by_scale({}, "none"),
    weighting=Weighting({"similarity": 1.0}, trust=False),
    floor=Floor(similarity=None),
)
"""By the vectors alone; leaves nothing out."""
_RECENCY = 0.02
_HEARD = 4
_MATTERED = 0.7
_MOST = 24
_NEAR = 3
_NEVER = 2**31
"""A character has no say in what it hears: a line that nobody answers is no stale cue."""
_RECALLED = 12
_ASKED = max(len(asked) for asked in QUERIES.values())


class Answer(dict[str, Any]):
    """The JSON answer of a memory tool; ``hits`` are behind it.

    Attributes
    ----------
    hits : list of Hit
        The evidence, in the order of ``self["memories"]``.
    """

    hits: Sequence[Hit]

    def __init__(self, hits: Sequence[Hit], memories: list[dict[str, Any]], **told: Any) -> None:
        super().__init__(**told, memories=memories)
        self.hits = hits


class Gate(NamedTuple):
    """Whether a character must query its memory before it acts, and what it found.

    Attributes
    ----------
    required : bool
        Its uncertainty is above the threshold.
    prompt : str
        What it is told then: what it has to do, and what it remembers. Else empty.
    answer : Answer or None
        What it remembers.
    """

    required: bool
    prompt: str
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A source that returns these events in this order, as far as the asker may see them.

    Parameters
    ----------
    events : tuple of int
        Their ids.
    """

    events: tuple[int, ...]

    def find(self, view: VisibleEvents) -> Found:
        """Return their rows."""
        rows = view.corpus.rows_of(self.events)
        rows = rows[(rows >= 0) & view.visible[rows]]
        return Found(rows, 1.0 / np.arange(1, len(rows) + 1))


class Character:
    """One of a cast; made by ``Cast.seed``, got by ``cast[name]``.

    Attributes
    ----------
    name : str
        Its name, which is its namespace too.
    memory : cvx.Memory
        The memory, bound to it: what is its own, the scene, and what is public.
    distortion : Distortion
        How its memory deceives it; none by default, and not stored.
    """

    def __init__(self, cast: Cast, name: str, memory: Memory) -> None:
        self.name, self.memory = name, memory
        self.distortion = Distortion()
        self._cast = cast
        self._bearing: tuple[object, list[int]] | None = None

    def __repr__(self) -> str:
        return f"Character({self.name!r})"

    @property
    def prompt(self) -> str:
        """The system prompt: it names the tools, and nothing of who the character is."""
        return prompts.SYSTEM

    @property
    def definition(self) -> str:
        """All that it was seeded with, as one text: what a prompt without memory would hold."""
        own = self._cast.gifts(self.name)
        return "\n".join(event.text for event in [*own, *self._cast.gifts("", "scene ")])

    # The six tools of the blueprint.

    def query_self(self, k: int = 5) -> Answer:
        """Return who it is: ``{"memories": [{"content", "relevance"}]}``."""
        return self._gifted(QUERIES["identity"][0], "identity:", k)

    def query_background(self, k: int = 5) -> Answer:
        """Return its history, as ``query_self`` does."""
        return self._gifted(QUERIES["background"][0], "background:", k)

    def query_communication_style(self, k: int = 3) -> Answer:
        """Return how it speaks, as ``query_self`` does."""
        return self._gifted(QUERIES["communication"][0], "communication:", k)

    def query_scene(self, k: int = 5) -> Answer:
        """Return where it is: location, atmosphere, time and context, as ``query_self`` does."""
        return self._gifted(SCENE_QUERIES["location"][0], "scene ", k, of="")

    def query_character(self, name: str, k: int = 3) -> Answer:
        """Return what it knows of another character, as ``query_self`` does.

        Raises
        ------
        UnknownError
            There is no such character, and it stands in no relationship to one of that name.
        """
        known = self._cast.ids(self.name, about=name) if isinstance(name, str) else []
        if not known:
            name = self._cast[name].name
        return self._answer(self._hits_of(known, about_queries(name)[0], k))

    @checked(query=some_words, k=whole(1))
    def query_memory(self, query: str, k: int = 5) -> Answer:
        """Return what happened: ``{"query", "memories": [{"content", "relevance", "turn"}]}``.

        Parameters
        ----------
        query : str
            What it wants to know.
        k : int, default 5
            How many memories.
        """
        return self._answer(self._episodes(query, k), query=query)

    @checked(question=some_words, k=whole(1))
    def query_canonical(self, question: str, k: int = 3) -> Answer:
        """Return what it was given that a question asks for, in whatever words; as ``query_self``.

        Parameters
        ----------
        question : str
            Such as "what kind of upbringing did I have?".
        k : int, default 3
            How many memories.
        """
        meant = self._cast.meant(question, self.name)
        ids = self._cast.ids(meant.name, meant.keys, meant.about)
        return self._answer(self._hits_of(ids, meant.question, k))

    # The tools beyond them.

    @checked(content=some_words, importance=a_share, type=among(*TYPES), turn=optional(whole(0)))
    def form_memory(
        self,
        content: str,
        importance: float = 0.5,
        type: str = "episodic",  # noqa: A002
        *,
        turn: int | None = None,
        about: str | None = None,
    ) -> Event:
        """Remember something of its own accord; what it was just told it has already.

        Parameters
        ----------
        content : str
            What it says.
        importance : float, default 0.5
            In [0, 1].
        type : str, default "episodic"
            One of ``TYPES``.
        turn : int, optional
            When; default now.
        about : str, optional
            The character it is about.
        """
        if about is not None:
            about = self._cast[about].name
        lasting = type in _LASTING
        kind = type if lasting else "episodic"
        told: dict[str, Any] = {
            "agent": self.name, "type": kind, "category": type, "about": about, "turn": turn,
            "importance": importance,
        }  # fmt: skip
        return self.memory.add(
            content,
            kind=kind,
            # What lasts is on nobody's timeline.
            entity=None if lasting else self.name,
            timestamp=self._cast.time_of(turn),
            metadata={name: value for name, value in told.items() if value is not None},
            salience=held(importance, 1.0 if type in _FELT else feeling_in(content)),
        )

    @checked(how=among(*INFLUENCES), share=a_share)
    def reinforce_memory(
        self, memory: AnEvent, how: str = "influenced", share: float = 1.0
    ) -> Event:
        """Hold a memory more firmly: it fades more slowly from now on.

        Parameters
        ----------
        memory : Event, Hit or int
            One of its own.
        how : {"retrieved", "influenced", "emotional"}, default "influenced"
            Called up to some purpose, went into a decision, or moves it again now.
        share : float, default 1.0
            How far, in [0, 1].

        Raises
        ------
        UnknownError, NamespaceError
            There is none, or it is not its own.
        """
        event = self.memory.get(memory)
        hold = 0.5 if event.salience is None else event.salience
        times = event.metadata.get("reinforced", 0)
        return self.memory.update(
            event,
            salience=reinforced(hold, how, share),
            metadata={"reinforced": (times if isinstance(times, int) else 0) + 1},
        )

    def associate_memories(self, first: AnEvent, second: AnEvent, why: str = "") -> None:
        """Link two of its memories: whichever is found, the other one is weighed too.

        Raises
        ------
        UnknownError, NamespaceError
            There is no such memory, or it is not its own.
        """
        self._cast.memory.admin.declare_edge_kind(ASSOCIATED)
        for one, other in ((first, second), (second, first)):
            self.memory.link(one, other, ASSOCIATED, why=why)

    @checked(query=some_words, importance_threshold=optional(a_share), k=whole(1))
    def recall_episodes(
        self,
        query: str,
        time_range: tuple[int | None, int | None] | None = None,
        importance_threshold: float | None = None,
        k: int = 5,
    ) -> Answer:
        """Return what happened, in the order in which it did.

        Parameters
        ----------
        query : str
            What it wants to know.
        time_range : pair of int or None, optional
            First and last turn, both included.
        importance_threshold : float, optional
            Only what mattered so much at least, in [0, 1].
        k : int, default 5
            How many memories.
        """
        asked: dict[str, Any] = {}
        if time_range is not None:
            first, last = _a_range(time_range)
            limits = {"gte": first, "lte": last}
            asked["turn"] = {how: one for how, one in limits.items() if one is not None} or {
                "exists": True
            }
        if importance_threshold is not None:
            asked["importance"] = {"gte": importance_threshold}
        found = self._episodes(query, k, metadata=asked or None)
        return self._answer(sorted(found, key=_in_order), ids=True, query=query)

    @checked(topic=some_words, k=whole(1))
    def recall_facts(self, topic: str, k: int = 5) -> Answer:
        """Return what it knows of a topic, each with a ``confidence``.

        That is the chance that it is what is asked for, times the trust in where it comes from.
        """
        kinds = ["semantic", "character", "character_knowledge", "scene"]
        return self._answer(
            self._recalled(topic, k, {"kind": kinds}), ids=True, confidence=True, query=topic
        )

    @checked(k=whole(1))
    def recall_interactions(self, character: str, k: int = 10) -> Answer:
        """Return what it lived through with another one, in the order in which it did.

        That is what the other one said, and what it said itself that names the other one.
        """
        other = self._cast[character].name
        lines = self._newest([self.name, other], 10 * k)
        named = other.casefold()
        kept = [one for one in lines if one.entity == other or named in one.text.casefold()][:k]
        hits = self._hits_of([event.id for event in kept], about_queries(other)[0], k)
        return self._answer(sorted(hits, key=_in_order), ids=True, query=other)

    @checked(context=some_words, k=whole(1))
    def check_similar_situations(self, context: str, k: int = 3) -> Answer:
        """Return what happened that was like this, each with what came ``then``."""
        hits = self._recalled(context, k, self._lived())
        answer = self._answer(hits, ids=True, query=context)
        for hit, item in zip(hits, answer["memories"], strict=True):
            after = {**self._lived(), "since": hit.timestamp}
            later = self.memory.events(after, limit=_HEARD)
            then = next((one for one in later if _in_order(one) > _in_order(hit)), None)
            item["then"] = None if then is None else self._told(then.text)
        return answer

    @checked(query=some_words, k=whole(1))
    def search_with_distortion(
        self,
        query: str,
        distortion: DistortionFilter,
        k: int = 5,
        *,
        inverter: Inverter | None = None,
    ) -> Answer:
        """Return what happened as a distortion makes it; nothing that is stored changes.

        Parameters
        ----------
        query : str
            What it wants to know.
        distortion : DistortionFilter
            Applied to every memory.
        k : int, default 5
            How many memories.
        inverter : Inverter, optional
            Makes the text of the vector first, as a vec2text model does; by default the distortion
            applies to the text itself.
        """
        if not isinstance(distortion, DistortionFilter):
            raise wrong("distortion", distortion, "an object with apply(text)")
        hits = self._episodes(query, k)
        answer = self._answer(hits, query=query)
        for hit, item in zip(hits, answer["memories"], strict=True):
            text = hit.text
            if inverter is not None:
                vector = self.memory.get(hit).vector
                text = text if vector is None else inverter.invert(vector)
            item["content"], item["distorted"] = quoted(distortion.apply(text)), "retrieval"
        return answer

    # Its turn.

    @checked(turn=whole(0), budget_tokens=whole(0))
    def context(
        self,
        turn: int,
        budget_tokens: int = 500,
        *,
        present: Iterable[str] | None = None,
    ) -> Context:
        """Return what it has in mind before its turn, without asking.

        What bears on the last lines it heard comes first; then who is there, where it is,
        what bears on its goals, and what mattered lately.

        Parameters
        ----------
        turn : int
            The number of the turn; nothing of later turns is shown.
        budget_tokens : int, default 500
            Room in the prompt.
        present : iterable of str, optional
            Who is there; default the whole cast.
        """
        there = self._cast if present is None else some_texts("present", present)
        others = [self._cast[one].name for one in there if one != self.name]
        recent = self._newest([self.name, *others], 2 * _HEARD)
        lines = [one for one in recent if (_turn(one) or 0) <= turn]
        goals = self._cast.goals(self.name)
        # What another one said last; else what it said itself, or wants, or is.
        heard = [_words(one) for one in lines if one.entity != self.name]
        said = [_words(one) for one in lines]
        asked = next(iter([*heard, *said, *goals]), QUERIES["identity"][0])
        cue = Cue(asked, vector=embed_query(self.memory.embedder, asked), place=turn)
        mind = self._in_mind(cue, [one.id for one in lines], others, goals)
        plan = self._plan()
        renderer = Telling(plan.serving.renderer.clock, self.distortion)
        pipeline = Pipeline(
            sources={"mind": Listed(tuple(mind)), "lately": Recent(3, _MATTERED)},
            fusion=by_rank(),
            weighting=Weighting({"mind": 2.0, "lately": 1.0}),
            floor=Floor(similarity=None),
            serving=replace(plan.serving, renderer=renderer, stale_after=_NEVER),
            timeout_s=plan.timeout_s,
        )
        where = memory_filter(max_turn=turn)
        return self.memory.context(cue, budget_tokens, k=_MOST, where=where, pipeline=pipeline)

    def _in_mind(
        self, cue: Cue, lines: Sequence[int], others: Sequence[str], goals: Sequence[str]
    ) -> list[int]:
        """Return the events that go into the context of a turn, what matters most first.

        Parameters
        ----------
        cue : Cue
            The last line that it heard.
        lines : sequence of int
            The last lines as events, the latest first.
        others : sequence of str
            Who is there.
        goals : sequence of str
            What it is after.
        """
        gifts, scene = self._cast.ids(self.name), self._cast.ids("", "scene ")
        plan = self._plan().answering(None)
        where = [self._lived(), {"ids": [*gifts, *scene]}]
        found = self.memory.recall(cue, _RECALLED + len(lines), where=where, pipeline=plan)
        given = [hit.id for hit in found if hit.id in {*gifts, *scene}]
        lived = [hit.id for hit in found if hit.id not in {*gifts, *scene, *lines}]
        pieces = self._cast.ids(self.name, "background:")
        # A history was cut into pieces: the likest one is told with the one after it.
        after = [two for one, two in pairwise(pieces) if one in given[:1]]
        aims = self._cast.ids(self.name, "goals:")
        people = [self._cast.ids(self.name, "identity of:", about=other)[:1] for other in others]
        stage = [*self._bearing_on(goals, gifts), *scene, *(one for some in people for one in some)]
        heard = [*given[:1], *after, *given[1:3], *lived[:3], *lines[:2], *given[3:5]]
        return list(dict.fromkeys([*aims, *heard, *stage]))

    def _bearing_on(self, goals: Sequence[str], gifts: Sequence[int]) -> list[int]:
        """Return which of its gifts bear on its goals, two for each; looked for once."""
        if self._bearing is None or self._bearing[0] != (tuple(goals), tuple(gifts)):
            plan = self._plan().answering(None)
            hits = [
                hit
                for goal in goals
                for hit in self.memory.recall(goal, 2, where={"ids": gifts}, pipeline=plan)
            ]
            self._bearing = (tuple(goals), tuple(gifts)), [hit.id for hit in hits]
        return self._bearing[1]

    def said(self, text: str, turn: int, heard_by: Iterable[str] | None = None) -> Event:
        """Store what it said, for itself and for everybody who heard it.

        Parameters
        ----------
        text : str
            Its line.
        turn : int
            The number of the turn; a line that is captured late takes its place by it. The same
            line of the same turn is stored once.
        heard_by : iterable of str, optional
            Who heard it; default the whole cast. Nobody else knows of it.

        Returns
        -------
        Event
            Its own memory of it.

        Raises
        ------
        UnknownError
            Somebody who heard it is not in the cast; nothing is stored.
        InvalidInputError
            An empty line, or a turn that is no number from 0 up.
        """
        return self._cast.on_turn(self.name, text, turn, heard_by=heard_by)

    @checked(uncertainty=a_share, question=some_words, threshold=a_share)
    def gate(self, uncertainty: float, question: str, threshold: float = 0.5) -> Gate:
        """Say whether it must look into its memory before it acts, and if so, look.

        Parameters
        ----------
        uncertainty : float
            Of its decision, in [0, 1].
        question : str
            What it is uncertain about.
        threshold : float, default 0.5
            Above it, memory has to be asked, and the decision justified by what it says.
        """
        if uncertainty <= threshold:
            return Gate(False, "", None)
        answer = self.query_memory(question)
        told = ["- " + one["content"].replace("\n", "\n| ") for one in answer["memories"]]
        found = told or ["no relevant memories"]
        return Gate(True, "\n".join([prompts.JUSTIFICATION, *found]), answer)

    # How it looks.

    def _gifted(self, asked: str, keys: str, k: int, of: str | None = None) -> Answer:
        ids = self._cast.ids(self.name if of is None else of, keys)
        return self._answer(self._hits_of(ids, asked, k))

    def _hits_of(self, ids: Sequence[int], asked: str, k: int) -> list[Hit]:
        """Return the k of these events that are likest to a question, each text once."""
        whole(1)("k", k)
        if not ids:
            return []
        cue = Cue(asked, vector=self._cast.vector_of(asked))
        # Each text may be there once for each of its questions.
        most = _ASKED * k if self._cast.duplicate else k
        found = self.memory.recall(cue, most, where={"ids": [*ids]}, pipeline=BY_LIKENESS)
        once: dict[str, Hit] = {}
        for hit in found:
            once.setdefault(hit.text, hit)
        return [*once.values()][:k]

    def _lived(self) -> dict[str, Any]:
        """Return the filter for what it lived through: its own, and on somebody's timeline."""
        return {"entities": [*{*self._cast, self.name}], "namespaces": [self.name]}

    def _episodes(self, query: str, k: int, **where: Any) -> Hits:
        return self._recalled(query, k, {**self._lived(), **where})

    def _recalled(self, query: str, k: int, where: Any) -> Hits:
        return self.memory.recall(query, k, where=where, pipeline=self._plan())

    def _newest(self, entities: Sequence[str], limit: int) -> list[Event]:
        where = {"entities": [*entities], "namespaces": [self.name]}
        return self.memory.events(where, newest=True, limit=limit) if entities else []

    def _plan(self) -> Pipeline:
        """Return how it recalls: as the memory does, and what fades comes later.

        What was called up counts as used, and fades anew from then.
        """
        plan = with_recency(
            self.memory.learning.pipeline,
            self._cast.decay,
            _RECENCY,
            since="used",
            slowed_by_salience=True,
        )
        return replace(plan, serving=replace(plan.serving, refresh="retrieved"))

    def _told(self, text: str) -> str:
        return quoted(self.distortion.recalled(text))

    def _answer(
        self,
        hits: Sequence[Hit],
        *,
        ids: bool = False,
        confidence: bool = False,
        **told: Any,
    ) -> Answer:
        memories = []
        for hit in hits:
            event = hit.event
            assert event is not None
            relevance = hit.similarity if hit.relevance is None else hit.relevance
            turn, shown = _turn(event), self.distortion.recalled(event.text)
            formed = "formation" if event.source == SOURCE else None
            item = {
                "content": quoted(shown),
                "relevance": round(relevance, 4),
                # A string on the wire, as the blueprint has it.
                "turn": None if turn is None or "query" not in told else str(turn),
                "id": event.id if ids else None,
                "confidence": round(relevance * event.trust, 4) if confidence else None,
                "distorted": formed if shown == event.text else "retrieval",
                "note": REMARK if ORDER in event.tags else None,
            }
            memories.append({name: value for name, value in item.items() if value is not None})
        return Answer(hits, memories, **told)

    # What the cast asks of it when a line is captured.

    def appraised(self, text: str, vector: Vector, nearest: Mapping[int, float]) -> Appraisal:
        """Return how much a line matters to it: to its goals, by its feeling, by what is new."""
        feeling = feeling_in(text)
        alike = [cosine(self._cast.vector_of(goal), vector) for goal in self._cast.goals(self.name)]
        relevance = float(np.clip(max(alike, default=0.0), 0.0, 1.0))
        known = max(nearest.values(), default=0.0)
        return Appraisal(relevance, feeling, float(np.clip(1.0 - known, 0.0, 1.0)))

    def nearest(self, vector: Vector, names: Iterable[str]) -> dict[int, float]:
        """Return the three memories of what these did that are likest to a line, by event."""
        memory = self._cast.memory
        near = Filter(namespaces=[self.name], entities=[entity_number(one) for one in names])
        nodes, distances = memory.index.search(vector, _NEAR, where=near)
        events = memory.record.events_of_nodes(nodes.tolist(), active=True)
        found = zip(nodes.tolist(), distances.tolist(), strict=True)
        by_l2 = memory.metric == "l2"
        alike = {node: 1.0 / (1.0 + far) if by_l2 else 1.0 - far for node, far in found}
        return {events[node]: like for node, like in alike.items() if node in events}


def _turn(event: Event | Hit) -> int | None:
    turn = event.metadata.get("turn")
    return turn if isinstance(turn, int) else None


def _in_order(event: Event | Hit) -> tuple[int, int]:
    """Return the place of a memory among others: by its turn, then as it was told."""
    turn = _turn(event)
    return (-1 if turn is None else turn), event.id


def _words(event: Event) -> str:
    """Return a line of dialogue without who said it."""
    speaker = event.metadata.get("speaker")
    start = f"{shown_name(speaker)} said: " if isinstance(speaker, str) else ""
    return event.text.removeprefix(start)


def _a_range(value: Any) -> tuple[int | None, int | None]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise wrong("time_range", value, "the first and the last turn, either of them may be None")
    turn = optional(whole(0))
    first, last = turn("time_range[0]", value[0]), turn("time_range[1]", value[1])
    if first is not None and last is not None and first > last:
        raise InvalidInputError(f"time_range is {(first, last)}: give the first turn first")
    return first, last
