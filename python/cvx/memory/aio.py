"""Async versions of the verbs of a memory and its episodes: ``memory.aio``, ``episode.aio``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

VERBS = (
    "add", "add_many", "update", "link", "forget", "erase", "get", "events", "recall", "context",
    "why", "consequences", "feedback", "episode", "close",
)  # fmt: skip
OF_AN_EPISODE = ("advise", "recall", "context", "act", "end", "discard")


class Aio:
    """The same verbs with the same arguments, each run in a worker thread.

    What an awaited call wrote is durable when it returns. A call that is cancelled while it runs
    is not undone.

    Parameters
    ----------
    whose : Memory or RunningEpisode
        Whose verbs they are.
    verbs : tuple of str
        Which.

    Examples
    --------
    >>> import asyncio
    >>> from cvx.embed import LexicalEmbedder
    >>> from cvx.memory import Memory
    >>> memory = Memory(embedder=LexicalEmbedder())
    >>> asyncio.run(memory.aio.add("the spare key is under the green pot")).id
    1
    """

    def __init__(self, whose: Any, verbs: tuple[str, ...] = VERBS) -> None:
        self._whose, self._verbs = whose, verbs

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb not in self._verbs:
            raise AttributeError(f"aio has no {verb!r}: it has {', '.join(self._verbs)}")
        done = getattr(self._whose, verb)

        @wraps(done)
        async def awaited(*args: Any, **options: Any) -> Any:
            import asyncio

            return await asyncio.to_thread(partial(done, *args, **options))

        return awaited

    def __repr__(self) -> str:
        return f"<the verbs of {self._whose!r} to await>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._verbs]
