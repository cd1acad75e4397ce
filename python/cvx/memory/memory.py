"""`Memory`, the facade: add, update, link, forget, erase, recall, context, why, episode."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from cvx.arguments import (
    Check,
    a_flag,
    a_folder,
    a_mapping,
    a_share,
    a_text,
    a_time,
    among,
    an_event,
    an_outcome,
    are_several,
    checked,
    one_of,
    optional,
    short_repr,
    some_events,
    some_texts,
    whole,
    wrong,
)
from cvx.dates import when
from cvx.embed import Embedder
from cvx.errors import (
    AsOfWarning,
    InvalidInputError,
    SettingsMismatchError,
    StoreError,
    UnknownError,
    warn,
)
from cvx.escaping import html_text
from cvx.index import RawIndex
from cvx.memory import feedback as _feedback
from cvx.memory import write_verbs
from cvx.memory.admin import Admin
from cvx.memory.aio import Aio
from cvx.memory.dataframes import Frames
from cvx.memory.learning import Learning
from cvx.memory.namespace_access import Identity
from cvx.memory.recall_verbs import RECALL, RecallVerbs, Sources, asker_of
from cvx.memory.resources import CLOSE_WAITS_S, Resources
from cvx.memory.settings import (
    CLOCKS,
    PRESETS,
    check_embedder,
    check_kept,
    kept_settings,
    known_of,
    settings_of,
    to_keep,
)
from cvx.recall import Context, Floor, Hits, Pipeline
from cvx.store import Record
from cvx.store.history import as_of
from cvx.store.namespaces import check_also
from cvx.store.row_validation import explains
from cvx.tracing import watched
from cvx.types import (
    DEFAULT_NAMESPACE,
    AnEvent,
    Cue,
    Decision,
    Edge,
    Episode,
    Event,
    IntArray,
    Vector,
    Where,
)
from cvx.validation import STATES, storable_text

if TYPE_CHECKING:
    from cvx.memory.causes import Causes, Story
    from cvx.memory.episode import RunningEpisode
    from cvx.store.erase import Erased

EXACT_BELOW = 10_000


def _lists(name: str, value: Any) -> list[list[str]]:
    if isinstance(value, str | bytes | Mapping) or not are_several(value):
        raise wrong(name, value, "a list of strings for each event")
    return [some_texts(f"{name}[{place}]", one) for place, one in enumerate(value)]


def _timed(item: Any) -> bool:
    """Return whether something to be added says when it happened."""
    at = item.get("timestamp") if isinstance(item, Mapping) else getattr(item, "timestamp", None)
    return at is not None


_OPENING: Mapping[str, Check] = {
    "embedder": optional(check_embedder),
    "dim": optional(whole(1)),
    "metric": optional(among("cosine", "l2", "ip")),
    "clock": optional(among(*CLOCKS)),
    "preset": optional(among(*PRESETS)),
    "tokenizer": optional(one_of(str, os.PathLike, called="the path of a tokenizer.json")),
    "seed": whole(0),
}


@explains(lambda memory: memory._shared.record)
class Memory:
    """What an agent remembers: in RAM, or with ``Memory.open`` in a folder that survives.

    Every change is durable when its call returns. Threads may share a memory; processes open the
    same folder, and each sees what the others committed at its next call. After a fork, the child
    opens its own.

    Parameters
    ----------
    embedder : Embedder or str, optional
        From text to vectors; the default needs no model and no network, and knows spelling only. A
        str says how to make one: "lexical", the folder of a model, "ollama:NAME" or "openai:NAME",
        the last two with "@URL" where the server is not at its usual address.
    dim : int, optional
        In place of an embedder: every event and cue brings a vector of this length.
    metric : {"cosine", "l2", "ip"}, optional
        How vectors are compared; default "cosine", with ``dim`` "l2".
    clock : {"utc", "ticks", "turns"}, optional
        What timestamps count: microseconds since 1970-01-01 UTC (the default, datetimes too), or
        the ticks of a simulation or turns of a conversation, one more with each event that names
        none.
    preset : {"default", "retrieval-augmented", "tcmf", "tcmf-seed"}, optional
        How it recalls until ``learning`` sets or tunes something else: by the shipped weights; by
        similarity, recency and salience; by these and what led to the event of the cue; or by
        relevance, recency and importance on a clock of ticks.
    tokenizer : str or path, optional
        The ``tokenizer.json`` of the model that reads the prompts, by which ``context`` counts; by
        default a token is four bytes.
    seed : int, default 0
        Of the index: it decides which events become the hubs of regions.

    Examples
    --------
    >>> from cvx.embed import LexicalEmbedder
    >>> memory = Memory(embedder=LexicalEmbedder())
    >>> rain = memory.add("it rained all night")
    >>> flood = memory.add("the cellar is under water")
    >>> _ = memory.link(rain, flood, "caused", why="the drain is too small")
    >>> story = memory.why("the cellar")
    >>> story.of == flood, story[0].text, story.edges[0].why
    (True, 'it rained all night', 'the drain is too small')
    """

    @checked(**_OPENING)
    def __init__(
        self,
        *,
        embedder: Embedder | str | None = None,
        dim: int | None = None,
        metric: str | None = None,
        clock: str | None = None,
        preset: str | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        seed: int = 0,
    ) -> None:
        kept = {"clock": clock, "preset": preset, "tokenizer": tokenizer}
        self._set_up(None, embedder, dim, metric, kept, seed=seed)

    def _set_up(
        self,
        folder: Path | None,
        embedder: Embedder | str | None,
        dim: int | None = None,
        metric: str | None = None,
        kept: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        exact_below: int = EXACT_BELOW,
        create: bool = True,
        read_only: bool = False,
        **details: Any,
    ) -> Self:
        meant = settings_of(embedder, dim, metric, None if folder is None else known_of(folder))
        given = kept_settings(**(kept or {}))
        shared = Resources(
            folder,
            meant.embedder,
            metric=meant.metric,
            settings={"seed": seed, "exact_below": exact_below},
            create=create,
            read_only=read_only,
            kept=to_keep(**given),
            **details,
        )
        try:
            check_kept(shared.record, **given)
            if folder is not None and not read_only:
                from cvx.store.erase import finish

                finish(shared.store)
                shared.remember_spec(meant.spec)
        except BaseException:
            shared.store.close()
            raise
        return self._compose(shared)

    @classmethod
    def _opened(
        cls,
        path: str | os.PathLike[str] | None = None,
        embedder: Embedder | str | None = None,
        *,
        now: Callable[[], int] | None = None,
        **details: Any,
    ) -> Self:
        """Open with what only tests and repairs need: a clock of recording, ``exact_below``."""
        folder = None if path is None else Path(path)
        return cls.__new__(cls)._set_up(folder, embedder, clock=now, **details)

    def _compose(
        self,
        shared: Resources,
        identity: Identity | None = None,
        recaller: RecallVerbs | None = None,
    ) -> Self:
        identity = identity or Identity(clock=shared.clock)
        self._shared, self._identity = shared, identity
        self._owns = recaller is None
        self._recaller = recaller or RecallVerbs(shared)
        self.learning = Learning(shared, self._recaller, identity)
        self.aio = Aio(self)
        return self

    @cached_property
    def causes(self) -> Causes:
        """Proposes, confirms and tells causal links; its modules are loaded at the first use."""
        from cvx.memory.causes import Causes

        return Causes(self._shared, self._identity, self._meant)

    @property
    def frames(self) -> Frames:
        """Events, links, episodes and decisions of the whole store as frames.

        Raises
        ------
        NamespaceError
            The memory is bound to a namespace.
        """
        self._identity.need_root("frames")
        return Frames(self._shared)

    @property
    def admin(self) -> Admin:
        """What keeps the whole store in order.

        Raises
        ------
        NamespaceError
            The memory is bound to a namespace.
        """
        self._identity.need_root("admin")
        return Admin(self._shared)

    @classmethod
    @checked(
        **_OPENING,
        path=a_folder,
        create=a_flag,
        read_only=a_flag,
    )
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        embedder: Embedder | str | None = None,
        dim: int | None = None,
        metric: str | None = None,
        clock: str | None = None,
        preset: str | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        seed: int = 0,
        create: bool = True,
        read_only: bool = False,
    ) -> Self:
        """Open a memory in a folder, making it if there is none.

        Parameters
        ----------
        path : str or path
            The folder: ``memory.db`` is the record, ``LOCK`` keeps writers apart, ``index`` holds
            snapshots, which may be deleted at any time.
        embedder, dim, metric, clock, preset, tokenizer
            As for the class, for a store that is made. One that is there keeps its own, which need
            not be given again; others are refused. An embedder that uses the network is given
            again, or approved in the configuration of the user.
        seed : int
            Of a store that is made; one that is there keeps its own.
        create : bool, default True
            Whether a new store may be made.
        read_only : bool, default False
            Only read a store that is there: nothing is written, so that it also works on a
            read-only disk. What others commit is seen where SQLite's shared memory is there or
            can be made; elsewhere the store must have been closed, and a change to it is an error.

        Raises
        ------
        StoreNotFoundError
            There is no store, and none may be made.
        SettingsMismatchError
            The store was made with another embedder, dimension, metric, clock, preset or tokenizer.
        LostTailError
            The record ends before something that was written.
        StoreVersionError, DamagedStoreError, RecordIOError
            The record cannot be read.
        """
        kept = {"clock": clock, "preset": preset, "tokenizer": tokenizer}
        return cls.__new__(cls)._set_up(
            Path(path).absolute(),
            embedder,
            dim,
            metric,
            kept,
            seed=seed,
            create=create,
            read_only=read_only,
        )

    @property
    def embedder(self) -> Embedder:
        """What makes vectors of texts."""
        return self._shared.embedder

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return self._shared.dim

    @property
    def metric(self) -> str:
        """How vectors are compared."""
        return self._shared.metric

    @property
    def record(self) -> Record:
        """The record of the whole store; what is written through it is followed by the index.

        Raises
        ------
        NamespaceError
            The memory is bound to a namespace.
        """
        self._identity.need_root("record")
        return self._shared.record

    @property
    def index(self) -> RawIndex:
        """The index of the whole store, for reading: what is to stay goes through the memory.

        Raises
        ------
        NamespaceError
            The memory is bound to a namespace.
        """
        self._identity.need_root("index")
        return self._shared.index

    @property
    def folder(self) -> Path | None:
        """Where it lives, None for RAM."""
        return self._shared.folder

    def __bool__(self) -> bool:
        # An empty one is one: ``memory or Memory()`` must not make another.
        return True

    def __len__(self) -> int:
        if self._identity.bound:
            return len(self.events())
        found = self._shared.record.query("SELECT count(*) FROM events WHERE state = 'active'")
        return int(found[0][0])

    @watched("add", "text")
    @checked(aliases=some_texts, again=a_flag)
    def add(
        self,
        text: str,
        *,
        namespace: str | None = None,
        entity: str | None = None,
        timestamp: int | datetime | None = None,
        vector: Vector | None = None,
        aliases: Sequence[str] = (),
        action: str | None = None,
        reward: float | None = None,
        kind: str = "event",
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        source: str = "",
        trust: float | None = None,
        visibility: str | None = None,
        salience: float | None = None,
        key: str | None = None,
        again: bool = False,
    ) -> Event:
        """Remember one thing; when this returns, it survives a crash.

        Parameters
        ----------
        text : str
            What it says.
        namespace : str, optional
            Whose it is; default the memory's own, ``""`` at the root.
        entity : str, optional
            Who: whose timeline it is on.
        timestamp : int or aware datetime, optional
            When it happened, by the clock of the store; default now.
        vector : ndarray of shape (dim,), float32, optional
            Where it lies; by default the text is embedded.
        aliases : sequence of str
            Other words to find it by: the event is stored once, with a vector for each.
        action, reward, kind, tags, metadata, source, trust, visibility, salience, key
            As for ``Event``.
        again : bool, default False
            Store it even where it is an echo.

        An event of the namespace that has the key becomes a new version of itself: what is not
        given stays, metadata is merged; see ``update``. Another text without a ``timestamp`` is of
        now; a ``timestamp`` before that of the version that stands is refused with it.

        Returns
        -------
        Event
            As it is stored, with its ``id``. An echo is not stored: a block that ``context`` made
            or a loop rendered, or a text of 300 characters and more that a recall of this process
            handed out word for word and with which nothing else is given. The event is then the
            one that says so already, in a block the first, unless all were forgotten or
            quarantined meanwhile.

        Warns
        -----
        EchoWarning
            It is an echo, and nothing was stored.

        Raises
        ------
        InvalidInputError and its subclasses
            A value that cannot be stored; nothing is.
        DuplicateKeyError
            Another source wrote the event that has the key.
        RecordIOError
            The disk is full or failed; nothing is stored.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> memory.add("the spare key is under the green pot").id
        1
        >>> [hit.event.text for hit in memory.recall("where is the key?")]
        ['the spare key is under the green pot']
        """
        event = self._made(
            text,
            namespace=namespace,
            entity=entity,
            timestamp=timestamp,
            vector=vector,
            action=action,
            reward=reward,
            kind=kind,
            tags=tags,
            metadata=metadata,
            source=source,
            trust=1.0 if trust is None else trust,
            visibility=visibility,
            salience=salience,
            key=key,
        )
        placed = timestamp is not None
        stored, echo = self._added(event, aliases, again=again, placed=placed)
        echo.warned()
        return stored

    def _added(
        self, event: Event, aliases: Sequence[str] = (), *, again: bool = False, placed: bool
    ) -> tuple[Event, write_verbs.Added]:
        """Store an event, and return it as it is stored, or the one that it only repeats."""
        new = self._shared.record.told("next_event", int)
        added = write_verbs.add_events(
            self._shared, [event], [aliases], again=again, placed=[placed]
        )
        (number,) = added.ids
        return self._shared.event(number, self._identity, new=number >= new), added

    @checked(tags=some_texts, metadata=optional(a_mapping), visibility=optional(a_text))
    def _made(
        self,
        text: str,
        *,
        namespace: str | None = None,
        entity: str | None = None,
        timestamp: int | datetime | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        visibility: str | None = None,
        key: str | None = None,
        **fields: Any,
    ) -> Event:
        """Return the event that the parameters of ``add`` describe."""
        whose = self._identity.named(namespace)
        known = self._called(key, whose)
        time = self._time(timestamp, known, text, fields.get("vector"))
        if known is not None:
            # An event that has the key keeps what is not given.
            entity = known.entity if entity is None else entity
            visibility = known.visibility if visibility is None else visibility
        return Event(
            entity=entity,
            timestamp=time,
            text=str(text) if isinstance(text, str) else text,
            namespace=whose,
            metadata=metadata or {},
            tags=tuple(tags),
            visibility="private" if visibility is None else visibility,
            key=key,
            **fields,
        )

    def _time(
        self, given: int | datetime | None, known: Event | None, text: Any, vector: Any
    ) -> int:
        """Return when an event happened that is added now; what says the same keeps its time."""
        shared = self._shared
        if known and given is None and write_verbs.says_the_same(shared, known, text, vector):
            return known.timestamp
        return shared.time(given)

    def _called(self, key: str | None, namespace: str) -> Event | None:
        """Return the event of a namespace that has a key."""
        if key is None:
            return None
        number = self._shared.record.event_of_key(storable_text("key", key), namespace)
        found = [] if number is None else self._shared.record.events([number])
        return found[0] if found else None

    @watched("add_many", "items")
    @checked(aliases=optional(_lists), again=a_flag)
    def add_many(
        self,
        items: Iterable[Event | Episode | Mapping[str, Any] | str] | Any,
        *,
        namespace: str | None = None,
        aliases: Sequence[Sequence[str]] | None = None,
        again: bool = False,
    ) -> IntArray:
        """Remember several things, all of them or none, in one transaction.

        Parameters
        ----------
        items : iterable of Event, Episode, mapping or str, or a frame
            A mapping, or a row of a polars, pandas or Arrow frame, has the parameters of ``add``
            as its keys; what is None counts as not given. Of an Event, its id, node, episode and
            time of recording are not kept. An Episode is played again: its steps become those of
            a new episode, which ends with its ``reward``. Texts without a vector are embedded.
        namespace : str, optional
            Whose those are that name nobody; default the memory's own.
        aliases : sequence of sequences of str, optional
            Further words for each event, in their order, where no item brings its own.
        again : bool, default False
            As for ``add``.

        Returns
        -------
        ndarray of shape (n,), int64
            The ids of the events, in order; of an Episode those of its steps.

        Raises
        ------
        InvalidInputError and its subclasses
            An item that cannot be stored, by its place; nothing is stored.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> memory.add_many(["a mug", {"text": "a cup in the sink", "tags": ["kitchen"]}])
        array([1, 2])
        """
        whose = self._identity.named(namespace)
        listed: list[Event | Episode] = []
        words: list[Sequence[str]] = []
        placed: list[bool] = []
        counts = self._shared.clock != "utc"
        latest = began = self._shared.now() if counts else 0
        for place, item in enumerate(write_verbs.rows_of(items)):
            with write_verbs.named(place):
                made, named = self._item(item, whose)
                if isinstance(made, Event) and counts:
                    # One that says again what it said keeps its time.
                    if not _timed(item) and made.timestamp > began:
                        made = replace(made, timestamp=latest + 1)
                    latest = max(latest, a_time("timestamp", made.timestamp))
            listed.append(made)
            words.append(named)
            placed.append(_timed(item))
        if aliases:
            if any(words) or any(isinstance(one, Episode) for one in listed):
                raise wrong("aliases", aliases, "none: some items bring their own, or are episodes")
            words = [*aliases]
        if not any(isinstance(one, Episode) for one in listed):
            events = [one for one in listed if isinstance(one, Event)]
            added = write_verbs.add_events(self._shared, events, words, again=again, placed=placed)
            return np.array(added.warned(), dtype=np.int64)
        ids: list[int] = []
        with self._shared.record.together():
            for place, (one, named) in enumerate(zip(listed, words, strict=True)):
                with write_verbs.named(place):
                    if isinstance(one, Event):
                        ids += write_verbs.add_events(
                            self._shared, [one], [named], again=again, placed=[placed[place]]
                        ).warned()
                    else:
                        ids += self._play_again(one, one.namespace or whose)
        return np.array(ids, dtype=np.int64)

    def _item(self, item: Any, whose: str) -> tuple[Event | Episode, Sequence[str]]:
        """Return what one item of ``add_many`` stands for, and its aliases."""
        if isinstance(item, str):
            item = {"text": item}
        if isinstance(item, Mapping):
            known = {*inspect.signature(Memory.add).parameters} - {"self", "again"}
            fields = {name: value for name, value in item.items() if value is not None}
            if odd := fields.keys() - known:
                raise wrong("item", {*odd}, f"keys among {', '.join(sorted(known))}")
            if "text" not in fields:
                raise wrong("item", item, "one with a text")
            words = some_texts("aliases", fields.pop("aliases", ()))
            return self._made(**{"namespace": whose, **fields}), words
        if isinstance(item, Event | Episode):
            if item.namespace == DEFAULT_NAMESPACE:
                item = replace(item, namespace=whose)
            else:
                self._identity.named(item.namespace)
            if isinstance(item, Event) and (
                not _timed(item) or isinstance(item.timestamp, datetime)
            ):
                given = item.timestamp if _timed(item) else None
                there = self._called(item.key, item.namespace) if given is None else None
                item = replace(item, timestamp=self._time(given, there, item.text, item.vector))
            return item, ()
        raise wrong("item", item, "an Event, an Episode, a mapping of add's parameters, or a text")

    def _play_again(self, episode: Episode, namespace: str) -> list[int]:
        """Store an episode that was played elsewhere, and return the ids of its steps."""
        if episode.reward is None:
            raise wrong("reward", None, "how the episode ended, in [0, 1]")
        run = self.episode(
            episode.goal,
            task=episode.task_type,
            entity=episode.entity,
            kind=episode.kind,
            namespace=namespace,
        )
        for step in episode.steps:
            run.act(step.action, observation=step.text)
        run.end(episode.reward)
        return [step.id for step in run.events]

    @checked(
        text=optional(a_text),
        tags=optional(some_texts),
        metadata=optional(a_mapping),
        salience=optional(a_share),
        trust=optional(a_share),
        aliases=some_texts,
        state=optional(among(*STATES)),
    )
    def update(
        self,
        event: AnEvent,
        *,
        text: str | None = None,
        timestamp: int | datetime | None = None,
        vector: Vector | None = None,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        salience: float | None = None,
        trust: float | None = None,
        reward: float | None = None,
        aliases: Sequence[str] = (),
        state: str | None = None,
        namespace: str | None = None,
    ) -> Event:
        """Change what is given of an event, and keep the rest.

        With another text the event has another vector, from which it is found at once; the older
        version stays in its ``history`` and in ``as_of``, its links stay, its use is counted anew.

        Parameters
        ----------
        event : Event, Hit or int
        text : str, optional
            What it says from now on.
        timestamp : int or aware datetime, optional
            When it happened. By default that stays, unless another text is news: that of an event
            with a key, or one that speaks of a day by its distance ("yesterday") where the older
            text does not. News is of now.
        vector : ndarray of shape (dim,), float32, optional
            Where it lies; by default a new text is embedded.
        tags : iterable of str, optional
            Replace those it has.
        metadata : mapping, optional
            Is merged into what it has; a value None takes its key away.
        salience, trust : float, optional
            In [0, 1].
        reward : float, optional
            In [0, 1].
        aliases : sequence of str
            Further words to find it by; it stays one event, and is found once.
        state : {"active", "archived", "quarantined"}, optional
            "active" brings back what was forgotten or quarantined.
        namespace : str, optional
            Who changes it: the event must be of it. By default anybody may whom the memory serves.

        Returns
        -------
        Event
            As it is now, with its history.

        Raises
        ------
        UnknownError
            No such event.
        InvalidInputError
            The reward is outside [0, 1].
        UnknownError
            Aliases or a reward for an event that is in no index.
        InvalidInputError
            The text of a step of an episode; a single string as aliases or tags.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> home = memory.add("Ana lives in Lyon", metadata={"topic": "home"})
        >>> home = memory.update(home, text="Ana lives in Porto")
        >>> home.id, home.version, home.history[0].text, dict(home.metadata)
        (1, 2, 'Ana lives in Lyon', {'topic': 'home'})
        >>> [hit.event.text for hit in memory.recall("where does Ana live?")]
        ['Ana lives in Porto']
        """
        number = an_event("event", event)
        identity = self._identity.acting(namespace)
        self._shared.check_own([number], identity)
        change = write_verbs.Change(
            text=text,
            timestamp=None if timestamp is None else self._shared.time(timestamp),
            vector=vector,
            tags=None if tags is None else tuple(tags),
            metadata=metadata,
            salience=salience,
            trust=trust,
            reward=reward,
            state=state,
        )
        write_verbs.change_event(self._shared, number, change, aliases)
        return self._shared.event(number, identity)

    @checked(kind=a_text, why=a_text, weight=a_share, evidence=a_text, effect_first=a_text)
    def link(
        self,
        cause: AnEvent,
        effect: AnEvent,
        kind: str = "caused",
        *,
        why: str = "",
        weight: float = 1.0,
        evidence: str = "",
        effect_first: str = "refuse",
        namespace: str | None = None,
    ) -> Edge:
        """Say that one event led to another; the same link again replaces the older one.

        Parameters
        ----------
        cause, effect : Event, Hit or int
            From the one to the other.
        kind : str, default "caused"
            A kind of edge; one of your own is declared first, with
            ``admin.declare_edge_kind``.
        why : str
            The reason in words.
        weight : float, default 1.0
            In [0, 1].
        evidence : str
            What the reason rests on.
        effect_first : {"refuse", "flag", "allow"}, default "refuse"
            What becomes of a link of a built-in causal kind ("caused", "caused_success",
            "caused_failure", "granger_causal") to an effect that happened before its cause: an
            error, a link with a warning, or a link. Allow it where timestamps say when something
            was told, and not when it happened. Two events that were added without a timestamp have
            no order: they are linked as told.
        namespace : str, optional
            Who says so: both events must be of it.

        Returns
        -------
        Edge
            As it is stored: ``cause``, ``effect`` (ids), ``kind``, ``weight``, ``why``,
            ``evidence``, ``state``.

        Raises
        ------
        UnknownError, InvalidInputError
            No such event or kind; a weight outside its bounds; a link to itself, or a reason that
            is no string.
        InvalidInputError
            The effect happened before the cause, and ``effect_first`` is "refuse".
        InvalidInputError
            By other links the effect led to the cause already, and ``effect_first`` is "refuse".
        InvalidInputError
            Another ``effect_first`` than those.

        Warns
        -----
        EffectFirstWarning
            The effect happened before the cause, and ``effect_first`` is "flag".
        """
        ends = an_event("cause", cause), an_event("effect", effect)
        self._shared.check_own(ends, self._identity.acting(namespace))
        return write_verbs.link_events(
            self._shared, Edge(*ends, kind, weight, why, evidence), effect_first
        )

    @checked(dry_run=a_flag)
    def forget(
        self,
        events: AnEvent | Iterable[AnEvent] | None = None,
        *,
        where: Where | None = None,
        namespace: str | None = None,
        dry_run: bool = False,
    ) -> list[int]:
        """Archive events: they are in no recall any more; ``update(state="active")`` undoes it.

        Parameters
        ----------
        events : Event, Hit, int or iterable of these, optional
            Which ones; or
        where : Filter, mapping of its fields, or a list of these, optional
            all of the namespace that pass it.
        namespace : str, optional
            Whose they are; default the memory's own, and with ids at the root anybody's.
        dry_run : bool, default False
            Only say which ones.

        Returns
        -------
        list of int
            Their ids.

        Raises
        ------
        UnknownError
            One of them does not exist; nothing changes.
        InvalidInputError
            Neither events nor a filter, both, or a filter that everything passes.
        """
        listed = self._targets(events, where, namespace, dry_run)
        if not dry_run:
            write_verbs.set_state(self._shared, listed, "archived")
        return listed

    @checked(dry_run=a_flag)
    def erase(
        self,
        events: AnEvent | Iterable[AnEvent] | None = None,
        *,
        where: Where | None = None,
        namespace: str | None = None,
        dry_run: bool = False,
    ) -> Erased:
        """Erase events for good, from every file: see ``cvx.store.erase.erase``.

        The caches of the embedder, and those that lie in the folder, are cleaned of their texts
        and of the cues that quote them. It copies the index and the database: erase many at once.
        Where an erase was not ``complete``, ``erase([])`` completes it.

        Parameters
        ----------
        events, where, namespace, dry_run
            As for ``forget``; what was archived or quarantined is erased too.

        Returns
        -------
        Erased
            A list of their ids, which also says whether all is done (``complete``).

        Raises
        ------
        UnknownError
            One of them does not exist; nothing is erased.
        InvalidInputError
            Neither events nor a filter, both, or a filter that everything passes.
        """
        listed = self._targets(events, where, namespace, dry_run)
        if dry_run:
            from cvx.store.erase import Erased

            return Erased(listed, complete=False)
        return write_verbs.erase_events(self._shared, listed)

    def _targets(
        self,
        events: AnEvent | Iterable[AnEvent] | None,
        where: Where | None,
        namespace: str | None,
        dry_run: bool,
    ) -> list[int]:
        if (events is None) == (where is None):
            raise InvalidInputError(
                f"events is {short_repr(events)} and where is {short_repr(where)}: give one of them"
            )
        if events is None:
            self._identity.choosing(where)
            return self._recaller.own(asker_of(self._identity, namespace, where, "any"))
        listed = list(dict.fromkeys(some_events("events", events)))
        found = self._shared.record.query(
            "SELECT event_id FROM events WHERE event_id IN (SELECT value FROM json_each(?))",
            (str(listed),),
        )
        if dry_run and len(found) < len(listed):
            missing = min({*listed} - {row[0] for row in found})
            raise UnknownError(f"there is no event {missing}: it was erased or never given")
        self._shared.check_own(listed, self._identity.acting(namespace))
        return listed

    @checked(key=optional(a_text))
    def get(
        self,
        event: AnEvent | None = None,
        *,
        key: str | None = None,
        namespace: str | None = None,
    ) -> Event:
        """Return an event by its id or its key, whatever its state.

        Parameters
        ----------
        event : Event, Hit or int, optional
            An event is read again.
        key : str, optional
            What it is called elsewhere.
        namespace : str, optional
            Who asks, and in which the key is unique; default the memory's own.

        Raises
        ------
        UnknownError
            It was erased, or never given; or no event of the namespace has that key.
        InvalidInputError
            Neither an id nor a key, or both.
        DamagedStoreError
            Its row is not what was written.
        """
        if (event is None) == (key is None):
            raise InvalidInputError(f"event is {event!r} and key is {key!r}: give one of them")
        if event is not None:
            return self._shared.event(an_event("event", event), self._identity.acting(namespace))
        namespace = self._identity.named(namespace)
        found = self._called(key, namespace)
        if found is None:
            raise UnknownError(
                f"no event of namespace {namespace!r} has the key {key!r}: add one with it, or "
                "name the namespace that has it"
            )
        return self._shared.event(found.id, self._identity)

    @checked(newest=a_flag, limit=optional(whole(0)))
    def events(
        self,
        where: Where | None = None,
        *,
        newest: bool = False,
        limit: int | None = None,
        namespace: str | None = None,
    ) -> list[Event]:
        """Return the events that pass a filter, without a cue, in the order of their times.

        Parameters
        ----------
        where, namespace
            As for ``recall``; steps of failed episodes come too, unless ``where`` says otherwise.
        newest : bool, default False
            The latest first.
        limit : int, optional
            So many at the most, the first of that order.

        Raises
        ------
        InvalidInputError
            As for ``recall``.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> for day in range(5):
        ...     _ = memory.add(f"rain {day}", timestamp=day)
        >>> [event.text for event in memory.events({"since": 3}, newest=True)]
        ['rain 4', 'rain 3']
        """
        asker = asker_of(self._identity, namespace, where, "any")
        found = self._recaller.events(asker, newest=newest, limit=limit)
        return self._shared.versions.of_each(found)

    @watched("recall", "cue")
    @checked(**RECALL)
    def recall(
        self,
        cue: str | Cue | Vector,
        k: int = 10,
        *,
        namespace: str | None = None,
        where: Where | None = None,
        sources: Sources | None = None,
        floor: float | Floor | None = None,
        min_relevance: float | None = None,
        preset: str | None = None,
        pipeline: Pipeline | None = None,
    ) -> Hits:
        """Find what fits a cue: near to it, or in its words; best first.

        Parameters
        ----------
        cue : str, Cue or ndarray of shape (dim,)
            What is asked; a cue's own vector is used if it has one. A list of numbers is a vector,
            and never means the ids of events.
        k : int, default 10
            How many events, at least 1. An event with aliases counts once.
        namespace : str, optional
            Who asks: everything of it can come back, and what others made public; default the
            memory's own, and what is shared in the namespaces that ``within`` named.
        where : Filter, mapping of its fields, or a list of these, optional
            What may come back; of a list, one is enough. Steps of failed episodes only come where
            it says so: ``{"outcome": "failure"}`` or "any".
        sources : sequence of str, or mapping of str to callable, optional
            Where to look: "dense", "lexical", "words", "graph", "aliases", "recent", "causes", and
            any ``Callable[[Cue], list[Hit]]`` under a name of its own (None for a built-in one);
            default those of the pipeline.
        floor : float, Floor or False, optional
            In place of the floor of the pipeline: events no more similar than this are found by
            their words only, if at all; False leaves out nothing.
        min_relevance : float, optional
            In [0, 1]: what is less likely to be wanted is left out.
        preset : {"default", "retrieval-augmented", "tcmf", "tcmf-seed"}, optional
            How to recall this time: by the shipped weights, or the formula of a source document.
        pipeline : Pipeline, optional
            The same in full; default ``learning.pipeline``.

        Returns
        -------
        Hits
            A list of `Hit`, each with its ``event``; the shares of the ``factors`` add up to the
            score, into which the trust in the event's source enters; ``relevance`` is the chance
            that it is wanted. Empty where nothing fits, or most likely nothing is known of what is
            asked: ``nearest`` then holds what came nearest. ``trace`` says what happened.

        Raises
        ------
        InvalidInputError
            A parameter outside its bounds.
        InvalidInputError
            Namespaces that cannot be some.
        """
        asker = asker_of(self._identity, namespace, where)
        plan = partial(self._recaller.plan, preset, pipeline, sources, floor, min_relevance)
        return self._recaller.recall(cue, k, asker, plan)

    @watched("context", "cue")
    @checked(**{**RECALL, "k": optional(RECALL["k"])}, budget_tokens=optional(whole(0)))
    def context(
        self,
        cue: str | Cue | Vector,
        budget_tokens: int | None = None,
        *,
        k: int | None = None,
        namespace: str | None = None,
        where: Where | None = None,
        sources: Sources | None = None,
        floor: float | Floor | None = None,
        min_relevance: float | None = None,
        preset: str | None = None,
        pipeline: Pipeline | None = None,
    ) -> Context:
        """Recall for a prompt: whole memories, each once, as one block in a budget.

        The best come first; without ``k``, from the sixth on, the shorter of two about as good.

        Parameters
        ----------
        cue : str, Cue or ndarray of shape (dim,)
            What the agent is after right now; its ``place`` is the number of the turn.
        budget_tokens : int, optional
            Room in the prompt, at least 0; default 500, unless the pipeline says otherwise.
        k : int, optional
            How many memories at the most, at least 1; default as many as there is room for.
        namespace, where, sources, floor, min_relevance, preset, pipeline
            As for ``recall``. The pipeline's ``serving`` says what a duplicate is, how tokens are
            counted, what does the compacting, and when a memory counts as used.

        Returns
        -------
        Context
            A str for a prompt, with the ``hits`` it shows, its ``trace``, ``used_tokens`` and the
            number of its ``decision``.

        Raises
        ------
        InvalidInputError
            A parameter outside its bounds.

        Warns
        -----
        StaleCueWarning
            The same cue was asked at the last turns too: build it anew from the agent's state.
        """
        plan = partial(
            self._recaller.plan, preset, pipeline, sources, floor, min_relevance, budget_tokens
        )
        asker = asker_of(self._identity, namespace, where)
        return self._recaller.context(cue, k, asker, plan)

    @checked(max_depth=whole(1))
    def why(
        self, event_or_words: AnEvent | str, *, max_depth: int = 6, namespace: str | None = None
    ) -> Story:
        """Return what led to an event, over its causal links backwards; nearest first.

        Links that say nothing of causes ("irrelevant", "same_action_type", "region_transition",
        "mentions") are not walked. After 1000 events the walk ends, and ``truncated`` says so.

        Parameters
        ----------
        event_or_words : Event, Hit, int or str
            What is to be explained; of words, the event that a recall finds first.
        max_depth : int, default 6
            Links away at the most, at least 1; ``deeper`` says whether there are more.
        namespace : str, optional
            Who asks: nothing that it may not see is shown or walked through.

        Returns
        -------
        Story
            A list of events, with the ``edges`` that lead to them and the event that it is the
            story ``of``; ``print(memory.why("the flood"))`` tells it.

        Raises
        ------
        UnknownError
            No such event, none that the namespace may see, or none that fits the words.
        InvalidInputError
            A depth below 1.
        """
        return self._story(event_or_words, namespace, max_depth=max_depth, after=0)

    @checked(max_depth=whole(1))
    def consequences(
        self, event_or_words: AnEvent | str, *, max_depth: int = 6, namespace: str | None = None
    ) -> Story:
        """Return what an event led to, over its causal links forwards; see ``why``."""
        return self._story(event_or_words, namespace, before=False, after=max_depth)

    def _story(self, event_or_words: AnEvent | str, namespace: str | None, **how: Any) -> Story:
        from cvx.memory.causes import story_of

        of = self._meant(event_or_words, namespace)
        told = self.causes.graph(namespace=namespace).story(of.id, **how)
        return story_of(self._shared.record, of, told, told.before or told.after)

    def _meant(self, event: AnEvent | str, namespace: str | None) -> Event:
        """Return an event, or the one that words mean."""
        if not isinstance(event, str):
            found = self._shared.record.events([an_event("event", event)])
            if not found:
                raise UnknownError(f"there is no event {event!r:.60}: it was erased or never given")
            return found[0]
        hits = self.recall(event, 1, where={"outcome": "any"}, namespace=namespace)
        if not hits or hits[0].event is None:
            cure = "an id is given as a number" if event.strip().isdecimal() else "give the event"
            raise UnknownError(f"no event fits {event!r:.60}: use other words, or {cure}")
        return hits[0].event

    @checked(
        shown=_feedback.a_decision_to_judge,
        helped=optional(_feedback.a_help),
        action=optional(a_text),
        outcome=optional(an_outcome),
    )
    def feedback(
        self,
        shown: Context | Hits | Decision | int,
        *,
        helped: bool | Iterable[AnEvent] | None = None,
        followed: Iterable[AnEvent] | None = None,
        action: str | None = None,
        outcome: float | None = None,
        namespace: str | None = None,
    ) -> None:
        """Say what became of a context or a recall: what of it helped, or was followed.

        What helped is told from what was shown beside it and did not: the next recalls of the
        namespace weigh their signals by it, as the factor ``feedback`` says, once the feedback can
        be trusted; ``learning.reset("recall")`` takes it back.

        Shown, followed and helped are counted apart: what was shown and not followed is not
        blamed, and nothing is praised for an outcome that it had no part in. What was followed may
        be said before the outcome is known; it counts as followed once it is. A labelled source
        whose advice keeps failing when it is followed is left out of the namespace's recalls.

        The last word counts: what was said before of the same decision is taken back, and what is
        not given now stays as it was said. The weights take back only what they have not learned
        from yet, which they do every five lists; they learn from none twice.

        Parameters
        ----------
        shown : Context, Hits, Decision or int
            Of ``context`` or ``recall``, or the number of its decision, which another process may
            give too, once this one wrote something or closed; the order of recalls is taught by
            the process that recalled, of its last 256.
        helped : bool or iterable of Event, Hit or int, optional
            What of it helped, or of what an empty recall names as ``nearest``; ``[]`` is nothing.
            Or whether what was followed did, by default whether ``outcome`` is above 0.5. None:
            nothing is known.
        followed : iterable of Event, Hit or int, optional
            What the agent went by; default what was said before, at first
            none.
        action : str, optional
            What the agent did; default what was said before.
        outcome : float, optional
            How it ended, in [0, 1].
        namespace : str, optional
            Who says so: the decision must be of it.

        Raises
        ------
        UnknownError
            No such decision.
        EpisodeEndedError
            It is of a loop or an episode, whose outcome says so.
        InvalidInputError
            Something helped or was followed that the decision did not show; an outcome outside
            [0, 1].
        """
        assert isinstance(shown, int)
        _feedback.take_feedback(
            self._shared,
            self._recaller,
            shown,
            self._identity.acting(namespace),
            followed=None if followed is None else _feedback.some_followed("followed", followed),
            helped=helped,  # type: ignore[arg-type]
            action=action,
            outcome=outcome,
        )

    @checked(namespace=a_text)
    def within(self, namespace: str, *, also: Sequence[str] = ()) -> Self:
        """Return the same memory in the name of a namespace, for whoever must not name another.

        It writes to its namespace, and sees that, what others made public, and what is shared in
        ``also``. Closing it closes nothing.

        Parameters
        ----------
        namespace : str
            Who writes and asks; "" is the unnamed one.
        also : sequence of str
            Further namespaces, of which what is shared is seen.

        Raises
        ------
        InvalidInputError
            The namespace is no str; None is refused, and does not mean the unnamed one.
        NamespaceError
            This memory is bound already, and sees less.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> ana, bob = memory.within("ana"), memory.within("bob")
        >>> _ = ana.add("the spare key is under the green pot")
        >>> len(ana.recall("where is the key?")), len(bob.recall("where is the key?"))
        (1, 0)
        """
        own = self._identity.named(namespace)
        further = check_also(also)
        if self._identity.bound and not {*further} <= {*self._identity.also}:
            self._identity.need_root("also")
        identity = replace(self._identity, namespace=own, also=further, bound=True)
        return type(self).__new__(type(self))._compose(self._shared, identity, self._recaller)

    @checked(recorded=a_time)
    def as_of(self, recorded: int | datetime) -> Memory:
        """Return the memory as it was at a time of recording.

        It goes by when things were recorded, not by when they happened: of a history that was
        imported later it shows nothing. What happened until then is ``where={"until": ...}``.

        No later event, link, reward, count, decision or weight is known to it; what was erased
        since is gone from it too. The answer is a memory of its own that refuses writes.

        It reads the same file; what was changed since then is kept in RAM, and what was added is
        taken out of the newest snapshot of the index. Where more was added than there was, an
        event has another version since, or there is no snapshot, an index is made in RAM; a
        memory in RAM is copied. Until it is closed, or nobody holds it any more, the log beside
        the database keeps all that is written. Erasing or compacting closes it; where another
        process erases, that is not complete until this one uses the memory, which closes it too.

        Parameters
        ----------
        recorded : int or aware datetime
            In microseconds since 1970-01-01 UTC, as in ``Event.recorded``.

        Raises
        ------
        UnknownError
            An older version of cvx kept the store then, and overwrote what it knew.
        InvalidInputError
            No whole number, or none of 64 bits.

        Warns
        -----
        AsOfWarning
            Nothing that is in the store was recorded by then.
        """
        assert isinstance(recorded, int)
        record = as_of(self._shared.record, recorded)
        later = (
            "SELECT 1 FROM events WHERE NOT EXISTS"
            " (SELECT 1 FROM journal WHERE op = 'erase' AND recorded > ?) LIMIT 1"
        )
        if not record.query("SELECT 1 FROM events LIMIT 1") and self._shared.record.query(
            later, (recorded,)
        ):
            warn(
                f"nothing was recorded yet at {when(recorded)}: as_of goes by when things were "
                'recorded; for what happened until then, give where={"until": ...}',
                AsOfWarning,
            )
        snapshots = self._shared.store.snapshots
        past = Resources(
            None,
            self.embedder,
            metric=self.metric,
            record=record,
            loaded=None if snapshots is None else snapshots.newest(),
        )
        return type(self).__new__(type(self))._compose(past, self._identity)

    def close(self) -> None:
        """Write down what is noted, snapshot the index, and close. Closing again does nothing.

        While another process writes, it waits for five seconds in all, and then closes without
        the snapshot, which is only a cache, and without what recalls have noted.

        Warns
        -----
        NotWrittenWarning
            Decisions and counts of use were not written.

        Raises
        ------
        StoreError
            This thread is writing to it.
        """
        if self._identity.bound and not self._owns:
            return
        shared = self._shared
        with shared.record.database.patience(CLOSE_WAITS_S):
            try:
                if not shared.record.closed and not shared.record.frozen and shared.noted:
                    # Moved to another embedder meanwhile, the store takes nothing from here.
                    with suppress(SettingsMismatchError):
                        shared.flush_last()
                shared.save_learned()
                with suppress(StoreError, SettingsMismatchError):
                    self._recaller.save()
            finally:
                shared.store.close()

    @checked(
        task=optional(a_text),
        entity=optional(a_text),
        id=optional(whole(0)),
        trust=optional(a_share),
        history=optional(whole(0)),
    )
    def episode(
        self,
        goal: str = "",
        *,
        task: str | None = None,
        entity: str | None = None,
        kind: str = "experience",
        id: int | None = None,  # noqa: A002
        source: str = "",
        trust: float | None = None,
        visibility: str = "private",
        namespace: str | None = None,
        history: int | None = None,
        learn: bool = True,
    ) -> RunningEpisode:
        """Begin an episode: ask for advice, act, end; its outcome makes the next advice better.

        Parameters
        ----------
        goal : str
            What is to be reached.
        task : str, optional
            Which family of episodes this belongs to: those of a task learn from each other first.
            Where it has several goals, they are part of what tells its states apart. Default:
            goals that name none learn from each other, if what they see is told in texts and they
            are paid by an outcome or by rewards of at most 1.
        entity : str, optional
            Whose timeline the steps are on; default one of its own.
        kind : str, default "experience"
            "experience", or "demonstration" of somebody else's play.
        id : int, optional
            Take up the episode that was left open under this id, by this process or another.
        source, trust, visibility
            As for ``add``, of every step.
        namespace : str, optional
            Whose it is, and who asks; default the memory's own.
        history : int, optional
            How many of the last actions with what came of them are part of what tells states
            apart; default as many as pays.
        learn : bool, default True
            False measures what was learned: the episode is played by the same advice, and
            teaches nobody; nothing of it is stored, so that what follows is as if it had not been
            played. A memory that is read only has such episodes alone. What ``recall`` and
            ``context`` show in it is noted as always.

        Returns
        -------
        RunningEpisode
            Best used as a context manager.

        Raises
        ------
        InvalidInputError
            A text that is no string, another kind or visibility, a trust outside [0, 1]; an id
            together with what an episode begins with.
        EpisodeEndedError, UnknownError
            The id is of an episode that is over; or of none.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> for way in ("left", "right", "right"):
        ...     with memory.episode("find the hat", task="hats") as episode:
        ...         advice = episode.advise("a hall", ["left", "right"])
        ...         step = episode.act(way)
        ...         episode.end(1.0 if way == "right" else 0.0)
        >>> memory.episode("find the hat", task="hats").advise("a hall", ["left", "right"]).best
        <Option 'right': ...>
        """
        from cvx.memory.episode import begin, take_up

        if id is None:
            return begin(
                self,
                self._shared,
                self._identity,
                goal=goal,
                task=task,
                entity=entity,
                kind=kind,
                source=source,
                trust=1.0 if trust is None else trust,
                visibility=visibility,
                namespace=namespace,
                history=history,
                learn=a_flag("learn", learn),
            )
        given = (goal, task, entity, kind, source, trust, visibility, learn)
        if given != ("", None, None, "experience", "", None, "private", True):
            raise InvalidInputError(
                f"id is {id}, together with what an episode begins with: give the id alone to "
                "take it up"
            )
        self._identity.named(namespace)
        return take_up(self, self._shared, self._identity, id, history)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a memory cannot be pickled or copied: open its folder in the other process, "
            "with Memory.open(path)"
        )

    def __repr__(self) -> str:
        where = "in RAM" if self.folder is None else f"at {self.folder}"
        whose = f", within {self._identity.namespace!r}" if self._identity.bound else ""
        if self._shared.record.closed:
            return f"<Memory {where}{whose}, closed>"
        if not self._identity.bound:
            where += f": {len(self)} events, {self.embedder.info()['id']}, {self._shared.clock}"
        return f"<Memory {where}{whose}>"

    def _repr_html_(self) -> str:
        return f"<p>{html_text(repr(self)[1:-1])}</p>"
