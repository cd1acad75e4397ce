"""Converts events, links, hits and decisions into JSON values for the inspection page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.arguments import wrong
from cvx.escaping import one_line, printable
from cvx.types import Edge, Event, Hit

if TYPE_CHECKING:
    import polars as pl

Asked = Mapping[str, str]
"""What a view is asked for, by name, as a query string brings it."""
Told = dict[str, Any]

WON = 0.5
_CHOICES = 200
_SHORT = 300
_LEAST_SHARE = 5e-4


def whole_of(asked: Asked, name: str, usual: int | None = None, *, most: int | None = None) -> int:
    """Parse an integer parameter of a request; with a default, it is at least 0."""
    given = asked.get(name, "" if usual is None else str(usual))
    if not is_number(given.removeprefix("-")) or abs(int(given)) >= 2**63:
        raise wrong(name, given, "a whole number")
    number = int(given)
    if usual is not None and not 0 <= number < 2**31:
        raise wrong(name, number, "a number from 0 up, below 2**31")
    return number if most is None else max(1, min(number, most))


def is_number(text: str) -> bool:
    """Tell whether a text is a whole number in digits."""
    return text.isascii() and text.isdecimal() and len(text) < 20


def word(text: str | None) -> str | None:
    """Return a text as `printable` shows it; None stays None."""
    return None if text is None else printable(text)


def brief(text: str) -> str:
    """Return a text as one short line."""
    # Cut first: a memory may be a megabyte.
    return one_line(text[: 4 * _SHORT], _SHORT)


def lines(text: str) -> str:
    """Return a text with its lines, and without what steers or hides."""
    return "\n".join(printable(line) for line in text.splitlines())


def row_of(event: Event | Mapping[str, Any]) -> Told:
    """Return an event, or a row of a frame of events, as a list shows it."""
    number = event["id"] if isinstance(event, Event) else event["event_id"]
    episode = event["episode_id"] if isinstance(event, Event) else event["episode"]
    return {
        "id": number,
        "text": brief(event["text"]),
        "time": event["timestamp"],
        "entity": word(event["entity"]),
        "namespace": printable(event["namespace"]),
        "kind": printable(event["kind"]),
        "source": printable(event["source"]),
        "tags": [printable(tag) for tag in event["tags"]],
        "action": word(event["action"]),
        "reward": event["reward"],
        "episode": episode,
        "state": event["state"],
        "recorded": event["recorded"],
    }


def edge_of(edge: Edge) -> Told:
    """Return a link."""
    return {
        "from": int(edge.cause),
        "to": int(edge.effect),
        "kind": printable(edge.kind),
        "weight": edge.weight,
        "why": printable(edge.why),
        "state": edge.state,
        "probability": edge.probability,
    }


def link_of(edge: Edge, event: Event) -> Told:
    """Return a link with the event at its other end."""
    return edge_of(edge) | {"id": event.id, "text": brief(event.text)}


def factors_of(factors: Iterable[tuple[str, float, float, float]]) -> list[Told]:
    """Return what made a score, the greatest share first, without what made nothing of it."""
    telling = [one for one in factors if abs(one[3]) >= _LEAST_SHARE]
    return [
        {"name": name, "value": value, "weight": weight, "share": share}
        for name, value, weight, share in sorted(telling, key=lambda one: -abs(one[3]))
    ]


def hit_of(hit: Hit) -> Told:
    """Return a hit with the factors of its score."""
    return {
        "id": hit.event.id if hit.event else None,
        "text": brief(hit.event.text) if hit.event else "",
        "score": hit.score,
        "distance": hit.distance,
        "relevance": hit.relevance,
        "factors": factors_of(hit.factors),
        "path": [edge_of(edge) for edge in hit.path],
    }


def words_of(told: Told) -> str:
    """Return the cue of a decision in words."""
    cue = told["cue"]
    return " ".join(
        one for one in (cue["goal"], cue["step"], *cue["questions"], cue["text"]) if one
    )


def heading_of(told: Told) -> Told:
    """Return a decision as a list shows it."""
    return {
        "decision": told["decision_id"],
        "cue": brief(words_of(told)),
        "recorded": told["recorded"],
        "episode": told["episode"],
        "candidates": len(told["hits"]),
        "action": word(told["action"]),
        "outcome": told["outcome"],
    }


def commonest(column: pl.Series) -> Iterator[tuple[str, int]]:
    """Yield the values of a column with their counts, most frequent first."""
    counted = column.drop_nulls().alias("name").value_counts(name="n")
    yield from counted.sort(["n", "name"], descending=[True, False]).iter_rows()


def choices_of(column: pl.Series) -> list[Told]:
    """Return the most frequent values as choices of a filter."""
    some: Iterable[tuple[str, int]] = islice(commonest(column), _CHOICES)
    return [{"value": one, "label": one_line(one, 60), "events": n} for one, n in some]


def curve_of(name: str, frame: pl.DataFrame) -> Told:
    """Return the trailing mean of how episodes ended, at 120 places at the most."""
    sums = frame["total"].is_not_null().all()
    values = frame["total" if sums else "reward"].to_numpy().astype(float)
    if not sums:
        values = (values > WON).astype(float)
    window = int(np.clip(len(values) // 8, 5, 50))
    total = np.concatenate(([0.0], np.cumsum(values)))
    ends = np.unique(np.linspace(1, len(values), min(len(values), 120)).astype(int))
    starts = np.maximum(ends - window, 0)
    means = (total[ends] - total[starts]) / (ends - starts)
    # Among the episodes of all tasks, so that curves lie below each other.
    places = frame["number"].to_numpy()[ends - 1]
    return {
        "name": brief(name),
        "unit": "mean return" if sums else "episodes won",
        "window": window,
        "episodes": len(values),
        "points": [[int(at), float(mean)] for at, mean in zip(places, means, strict=True)],
    }
