"""What a fusion rule sees and gives: memories, the events they may have witnessed, a ranking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.errors import DimensionError, InvalidParameterError, LengthMismatchError
from cvx.types import Vector

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The memories that may be recalled.

    Attributes
    ----------
    vectors : ndarray of shape (n, dim), float32
        Rows of norm 1; a row of zeros is a memory without a vector.
    similarity : ndarray of shape (n,)
        Cosine to the question, in [0, 1]; 0 where there is none.
    recency, importance : ndarray of shape (n,)
        In [0, 1].
    """

    vectors: Vector
    similarity: npt.NDArray[np.floating]
    recency: npt.NDArray[np.floating]
    importance: npt.NDArray[np.floating]

    def __post_init__(self) -> None:
        columns = {name: getattr(self, name) for name in ("similarity", "recency", "importance")}
        _check_rows(self.vectors, columns)
        for name, column in columns.items():
            _check_range(name, column)

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True, kw_only=True)
class Ancestors:
    """Events that the one asked about follows from, in any order.

    Attributes
    ----------
    vectors : ndarray of shape (a, dim), float32
        Rows of norm 1; a row of zeros is an event without a vector, which has no witnesses.
    depths : ndarray of shape (a,), int64
        Steps to the event asked about; 1 is a direct cause.
    weights : ndarray of shape (a,)
        Product of the edge weights along the best path, in [0, 1].
    times : ndarray of shape (a,), int64
        When they happened.
    """

    vectors: Vector
    depths: npt.NDArray[np.int64]
    weights: npt.NDArray[np.floating]
    times: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        columns = {"depths": self.depths, "weights": self.weights, "times": self.times}
        _check_rows(self.vectors, columns)
        _check_range("weights", self.weights)
        if len(self.depths) and self.depths.min() < 1:
            raise InvalidParameterError(
                f"a depth is {self.depths.min()}: a direct cause has depth 1, deeper ones more"
            )

    def __len__(self) -> int:
        return len(self.vectors)

    @classmethod
    def none(cls, dim: int) -> Ancestors:
        """Return no ancestors at all, for a space of ``dim`` dimensions."""
        empty = np.zeros(0, np.int64)
        return cls(
            vectors=np.zeros((0, dim), np.float32), depths=empty, weights=np.zeros(0), times=empty
        )


class Ranked(NamedTuple):
    """A memory in its place, and why it stands there.

    Attributes
    ----------
    candidate : int
        Its place among the candidates.
    score : float
        Higher is better.
    factors : tuple of (str, float)
        What the score is made of; they add up to it.
    ancestor : int or None
        The ancestor that it witnesses, where that mattered: its place among the ancestors, or
        among the fallback's events where ``arm`` is "fallback".
    likeness : float
        Cosine to that ancestor; 0 where there is none.
    arm : {"fused", "causal", "relevance", "fallback"}
        Which evidence put it there; "fused" where one formula weighs all of it.
    """

    candidate: int
    score: float
    factors: tuple[tuple[str, float], ...]
    ancestor: int | None
    likeness: float
    arm: Literal["fused", "causal", "relevance", "fallback"]


def likeness(memories: Vector, events: Vector) -> Floats:
    """Return the cosine of every memory with every event, (n, a); NaN without both vectors.

    Raises
    ------
    DimensionError
        Vectors of two spaces.
    """
    if memories.shape[1] != events.shape[1]:
        raise DimensionError(
            f"memories have {memories.shape[1]} dimensions, events {events.shape[1]}: embed both "
            "with the same model"
        )
    cosines = (memories @ events.T).astype(np.float64)
    cosines[~memories.any(axis=1)] = np.nan
    cosines[:, ~events.any(axis=1)] = np.nan
    return cosines


def _check_rows(vectors: Vector, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    if vectors.ndim != 2:
        raise DimensionError(f"vectors have shape {vectors.shape}: give a matrix, a row each")
    for name, column in columns.items():
        if column.shape != (len(vectors),):
            raise LengthMismatchError(
                f"{name} has shape {column.shape}, vectors have {len(vectors)} rows: give one "
                "value a row"
            )


def _check_range(name: str, column: npt.NDArray[np.floating]) -> None:
    # Written so that NaN is refused too.
    if not np.all((column >= 0) & (column <= 1)):
        raise InvalidParameterError(f"{name} holds values outside [0, 1]: scale or clamp them")
