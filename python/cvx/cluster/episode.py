"""An episode of a cluster: forwards each verb to the shard that holds it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from cvx.cluster.client import Request, ShardClient
from cvx.errors import EpisodeDiscardedWarning, EpisodeEndedError
from cvx.memory.advice import Advice
from cvx.memory.aio import OF_AN_EPISODE, Aio
from cvx.types import Event


class ClusterEpisode:
    """An episode of a ``ClusterMemory``: the verbs of ``RunningEpisode``, asked of its shard.

    Where another host leads the shard meanwhile, it is taken up there.

    Parameters
    ----------
    client : ShardClient
        Of the memory.
    request : Request
        By which it was begun.
    id : int
        By which it is taken up again.
    goal, task, namespace : str
        As given; ``task`` is None where none was.
    events : tuple of Event
        Its steps so far.
    """

    def __init__(
        self,
        client: ShardClient,
        request: Request,
        id: int,  # noqa: A002
        goal: str,
        task: str | None,
        namespace: str,
        events: tuple[Event, ...],
    ) -> None:
        self._client, self._begun = client, request
        self.id, self.goal, self.task, self.namespace = id, goal, task, namespace
        self.events = events
        self.ended = False
        self._advice: Advice | None = None
        self._seen: Any = None
        self.aio = Aio(self, OF_AN_EPISODE)

    def _ask(self, verb: str, args: Sequence[Any] = (), **options: Any) -> Any:
        if self.ended:
            raise EpisodeEndedError(f"episode {self.id} is over: begin another one")
        begun, args = self._begun, [self.id, *args]
        told = self._client.one(
            Request(begun.shard, f"episode.{verb}", begun.bound, args, options, self.namespace)
        )
        self.ended = verb in ("end", "discard")
        return told

    def advise(
        self, observation: Any, actions: Sequence[Any] | None = None, **options: Any
    ) -> Advice:
        """Say what each action is worth from here; as ``RunningEpisode.advise``."""
        advice: Advice = self._ask("advise", [observation, actions], **options)
        self._advice, self._seen = advice, observation
        return advice

    def recall(self, cue: Any = None, k: int = 10, **options: Any) -> Any:
        """Recall for the goal and what was seen last; as ``RunningEpisode.recall``."""
        return self._ask("recall", [cue, k], **options)

    def context(self, cue: Any = None, budget_tokens: int = 500, **options: Any) -> Any:
        """Recall for a prompt; as ``RunningEpisode.context``."""
        return self._ask("context", [cue, budget_tokens], **options)

    def act(self, action: Any, **options: Any) -> Event:
        """Record what was done and what it brought; as ``RunningEpisode.act``."""
        if self._advice is not None and self._advice.chosen is not None:
            options["chosen"] = self._advice.chosen.action, self._advice.chance
        if self._seen is not None:
            options["seen"] = self._seen
        step: Event = self._ask("act", [action], **options)
        self.events = (*self.events, step)
        self._advice = self._seen = None
        return step

    def end(self, outcome: float | None = None, **options: Any) -> Any:
        """End it with its outcome, from which others learn; as ``RunningEpisode.end``."""
        return self._ask("end", [outcome], **options)

    def discard(self) -> None:
        """Break it off: nothing is learned from it."""
        self._ask("discard")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.ended:
            return
        if kind is None:
            warnings.warn(
                f"episode {self.id} was left without an outcome and is discarded: call "
                "end(outcome) in the block",
                EpisodeDiscardedWarning,
                stacklevel=2,
            )
            self.discard()
            return
        # The error that broke it off is what is to be seen.
        with suppress(Exception):
            self.discard()
        self.ended = True

    def __repr__(self) -> str:
        state = "ended" if self.ended else "open"
        return f"<ClusterEpisode {self.id} {self.goal!r:.60}: {len(self.events)} steps, {state}>"
