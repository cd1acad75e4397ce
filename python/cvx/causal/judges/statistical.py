"""A judge fitted on known pairs: which words go together, where vectors lie, how sure it makes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import a_share
from cvx.causal.fusion import Floats
from cvx.causal.judges.protocol import Judgement, Pair, Verdict
from cvx.errors import InvalidInputError, InvalidVectorError

Matrix: TypeAlias = npt.NDArray[np.float32]

TEMPERATURE = 0.1
_SMALL = 1e-8


class Heads:
    """Two trained heads.

    Parameters
    ----------
    weights : mapping of str to ndarray
        ``in_cause`` (dim, hidden), ``bias_cause`` (hidden,), ``out_cause`` (hidden, dim), and the
        same for ``effect``; float32.
    """

    def __init__(self, weights: Mapping[str, Matrix]) -> None:
        self.weights = {name: np.asarray(weights[name], np.float32) for name in _names()}
        self.dim = self.weights["in_cause"].shape[0]

    def score(self, causes: Matrix, effects: Matrix) -> npt.NDArray[np.float64]:
        """Return how near the heads bring each cause to its effect: cosine / temperature, (n,).

        Raises
        ------
        InvalidVectorError
            Vectors of another space than the heads were trained in.
        """
        for rows in (causes, effects):
            if rows.ndim != 2 or rows.shape[1] != self.dim:
                raise InvalidVectorError(
                    f"vectors have shape {rows.shape}, the heads {self.dim} dimensions: refit "
                    "the judge on the vectors of this embedder"
                )
        left, right = self._placed("cause", causes), self._placed("effect", effects)
        return np.asarray((left * right).sum(axis=1) / TEMPERATURE, np.float64)

    def _placed(self, side: str, rows: Matrix) -> Matrix:
        """Rows as one head places them, of norm 1."""
        weights = self.weights
        hidden = np.maximum(rows @ weights[f"in_{side}"] + weights[f"bias_{side}"], 0)
        moved = rows + hidden @ weights[f"out_{side}"]
        return np.asarray(moved / (np.linalg.norm(moved, axis=1, keepdims=True) + _SMALL))


def _names() -> list[str]:
    return [f"{part}_{side}" for side in ("cause", "effect") for part in ("in", "bias", "out")]


_WORD = re.compile(r"\w+")
_LETTERS = 5
_TELLING = 4


@lru_cache(maxsize=4_096)
def beginnings(text: str) -> tuple[str, ...]:
    """Return the first five letters of every word, each once, in order of appearance.

    Cruder than a stemmer, but in every language that inflects at the end; and on e-CARE it told
    causes from distractors a little better than cutting known endings.

    Examples
    --------
    >>> beginnings("The flooded town; the floods of towns")
    ('the', 'flood', 'town', 'of', 'towns')
    """
    return tuple(dict.fromkeys(word[:_LETTERS] for word in _WORD.findall(text.lower())))


class WordPairs:
    """Pointwise mutual information of (word of the cause, word of the effect).

    Parameters
    ----------
    weights : mapping of (str, str) to float
        log((n + s) / (m + s)) for every pair of beginnings that was seen n times in true pairs of
        texts, where m times would be chance, and s = 0.01.

    References
    ----------
    Church & Hanks 1990, Word association norms, mutual information, and lexicography.
    Luo et al. 2016, Commonsense causal reasoning between short texts: the same between cause and
    effect.

    Examples
    --------
    >>> pairs = WordPairs({("rain", "flood"): 2.0, ("spark", "fire"): 1.5})
    >>> pairs.score("heavy rain", "flooding"), pairs.score("rain", "fire")
    (2.0, 0.0)
    """

    def __init__(self, weights: Mapping[tuple[str, str], float]) -> None:
        self._weights: dict[str, dict[str, float]] = {}
        for (cause, effect), weight in weights.items():
            self._weights.setdefault(cause, {})[effect] = weight

    def __len__(self) -> int:
        return sum(len(row) for row in self._weights.values())

    def score(self, cause: str, effect: str) -> float:
        """Add up the weights of all pairs of words; pairs never seen weigh nothing."""
        place = {word: at for at, word in enumerate(beginnings(effect))}
        total = 0.0
        for word in beginnings(cause):
            row = self._weights.get(word, {})
            # Through the shorter of the two: a text may have any number of words.
            met = sorted(row.keys() & place.keys(), key=place.__getitem__)
            total += sum(row[other] for other in met)
        return total

    def scores(self, pairs: Iterable[tuple[str, str]]) -> Floats:
        """Score pairs of (cause, effect): ndarray of shape (n,)."""
        return np.array([self.score(cause, effect) for cause, effect in pairs], np.float64)

    def strongest(self, cause: str, effect: str) -> tuple[str, str] | None:
        """Return the two words, one of each text, that go together best; None where none do.

        Short words and a word with itself are left out: they say who is spoken of, not why.

        Examples
        --------
        >>> WordPairs({("raine", "flood"): 3.0}).strongest("It rained", "The flooding began")
        ('rained', 'flooding')
        """
        best, found = 0.0, None
        theirs = _telling(effect)
        place = {word: at for at, word in enumerate(theirs)}
        for begins, ours in _telling(cause).items():
            row = self._weights.get(begins, {})
            for ends in sorted(row.keys() & place.keys(), key=place.__getitem__):
                if ends != begins and row[ends] > best:
                    best, found = row[ends], (ours, theirs[ends])
        return found

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the table as small arrays: words, pairs sorted by both ends, weights in 1/16."""
        seen = {word for row in self._weights.values() for word in row}
        words = sorted(seen | set(self._weights))
        at = {word: place for place, word in enumerate(words)}
        triples = sorted(
            (at[cause], at[effect], weight)
            for cause, row in self._weights.items()
            for effect, weight in row.items()
        )
        weights = np.array([weight for _, _, weight in triples], np.float64)
        return {
            "words": np.frombuffer("\n".join(words).encode(), np.uint8),
            "causes": np.array([cause for cause, _, _ in triples], np.uint16),
            "effects": np.array([effect for _, effect, _ in triples], np.uint16),
            "weights": np.clip(np.round(weights * 16), -127, 127).astype(np.int8),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> WordPairs:
        """Restore what `to_arrays` gave, weights rounded to 1/16 and within 8."""
        words = arrays["words"].tobytes().decode().split("\n")
        columns = (arrays[name].tolist() for name in ("causes", "effects", "weights"))
        return cls({(words[a], words[b]): w / 16 for a, b, w in zip(*columns, strict=True)})


def _telling(text: str) -> dict[str, str]:
    """Return the first word of each beginning, of those long enough to tell something."""
    found: dict[str, str] = {}
    for word in _WORD.findall(text):
        if len(word) >= _TELLING:
            found.setdefault(word.lower()[:_LETTERS], word)
    return found


def overlap(cause: str, effect: str) -> float:
    """Return the share of the shorter text's beginnings that both have, in [0, 1]."""
    ours, theirs = set(beginnings(cause)), set(beginnings(effect))
    shorter = min(len(ours), len(theirs))
    return len(ours & theirs) / shorter if shorter else 0.0


EVIDENCE = ("words", "heads", "overlap", "length")


class PairScorer:
    """Word pairs, and two heads where there are vectors.

    Parameters
    ----------
    words : WordPairs
        What the words say.
    heads : Heads, optional
        What the vectors say.
    """

    def __init__(self, words: WordPairs, heads: Heads | None = None) -> None:
        self.words = words
        self.heads = heads

    def evidence(self, pairs: Sequence[Pair]) -> Floats:
        """Return what speaks for each pair.

        Parameters
        ----------
        pairs : sequence of Pair
            n pairs; where the scorer has heads, each with both vectors.

        Returns
        -------
        ndarray of shape (n, len(EVIDENCE))
            Sum over word pairs; nearness by the heads (0 without them); share of words in common;
            log(1 + number of word pairs), since longer texts have larger sums.
        """
        rows = np.zeros((len(pairs), len(EVIDENCE)))
        if not len(pairs):
            return rows
        rows[:, 0] = self.words.scores((pair.cause, pair.effect) for pair in pairs)
        if self.heads is not None:
            causes = [one for pair in pairs if (one := pair.cause_vector) is not None]
            effects = [one for pair in pairs if (one := pair.effect_vector) is not None]
            rows[:, 1] = self.heads.score(np.stack(causes), np.stack(effects))
        rows[:, 2] = [overlap(pair.cause, pair.effect) for pair in pairs]
        rows[:, 3] = [
            np.log1p(len(beginnings(pair.cause)) * len(beginnings(pair.effect))) for pair in pairs
        ]
        return rows


_SHIPPED = "ecare.npz"


class StatisticalJudge:
    """Says how likely one event led to another, without a language model.

    Parameters
    ----------
    scorer : PairScorer
        Where the evidence comes from.
    weights : sequence of float
        What each kind of `EVIDENCE` adds to the log-odds: a logistic regression.
    bias : float
        Log-odds without any evidence, of pairs of which half are true.
    bound : float, default 0.5
        From this probability up it is a yes; in [0, 1].
    prior : float, default 0.5
        Share of the pairs asked about that are true, as far as it is known; between 0 and 1.

    Raises
    ------
    InvalidInputError
        A bound or a prior outside its range.

    Examples
    --------
    >>> judge = StatisticalJudge.shipped()
    >>> yes, no = judge.judge([Pair("He smoked for years.", "He got lung cancer."),
    ...                        Pair("He smoked for years.", "The shop sells paint.")])
    >>> yes.verdict, yes.why, no.verdict
    ('yes', '"smoked" is known to lead to "lung"', 'no')
    """

    name = "statistical"

    def __init__(
        self,
        scorer: PairScorer,
        weights: Sequence[float],
        bias: float,
        *,
        bound: float = 0.5,
        prior: float = 0.5,
    ) -> None:
        self.bound = a_share("bound", bound)
        if not 0 < prior < 1:
            raise InvalidInputError(f"prior is {prior}: give one between 0 and 1")
        if len(weights) != len(EVIDENCE):
            raise InvalidInputError(
                f"{len(weights)} weights: give {len(EVIDENCE)}, one for each of "
                f"{', '.join(EVIDENCE)}"
            )
        self.scorer = scorer
        self.weights, self.bias = tuple(weights), bias
        self.prior = prior

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge pairs.

        What came later led to nothing before it: a pair with a lag below 0 is a no. A pair with
        an empty text is unjudged, and one without vectors where the judge has heads.
        """
        able = [at for at, pair in enumerate(pairs) if self._obstacle(pair) is None]
        parts = dict(zip(able, self.parts([pairs[at] for at in able]), strict=True))
        return [self._judged(pair, parts.get(at)) for at, pair in enumerate(pairs)]

    def parts(self, pairs: Sequence[Pair]) -> Floats:
        """Return what each kind of evidence adds to the log-odds: (n, len(EVIDENCE))."""
        return np.asarray(self.scorer.evidence(pairs) * np.asarray(self.weights))

    @classmethod
    def shipped(cls, *, bound: float = 0.5, prior: float = 0.5) -> StatisticalJudge:
        """Return the judge that comes with cvx: words alone, fitted on e-CARE."""
        with resources.files("cvx.causal.judges").joinpath(_SHIPPED).open("rb") as file:
            return cls._read(file, bound=bound, prior=prior)

    def save(self, path: str | Path) -> None:
        """Write the judge as a compressed npz of plain arrays."""
        arrays: dict[str, Any] = dict(self.scorer.words.to_arrays())
        if self.scorer.heads is not None:
            arrays.update(self.scorer.heads.weights)
        arrays["calibration"] = np.array([*self.weights, self.bias])
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | Path, *, bound: float = 0.5, prior: float = 0.5) -> StatisticalJudge:
        """Read what `save` wrote.

        Raises
        ------
        InvalidInputError
            A file that is no judge.
        """
        with Path(path).open("rb") as file:
            return cls._read(file, bound=bound, prior=prior)

    @classmethod
    def _read(cls, file: IO[bytes], *, bound: float, prior: float) -> StatisticalJudge:
        try:
            with np.load(file, allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
            words = WordPairs.from_arrays(arrays)
            heads = Heads(arrays) if "in_cause" in arrays else None
            *weights, bias = arrays["calibration"].tolist()
        except Exception as error:  # numpy, zipfile and zlib each raise their own
            raise InvalidInputError(f"no judge in the file ({error}): fit and save one") from error
        return cls(PairScorer(words, heads), weights, bias, bound=bound, prior=prior)

    def _obstacle(self, pair: Pair) -> Judgement | None:
        if pair.lag is not None and pair.lag < 0:
            return Judgement("no", 0.0, "the effect came first")
        if not pair.cause.strip() or not pair.effect.strip():
            return Judgement("unjudged", why="one of the two has no words")
        if self.scorer.heads is not None and (
            pair.cause_vector is None or pair.effect_vector is None
        ):
            return Judgement("unjudged", why="one of the two has no vector")
        return None

    def _judged(self, pair: Pair, parts: Floats | None) -> Judgement:
        obstacle = self._obstacle(pair)
        if obstacle is not None or parts is None:
            return obstacle or Judgement("unjudged")
        probability = float(1 / (1 + np.exp(-self._odds(parts.sum()))))
        verdict: Verdict = "yes" if probability >= self.bound else "no"
        # What speaks for a pair is looked up only where it is wanted: it costs as much again.
        known = self.scorer.words.strongest(pair.cause, pair.effect) if verdict == "yes" else None
        why = f'"{known[0]}" is known to lead to "{known[1]}"' if known else ""
        factors = (
            *zip(EVIDENCE, parts.tolist(), strict=True),
            ("prior", self._odds(0.0)),
        )
        return Judgement(verdict, probability, why, factors)

    def _odds(self, evidence: Any) -> Any:
        return evidence + self.bias + np.log(self.prior / (1 - self.prior))
