"""Fuses the ranking signals of the candidates into one score (by rank or by value)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import above_zero
from cvx.errors import InvalidInputError, UnknownError
from cvx.recall.sources import BUILT_IN, RRF_CONSTANT
from cvx.scoring.scorer import Mode, Scored, check_weights, scale, score_columns, stretched
from cvx.types import Column, Edge, IntArray

FloatArray = npt.NDArray[np.floating[Any]]


class Candidates:
    """The table of candidates of one recall: rows of events, columns of signals.

    Parameters
    ----------
    rows : ndarray of shape (n,), int64
        Places in the corpus, ascending, each once.
    event_ids : ndarray of shape (n,), int64
        Their events.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n,), float64
        By name. NaN where something is not known.
    paths : dict of int to tuple of Edge
        By row: the edges that were walked to what was found over edges.

    Examples
    --------
    >>> table = Candidates(np.array([0, 4]), np.array([1, 5]))
    >>> table.add("similarity", [0.5, 0.25])
    >>> table["similarity"].tolist(), len(table)
    ([0.5, 0.25], 2)
    """

    def __init__(self, rows: IntArray, event_ids: IntArray) -> None:
        self.rows = rows
        self.event_ids = event_ids
        self.columns: dict[str, Column] = {}
        self.paths: dict[int, tuple[Edge, ...]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        try:
            return self.columns[name]
        except KeyError:
            raise UnknownError(
                f"there is no column {name!r}: the candidates have {', '.join(self.columns)}"
            ) from None

    def add(self, name: str, values: npt.ArrayLike) -> None:
        """Add a column, or replace the one of that name.

        Raises
        ------
        InvalidInputError
            Not one value for each candidate.
        """
        column = np.ascontiguousarray(values, dtype=np.float64)
        if column.shape != self.rows.shape:
            raise InvalidInputError(
                f"column {name!r} has shape {column.shape}, there are {len(self)} candidates: "
                "give one value for each"
            )
        self.columns[name] = column

    def update(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        """Add several columns."""
        for name, values in columns.items():
            # Most are such columns already, and a recall adds some forty.
            if (
                type(values) is np.ndarray
                and values.dtype.char == "d"
                and values.shape == self.rows.shape
                and values.flags.c_contiguous
            ):
                self.columns[name] = values
            else:
                self.add(name, values)


Scale: TypeAlias = Literal["min-max", "max", "none"]
Fusion: TypeAlias = Callable[[Candidates, Collection[str]], Mapping[str, Column]]
"""From a table and the names that weigh anything to the columns that are weighed."""


def by_rank(*, constant: float = RRF_CONSTANT) -> Fusion:
    """Fuse by reciprocal rank: each source's column is 1 / (constant + place), 0 where it is not.

    Parameters
    ----------
    constant : float, default 60.0
        How little the first places count more than those after them; above 0.

    References
    ----------
    Cormack, Clarke & Büttcher 2009, Reciprocal rank fusion outperforms Condorcet and individual
    rank learning methods.
    """
    above_zero("constant", constant)
    return partial(ranks_fused, constant=constant)


def ranks_fused(table: Candidates, names: Collection[str], *, constant: float) -> dict[str, Column]:
    """Compute the columns of `by_rank`."""
    return {
        name: np.nan_to_num(1.0 / (constant + table[f"{name}.rank"]), nan=0.0)
        for name in names
        if f"{name}.rank" in table
    }


def by_scale(
    scales: Mapping[str, Scale] | None = None,
    default: Scale = "min-max",
    *,
    constant: float = RRF_CONSTANT,
) -> Fusion:
    """Fuse by values: every column that weighs anything, brought to a common range within the pool.

    A source that has no column of values counts by its places.

    Parameters
    ----------
    scales : mapping of str to {"min-max", "max", "none"}, optional
        By column.
    default : {"min-max", "max", "none"}, default "min-max"
        For the columns that ``scales`` does not name.
    constant : float, default 60.0
        As for `by_rank`.
    """
    above_zero("constant", constant)
    return partial(values_fused, scales=dict(scales or {}), default=default, constant=constant)


def values_fused(
    table: Candidates,
    names: Collection[str],
    *,
    scales: Mapping[str, Scale],
    default: Scale,
    constant: float,
) -> dict[str, Column]:
    """Compute the columns of `by_scale`."""
    how = {name: scales.get(name, default) for name in names}
    out = stretched({n: table[n] for n in names if n in table and how[n] == "min-max"})
    for name in names:
        if name in out:
            continue
        if name in table:
            out[name] = scale(table[name], how[name])
        elif f"{name}.rank" in table:
            # A source of the user has no value that could be compared: its first place is 1.
            places = table[f"{name}.rank"]
            out[name] = np.nan_to_num((constant + 1.0) / (constant + places), nan=0.0)
    return out


@dataclass(frozen=True, slots=True)
class Weighting:
    """What each column weighs.

    Parameters
    ----------
    weights : mapping of str to float
        By column of the fusion; finite, negative ones are evidence against.
    mode : {"sum", "log-product"}, default "sum"
        As for `score_columns`.
    bias : float, default 0.0
        Added to every score.
    trust : bool, default True
        Whether the trust in an event's source enters: in a sum it multiplies a score above 0 and
        its shares, and 2 - trust one below; in a product it is one more factor.

    Raises
    ------
    InvalidInputError
        No weights, or one that is not finite.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    mode: Mode = "sum"
    bias: float = 0.0
    trust: bool = True

    def __post_init__(self) -> None:
        check_weights(self.weights)

    @property
    def names(self) -> frozenset[str]:
        """The columns that weigh anything."""
        return frozenset(name for name, weight in self.weights.items() if weight)

    @classmethod
    def mean_of(cls, weights: Mapping[str, float]) -> Weighting:
        """Return weights divided by the sum of those above 0: scores stay near [0, 1]."""
        check_weights(weights)
        whole = sum(weight for weight in weights.values() if weight > 0) or 1.0
        return cls({name: weight / whole for name, weight in weights.items()})

    def with_weights(self, weights: Mapping[str, float]) -> Weighting:
        """Return the same with other weights."""
        return replace(self, weights=dict(weights))

    def score(self, columns: Mapping[str, Column], table: Candidates) -> Scored:
        """Return the scores of a table whose fusion gave these columns.

        Raises
        ------
        UnknownError
            A weight for a column that there is not.
        """
        # A source that was not asked says nothing; any other column must be there.
        silent = self.weights.keys() & BUILT_IN.keys() - columns.keys()
        if silent:
            columns = {**columns, **dict.fromkeys(silent, np.full(len(table), np.nan))}
        return score_columns(
            columns,
            self.weights,
            mode=self.mode,
            bias=self.bias,
            trust=table["trust"] if self.trust else None,
        )
