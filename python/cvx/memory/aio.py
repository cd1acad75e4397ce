"""Async versions of the verbs of a memory and its episodes: ``memory.aio``, ``episode.aio``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Generator
from functools import partial, wraps
from typing import Any, Self

VERBS = (
    "add", "add_many", "update", "link", "forget", "erase", "get", "events", "recall", "context",
    "why", "consequences", "feedback", "as_of", "episode", "close",
)  # fmt: skip
OF_AN_EPISODE = ("advise", "recall", "context", "act", "end", "discard")
PLAIN = ("id", "goal", "task", "namespace", "events", "ended")
"""What an episode says of itself without looking anything up."""


class Aio:
    """The same verbs with the same arguments, each run in a worker thread.

    What an awaited call wrote is durable when it returns. A call that is cancelled while it runs
    is not undone, but a new episode whose beginning is cancelled is discarded. ``async with``
    closes a memory, and discards an episode that was not ended, as ``with`` does. The episode that
    ``aio.episode`` begins has verbs to await, too.

    Parameters
    ----------
    whose : Memory or RunningEpisode
        Whose verbs they are.
    verbs : tuple of str
        Which.
    plain : tuple of str
        What is not awaited: attributes of an episode.

    Examples
    --------
    >>> import asyncio
    >>> from cvx.embed import LexicalEmbedder
    >>> from cvx.memory import Memory
    >>> async def play():
    ...     async with Memory(embedder=LexicalEmbedder()).aio as memory:
    ...         async with memory.episode("find the hat") as episode:
    ...             advice = await episode.advise("a hall", ["left", "right"])
    ...             await episode.act(advice.choose().action)
    ...             await episode.end(1.0)
    ...         return len(await memory.events())
    >>> asyncio.run(play())
    1
    """

    def __init__(
        self, whose: Any, verbs: tuple[str, ...] = VERBS, plain: tuple[str, ...] = ()
    ) -> None:
        self._whose, self._verbs, self._plain = whose, verbs, plain

    @property
    def aio(self) -> Self:
        """Itself: what ``await memory.aio.episode()`` returned has it, as an episode has."""
        return self

    def __getattr__(self, verb: str) -> Any:
        if verb.startswith("_"):
            # Before it has anything: whoever copies it asks for such names.
            raise AttributeError(f"aio has no {verb!r}")
        if verb in self._plain:
            return getattr(self._whose, verb)
        if verb not in self._verbs:
            raise AttributeError(f"aio has no {verb!r}: it has {', '.join(self._verbs)}")
        done = getattr(self._whose, verb)

        @wraps(done)
        async def awaited(*args: Any, **options: Any) -> Any:
            return await _in_a_thread(partial(done, *args, **options))

        if verb != "episode":
            return awaited

        async def begun(*args: Any, **options: Any) -> Aio:
            if options.get("id") is not None:
                # It was begun before, and can be taken up again.
                return (await awaited(*args, **options)).aio  # type: ignore[no-any-return]
            return await _begin(partial(done, *args, **options))

        return wraps(done)(lambda *args, **options: Beginning(begun(*args, **options)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await _in_a_thread(partial(self._whose.__exit__, *exc))

    def __repr__(self) -> str:
        return f"<the verbs of {self._whose!r} to await>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._verbs, *self._plain]


class Beginning(Coroutine[Any, Any, Aio]):
    """The beginning of an episode, to ``await`` or for ``async with``."""

    def __init__(self, beginning: Coroutine[Any, Any, Aio]) -> None:
        self._beginning = beginning
        self._begun: Aio | None = None

    def __await__(self) -> Generator[Any, Any, Aio]:
        return self._beginning.__await__()

    def send(self, value: Any) -> Any:
        """Go on, as a coroutine does."""
        return self._beginning.send(value)

    def throw(self, *exc: Any) -> Any:
        """Raise where it waits, as a coroutine does."""
        return self._beginning.throw(*exc)

    def close(self) -> None:
        """Give it up, as a coroutine does."""
        self._beginning.close()

    async def __aenter__(self) -> Aio:
        self._begun = await self
        return self._begun

    async def __aexit__(self, *exc: object) -> None:
        assert self._begun is not None
        await self._begun.__aexit__(*exc)


async def _begin(call: Callable[[], Any]) -> Aio:
    """Begin an episode in a worker thread; one whose caller is cancelled meanwhile is discarded.

    Nobody would ever hold it, and so nobody could end it.
    """
    handing_over = threading.Lock()
    begun: list[Any] = []
    given_up = False

    def begin() -> Any:
        run = call()
        with handing_over:
            begun.append(run)
            left = given_up
        if left:
            run.discard()
        return run

    try:
        run = await _in_a_thread(begin)
    except BaseException:
        with handing_over:
            given_up, left = True, [*begun]
        for run in left:
            await _in_a_thread(run.discard)
        raise
    return run.aio  # type: ignore[no-any-return]


async def _in_a_thread(call: Callable[[], Any]) -> Any:
    import asyncio

    return await asyncio.to_thread(call)
