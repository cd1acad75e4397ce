"""How the nodes of an episode are marked in an index."""

from __future__ import annotations

from collections.abc import Iterable

_TASK_TAG = "task:"


def task_tag(task_type: str) -> str:
    """Return the tag that marks the nodes of a family of goals."""
    return _TASK_TAG + task_type


def task_of_tags(tags: Iterable[str]) -> str | None:
    """Return the family of goals that tags name, None if they name none or several.

    Examples
    --------
    >>> task_of_tags({"kitchen", task_tag("clean")})
    'clean'
    """
    found = [tag.removeprefix(_TASK_TAG) for tag in tags if tag.startswith(_TASK_TAG)]
    return found[0] if len(found) == 1 else None
