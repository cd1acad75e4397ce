"""The cast of a simulation: seeds characters and scenes, each character in its own namespace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cvx.arguments import a_text, above_zero, checked, one_of, optional, some_texts, whole
from cvx.causal.cosine import cosine
from cvx.characters.character import Character
from cvx.characters.definition import (
    OTHER_WORDS,
    QUERIES,
    SCENE_QUERIES,
    Gift,
    about_gift,
    about_queries,
    as_sentence,
    check_name,
    own_gifts,
    relations,
    scene_gifts,
    shown_name,
    some_of_words,
    some_words,
    texts_of_words,
)
from cvx.characters.distortion import SOURCE
from cvx.characters.prompts import TOOLS
from cvx.embed import embed_query
from cvx.embed.check import check
from cvx.errors import InvalidInputError, UnknownError
from cvx.memory import Memory
from cvx.scoring.formulas import Decay
from cvx.types import DEFAULT_NAMESPACE, AnEvent, Event, Vector
from cvx.validation import storable_text

_HALF_LIVES = {"utc": 30 * 86_400 * 1_000_000.0, "ticks": 50.0, "turns": 50.0}
_LAST = chr(0x10FFFF)
_NAMES = """
WITH RECURSIVE known(name) AS (
    SELECT min(namespace) FROM events WHERE key IS NOT NULL
    UNION ALL
    SELECT (SELECT min(namespace) FROM events WHERE key IS NOT NULL AND namespace > name)
    FROM known WHERE name IS NOT NULL
)
SELECT namespace FROM known JOIN events ON namespace = name
WHERE key = 'identity:0' AND kind = 'character' AND state = 'active' ORDER BY event_id"""
"""From one namespace to the next over the index of keys, however many events they hold."""
_NEAREST = 3
_MOVED = 0.5
"""A line with so much feeling moves what it is so much like."""


class Meant(NamedTuple):
    """A canonical question of a character, and which seeded events answer it.

    Attributes
    ----------
    name, keys : str
        Whose gifts, and what their keys begin with; see ``Cast.ids``.
    question : str
        The canonical question that it is.
    about : str or None
        The other character that it is about.
    """

    name: str
    keys: str
    question: str
    about: str | None = None


class Given(NamedTuple):
    """The events to seed for one character, and which older ones to forget.

    Attributes
    ----------
    name : str
        The character; "" for the scene, which is shared with all of them.
    gifts : sequence of Gift
        All of it; and of what there is, these are forgotten that are not among it:
    keys : str
        what stands under keys that begin so,
    about : str or None
        and is about this other character.
    """

    name: str
    gifts: Sequence[Gift]
    keys: str = ""
    about: str | None = None


class Cast(Mapping[str, Character]):
    """The characters of a simulation, by name, over one memory.

    What is the scene's is in the memory's own namespace, shared with the characters; all else is in
    the namespace of the character whose name it has, and seen by nobody else.

    Parameters
    ----------
    memory : cvx.Memory
        Where all is kept; with ``clock="turns"`` its times are the turns.
    duplicate : bool, default False
        Store every gifted memory once for each of its questions, as the blueprint does, and not
        once with a vector for each.
    half_life : float, optional
        In the unit of the memory's clock: what was of no importance at all has half of its recency
        left after so long without use. Default 50 turns or ticks, or 30 days.

    Raises
    ------
    NamespaceError
        The memory is bound to a namespace.

    Examples
    --------
    >>> cast = Cast(Memory(embedder="lexical", clock="turns"))
    >>> alex = cast.seed(
    ...     "Alex", description="You keep lists.", archetype="The planner",
    ...     background="You grew up in Lyon.", communication="Short sentences.",
    ...     decision_style="By the list.",
    ...     traits=["tidy"], skills=["cooking"], values=["punctuality"])
    >>> alex.query_background()
    {'memories': [{'content': 'You grew up in Lyon.', 'relevance': 1.0}]}
    >>> _ = cast.on_turn("Alex", "I booked the table for eight.", 1)
    >>> alex.query_memory("which table was booked?")["memories"][0]["turn"]
    '1'
    """

    def __init__(
        self, memory: Memory, *, duplicate: bool = False, half_life: float | None = None
    ) -> None:
        one_of(Memory, called="a cvx.Memory")("memory", memory)
        self.memory = memory
        # Refuses a memory that is bound: a cast is of the whole store.
        self._record = memory.record
        self._clock = self._record.meta("clock") or "utc"
        self.duplicate = duplicate
        self.decay = Decay.of_half_life(
            _HALF_LIVES[self._clock] if half_life is None else above_zero("half_life", half_life)
        )
        self._known: dict[str, Character] = {}
        self._vectors: dict[str, Vector] = {}

    def __getitem__(self, name: str) -> Character:
        if not isinstance(name, str):
            raise UnknownError(f"no character is called by a {type(name).__name__}: give a name")
        if not name or not self.ids(storable_text("name", name), "identity:"):
            raise UnknownError(
                f"there is no character {name!r:.60}: the cast is "
                f"{', '.join(map(repr, self)) or 'empty'}; seed it first"
            )
        if name not in self._known:
            bound = self.memory.within(name, also=[DEFAULT_NAMESPACE])
            self._known[name] = Character(self, name, bound)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names in the order in which they were seeded, by whatever process."""
        return iter([name for (name,) in self._record.query(_NAMES)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    @checked(
        name=check_name,
        **dict.fromkeys(
            ("description", "archetype", "background", "communication", "decision_style"),
            some_words,
        ),
        **dict.fromkeys(("traits", "skills", "values"), some_of_words),
        role=a_text,
        relationships=optional(relations),
        goals=texts_of_words,
    )
    def seed(
        self,
        name: str,
        *,
        description: str,
        archetype: str,
        role: str = "",
        background: str,
        communication: str,
        decision_style: str,
        traits: Sequence[str],
        skills: Sequence[str],
        values: Sequence[str],
        relationships: Mapping[str, str] | None = None,
        goals: Sequence[str] = (),
    ) -> Character:
        """Give a character its memories; seeding it again changes what is another now.

        Everybody else in the cast learns what can be seen of it, and it of them.

        Parameters
        ----------
        name : str
            Also the name of its namespace.
        description, archetype : str
            What others can see too.
        role : str, default ""
            What it does.
        background, communication, decision_style : str
            Its history, which is stored in pieces of 300 characters; how it speaks; how it decides.
        traits, skills, values : sequence of str
            At least one of each.
        relationships : mapping of str to str, optional
            By the name of another character: how they stand, as this one knows it.
        goals : sequence of str, optional
            What it is after: what bears on them is remembered longer.

        Raises
        ------
        InvalidInputError
            An empty field, or one of another type; nothing is stored.
        """
        appearance = f"{as_sentence(archetype)} {description}"
        told = {
            "communication": f"How you communicate: {communication}",
            "decision_style": f"How you decide: {decision_style}",
            "traits": f"Your traits: {'; '.join(traits)}",
            "skills": f"Your skills: {'; '.join(skills)}",
            "values": f"What you value: {'; '.join(values)}",
        }
        stands = (
            about_gift(other, "relationship", f"You and {shown_name(other)}: {how}")
            for other, how in (relationships or {}).items()
        )
        others = [one for one in self if one != name]
        seen = about_gift(name, "identity", f"{shown_name(name)}: {appearance}")
        own = own_gifts(name, appearance, role, background, told, goals)
        self._give(
            Given(name, [*own, *stands, *map(self._seen, others)]),
            *(Given(one, [seen], "identity of:", name) for one in others),
        )
        return self[name]

    @checked(**dict.fromkeys(("location", "atmosphere", "time", "description"), some_words))
    def scene(self, *, location: str, atmosphere: str, time: str, description: str) -> list[Event]:
        """Say where everybody is; saying it again changes what is another now.

        Parameters
        ----------
        location, atmosphere, time, description : str
            Where; in what mood; at what time; what is going on.

        Raises
        ------
        InvalidInputError
            An empty one; nothing is stored.
        """
        told = {
            "location": location, "atmosphere": atmosphere, "time": time, "context": description,
        }  # fmt: skip
        self._give(Given(DEFAULT_NAMESPACE, scene_gifts(told), "scene "))
        return self.gifts(DEFAULT_NAMESPACE, "scene ")

    def initialize(self) -> dict[str, dict[str, Callable[..., Any]]]:
        """Make sure that a simulation can begin, and return the tools of each character.

        Returns
        -------
        dict of str to dict of str to callable
            By character, by the name of the tool: what ``prompts.TOOLS`` describes.

        Raises
        ------
        EmbedderError
            The embedder is not there, lacks its model, or makes other vectors than the store
            holds; the message says what to do.
        InvalidInputError
            Nobody was seeded.
        """
        check(self.memory.embedder, self.memory.dim)
        if not len(self):
            raise InvalidInputError("the cast is empty: seed a character first")
        return {name: {tool: getattr(one, tool) for tool in TOOLS} for name, one in self.items()}

    @checked(text=some_words, turn=whole(0))
    def on_turn(
        self, name: str, text: str, turn: int, *, heard_by: Iterable[str] | None = None
    ) -> Event:
        """Capture what a character said; see ``Character.said``."""
        speaker = self[name]
        names = list(self)
        hearers = [
            self[one] for one in (names if heard_by is None else some_texts("heard_by", heard_by))
        ]
        everybody = list({one.name: one for one in [speaker, *hearers]}.values())
        line = f"{shown_name(name)} said: {text}"
        key = f"turn {turn}:{hashlib.blake2b(line.encode(), digest_size=8).hexdigest()}"
        new = [one for one in everybody if self._record.event_of_key(key, one.name) is None]
        told = {one.name: one.distortion.formed(line) for one in new}
        vectors = self._embedded({*told.values()})
        events: list[dict[str, Any]] = []
        links, moved = [], []
        for one in new:
            said, vector = told[one.name], vectors[told[one.name]]
            linked = one.distortion.association
            nearest = one.nearest(vector, names)
            felt = one.appraised(said, vector, nearest)
            made: dict[str, Any] = {
                "agent": one.name, "type": "episodic", "category": "dialogue", "turn": turn,
                "speaker": name, "importance": round(felt.importance, 4),
            }  # fmt: skip
            if said != line:
                made["original"] = line
            events.append(
                {
                    "text": said, "entity": name, "timestamp": self.time_of(turn), "vector": vector,
                    "kind": "episodic", "namespace": one.name, "metadata": made, "key": key,
                    "salience": felt.hold, "source": "" if said == line else SOURCE,
                }
            )  # fmt: skip
            links.append(
                [known for known in nearest if linked and linked(said, self.memory.get(known).text)]
            )
            likest = max(nearest, key=nearest.__getitem__, default=0)
            if felt.emotional_impact >= _MOVED and nearest.get(likest, 0.0) >= _MOVED:
                moved.append((one, likest, felt.emotional_impact))
        with self.memory.admin.transaction():
            ids = self.memory.add_many(events, again=True).tolist()
            for one, number, called in zip(new, ids, links, strict=True):
                for other in called:
                    one.associate_memories(number, other)
            for one, number, share in moved:
                one.reinforce_memory(number, "emotional", share)
        return self.memory.get(key=key, namespace=name)

    # What its characters ask of it.

    def ids(self, name: str, keys: str = "", about: str | None = None) -> list[int]:
        """Return the ids of a character's seeded events, in the order of their keys.

        Parameters
        ----------
        name : str
            The character; "" for the scene.
        keys : str, default ""
            What the keys begin with, such as "identity:", "background:" or "scene "; default all.
        about : str, optional
            Only what is about this other character.
        """
        found = self._record.query(
            "SELECT event_id FROM events WHERE namespace = ? AND key >= ? AND key < ?"
            " AND state = 'active' AND kind IN ('character', 'scene', 'character_knowledge')"
            " AND (? IS NULL OR json_extract(metadata, '$.about') = ?) ORDER BY event_id",
            (name, keys, keys + _LAST, about, about),
        )
        return [one for (one,) in found]

    def meant(self, question: str, asker: str) -> Meant:
        """Return which seeded events a question asks for.

        Of each category its three likest questions count: one that happens to be worded alike does
        not outweigh three that mean it.
        """
        known: dict[Meant, Sequence[str]] = {}
        for category, asked in QUERIES.items():
            if category == "goals" and not self.ids(asker, "goals:"):
                continue
            known[Meant(asker, f"{category}:", asked[0])] = [*asked, *OTHER_WORDS[category]]
        for category, asked in SCENE_QUERIES.items():
            place = Meant(DEFAULT_NAMESPACE, f"scene {category}:", asked[0])
            known[place] = [*asked, *OTHER_WORDS[category]]
        for other in self:
            if other != asker:
                about = about_queries(other)
                known[Meant(asker, "", about[0], other)] = about
        vector = embed_query(self.memory.embedder, question)
        missing = {text for texts in known.values() for text in texts} - self._vectors.keys()
        self._vectors.update(self._embedded(missing))

        def likeness(place: Meant) -> tuple[bool, float]:
            alike = sorted(cosine(vector, self._vectors[text]) for text in known[place])
            # Word for word, there is nothing to weigh.
            return question in known[place], sum(alike[-_NEAREST:])

        return max(known, key=likeness)

    def goals(self, name: str) -> list[str]:
        """Return the goals of a character."""
        found = self._record.query(
            "SELECT json_extract(metadata, '$.goals') FROM events"
            " WHERE namespace = ? AND key = 'goals:0' AND state = 'active' AND kind = 'character'",
            (name,),
        )
        return [goal for (told,) in found if told for goal in json.loads(told)]

    def gifts(self, name: str, keys: str = "") -> list[Event]:
        """Return the seeded events of a character; see ``ids``."""
        return [self.memory.get(one) for one in self.ids(name, keys)]

    def time_of(self, turn: int | None) -> int | None:
        """Return the time of a turn, where the memory counts turns; else None, which is now."""
        return None if self._clock == "utc" else turn

    def vector_of(self, text: str) -> Vector:
        """Return the vector of a question that is asked again and again."""
        if text not in self._vectors:
            self._vectors.update(self._embedded([text]))
        return self._vectors[text]

    def _embedded(self, texts: Iterable[str]) -> dict[str, Vector]:
        listed = list(texts)
        if not listed:
            return {}
        rows = self.memory.embedder.embed(listed)
        return {
            text: np.asarray(row, dtype=np.float32) for text, row in zip(listed, rows, strict=True)
        }

    def _give(self, *given: Given) -> None:
        """Store gifts under their keys, change what says something else now, forget the others.

        What is new is stored first, all of it or none; nothing is embedded while others wait.
        """
        new: list[dict[str, Any]] = []
        changed: list[tuple[AnEvent, dict[str, Any]]] = []
        gone: list[int] = []
        for name, gifts, keys, about in given:
            before = {
                event.key: event for event in map(self.memory.get, self.ids(name, keys, about))
            }
            for gift, key, queries in self._entries(gifts):
                asked: Any = queries if len(queries) > 1 else queries[0]
                told = {**gift.metadata(name or None), "indexed_by": asked}
                known = before.pop(key, None)
                # What was forgotten comes back under its key.
                kept = self._record.event_of_key(key, name) if known is None else known
                if kept is None:
                    new.append(
                        {
                            "text": gift.text, "timestamp": self.time_of(0), "kind": gift.type,
                            "vector": self.vector_of(queries[0]) if self.duplicate else None,
                            "aliases": () if self.duplicate else queries,
                            "namespace": name, "metadata": told, "key": key,
                            "visibility": "private" if name else "shared",
                        }
                    )  # fmt: skip
                elif known is None or known.text != gift.text or dict(known.metadata) != told:
                    change: dict[str, Any] = {"text": gift.text, "metadata": told}
                    if known is None:
                        change["state"] = "active"
                    elif not self.duplicate and known.metadata["indexed_by"] != asked:
                        # It was stored once a question until now.
                        change["aliases"] = queries
                    changed.append((kept, change))
            gone += [event.id for event in before.values()]
        if new:
            self.memory.add_many(new, again=True)
        for _, change in changed:
            words = change["metadata"]["indexed_by"] if self.duplicate else change["text"]
            change["vector"] = self.vector_of(words)
        with self.memory.admin.transaction():
            for event, change in changed:
                self.memory.update(event, **change)
            if gone:
                self.memory.forget(gone)

    def _entries(self, gifts: Sequence[Gift]) -> Iterator[tuple[Gift, str, list[str]]]:
        """Yield each gift with its key and the questions it is found under, as it is stored."""
        for gift in gifts:
            if not self.duplicate:
                yield gift, gift.key, [*gift.queries]
            else:
                for number, query in enumerate(gift.queries):
                    yield gift, f"{gift.key}:{number}" if number else gift.key, [query]

    def _seen(self, name: str) -> Gift:
        """Return what can be seen of a character that was seeded."""
        (identity, *_) = self.gifts(name, "identity:")
        looks = f"{shown_name(name)}: {identity.metadata['appearance']}"
        return about_gift(name, "identity", looks)
