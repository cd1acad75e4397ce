"""Saying things once, and different things rather than the same thing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cvx.errors import InvalidInputError
from cvx.types import Hit


@dataclass(frozen=True, slots=True)
class Dedupe:
    """Which of the best hits are kept.

    Parameters
    ----------
    near : float or None, default 0.97
        Two hits whose vectors have at least this cosine are one memory, and so are two of the same
        text but for case and white space. The better one stays. None merges equal texts only.
    diversity : float, default 0.0
        In [0, 1]: 0 keeps the order of the scores; above, each next hit is the one with the best
        (1 - diversity) * score - diversity * (its highest cosine to those chosen), scores scaled to
        [0, 1].

    Raises
    ------
    InvalidInputError
        A value outside its bounds.

    References
    ----------
    Carbonell & Goldstein 1998, The use of MMR, diversity-based reranking.
    """

    near: float | None = 0.97
    diversity: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.diversity <= 1.0:
            raise InvalidInputError(f"diversity is {self.diversity}: give one in [0, 1]")
        if self.near is not None and not self.near >= -1.0:
            raise InvalidInputError(f"near is {self.near}: give a cosine, or None")

    def choose(self, hits: Sequence[Hit], k: int) -> tuple[list[Hit], list[tuple[int, int]]]:
        """Return at most k hits, and which ones were merged.

        Parameters
        ----------
        hits : sequence of Hit
            Best first, with their events.
        k : int
            How many.

        Returns
        -------
        kept : list of Hit
        merged : list of (int, int)
            Places in ``hits``: what was dropped, and what says the same.
        """
        cosines = _cosines(hits)
        texts = [_plain(hit) for hit in hits]
        open_places, merged = list(range(len(hits))), list[tuple[int, int]]()
        chosen: list[int] = []
        worth = _scaled([hit.score for hit in hits])
        while open_places and len(chosen) < k:
            best = open_places[0]
            if self.diversity and chosen:
                close = cosines[np.ix_(open_places, chosen)].max(axis=1)
                marginal = (1 - self.diversity) * worth[open_places] - self.diversity * close
                best = open_places[int(np.argmax(marginal))]
            chosen.append(best)
            left = []
            for place in open_places:
                if place == best:
                    continue
                if self._same(texts, cosines, place, best):
                    merged.append((place, best))
                else:
                    left.append(place)
            open_places = left
        return [hits[place] for place in chosen], merged

    def _same(self, texts: Sequence[str], cosines: npt.NDArray[np.float64], a: int, b: int) -> bool:
        if texts[a] and texts[a] == texts[b]:
            return True
        return self.near is not None and bool(cosines[a, b] >= self.near)


def _plain(hit: Hit) -> str:
    return "" if hit.event is None else " ".join(hit.event.text.casefold().split())


def _cosines(hits: Sequence[Hit]) -> npt.NDArray[np.float64]:
    """Cosines between the hits; that with something without a vector is -1, below every bound."""
    vectors = [None if hit.event is None else hit.event.vector for hit in hits]
    dim = next((len(vector) for vector in vectors if vector is not None), 0)
    rows = np.zeros((len(hits), dim))
    for place, vector in enumerate(vectors):
        if vector is not None:
            rows[place] = vector / (np.linalg.norm(vector) or 1.0)
    out = np.asarray(rows @ rows.T)
    without = ~rows.any(axis=1)
    out[without, :] = out[:, without] = -1.0
    return out


def _scaled(scores: Sequence[float]) -> npt.NDArray[np.float64]:
    values = np.array(scores, dtype=np.float64)
    reach = np.ptp(values) if len(values) else 0.0
    return np.zeros(len(values)) if reach == 0 else (values - values.min()) / reach
