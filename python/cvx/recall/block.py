"""What one recall puts into a prompt."""

from __future__ import annotations

from dataclasses import dataclass

from cvx.errors import InvalidParameterError, SystemRoleError
from cvx.recall.trace import Trace
from cvx.types import Decision, Hit


@dataclass(frozen=True, slots=True)
class Block:
    """Recalled memories, rendered within a budget.

    Parameters
    ----------
    text : str
        For the prompt; empty where nothing fits the cue, or nothing fits the budget.
    tokens : int
        Its size.
    hits : tuple of Hit
        What it shows, best first.
    trace : Trace
        What happened.
    decision : Decision or None
        The recall as it is written down, to be told later what became of it; None where the
        memory cannot be written to.
    """

    text: str
    tokens: int
    hits: tuple[Hit, ...]
    trace: Trace
    decision: Decision | None

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
        SystemRoleError
            ``role="system"`` (or "developer") without ``force``: a recalled and possibly planted
            text would speak with authority.
        InvalidParameterError
            Another role.
        """
        if role in ("system", "developer"):
            if not force:
                raise SystemRoleError(
                    f"role is {role!r}: recalled memory is evidence, not policy; use 'user' or "
                    "'tool', or force=True"
                )
        elif role not in ("user", "tool"):
            raise InvalidParameterError(f"role is {role!r}: give 'user' or 'tool'")
        return {"role": role, "content": self.text}

    def __str__(self) -> str:
        return self.text
