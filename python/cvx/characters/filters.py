"""The filter arguments of the character blueprint, translated into `cvx.Filter`."""

from __future__ import annotations

from typing import Any

from cvx.arguments import a_text, checked, whole


@checked(
    agent=a_text, type=a_text, category=a_text, about=a_text,
    min_turn=whole(), max_turn=whole(),
)  # fmt: skip
def memory_filter(
    *,
    agent: str = "",
    type: str = "",  # noqa: A002
    category: str = "",
    about: str = "",
    min_turn: int = 0,
    max_turn: int = 0,
) -> list[dict[str, Any]]:
    """Return a filter for ``where=``: all that is given must hold.

    Parameters
    ----------
    agent, type, category, about : str, default ""
        As in the metadata of a memory; "" is no filter.
    min_turn, max_turn : int, default 0
        First and last turn, both included; 0 and below is no filter, so that "the last five turns",
        ``current_turn - 5``, is none in the first five. A memory without a turn passes.

    Examples
    --------
    >>> memory_filter(type="episodic", min_turn=3 - 5)
    [{'metadata': {'type': 'episodic'}}]
    >>> memory_filter(about="Jordan", min_turn=2, max_turn=4)[0]
    {'metadata': {'about': 'Jordan', 'turn': {'gte': 2, 'lte': 4}}}
    """
    given = {"agent": agent, "type": type, "category": category, "about": about}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value}
    limits = {how: turn for how, turn in (("gte", min_turn), ("lte", max_turn)) if turn > 0}
    if not limits:
        return [{"metadata": asked}]
    return [
        {"metadata": {**asked, "turn": limits}},
        {"metadata": {**asked, "turn": {"exists": False}}},
    ]
