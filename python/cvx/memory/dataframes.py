"""``memory.frames``: events, links, episodes and decisions as polars frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.arguments import a_flag, among, checked, optional
from cvx.extras import needs
from cvx.memory.namespace_access import Identity
from cvx.memory.resources import Resources, noun_repr
from cvx.recall.visible_events import Asker, ways_sql
from cvx.store.row_validation import explains
from cvx.store.rows import DISCARDED, OPEN, json_of
from cvx.types import ENTITY_KEY, Where, entity_name
from cvx.validation import STATES, storable_namespace

if TYPE_CHECKING:
    import polars as pl

_INTEGERS = ("event_id", "timestamp", "episode", "recorded", "episode_id")
_REALS = ("reward", "salience", "trust", "weight")
_OF_EVENTS = (
    "event_id", "timestamp", "text", "entity", "namespace", "kind", "action", "reward",
    "salience", "source", "trust", "visibility", "state", "episode", "tags", "metadata",
    "recorded", "key",
)  # fmt: skip


@explains(lambda frames: frames._shared.record)
class Frames:
    """Events, links, episodes and decisions as frames.

    Any of them goes on to Arrow without a copy: polars frames implement ``__arrow_c_stream__``.

    Parameters
    ----------
    shared : Resources
        Of the memory.
    """

    __repr__ = noun_repr

    def __init__(self, shared: Resources) -> None:
        self._shared = shared

    @checked(namespace=optional(storable_namespace), state=optional(among(*STATES)), vectors=a_flag)
    def events(
        self,
        where: Where | None = None,
        *,
        namespace: str | None = None,
        state: str | None = "active",
        vectors: bool = False,
    ) -> pl.DataFrame:
        """Return events as a frame, in the order of writing.

        Parameters
        ----------
        where : Filter, mapping of its fields, or a list of these, optional
            Only those that pass; of a list, one filter is enough.
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
        InvalidInputError
            A filter that cannot be.
        DamagedStoreError
            A row is not what was written.

        Examples
        --------
        >>> from cvx.embed import LexicalEmbedder
        >>> from cvx.memory import Memory
        >>> memory = Memory(embedder=LexicalEmbedder())
        >>> ids = memory.add_many([{"text": "rain", "kind": "note"}, "snow"])
        >>> memory.frames.events({"kind": "note"})["text"].to_list()
        ['rain']
        """
        with needs("frames"):
            import polars as pl

        passing, values = self._passing(where)
        columns = self._shared.record.columns(
            "events",
            f"WHERE (? IS NULL OR namespace = ?) AND (? IS NULL OR state = ?) AND {passing}"
            " ORDER BY event_id",
            (namespace, namespace, state, state, *values),
        )
        frame = _frame(_named(columns), _OF_EVENTS).with_columns(
            pl.col("tags").str.json_decode(pl.List(pl.String))
        )
        if not vectors:
            return frame
        return frame.with_columns(_vectors(columns["embedding"], self._shared.dim))

    def links(self, where: Where | None = None) -> pl.DataFrame:
        """Return links between events as a frame.

        Parameters
        ----------
        where : Filter, mapping of its fields, or a list of these, optional
            Only those both of whose events pass.

        Returns
        -------
        polars.DataFrame
            ``from_event``, ``to_event``, ``kind``, ``weight``, ``why``, ``evidence``,
            ``recorded``.

        Raises
        ------
        InvalidInputError
            A filter that cannot be.
        DamagedStoreError
            A row is not what was written.
        """
        with needs("frames"):
            import polars as pl

        frame = _frame(
            self._shared.record.columns("links", "ORDER BY from_node, to_node, kind"),
            ("from_node", "to_node", "kind", "weight", "why", "evidence", "recorded"),
        )
        owners = self._owners()
        for end in ("from", "to"):
            named = owners.rename({"node": f"{end}_node", "event": f"{end}_event"})
            frame = frame.join(named, on=f"{end}_node", how="left", maintain_order="left")
        if where is not None:
            passing = self._events_passing(where)
            frame = frame.filter(
                pl.col("from_event").is_in(passing) & pl.col("to_event").is_in(passing)
            )
        return frame.select(
            "from_event", "to_event", "kind", "weight", "why", "evidence", "recorded"
        )

    def episodes(self, where: Where | None = None) -> pl.DataFrame:
        """Return episodes as a frame.

        Before the kind of one that is open, or was discarded, stands the word; it has no reward.

        Parameters
        ----------
        where : Filter, mapping of its fields, or a list of these, optional
            Only those of which a step passes.

        Returns
        -------
        polars.DataFrame
            ``episode_id``, ``entity``, ``namespace``, ``kind``, ``goal``, ``task_type``,
            ``reward``, ``metadata`` (JSON), ``recorded``, ``steps`` (their number).

        Raises
        ------
        InvalidInputError
            A filter that cannot be.
        DamagedStoreError
            A row is not what was written.
        """
        with needs("frames"):
            import polars as pl

        condition, values = self._passing(where)
        chosen = "" if where is None else (
            "WHERE episode_id IN (SELECT episode FROM events"
            f" WHERE episode NOT NULL AND {condition}) "
        )  # fmt: skip
        record = self._shared.record
        columns = record.columns(
            "episodes", f"{chosen}ORDER BY episode_id", () if where is None else values
        )
        steps = pl.DataFrame(
            record.query("SELECT episode, count(*) FROM events WHERE episode NOT NULL GROUP BY 1"),
            schema={"episode_id": pl.Int64, "steps": pl.Int64},
            orient="row",
        )
        frame = _frame(_named(columns), tuple(columns))
        counted = frame.join(steps, on="episode_id", how="left", maintain_order="left")
        unended = pl.col("kind").str.starts_with(OPEN) | pl.col("kind").str.starts_with(DISCARDED)
        reward = pl.when(unended).then(None).otherwise(pl.col("reward")).alias("reward")
        return counted.with_columns(pl.col("steps").fill_null(0), reward)

    def decisions(self, where: Where | None = None) -> pl.DataFrame:
        """Return what was asked of memory and what became of it, one row a candidate.

        A decision without candidates has one row, without an event.

        Parameters
        ----------
        where : Filter, mapping of its fields, or a list of these, optional
            Only the candidates that pass.

        Returns
        -------
        polars.DataFrame
            ``decision_id``, ``episode``, ``namespace`` (who asked, of recalls), ``cue`` (in
            words), ``place`` (from 1), ``event_id``, ``distance``, ``score``, ``propensity``
            (where the order was drawn), ``followed``, ``action``, ``outcome``, ``recorded``.

        Raises
        ------
        InvalidInputError
            A filter that cannot be.
        DamagedStoreError
            A row is not what was written.
        """
        with needs("frames"):
            import polars as pl

        passing = None if where is None else self._events_passing(where)
        if not self._shared.record.frozen:
            # What was recalled and is not written down yet.
            self._shared.flush()
        rows = [row for told in self._shared.record.decisions() for row in _candidates(told)]
        frame = pl.DataFrame(rows, schema=_CANDIDATE, orient="row").join(
            self._owners(), on="node", how="left", maintain_order="left"
        )
        frame = frame.with_columns(event_id="event").drop("node", "event")
        if passing is not None:
            frame = frame.filter(pl.col("event_id").is_in(passing))
        return frame.select(
            *("decision_id", "episode", "namespace", "cue", "place", "event_id", "distance"),
            *("score", "propensity", "followed", "action", "outcome", "recorded"),
        )

    def _passing(self, where: Where | None) -> tuple[str, list[object]]:
        """Return a filter as a condition over the events of the whole store."""
        passing = Identity(clock=self._shared.clock).passing(where)
        return ways_sql(Asker(where=passing, outcome="any"))

    def _events_passing(self, where: Where) -> list[int]:
        return self._shared.ids_where(*self._passing(where))

    def _owners(self) -> pl.DataFrame:
        """Return the event of each node, aliases among them."""
        import polars as pl

        return pl.DataFrame(
            self._shared.record.query(
                "SELECT node, event_id FROM events WHERE node IS NOT NULL"
                " UNION ALL SELECT node, event_id FROM aliases"
            ),
            schema={"node": pl.Int64, "event": pl.Int64},
            orient="row",
        )


_CANDIDATE: Mapping[str, type] = {
    "decision_id": int,
    "episode": int,
    "namespace": str,
    "cue": str,
    "place": int,
    "node": int,
    "distance": float,
    "score": float,
    "propensity": float,
    "followed": bool,
    "action": str,
    "outcome": float,
    "recorded": int,
}


def _candidates(told: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Return a decision as a row for each of its candidates."""
    cue, noted = told["cue"], told["record"]
    words = (cue["goal"], cue["step"], *cue["questions"], cue["text"])
    asked = noted.get("namespace"), " ".join(one for one in words if one)
    chances = noted.get("propensities") or ()
    ended = told["action"], told["outcome"], told["recorded"]
    nothing = [(None, None, None, None)]
    for place, (node, _, distance, score, *_) in enumerate(told["hits"] or nothing, start=1):
        yield (
            *(told["decision_id"], told["episode"], *asked, None if node is None else place),
            *(node, distance, score, chances[place - 1] if place <= len(chances) else None),
            *(None if node is None else node in told["followed"], *ended),
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
