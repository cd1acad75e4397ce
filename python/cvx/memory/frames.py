"""Everything that is stored as polars frames: ``memory.frames``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.arguments import a_flag, a_text, checked, optional, wrong
from cvx.extras import needs
from cvx.memory.backend import Backend
from cvx.store import Record
from cvx.store.rowcheck import explains
from cvx.store.rows import json_of
from cvx.types import ENTITY_KEY, entity_name
from cvx.validation import STATES

if TYPE_CHECKING:
    import polars as pl

_INTEGERS = ("event_id", "timestamp", "episode", "recorded", "episode_id", "decision_id")
_REALS = ("reward", "salience", "trust", "weight", "outcome")
_OF_EVENTS = (
    "event_id", "timestamp", "text", "entity", "namespace", "kind", "action", "reward",
    "salience", "source", "trust", "visibility", "state", "episode", "tags", "metadata",
    "recorded", "key",
)  # fmt: skip


def _state(name: str, value: object) -> object:
    if not isinstance(value, str) or value not in STATES:
        raise wrong(name, value, f"one of {', '.join(STATES)}, or None")
    return value


@explains(lambda frames: frames._backend.record)
class Frames:
    """Events, links, episodes and decisions as frames.

    Any of them goes on to Arrow without a copy: polars frames implement ``__arrow_c_stream__``.

    Parameters
    ----------
    backend : Backend
        Of the memory.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @checked(namespace=optional(a_text), state=optional(_state), vectors=a_flag)
    def events(
        self,
        *,
        namespace: str | None = None,
        state: str | None = "active",
        vectors: bool = False,
    ) -> pl.DataFrame:
        """Return events as a frame, in the order of writing.

        Parameters
        ----------
        namespace : str, optional
            Only those of it; ``None`` for all.
        state : str, optional
            "active" (the default), "archived", "quarantined"; ``None`` for all.
        vectors : bool, default False
            With a column ``vector``, an Array of float32, null where there is none.

        Returns
        -------
        polars.DataFrame
            ``event_id``, ``timestamp``, ``text``, ``entity``, ``namespace``, ``kind``, ``action``,
            ``reward``, ``salience``, ``source``, ``trust``, ``visibility``, ``state``,
            ``episode``, ``tags``, ``metadata`` (JSON), ``recorded``, ``key``.

        Raises
        ------
        DamagedStoreError
            A row is not what was written.
        """
        dim = self._backend.dim if vectors else None
        return _events_frame(self._backend.record, namespace, state, dim)

    def links(self) -> pl.DataFrame:
        """Return links between events as a frame.

        Returns
        -------
        polars.DataFrame
            ``from_event``, ``to_event``, ``kind``, ``weight``, ``why``, ``evidence``,
            ``recorded``.

        Raises
        ------
        DamagedStoreError
            A row is not what was written.
        """
        return _links_frame(self._backend.record)

    def episodes(self) -> pl.DataFrame:
        """Return closed episodes as a frame.

        Returns
        -------
        polars.DataFrame
            ``episode_id``, ``entity``, ``namespace``, ``kind``, ``goal``, ``task_type``,
            ``reward``, ``metadata`` (JSON), ``recorded``, ``steps`` (their number).

        Raises
        ------
        DamagedStoreError
            A row is not what was written.
        """
        return _episodes_frame(self._backend.record)

    def decisions(self) -> pl.DataFrame:
        """Return what was asked of memory, and what became of it, as a frame.

        Returns
        -------
        polars.DataFrame
            ``decision_id``, ``episode``, ``cue``, ``hits``, ``action_scores`` (JSON),
            ``rendered``, ``action``, ``followed`` (nodes), ``outcome``, ``recorded``, ``record``
            (JSON).

        Raises
        ------
        DamagedStoreError
            A row is not what was written.
        """
        return _decisions_frame(self._backend.record)


