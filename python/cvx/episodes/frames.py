"""Episodes and their steps as polars frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cvx.types import Episode

if TYPE_CHECKING:
    import polars as pl


def episodes_frame(episodes: Iterable[Episode]) -> pl.DataFrame:
    """Return one row an episode.

    Returns
    -------
    polars.DataFrame
        ``episode_id``, ``entity_id``, ``namespace``, ``kind``, ``goal``, ``task_type``,
        ``reward``, ``steps`` (their number), ``first``, ``last`` (timestamps).
    """
    import polars as pl

    rows = [
        (
            e.episode_id,
            e.entity_id,
            e.namespace,
            e.kind,
            e.goal,
            e.task_type,
            e.reward,
            len(e.steps),
            e.steps[0].timestamp if e.steps else None,
            e.steps[-1].timestamp if e.steps else None,
        )
        for e in episodes
    ]
    schema = {
        "episode_id": pl.Int64,
        "entity_id": pl.Int64,
        "namespace": pl.String,
        "kind": pl.String,
        "goal": pl.String,
        "task_type": pl.String,
        "reward": pl.Float64,
        "steps": pl.Int64,
        "first": pl.Int64,
        "last": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def steps_frame(episodes: Iterable[Episode]) -> pl.DataFrame:
    """Return one row a step.

    Returns
    -------
    polars.DataFrame
        ``episode_id``, ``entity_id``, ``namespace``, ``task_type``, ``place`` (from 0),
        ``timestamp``, ``node``, ``text``, ``action``, ``reward``.
    """
    import polars as pl

    rows = [
        (
            e.episode_id,
            s.entity_id,
            s.namespace,
            e.task_type,
            place,
            s.timestamp,
            s.node,
            s.text,
            s.action,
            s.reward,
        )
        for e in episodes
        for place, s in enumerate(e.steps)
    ]
    schema = {
        "episode_id": pl.Int64,
        "entity_id": pl.Int64,
        "namespace": pl.String,
        "task_type": pl.String,
        "place": pl.Int64,
        "timestamp": pl.Int64,
        "node": pl.Int64,
        "text": pl.String,
        "action": pl.String,
        "reward": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
