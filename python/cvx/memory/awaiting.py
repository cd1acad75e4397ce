"""The same calls for programs that must not block their event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

from cvx.memory.adding import Adding
from cvx.types import Event


class Awaiting(Adding):
    """Awaitable twins of what takes time: each runs in a worker thread, and the loop goes on.

    What an awaited call wrote is durable when it returns. A call that is cancelled while it runs
    is not undone.
    """

    async def aadd(self, text: str, **options: Any) -> int:
        """Remember one thing; see ``add``.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(LexicalEmbedder())
        >>> asyncio.run(memory.aadd("the spare key is under the green pot"))
        1
        """
        return await asyncio.to_thread(partial(self.add, text, **options))

    async def aadd_many(self, events: Iterable[Event], **options: Any) -> list[int]:
        """Remember several things, all of them or none; see ``add_many``."""
        return await asyncio.to_thread(partial(self.add_many, events, **options))

    async def aadd_text(self, text: str, **options: Any) -> list[int]:
        """Remember a long text in pieces; see ``add_text``."""
        return await asyncio.to_thread(partial(self.add_text, text, **options))
