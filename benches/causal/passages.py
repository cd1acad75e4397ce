"""Passages as sequences of events with labelled causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvx.causal.judges.offline import beginnings
from cvx.errors import InvalidInputError
from cvx.types import Vector


@dataclass(frozen=True, eq=False, kw_only=True)
class Passage:
    """One document, conversation or log: its events in the order they are told.

    Attributes
    ----------
    words : tuple of str
        What names each event: "flooded", "broke out".
    positions : ndarray of shape (n,), int64
        Where each stands, in tokens or ticks; ascending.
    sections : ndarray of shape (n,), int64
        The sentence, turn or session of each; ascending.
    vectors : ndarray of shape (n, dim), float32
        Embeddings of ``words``, norm 1.
    links : tuple of (int, int)
        (cause, effect) as far as they are known, places in ``words``.
    topic : str
        Links teach within one topic; "" where there are no topics.

    Raises
    ------
    InvalidInputError
        Columns of different lengths.
    InvalidInputError
        A link to an event that is not there or to itself, or positions that fall.
    """

    words: tuple[str, ...]
    positions: npt.NDArray[np.int64]
    sections: npt.NDArray[np.int64]
    vectors: Vector
    links: tuple[tuple[int, int], ...] = ()
    topic: str = ""

    def __post_init__(self) -> None:
        count = len(self.words)
        for name in ("positions", "sections", "vectors"):
            if len(getattr(self, name)) != count:
                raise InvalidInputError(
                    f"{name} has {len(getattr(self, name))} rows, words {count}: give one a word"
                )
        for name in ("positions", "sections"):
            if count and (np.diff(getattr(self, name)) < 0).any():
                raise InvalidInputError(f"{name} fall: put the events in the order told")
        for cause, effect in self.links:
            if not (0 <= cause < count and 0 <= effect < count) or cause == effect:
                raise InvalidInputError(
                    f"link ({cause}, {effect}): give two different events out of 0..{count - 1}"
                )

    def __len__(self) -> int:
        return len(self.words)

    def causes_of(self, effect: int) -> frozenset[int]:
        """Return the known causes of an event."""
        return frozenset(a for a, b in self.links if b == effect)


class KnownLinks:
    """What other passages teach: who caused what, who was ever a cause, who an effect.

    Parameters
    ----------
    passages : iterable of Passage
        Where the links are taken from. Never the passage that is asked about: a memory that is
        handed the answer finds it.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        given = [one for one in passages if len(one)]
        dim = given[0].vectors.shape[1] if given else 0
        empty = np.zeros((0, dim), np.float32)
        linked = [
            (one.vectors[a], one.vectors[b], head(one.words[a]), head(one.words[b]))
            for one in given
            for a, b in one.links
        ]
        self.causes: Vector = np.stack([a for a, _, _, _ in linked]) if linked else empty
        self.effects: Vector = np.stack([b for _, b, _, _ in linked]) if linked else empty
        self.stem_pairs = Counter((a, b) for _, _, a, b in linked)
        self.events: Vector = np.concatenate([one.vectors for one in given]) if given else empty
        self.was_cause = _flags(given, 0)
        self.was_effect = _flags(given, 1)


def head(words: str) -> str:
    """Return the beginning of the last word that names an event: "" where there is none."""
    found = beginnings(words)
    return found[-1] if found else ""


def _flags(passages: list[Passage], side: int) -> npt.NDArray[np.float64]:
    flags = [np.zeros(len(one)) for one in passages]
    for flag, one in zip(flags, passages, strict=True):
        flag[[link[side] for link in one.links]] = 1.0
    return np.concatenate(flags) if flags else np.zeros(0)
