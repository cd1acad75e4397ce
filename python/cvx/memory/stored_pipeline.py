"""Stores how a memory recalls: tuned weights, or a whole pipeline by its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType
from typing import Any

from cvx.errors import InvalidInputError
from cvx.recall import Pipeline, Weighting, candidates, presets, sources
from cvx.recall.context import Dedupe, Serving
from cvx.recall.floor import Answerable, Floor, RescaledFloor, shipped_floor
from cvx.recall.guard import Guard
from cvx.recall.packing import Budget
from cvx.recall.pipeline import read_plainly
from cvx.recall.presets import default_pipeline, read_cue, signals_of
from cvx.recall.render import Renderer
from cvx.scoring.formulas import Decay
from cvx.scoring.off_policy import PlackettLuce
from cvx.store import Record
from cvx.tokens import estimate_tokens

NAME = "recall"
"""Under which the store keeps it."""

_PARTS: Mapping[str, Callable[..., Any]] = {
    part.__name__: part
    for part in (
        *(Pipeline, Weighting, Guard, Floor, Answerable, RescaledFloor),
        *(Serving, Dedupe, Budget, Renderer, PlackettLuce, Decay),
        *(sources.Dense, sources.Lexical, sources.Words, sources.Graph, sources.Causes),
        *(sources.Aliases, sources.Recent, presets.FusionWithColumn),
        *(candidates.ranks_fused, candidates.values_fused),
        *(presets.similarity_column, presets.recency_column, presets.usage_column),
        *(presets.region_column, presets.salience, presets.reward),
        *(read_plainly, read_cue, signals_of, estimate_tokens),
    )
}
"""What a kept pipeline may be made of: classes by their fields, functions with their arguments."""
_FORMER_NAMES = {"Learned": "RescaledFloor", "Beside": "FusionWithColumn"}
"""Of parts in stores of November 2026."""


class NotKept(Exception):  # noqa: N818
    """A part of a pipeline that no store can keep; its argument says where it stands."""


def weights_state(
    record: Record, weights: Mapping[str, float] | None, answerable: Answerable | None
) -> dict[str, Any]:
    """Return what the store keeps of a tuning: the shipped weights stay those of the library."""
    return {
        "weights": None if weights is None else dict(weights),
        "answerable": None if answerable is None else answerable.to_dict(),
        "embedder": record.meta("embedder"),
    }


def pipeline_state(record: Record, pipeline: Pipeline) -> dict[str, Any]:
    """Return what the store keeps of a pipeline.

    Raises
    ------
    NotKept
        A part of it is the user's own, or no finite number.
    """
    return {"pipeline": _plain(pipeline, ""), "embedder": record.meta("embedder")}


def stored_at(record: Record, name: str = NAME) -> int | None:
    """Return when the recall of a record, or what is kept of that name, changed last, or None."""
    found = record.query("SELECT recorded FROM model_state WHERE name = ?", (name,))
    return int(found[0][0]) if found else None


def stored(record: Record) -> Pipeline:
    """Return the pipeline of a record: the one that was stored, else the shipped one.

    A calibrated floor holds for the embedder that it was calibrated with; else the shipped one of
    the embedder does.

    Raises
    ------
    InvalidInputError
        What is stored cannot be read.
    """
    told, embedder = record.state(NAME), record.meta("embedder")
    if told is None:
        return default_pipeline(answerable=shipped_floor(embedder))
    try:
        pipeline = _pipeline(told, embedder)
        same = told["embedder"] == embedder
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"the pipeline that {record.path} keeps cannot be read ({type(error).__name__}: "
            f"{error}): set memory.learning.pipeline, or tune it anew"
        ) from error
    if same or pipeline.floor.answerable is None:
        return pipeline
    return pipeline.answering(shipped_floor(embedder))


def _pipeline(told: Mapping[str, Any], embedder: str | None) -> Pipeline:
    if "pipeline" in told:
        made = _made(told["pipeline"])
        if not isinstance(made, Pipeline):
            raise TypeError(f"{type(made).__name__} is no pipeline")
        return made
    weights, floor = told["weights"], told["answerable"]
    return default_pipeline(
        weights,
        shipped_floor(embedder) if floor is None else Answerable.from_dict(floor),
    )


def _plain(value: Any, where: str) -> Any:
    """Return a part as JSON; ``where`` is its place in the pipeline."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple | list):
        return [_plain(one, f"{where}[{at}]") for at, one in enumerate(value)]
    if isinstance(value, Mapping):
        return {"map": {key: _plain(one, f"{where}[{key!r}]") for key, one in value.items()}}
    made, given = value, dict[str, Any]()
    if isinstance(value, partial) and not value.args:
        made, given = value.func, value.keywords
    elif is_dataclass(value) and not isinstance(value, type):
        made = type(value)
        given = {field.name: getattr(value, field.name) for field in fields(value)}
    name = getattr(made, "__name__", "")
    if _PARTS.get(name) is not made:
        raise NotKept(where)
    inside = {key: _plain(one, f"{where}.{key}" if where else key) for key, one in given.items()}
    return {"name": name, "with": inside}


def _made(plain: Any) -> Any:
    """Return the part that ``_plain`` told of."""
    if isinstance(plain, list):
        return tuple(_made(one) for one in plain)
    if not isinstance(plain, dict):
        return plain
    if "map" in plain:
        return {key: _made(one) for key, one in plain["map"].items()}
    name = plain["name"]
    part = _PARTS[_FORMER_NAMES.get(name) or name]
    given = {key: _made(one) for key, one in plain["with"].items()}
    if isinstance(part, FunctionType):
        return partial(part, **given) if given else part
    return part(**given)
