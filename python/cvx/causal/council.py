"""Who is asked: citizens with what they remember, and what embeds the question."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy.typing as npt

from cvx.causal.stream import MemoryStream
from cvx.embed import Embedder
from cvx.embed.protocol import aembed
from cvx.errors import InvalidParameterError


class Router(Protocol):
    """Anything that embeds without blocking the event loop."""

    def embed(self, texts: list[str], /) -> Awaitable[Sequence[npt.ArrayLike]]:
        """Return one vector a text."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedderRouter:
    """A router over an embedder of cvx; it works in a thread of its own."""

    embedder: Embedder

    async def embed(self, texts: list[str], /) -> Sequence[npt.ArrayLike]:
        """Return one vector a text."""
        return list(await aembed(self.embedder, texts))


@dataclass(frozen=True, slots=True)
class Citizen:
    """Somebody who remembers.

    Parameters
    ----------
    name : str
        As the council knows them.
    memory : MemoryStream
        What they remember.
    """

    name: str
    memory: MemoryStream


def shared_weights(citizens: Mapping[str, Citizen | MemoryStream]) -> tuple[float, float, float]:
    """Return how all streams weigh relevance, recency and importance.

    Raises
    ------
    InvalidParameterError
        They weigh differently: their scores cannot be compared.
    """
    streams = [c.memory if isinstance(c, Citizen) else c for c in citizens.values()]
    found = {(s.weights.relevance, s.weights.recency, s.weights.importance) for s in streams}
    if len(found) > 1:
        raise InvalidParameterError(
            f"the streams weigh relevance, recency and importance differently ({sorted(found)}): "
            "give all of them the same weights"
        )
    return found.pop() if found else (1.0, 1.0, 1.0)
