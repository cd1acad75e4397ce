"""Records episodes: begin, steps, outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cvx.arguments import (
    a_share,
    a_text,
    among,
    an_outcome,
    checked,
    one_of,
    optional,
    some_texts,
    whole,
    wrong,
)
from cvx.errors import EpisodeEndedError, InvalidInputError
from cvx.learn.attribution import Taken
from cvx.learn.episode_lookup import ClosedEpisodes
from cvx.store.rows import OWN_ENTITIES
from cvx.types import DEFAULT_NAMESPACE, Episode, Event, Vector
from cvx.validation import (
    VISIBILITIES,
    optional_text,
    storable_metadata,
    storable_namespace,
    storable_text,
    storable_time,
)


@dataclass(slots=True, eq=False)
class OpenEpisode:
    """An episode that may still be running, of a loop or of ``Memory.episode``.

    Attributes
    ----------
    episode_id, entity_id : int
        Its own number, and whose timeline it writes.
    goal, task_type, namespace, kind, metadata, source, trust, visibility
        As given at the beginning.
    steps : list of Event
        What was recorded so far.
    taken : list of Taken
        The decisions that were acted on so far.
    closed : bool
        Whether it has its outcome, or was discarded.
    entity : str or None
        The name of the entity, where it has one.
    own_entity : bool
        Whether its entity is one that nobody named, and may become another.
    stored : bool
        Whether its steps and decisions are written as they are made.
    """

    episode_id: int
    entity_id: int
    goal: str = ""
    task_type: str | None = None
    namespace: str = DEFAULT_NAMESPACE
    kind: str = "experience"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    trust: float = 1.0
    visibility: str = "private"
    steps: list[Event] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    closed: bool = False
    entity: str | None = None
    own_entity: bool = False
    stored: bool = False


an_open_episode = one_of(OpenEpisode, called="an episode that begin() returned")


def an_action(name: str, value: Any) -> str | None:
    """Check what was done: words, or None where nothing was."""
    if value is not None and not storable_text(name, value).strip():
        raise wrong(name, value, "what was done, or None where nothing was")
    return None if value is None else str(value)


def some_tags(name: str, value: Any) -> tuple[str, ...]:
    """Check labels: several strings, each of which can be stored."""
    return tuple(storable_text("a tag", tag) for tag in some_texts(name, value))


def some_metadata(name: str, value: Any) -> dict[str, Any]:
    """Return a copy of metadata that can be stored; none is an empty one."""
    return storable_metadata(name, value or {})


class EpisodeRecorder:
    """Numbers episodes, makes their steps, and logs what was closed.

    Parameters
    ----------
    first_episode, first_entity : int, default 0
        The first numbers to give out.
    now : callable, optional
        Returns the time of a step that brings none of its own; by default steps are counted.
    read : callable, optional
        As for ``ClosedEpisodes``.

    Attributes
    ----------
    log : ClosedEpisodes
        The closed episodes, oldest first.
    clock : int
        No step without a time of its own gets an earlier one.

    Examples
    --------
    >>> recorder = EpisodeRecorder()
    >>> run = recorder.begin(goal="cool the apple", task_type="cool")
    >>> _ = recorder.step(run, "a fridge", action="open fridge 1")
    >>> _ = recorder.step(run, "an open fridge", action="cool apple 1 with fridge 1")
    >>> recorder.outcome(run, reward=1.0).actions
    ('open fridge 1', 'cool apple 1 with fridge 1')
    """

    def __init__(
        self,
        *,
        first_episode: int = 0,
        first_entity: int = 0,
        now: Callable[[], int] | None = None,
        read: Callable[[Collection[int]], Iterable[Episode]] | None = None,
    ) -> None:
        self.log = ClosedEpisodes(read)
        self.clock = 0
        self._now = now
        self._episode, self._entity = first_episode, first_entity

    @checked(
        goal=storable_text,
        task_type=optional_text,
        entity_id=optional(whole(0)),
        namespace=storable_namespace,
        kind=among("experience", "demonstration"),
        metadata=some_metadata,
        source=a_text,
        trust=a_share,
        visibility=among(*VISIBILITIES),
    )
    def begin(
        self,
        goal: str = "",
        task_type: str | None = None,
        *,
        entity_id: int | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        kind: str = "experience",
        metadata: Mapping[str, Any] | None = None,
        source: str = "",
        trust: float = 1.0,
        visibility: str = "private",
    ) -> OpenEpisode:
        """Start an episode.

        Parameters
        ----------
        goal : str
            What is to be reached.
        task_type : str, optional
            Which family of goals it belongs to.
        entity_id : int, optional
            Whose timeline it writes, below 2**63; by default one of its own, counting up from 0.
        namespace : str, default ""
            Which memory it is part of.
        kind : str, default "experience"
            "experience" or "demonstration".
        metadata : mapping, optional
            Anything JSON can hold.
        source : str, default ""
            Where it comes from, by which its steps are audited, quarantined and rolled back.
        trust : float, default 1.0
            How far that is to be believed, in [0, 1].
        visibility : {"private", "shared", "public"}, default "private"
            Who else may read it: nobody, who names the namespace, or everybody.

        Returns
        -------
        OpenEpisode

        Raises
        ------
        InvalidInputError
            A text that is no string, another ``kind`` or ``visibility``, a trust outside [0, 1],
            or metadata that JSON cannot hold.
        InvalidInputError
            A namespace that cannot be one.
        InvalidInputError
            An entity out of range; or none, and no number below 2**62 is free.
        """
        own_entity = entity_id is None
        if entity_id is None:
            if self._entity >= OWN_ENTITIES:
                raise InvalidInputError(
                    f"entity {self._entity - 1} leaves no number below {OWN_ENTITIES} for an "
                    "episode without one: give entity_id"
                )
            entity_id = self._entity
        run = OpenEpisode(
            self._episode,
            entity_id,
            goal,
            task_type,
            namespace,
            kind,
            metadata or {},
            source=source,
            trust=trust,
            visibility=visibility,
            own_entity=own_entity,
        )
        self.start_at(self._episode + 1, entity_id + 1)
        return run

    def time(self) -> int:
        """Return the timestamp that a step without one would get at this moment."""
        return self.clock if self._now is None else max(self.clock, self._now())

    def start_at(self, episode: int, entity: int) -> None:
        """Give out nothing below these any more; entities from `OWN_ENTITIES` on are not counted.

        Such entities are the user's, whose own numbers may be hashes of 64 bits.
        """
        self._episode = max(self._episode, episode)
        if entity <= OWN_ENTITIES:
            self._entity = max(self._entity, entity)

    @checked(
        run=an_open_episode,
        text=storable_text,
        action=an_action,
        timestamp=optional(storable_time),
        tags=some_tags,
        metadata=some_metadata,
        reward=optional(an_outcome),
    )
    def step(
        self,
        run: OpenEpisode,
        text: str = "",
        *,
        action: str | None = None,
        vector: Vector | None = None,
        timestamp: int | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        reward: float | None = None,
    ) -> Event:
        """Record what was seen, and what was done there.

        Parameters
        ----------
        run : OpenEpisode
            A running episode.
        text : str
            The observation.
        action : str, optional
            What was done on seeing it.
        vector : ndarray of shape (dim,), float32, optional
            Where the observation lies.
        timestamp : int, optional
            When; default ``time()``.
        tags : iterable of str
            Labels to filter by.
        metadata : mapping, optional
            Anything JSON can hold.
        reward : float, optional
            What the step itself brought, in [0, 1]; by default the outcome of its episode.

        Returns
        -------
        Event

        Raises
        ------
        EpisodeEndedError
            The episode has its outcome already.
        InvalidInputError
            The reward is outside [0, 1].
        InvalidInputError
            A text, action or tag that is no string, an empty action, or metadata that JSON cannot
            hold.
        InvalidInputError
            The step lies before the one recorded last.
        """
        if run.closed:
            raise EpisodeEndedError(
                f"episode {run.episode_id} is closed: begin another one for further steps"
            )
        timestamp = self.time() if timestamp is None else timestamp
        if run.steps and timestamp < run.steps[-1].timestamp:
            raise InvalidInputError(
                f"step at {timestamp} comes before the last one at {run.steps[-1].timestamp}: "
                f"record the steps of episode {run.episode_id} in order"
            )
        self.clock = max(self.clock, timestamp + 1)
        event = Event(
            entity_id=run.entity_id,
            entity=run.entity,
            timestamp=timestamp,
            text=text,
            vector=vector,
            action=action,
            reward=reward,
            kind="step",
            namespace=run.namespace,
            metadata=metadata or {},
            episode_id=run.episode_id,
            tags=tuple(tags),
            source=run.source,
            trust=run.trust,
            visibility=run.visibility,
        )
        run.steps.append(event)
        return event

    @checked(run=an_open_episode, reward=an_outcome)
    def outcome(self, run: OpenEpisode, reward: float) -> Episode:
        """Return what the episode would be if it closed with this reward; nothing changes.

        Every step without a reward of its own carries that of the whole episode.

        Raises
        ------
        EpisodeEndedError
            It is closed already.
        InvalidInputError
            The reward is outside [0, 1].
        """
        if run.closed:
            raise EpisodeEndedError(
                f"episode {run.episode_id} is closed already: an outcome is given once"
            )
        return Episode(
            entity_id=run.entity_id,
            entity=run.entity,
            goal=run.goal,
            task_type=run.task_type,
            reward=reward,
            steps=tuple(
                replace(step, reward=reward) if step.reward is None else step for step in run.steps
            ),
            namespace=run.namespace,
            kind=run.kind,
            episode_id=run.episode_id,
            metadata=run.metadata,
        )

    def seal(self, run: OpenEpisode, episode: Episode) -> None:
        """Mark the episode as closed, once its outcome is stored.

        Parameters
        ----------
        run : OpenEpisode
            The running episode.
        episode : Episode
            What became of it, for the log.
        """
        run.closed = True
        self.log.append(episode)
