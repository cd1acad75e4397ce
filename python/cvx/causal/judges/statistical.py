"""A judge fitted on known pairs: what words go together, where vectors lie, how sure that makes.

The one that ships counts words alone, so that it fits every embedder. It was fitted on the
training part of e-CARE (Du et al. 2022, https://github.com/Waste-Wood/e-CARE, MIT licence,
copyright 2022 HIT-SCIR), of which it holds statistics and no texts; ``benches/causal/fitting.py``
fits it, and others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, Any

import numpy as np

from cvx.causal.heads import Heads
from cvx.causal.judges.protocol import Judgement, Pair, Verdict
from cvx.causal.pairs import EVIDENCE, PairScorer
from cvx.causal.witnesses import Floats
from cvx.causal.word_pairs import WordPairs
from cvx.errors import InvalidInputError, InvalidParameterError

_SHIPPED = "ecare.npz"


@dataclass(frozen=True)
class Calibration:
    """How evidence becomes a probability: a logistic regression.

    Attributes
    ----------
    weights : tuple of float
        One for each of `cvx.causal.pairs.EVIDENCE`.
    bias : float
        Of pairs of which half are true.
    """

    weights: tuple[float, ...]
    bias: float

    def parts(self, rows: Floats) -> Floats:
        """Return what each kind of evidence adds to the log-odds: (n, len(EVIDENCE))."""
        return np.asarray(rows * np.asarray(self.weights))


class StatisticalJudge:
    """Says how likely one event led to another, without a language model.

    Parameters
    ----------
    scorer : PairScorer
        Where the evidence comes from.
    calibration : Calibration
        What it is worth.
    bound : float, default 0.5
        From this probability up it is a yes; in [0, 1].
    prior : float, default 0.5
        Share of the pairs asked about that are true, as far as it is known; between 0 and 1.

    Raises
    ------
    InvalidParameterError
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
        calibration: Calibration,
        *,
        bound: float = 0.5,
        prior: float = 0.5,
    ) -> None:
        if not 0 <= bound <= 1:
            raise InvalidParameterError(f"bound is {bound}: give one in [0, 1]")
        if not 0 < prior < 1:
            raise InvalidParameterError(f"prior is {prior}: give one between 0 and 1")
        if len(calibration.weights) != len(EVIDENCE):
            raise InvalidParameterError(
                f"{len(calibration.weights)} weights: give {len(EVIDENCE)}, one for each of "
                f"{', '.join(EVIDENCE)}"
            )
        self.scorer = scorer
        self.calibration = calibration
        self.bound = bound
        self.prior = prior

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge pairs.

        What came later led to nothing before it: a pair with a lag below 0 is a no. A pair with
        an empty text is unjudged, and one without vectors where the judge has heads.
        """
        able = [at for at, pair in enumerate(pairs) if self._obstacle(pair) is None]
        rows = self.scorer.evidence([pairs[at] for at in able])
        parts = dict(zip(able, self.calibration.parts(rows), strict=True))
        return [self._judged(pair, parts.get(at)) for at, pair in enumerate(pairs)]

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
        arrays["calibration"] = np.array([*self.calibration.weights, self.calibration.bias])
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
        calibration = Calibration(tuple(weights), bias)
        return cls(PairScorer(words, heads), calibration, bound=bound, prior=prior)

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
        return evidence + self.calibration.bias + np.log(self.prior / (1 - self.prior))
