"""The timeline of an entity or an episode: its events in the order of time."""

from __future__ import annotations

from dataclasses import dataclass

from cvx.errors import InvalidInputError
from cvx.memory.memory import Memory
from cvx.types import DEFAULT_NAMESPACE, Event, entity_number


@dataclass(frozen=True, slots=True)
class Span:
    """Which part of a timeline.

    Parameters
    ----------
    since, until : int, optional
        ``since <= timestamp < until``; one of them alone is a one-sided range.
    limit : int, optional
        So many at the most, the latest ones; at least 1.

    Raises
    ------
    InvalidInputError
        A range that ends before it begins; a limit below 1.
    """

    since: int | None = None
    until: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InvalidInputError(
                f"the time range {self.since}..{self.until} is inverted or empty: swap its ends"
            )
        if self.limit is not None and self.limit < 1:
            raise InvalidInputError(f"limit is {self.limit}: give at least 1")


def timeline(
    memory: Memory,
    *,
    entity: str | None = None,
    episode: int | None = None,
    namespace: str = DEFAULT_NAMESPACE,
    span: Span | None = None,
) -> list[Event]:
    """Return the events of an entity, or the steps of an episode, whatever their state.

    Parameters
    ----------
    memory : Memory
        Where to look.
    entity : str, optional
        Meant within ``namespace``; or
    episode : int, optional
        one by its id, which says everything.
    namespace : str, default ""
        Of the entity.
    span : Span, optional
        Which part.

    Raises
    ------
    InvalidInputError
        Neither or both of entity and episode.
    """
    if (entity is None) == (episode is None):
        raise InvalidInputError("give an entity or an episode, not both or neither")
    part = span or Span()
    condition, values = "episode = ?", list[object]([episode])
    if entity is not None:
        condition, values = "namespace = ? AND entity = ?", [namespace, entity_number(entity)]
    for sign, bound in ((">=", part.since), ("<", part.until)):
        if bound is not None:
            condition += f" AND timestamp {sign} ?"
            values.append(bound)
    found = memory.record.query(
        f"SELECT event_id FROM events WHERE {condition}"
        " ORDER BY timestamp DESC, event_id DESC LIMIT ?",
        (*values, -1 if part.limit is None else part.limit),
    )
    events = memory.record.events(row[0] for row in found)
    return sorted(events, key=lambda event: (event.timestamp, event.event_id or 0))


def newest_id(memory: Memory) -> int:
    """Return the id of the event that was written last, 0 where there is none."""
    return int(memory.record.query("SELECT ifnull(max(event_id), 0) FROM events")[0][0])
