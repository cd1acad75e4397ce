"""Higher memories made of many: what was seen again and again, with what it was seen in.

References
----------
Park et al. 2023, Generative Agents: Interactive Simulacra of Human Behavior, section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cvx.causal.importance import Importance, RuleImportance
from cvx.causal.reflection_writers import CountingWriter, Experience, ReflectionWriter
from cvx.causal.stream import Memory, MemoryStream
from cvx.errors import InvalidParameterError
from cvx.types import Vector


@dataclass(frozen=True, slots=True)
class Reflector:
    """Reflects when enough has happened since the last time.

    Parameters
    ----------
    threshold : float, default 100.0
        The importances of what no reflection cites yet must add up to this; above 0.
    writer : ReflectionWriter, optional
        Default ``CountingWriter()``.
    importance : Importance, optional
        Rates the reflections; default ``RuleImportance()``.
    embed : callable, optional
        From a text to its vector.
    group : callable, optional
        From a memory to what it belongs to; by default nothing.
    latest : int, default 100
        How many of those memories are looked at, the latest ones; at least 1.
    """

    threshold: float = 100.0
    writer: ReflectionWriter = field(default_factory=CountingWriter)
    importance: Importance = field(default_factory=RuleImportance)
    embed: Callable[[str], Vector] | None = None
    group: Callable[[Memory], str] | None = None
    latest: int = 100

    def __post_init__(self) -> None:
        if not self.threshold > 0 or self.latest < 1:
            raise InvalidParameterError(
                f"threshold is {self.threshold}, latest {self.latest}: give one above 0, and at "
                "least 1"
            )

    def pending(self, stream: MemoryStream) -> list[Memory]:
        """Return the memories that no reflection rests on yet, oldest first."""
        cited = {source for memory in stream for source in memory.sources}
        return [m for m in stream if m.kind != "reflection" and m.id not in cited]

    def due(self, stream: MemoryStream) -> bool:
        """Tell whether enough has happened."""
        return sum(memory.importance for memory in self.pending(stream)) >= self.threshold

    def reflect(self, stream: MemoryStream, tick: int) -> list[Memory]:
        """Add what is to be learned to a stream, if it is due.

        Parameters
        ----------
        stream : MemoryStream
            Whose memories are looked at, and where the reflections go.
        tick : int
            Now.

        Returns
        -------
        list of Memory
            Of the kind "reflection", each with its ``sources``; [] where it is not due, or where
            nothing stands out.

        Examples
        --------
        >>> stream = MemoryStream("ana")
        >>> for tick in range(4):
        ...     _ = stream.add(f"the well is dry, day {tick}", tick, importance=8)
        >>> made = Reflector(threshold=30).reflect(stream, tick=4)
        >>> made[0].kind, made[0].sources
        ('reflection', ('ana-0', 'ana-1', 'ana-2', 'ana-3'))
        """
        if not self.due(stream):
            return []
        group = self.group or (lambda _: "")
        looked_at = self.pending(stream)[-self.latest :]
        seen = [Experience(m.id, m.tick, m.text, m.kind, group(m), m.importance) for m in looked_at]
        return [
            stream.add(
                insight.text,
                tick,
                kind="reflection",
                importance=self.importance.rate(insight.text, "reflection"),
                embedding=None if self.embed is None else self.embed(insight.text),
                sources=insight.sources,
            )
            for insight in self.writer.write(seen)
        ]
