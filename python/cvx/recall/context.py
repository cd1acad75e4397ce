"""What one recall puts into a prompt."""

from __future__ import annotations

from typing import Any, Self

from cvx.errors import InvalidInputError
from cvx.recall.trace import Trace
from cvx.types import Hit


class Context(str):
    """Recalled memories within a budget: a text for a prompt that knows how it came about.

    It is empty where nothing fits the cue, or nothing fits the budget.

    Parameters
    ----------
    text : str
        What it says.
    used_tokens : int
        Its size.
    hits : tuple of Hit
        What it shows, best first.
    trace : Trace
        What happened.
    decision : int or None
        The number under which the recall is written down, by which ``feedback`` says later what
        became of it; None where the memory cannot be written to.
    """

    __slots__ = ("decision", "hits", "trace", "used_tokens")

    def __new__(
        cls,
        text: str,
        used_tokens: int,
        hits: tuple[Hit, ...],
        trace: Trace,
        decision: int | None,
    ) -> Self:
        """Make a text with what is known of it."""
        made = super().__new__(cls, text)
        made.used_tokens, made.hits, made.trace, made.decision = used_tokens, hits, trace, decision
        return made

    used_tokens: int
    hits: tuple[Hit, ...]
    trace: Trace
    decision: int | None

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.used_tokens, self.hits, self.trace, self.decision

    def message(self, role: str = "user", *, force: bool = False) -> dict[str, str]:
        """Return the block as a chat message.

        Parameters
        ----------
        role : {"user", "tool"}, default "user"
            Evidence comes from the world, not from whoever gives the orders.
        force : bool, default False
            Let role="system" pass.

        Raises
        ------
        InvalidInputError
            ``role="system"`` (or "developer") without ``force``: a recalled and possibly planted
            text would speak with authority.
        InvalidInputError
            Another role.
        """
        if role in ("system", "developer"):
            if not force:
                raise InvalidInputError(
                    f"role is {role!r}: recalled memory is evidence, not policy; use 'user' or "
                    "'tool', or force=True"
                )
        elif role not in ("user", "tool"):
            raise InvalidInputError(f"role is {role!r}: give 'user' or 'tool'")
        return {"role": role, "content": str(self)}
