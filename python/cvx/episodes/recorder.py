"""Recording what an agent does: begin, step, close with an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cvx.arguments import a_share, a_text, checked
from cvx.episodes.checks import (
    a_visibility,
    an_entity,
    check_action,
    check_text,
    checked_metadata,
    checked_tags,
)
from cvx.episodes.frames import episodes_frame, steps_frame
from cvx.episodes.handle import OpenEpisode, an_open_episode
from cvx.episodes.numbers import Numbers
from cvx.errors import EpisodeClosedError, InvalidParameterError, TimestampOrderError
from cvx.store import Record
from cvx.types import DEFAULT_NAMESPACE, Episode, Event, Vector
from cvx.validation import check_reward, storable_namespace, storable_time

if TYPE_CHECKING:
    import polars as pl


class EpisodeRecorder:
    """Writes down episodes, one step after the other, and closes each of them once.

    Parameters
    ----------
    record : Record, optional
        Where closed episodes go, each in one transaction; without it they stay in ``log`` only.
    first_episode, first_entity : int, default 0
        The first numbers to give out; with a record at least its first free ones.
    now : callable, optional
        Returns the time of a step that brings none of its own; by default steps are counted.

    Attributes
    ----------
    log : list of Episode
        The closed episodes, oldest first.
    clock : int
        No step without a time of its own gets an earlier one.

    Examples
    --------
    >>> recorder = EpisodeRecorder()
    >>> run = recorder.begin(goal="cool the apple", task_type="cool")
    >>> _ = recorder.step(run, "a fridge", action="open fridge 1")
    >>> _ = recorder.step(run, "an open fridge", action="cool apple 1 with fridge 1")
    >>> recorder.close(run, reward=1.0).actions
    ('open fridge 1', 'cool apple 1 with fridge 1')
    """

    def __init__(
        self,
        record: Record | None = None,
        *,
        first_episode: int = 0,
        first_entity: int = 0,
        now: Callable[[], int] | None = None,
    ) -> None:
        self.record = record
        self.log: list[Episode] = []
        self.clock = 0
        self._now = now
        self._numbers = Numbers(first_episode, first_entity)
        if record is not None:
            self._numbers.start_at(*record.next_ids())

    @checked(source=a_text, trust=a_share, visibility=a_visibility)
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
        InvalidParameterError
            A text that is no string, another ``kind`` or ``visibility``, a trust outside [0, 1],
            or metadata that JSON cannot hold.
        InvalidInputError
            A namespace that cannot be one.
        InvalidEntityError
            An entity out of range; or none, and no number below 2**62 is free.
        """
        check_text("goal", goal)
        check_text("task_type", task_type, optional=True)
        storable_namespace("namespace", namespace)
        if kind not in ("experience", "demonstration"):
            raise InvalidParameterError(f"kind is {kind!r}: give 'experience' or 'demonstration'")
        kept = checked_metadata(metadata)
        free = self._numbers
        entity = free.own_entity() if entity_id is None else an_entity("entity_id", entity_id)
        run = OpenEpisode(
            free.episode,
            entity,
            goal,
            task_type,
            namespace,
            kind,
            kept,
            source=source,
            trust=trust,
            visibility=visibility,
        )
        free.start_at(free.episode + 1, entity + 1)
        return run

    def time(self) -> int:
        """Return the timestamp that a step without one would get at this moment."""
        return self.clock if self._now is None else max(self.clock, self._now())

    def start_at(self, episode: int, entity: int) -> None:
        """Give out no episode or entity below these any more, see ``Numbers``."""
        self._numbers.start_at(episode, entity)

    @checked(run=an_open_episode)
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
        EpisodeClosedError
            The episode has its outcome already.
        RewardRangeError
            The reward is outside [0, 1].
        InvalidParameterError
            A text, action or tag that is no string, an empty action, or metadata that JSON cannot
            hold.
        TimestampOrderError
            The step lies before the one recorded last.
        """
        if run.closed:
            raise EpisodeClosedError(
                f"episode {run.episode_id} is closed: begin another one for further steps"
            )
        check_text("text", text)
        check_action(action)
        labels, kept = checked_tags(tags), checked_metadata(metadata)
        earned = None if reward is None else check_reward(reward)
        if timestamp is None:
            timestamp = self.time()
        storable_time("timestamp", timestamp)
        if run.steps and timestamp < run.steps[-1].timestamp:
            raise TimestampOrderError(
                f"step at {timestamp} comes before the last one at {run.steps[-1].timestamp}: "
                f"record the steps of episode {run.episode_id} in order"
            )
        self.clock = max(self.clock, timestamp + 1)
        event = Event(
            entity_id=run.entity_id,
            timestamp=timestamp,
            text=text,
            vector=vector,
            action=action,
            reward=earned,
            kind="step",
            namespace=run.namespace,
            metadata=kept,
            episode_id=run.episode_id,
            tags=labels,
            source=run.source,
            trust=run.trust,
            visibility=run.visibility,
        )
        run.steps.append(event)
        return event

    @checked(run=an_open_episode)
    def outcome(self, run: OpenEpisode, reward: float) -> Episode:
        """Return what the episode would be if it closed with this reward; nothing changes.

        Every step without a reward of its own carries that of the whole episode.

        Raises
        ------
        EpisodeClosedError
            It is closed already.
        RewardRangeError
            The reward is outside [0, 1].
        """
        if run.closed:
            raise EpisodeClosedError(
                f"episode {run.episode_id} is closed already: an outcome is given once"
            )
        value = check_reward(reward)
        return Episode(
            entity_id=run.entity_id,
            goal=run.goal,
            task_type=run.task_type,
            reward=value,
            steps=tuple(
                replace(step, reward=value) if step.reward is None else step for step in run.steps
            ),
            namespace=run.namespace,
            kind=run.kind,
            episode_id=run.episode_id,
            metadata=run.metadata,
        )

    def close(self, run: OpenEpisode, reward: float) -> Episode:
        """Give the episode its outcome, and store it if there is a record.

        Parameters
        ----------
        run : OpenEpisode
            A running episode.
        reward : float
            In [0, 1]; 1 is a win.

        Returns
        -------
        Episode

        Raises
        ------
        EpisodeClosedError
            It is closed already.
        RewardRangeError
            The reward is outside [0, 1].
        """
        episode = self.outcome(run, reward)
        if self.record is not None:
            with self.record.transaction() as write:
                write.add_episode(episode)
        self.seal(run, episode)
        return episode

    def seal(self, run: OpenEpisode, episode: Episode) -> None:
        """Mark the episode as closed where its outcome was stored by other means.

        Parameters
        ----------
        run : OpenEpisode
            The running episode.
        episode : Episode
            What became of it, for the log.
        """
        run.closed = True
        self.log.append(episode)

    def episodes_frame(self) -> pl.DataFrame:
        """Return the closed episodes as a frame, see ``episodes_frame``."""
        return episodes_frame(self.log)

    def steps_frame(self) -> pl.DataFrame:
        """Return the steps of the closed episodes as a frame, see ``steps_frame``."""
        return steps_frame(self.log)
