"""The verbs of a memory to await: ``memory.aio``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvx.memory.memory import Memory

VERBS = (
    "add", "add_many", "update", "link", "forget", "erase", "get", "events", "recall", "context",
    "why", "consequences", "feedback", "close",
)  # fmt: skip


class Aio:
    """The same verbs with the same arguments, each run in a worker thread.

    What an awaited call wrote is durable when it returns. A call that is cancelled while it runs
    is not undone.

    Parameters
    ----------
    memory : Memory
        Whose verbs they are.

    Examples
    --------
    >>> import asyncio
    >>> from cvx.embed import LexicalEmbedder
    >>> from cvx.memory import Memory
    >>> memory = Memory(LexicalEmbedder())
    >>> asyncio.run(memory.aio.add("the spare key is under the green pot")).id
    1
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb not in VERBS:
            raise AttributeError(f"memory.aio has no {verb!r}: it has {', '.join(VERBS)}")
        done = getattr(self._memory, verb)

        @wraps(done)
        async def awaited(*args: Any, **options: Any) -> Any:
            import asyncio

            return await asyncio.to_thread(partial(done, *args, **options))

        return awaited

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *VERBS]
