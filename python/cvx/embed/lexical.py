"""The offline default: signed feature hashing of words and their character n-grams."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cvx.arguments import number, whole
from cvx.embed.protocol import Threaded, listed
from cvx.errors import InvalidInputError
from cvx.types import Vector

_WORD = re.compile(r"\w+")
_CACHED_WORDS = 65_536
_LONGEST_WORD = 4_096
"""Characters of a word beyond which the parts between its ends are left out."""


class LexicalEmbedder(Threaded):
    """Vectors that are near when texts share words or parts of words.

    It knows spelling, not meaning: "mug" and "cup" are strangers to it, and ``info()`` says so.
    A word is hashed as a whole (weight 1) and as its character n-grams, which together weigh
    ``ngram_weight``, so that inflected forms and typing errors stay near. Repeated words count
    with the square root of their number. The same text has the same vector in every process and
    on every machine.

    Parameters
    ----------
    dim : int, default 512
        At least 2.
    ngrams : tuple of (int, int), default (3, 5)
        Shortest and longest character n-gram; a word carries one mark at either end.
    ngram_weight : float, default 1.0
        Norm of a word's n-grams beside the word itself; 0 leaves them out.

    Raises
    ------
    InvalidInputError
        A parameter outside its bound.

    References
    ----------
    Weinberger et al. 2009, Feature hashing for large scale multitask learning.
    Bojanowski et al. 2017, Enriching word vectors with subword information.

    Examples
    --------
    >>> embedder = LexicalEmbedder(dim=256)
    >>> a, b, c = embedder.embed(["clean the mug", "mugs to clean", "open a drawer"])
    >>> bool(a @ b > 0.3 > a @ c), embedder.info()["semantic"]
    (True, False)
    """

    def __init__(
        self, dim: int = 512, *, ngrams: tuple[int, int] = (3, 5), ngram_weight: float = 1.0
    ) -> None:
        whole(2)("dim", dim)
        if not 1 <= ngrams[0] <= ngrams[1]:
            raise InvalidInputError(
                f"ngrams is {ngrams}: give (shortest, longest) with 1 <= shortest <= longest"
            )
        number(0.0)("ngram_weight", ngram_weight)
        self.dim = dim
        self.ngrams = ngrams
        self.ngram_weight = ngram_weight
        self._words: dict[str, tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]] = {}

    def __repr__(self) -> str:
        return f"<LexicalEmbedder {self.info()['id']}>"

    def info(self) -> dict[str, Any]:
        """Describe the vectors, with the parameters that made them."""
        low, high = self.ngrams
        return {
            "id": f"cvx-lexical-1/{self.dim}/{low}-{high}/{self.ngram_weight:g}",
            "dim": self.dim,
            "semantic": False,
            "provider": "lexical",
            "model": "cvx-lexical-1",
            "prefixes": {"query": "", "document": ""},
            "max_tokens": None,
            "ngrams": [low, high],
            "ngram_weight": self.ngram_weight,
        }

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed a batch.

        Parameters
        ----------
        texts : sequence of str
            n texts; n may be 0.

        Returns
        -------
        ndarray of shape (n, dim), float32
            Every row of norm 1, that of an empty text too: all empty texts are alike.

        Raises
        ------
        InvalidInputError
            A single string, or something in the batch that is not a string.
        """
        batch = listed(texts)
        out = np.zeros((len(batch), self.dim), dtype=np.float64)
        for row, text in zip(out, batch, strict=True):
            self._add(row, text)
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        return np.asarray(out / norms, dtype=np.float32)

    def _add(self, row: npt.NDArray[np.float64], text: str) -> None:
        normal = unicodedata.normalize("NFKC", text).casefold()
        for word, count in Counter(_WORD.findall(normal) or [normal.strip()]).items():
            places, weights = self._features(word)
            row[places] += weights * math.sqrt(count)
        if not row.any():
            # Features of opposite sign can cancel in a short text; it still needs a direction.
            places, weights = self._features("")
            row[places] += weights

    def _features(self, word: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        known = self._words.get(word)
        if known is None:
            if len(self._words) >= _CACHED_WORDS:
                self._words.clear()
            known = self._words[word] = self._hash_word(word)
        return known

    def _hash_word(self, word: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        marked = f"<{word}>"
        if len(marked) > _LONGEST_WORD:
            # What is longer is data: both ends tell it from others.
            marked = marked[: _LONGEST_WORD // 2] + marked[-_LONGEST_WORD // 2 :]
        low, high = self.ngrams
        features = ["w" + word]
        features += [
            "g" + marked[at : at + n]
            for n in range(low, high + 1)
            for at in range(len(marked) - n + 1)
        ]
        grams = len(features) - 1 if word and self.ngram_weight else 0
        weights = np.ones(1 + grams)
        weights[1:] = self.ngram_weight / math.sqrt(grams or 1)
        row = self._hashed(features[: 1 + grams], weights)
        places = np.flatnonzero(row)
        return places, row[places]

    def _hashed(
        self, features: Sequence[str], weights: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        # blake2b rather than hash(): Python's own is salted anew in every process.
        made = (one.encode("utf-8", "surrogatepass") for one in features)
        told = b"".join([hashlib.blake2b(one, digest_size=8).digest() for one in made])
        codes = np.frombuffer(told, "<u8")
        row = np.zeros(self.dim)
        np.add.at(row, (codes >> 1) % self.dim, np.where(codes & 1, weights, -weights))
        return row