def _events_frame(
    record: Record, namespace: str | None, state: str | None, dim: int | None
) -> pl.DataFrame:
    """Return events, with vectors of this dimension unless it is None."""
    with needs("frames"):
        import polars as pl

    columns = record.columns(
        "events",
        "WHERE (?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR state = ?2) ORDER BY event_id",
        (namespace, state),
    )
    frame = _frame(_named(columns), _OF_EVENTS).with_columns(
        pl.col("tags").str.json_decode(pl.List(pl.String))
    )
    return frame if dim is None else frame.with_columns(_vectors(columns["embedding"], dim))


def _links_frame(record: Record) -> pl.DataFrame:
    """Return links between events."""
    with needs("frames"):
        import polars as pl

    frame = _frame(
        record.columns("links", "ORDER BY from_node, to_node, kind"),
        ("from_node", "to_node", "kind", "weight", "why", "evidence", "recorded"),
    )
    owners = pl.DataFrame(
        record.query(
            "SELECT node, event_id FROM events WHERE node IS NOT NULL"
            " UNION ALL SELECT node, event_id FROM aliases"
        ),
        schema={"node": pl.Int64, "event": pl.Int64},
        orient="row",
    )
    for end in ("from", "to"):
        named = owners.rename({"event": f"{end}_event"})
        frame = frame.join(
            named, left_on=f"{end}_node", right_on="node", how="left", maintain_order="left"
        )
    return frame.select("from_event", "to_event", "kind", "weight", "why", "evidence", "recorded")


def _episodes_frame(record: Record) -> pl.DataFrame:
    """Return closed episodes."""
    with needs("frames"):
        import polars as pl

    columns = record.columns("episodes", "ORDER BY episode_id")
    steps = pl.DataFrame(
        record.query("SELECT episode, count(*) FROM events WHERE episode NOT NULL GROUP BY 1"),
        schema={"episode_id": pl.Int64, "steps": pl.Int64},
        orient="row",
    )
    frame = _frame(_named(columns), tuple(columns))
    counted = frame.join(steps, on="episode_id", how="left", maintain_order="left")
    return counted.with_columns(pl.col("steps").fill_null(0))


def _decisions_frame(record: Record) -> pl.DataFrame:
    """Return what was asked, and what became of it."""
    with needs("frames"):
        import polars as pl

    columns = record.columns("decisions", "ORDER BY decision_id")
    return _frame(columns, tuple(columns)).with_columns(
        pl.col("followed").str.json_decode(pl.List(pl.Int64))
    )


def _named(columns: dict[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Return columns with the names of entities in place of their numbers."""
    told = [json.loads(one) if ENTITY_KEY in one else None for one in columns["metadata"]]
    names = [None if one is None else one.pop(ENTITY_KEY, None) for one in told]
    own = zip(told, columns["metadata"], strict=True)
    numbers = zip(names, columns["entity"], strict=True)
    return {
        **columns,
        "metadata": [kept if one is None else json_of(one) for one, kept in own],
        "entity": [entity_name(one) if name is None else name for name, one in numbers],
    }


def _frame(columns: dict[str, Sequence[Any]], names: Sequence[str]) -> pl.DataFrame:
    with needs("frames"):
        import polars as pl

    def kind(name: str) -> type[pl.DataType]:
        if name in _INTEGERS or name.endswith("_node"):
            return pl.Int64
        return pl.Float64 if name in _REALS else pl.String

    return pl.DataFrame([pl.Series(name, columns[name], dtype=kind(name)) for name in names])


def _vectors(blobs: Sequence[bytes | None], dim: int) -> pl.Series:
    with needs("frames"):
        import polars as pl

    nothing = bytes(4 * dim)
    # One buffer for all of them, which the column then shares.
    joined = b"".join(nothing if blob is None else blob for blob in blobs)
    rows = np.frombuffer(joined, dtype="<f4").reshape(len(blobs), dim)
    column = pl.Series("vector", rows, dtype=pl.Array(pl.Float32, dim))
    missing = pl.Series([blob is None for blob in blobs], dtype=pl.Boolean)
    return column if not missing.any() else column.set(missing, None)
