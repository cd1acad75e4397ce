"""The handle of an episode, from its beginning to its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cvx.arguments import one_of
from cvx.types import DEFAULT_NAMESPACE, Event


@dataclass(slots=True, eq=False)
class OpenEpisode:
    """The handle of an episode that may still be running; ``EpisodeRecorder.begin`` makes it.

    Attributes
    ----------
    episode_id, entity_id : int
        Its own number, and whose timeline it writes.
    goal, task_type, namespace, kind, metadata, source, trust, visibility
        As given at the beginning.
    steps : list of Event
        What was recorded so far.
    closed : bool
        Whether it has its outcome.
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
    closed: bool = False


an_open_episode = one_of(OpenEpisode, called="an episode that begin() returned")
