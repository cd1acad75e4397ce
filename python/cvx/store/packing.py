"""From nouns to rows."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from cvx.store import rows
from cvx.types import Decision, Event, Vector
from cvx.validation import check_cue, check_event, optional_text, storable_metadata, storable_text

_compact = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def json_of(value: object) -> str:
    """Return JSON as the record keeps it; nothing at all is an empty object."""
    return _compact(value) if value else "{}"


def metadata_of(value: Mapping[str, Any]) -> str:
    """Return metadata as JSON.

    Raises
    ------
    InvalidInputError
        It is no mapping, or JSON cannot hold it.
    """
    return json_of(storable_metadata("metadata", value))


def bytes_of(vector: Vector | None) -> bytes | None:
    """Return a vector as little-endian float32."""
    return None if vector is None else np.ascontiguousarray(vector, dtype="<f4").tobytes()


def event_row(
    event: Event, ids: tuple[int, int | None, int | None], recallable: bool, recorded: int
) -> tuple[object, ...]:
    """Return an event in the order of its columns; ids are its own, its node's, its episode's.

    Raises
    ------
    InvalidInputError
        A field that cannot be stored, by name.
    """
    check_event(event)
    number, node, episode = ids
    return (
        number,
        int(event.timestamp),
        event.text,
        bytes_of(event.vector),
        int(event.entity_id),
        node,
        event.namespace,
        event.kind,
        event.action,
        metadata_of(event.metadata),
        None if event.reward is None else float(event.reward),
        int(recallable),
        episode,
        _compact(event.tags) if event.tags else "[]",
        recorded,
        event.source,
        float(event.trust),
        event.visibility,
        None if event.salience is None else float(event.salience),
        event.state,
        event.key,
    )


def decision_row(decision: Decision, recorded: int, record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a decision in the order of its columns.

    Raises
    ------
    InvalidInputError
        A text that cannot be stored, by name.
    """
    check_cue(decision.cue)
    storable_text("rendered", decision.rendered)
    optional_text("action", decision.action)
    noted = dict(record)
    if decision.propensities is not None:
        noted["propensities"] = decision.propensities
    if decision.predicted is not None:
        noted["predicted"] = decision.predicted
    if decision.drawn_from is not None:
        noted["drawn_from"] = decision.drawn_from._asdict()
    cue = decision.cue
    asked = {
        "goal": cue.goal,
        "step": cue.step,
        "questions": cue.questions,
        "text": cue.text,
        "task_type": cue.task_type,
        "time": cue.time,
        "place": cue.place,
        "region": decision.region,
    }
    hits = [
        [h.node, h.entity_id, h.distance, h.score, [f[:3] for f in h.factors]]
        for h in decision.hits
    ]
    return (
        decision.decision_id,
        decision.episode_id,
        json.dumps(asked, separators=(",", ":")),
        json.dumps(hits, separators=(",", ":")),
        json.dumps(decision.action_scores, separators=(",", ":")),
        decision.rendered,
        decision.action,
        json.dumps(decision.followed),
        None if decision.outcome is None else float(decision.outcome),
        recorded,
        json_of(noted),
    )


VERSIONED = (
    "timestamp", "text", "embedding", "node", "kind", "action", "metadata", "tags", "recorded",
    "trust", "salience",
)  # fmt: skip
"""The columns of an event that a new version may change, but for its reward and state."""


def packed(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return these columns of a row as the journal keeps them, a vector in base64."""
    told = {name: before[name] for name in VERSIONED}
    if told["embedding"] is not None:
        told["embedding"] = base64.b64encode(told["embedding"]).decode("ascii")
    return told


def unpacked(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as the table has them.

    Raises
    ------
    ValueError
        Not what ``packed`` made.
    """
    if not isinstance(told, Mapping) or set(told) != set(VERSIONED):
        raise ValueError(f"a version has the columns {', '.join(VERSIONED)}, not {told!r:.60}")
    row = dict(told)
    if row["embedding"] is not None:
        try:
            row["embedding"] = base64.b64decode(row["embedding"], validate=True)
        except (binascii.Error, TypeError) as error:
            raise ValueError(f"the vector of a version is no base64: {error}") from error
    return row


def changed_columns(before: Event, after: Event) -> dict[str, object]:
    """Return the columns that differ between two states of an event, as the table has them."""
    names = rows.COLUMNS["events"]
    pair = [event_row(one, (0, None, None), True, 0) for one in (before, after)]
    old, new = (dict(zip(names, row, strict=True)) for row in pair)
    return {name: new[name] for name in VERSIONED if old[name] != new[name]}
