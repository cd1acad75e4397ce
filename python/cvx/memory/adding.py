"""What goes into a memory, and how it is changed and linked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cvx.arguments import (
    a_flag,
    a_mapping,
    a_text,
    an_event,
    checked,
    optional,
    some_texts,
    whole,
    wrong,
)
from cvx.embed.chunks import chunk_text
from cvx.errors import (
    InvalidInputError,
)
from cvx.memory.base import digest
from cvx.memory.links import Links
from cvx.memory.sound import named, sound
from cvx.recall.render import entries_of
from cvx.store.packing import metadata_of
from cvx.store.spaces import visible_sql
from cvx.types import DEFAULT_NAMESPACE, Event, Vector
from cvx.validation import check_reward


def _lists(name: str, value: Any) -> list[list[str]]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise wrong(name, value, "a list of strings for each event")
    return [some_texts(f"{name}[{place}]", one) for place, one in enumerate(value)]


class Adding(Links):
    """The writing half."""

    @checked(
        aliases=some_texts,
        tags=some_texts,
        metadata=optional(a_mapping),
        visibility=a_text,
        again=a_flag,
    )
    def add(
        self,
        text: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        entity_id: int = 0,
        timestamp: int | None = None,
        vector: Vector | None = None,
        aliases: Sequence[str] = (),
        action: str | None = None,
        reward: float | None = None,
        kind: str = "event",
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        source: str = "",
        trust: float = 1.0,
        visibility: str = "private",
        salience: float | None = None,
        key: str | None = None,
        again: bool = False,
    ) -> int:
        """Remember one thing; when this returns, it survives a crash.

        Parameters
        ----------
        text : str
            What it says.
        namespace : str, default ""
            Which memory it is part of.
        entity_id : int, default 0
            Whose timeline it is on, at least 0.
        timestamp : int, optional
            When it happened; default now, in microseconds since 1970-01-01 UTC.
        vector : ndarray of shape (dim,), float32, optional
            Where it lies; by default the text is embedded.
        aliases : sequence of str
            Other words to find it by: the event is stored once, with a vector for each.
        action, reward, kind, tags, metadata, source, trust, visibility, salience, key
            As for ``Event``.
        again : bool, default False
            Store it even where it is only what this memory has just been recalled for.

        Returns
        -------
        int
            The id of the event. Text that this memory handed out in a recall and that comes back
            as new is not stored, nor is a block that ``context`` made or a loop rendered: the id is
            that of the event that says so already, in a block of the first one, unless it was
            forgotten or quarantined meanwhile.

        Raises
        ------
        InvalidInputError and its subclasses
            A value that cannot be stored, such as a key that another event of the namespace has;
            nothing is.
        RecordIOError
            The disk is full or failed; nothing is stored.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> memory.add("the spare key is under the green pot")
        1
        >>> [hit.event.text for hit in memory.recall("where is the key?")]
        ['the spare key is under the green pot']
        """
        event = Event(
            entity_id=entity_id,
            timestamp=self.record.now() if timestamp is None else timestamp,
            text=text,
            vector=vector,
            action=action,
            reward=reward,
            kind=kind,
            namespace=namespace,
            metadata=metadata or {},
            tags=tuple(tags),
            source=source,
            trust=trust,
            visibility=visibility,
            salience=salience,
            key=key,
        )
        return self.add_many([event], aliases=[aliases], again=again)[0]

    @checked(aliases=_lists, again=a_flag)
    def add_many(
        self,
        events: Iterable[Event],
        *,
        aliases: Sequence[Sequence[str]] = (),
        again: bool = False,
    ) -> list[int]:
        """Remember several things, all of them or none, in one transaction.

        Parameters
        ----------
        events : iterable of Event
            Those without a vector are embedded. Ids, nodes, episodes and times of recording that
            they bring are not kept.
        aliases : sequence of sequences of str, optional
            Further words for each event, in their order.
        again : bool, default False
            As for ``add``.

        Returns
        -------
        list of int
            The ids, in order.
        """
        if not isinstance(events, Iterable):
            raise InvalidInputError(f"events are {events!r}: give Events")
        listed = []
        for at, event in enumerate(events):
            with named(at):
                listed.append(sound(event))
        if aliases and len(aliases) != len(listed):
            raise InvalidInputError(
                f"{len(aliases)} lists of aliases for {len(listed)} events: give one for each"
            )
        words_of = list(aliases) or [[] for _ in listed]
        known = [None if again else self._known(event) for event in listed]
        new = [event for event, old in zip(listed, known, strict=True) if old is None]
        further = [words for words, old in zip(words_of, known, strict=True) if old is None]
        missing = [event.text for event in new if event.vector is None]
        others = [words for each in further for words in each]
        made = iter(self._embedded([*missing, *others]))
        whole = []
        for at, event in enumerate(listed):
            if known[at] is None:
                with named(at):
                    own = next(made) if event.vector is None else self._checked(event.vector)
                whole.append(_new(event, own))
        if whole:
            with self._writing() as write:
                ids = write.add_events(whole, nodes=write.take_nodes(len(whole)))
                for event_id, words in zip(ids, further, strict=True):
                    if words:
                        write.add_aliases(event_id, [(word, next(made)) for word in words])
            self._store.snapshot_if_grown()
            given = iter(ids)
        return [next(given) if old is None else old for old in known]

    @checked(text=a_text, max_chars=whole(1))
    def add_text(self, text: str, *, max_chars: int = 300, **options: Any) -> list[int]:
        """Remember a long text in pieces, each an event of its own that can be found alone.

        Parameters
        ----------
        text : str
            Cut by ``chunk_text``.
        max_chars : int, default 300
            Length of a piece, unless a single sentence is longer.
        **options
            As for ``Event``: every piece has them all.

        Returns
        -------
        list of int
            The ids, in the order of the text.
        """
        options = {"entity_id": 0, "timestamp": self.record.now(), **options}
        return self.add_many(Event(text=piece, **options) for piece in chunk_text(text, max_chars))

    def _known(self, event: Event) -> int | None:
        """The event that a text was handed out from, while it can still be recalled."""
        if not event.text.strip():
            return None
        told = [event.text, *entries_of(event.text)]
        known = [one for text in told for one in self._told(event.namespace, text)]
        if len(told) > 1 and not known:
            # Of an earlier session, or another process: a block says by its form what it is.
            condition, values = visible_sql(event.namespace, ())
            known = [
                row[0]
                for text in told[1:]
                for row in self.record.query(
                    f"SELECT event_id FROM events WHERE text = ? AND {condition}", (text, *values)
                )
            ]
        active = self.record.query(
            "SELECT event_id FROM events WHERE state = 'active'"
            " AND event_id IN (SELECT value FROM json_each(?))",
            (str(known),),
        )
        return next((one for one in known if (one,) in active), None)

    def _told(self, namespace: str, text: str) -> tuple[int, ...]:
        return self._handed_out.get(digest(namespace, text), ())

    @checked(event_id=an_event, texts=some_texts)
    def add_aliases(self, event_id: int, texts: Sequence[str]) -> None:
        """Give an event further words to be found by; it stays one event, and is found once.

        Raises
        ------
        UnknownEventError
            No such event.
        NoVectorError
            The event is in no index.
        InvalidInputError
            A single string, or something that is none.
        """
        self._node(event_id)
        vectors = self._embedded(texts)
        with self.record.transaction() as write:
            self._node(event_id)
            write.add_aliases(event_id, zip(texts, vectors, strict=True))

    @checked(event_id=an_event, metadata=optional(a_mapping))
    def update(
        self,
        event_id: int,
        *,
        metadata: Mapping[str, Any] | None = None,
        reward: float | None = None,
    ) -> None:
        """Replace the metadata of an event, its reward, or both. Its text never changes.

        Raises
        ------
        UnknownEventError
            No such event.
        RewardRangeError
            The reward is outside [0, 1].
        """
        value = None if reward is None else check_reward(reward)
        with self.record.transaction() as write:
            if metadata is not None:
                write.set_columns("metadata", {event_id: metadata_of(metadata)})
            if value is not None:
                write.set_rewards([(self._node(event_id), value)])


def _new(event: Event, vector: Vector) -> Event:
    # Copying a dataclass costs as much as storing it: most events bring all they need.
    if event.vector is vector and event.event_id is None and event.episode_id is None:
        return event
    return replace(event, vector=vector, event_id=None, episode_id=None)
