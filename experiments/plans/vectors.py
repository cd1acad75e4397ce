"""Vectors for goals and plans in a memory's vector space."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from cvx.embed import Embedder
from cvx.types import Vector
from experiments.plans.lessons import terms_of
from experiments.plans.lexicon import Lexicon
from experiments.plans.words import words


class Space:
    """Vectors of what is remembered and of what is asked; what is rare weighs more in the latter.

    All have shape (dim,) and dtype float32.

    Parameters
    ----------
    embedder : Embedder
        Of words.
    lexicon : Lexicon
        Knows which words of goals are rare.
    """

    def __init__(self, embedder: Embedder, lexicon: Lexicon) -> None:
        self._embedder, self._lexicon = embedder, lexicon

    def start(self, goal: str, slots: Sequence[str], plan: Iterable[str]) -> Vector:
        """Return where the start of an attempt lies: by its goal's words and its plan's verbs."""
        terms = [*terms_of(self._lexicon, goal, slots), *(words(p)[0] for p in plan)]
        return self._sum(dict.fromkeys(terms, 1.0))

    def goal(self, goal: str, slots: Sequence[str]) -> Vector:
        """Return where to ask for plans."""
        return self._sum({w: self._lexicon.weight(w) for w in terms_of(self._lexicon, goal, slots)})

    def _sum(self, weights: Mapping[str, float]) -> Vector:
        kept = {w: x for w, x in weights.items() if x} or {"": 1.0}
        rows = self._embedder.embed(list(kept))
        return np.asarray(np.array(list(kept.values()), dtype=np.float32) @ rows)
