"""A linear ranker of causes within a passage, fitted on labelled pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benches.causal.antecedents import NAMES, candidates_of, compared, evidence
from benches.causal.passages import KnownLinks, Passage
from cvx.causal.fusion import Floats
from cvx.errors import InvalidInputError


class LikelyCause(NamedTuple):
    """A candidate in its place.

    Attributes
    ----------
    event : int
        Its place in the passage.
    score : float
        Higher is likelier; only the order within one effect means something.
    factors : tuple of (str, float)
        What each kind of evidence contributed; they add up to the score.
    """

    event: int
    score: float
    factors: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class CauseRanker:
    """Weights over the evidence of `benches.causal.antecedents`.

    Attributes
    ----------
    centre, scale, weights : tuple of float
        One each for every name in `benches.causal.antecedents.NAMES`.

    Examples
    --------
    Passages in which the event before is always the cause teach just that:

    >>> rng = np.random.default_rng(0)
    >>> def told(links):
    ...     rows = rng.normal(size=(5, 8)).astype(np.float32)
    ...     return Passage(words=("a", "b", "c", "d", "e"), positions=np.arange(5) * 7,
    ...                    sections=np.arange(5), vectors=rows, links=links)
    >>> chain = tuple((at, at + 1) for at in range(4))
    >>> ranker = CauseRanker.fit([told(chain) for _ in range(6)])
    >>> [one.event for one in ranker.rank(told(()), 3, KnownLinks([]))][0]
    2
    """

    centre: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("centre", "scale", "weights"):
            values = np.asarray(getattr(self, name), np.float64)
            if values.shape != (len(NAMES),) or not np.isfinite(values).all():
                raise InvalidInputError(
                    f"{name} holds {values.size} values: give {len(NAMES)} finite ones"
                )

    @classmethod
    def fit(cls, passages: Sequence[Passage], *, strength: float = 0.3) -> CauseRanker:
        """Learn the weights from passages with known links.

        Pairs of (a cause, a candidate that is none) of one effect are told apart by a logistic
        regression; every effect weighs the same. Each passage is seen with the links of the other
        passages of its topic and never its own, as it will be when the ranker is used, and each
        effect twice where it has causes in other sections: with and without its own section among
        the candidates.

        Parameters
        ----------
        passages : sequence of Passage
            Those with links.
        strength : float, default 0.3
            Inverse of the regularisation, above 0.

        Raises
        ------
        InvalidInputError
            Not one effect with both a cause and a candidate that is none.

        References
        ----------
        Herbrich, Graepel & Obermayer 2000, Large margin rank boundaries for ordinal regression:
        ranking as classification of differences.
        """
        if not strength > 0:
            raise InvalidInputError(f"strength is {strength}: give one above 0")
        asked = [one for passage in passages for one in _questions(passage, passages)]
        if not asked:
            raise InvalidInputError(
                "no effect has both a cause and a candidate that is none: give passages with links"
            )
        # Imported late: it takes a second, and ranking does not need it.
        from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

        every = np.vstack([rows for rows, _ in asked])
        centre, scale = every.mean(axis=0), every.std(axis=0) + 1e-9
        differences, shares = [], []
        for rows, causes in asked:
            rows = (rows - centre) / scale
            apart = (rows[causes][:, None] - rows[~causes][None]).reshape(-1, len(NAMES))
            differences.append(apart)
            shares.append(np.full(len(apart), 5.0 / len(apart)))
        # Half of the differences turned round, in turn, so that there are two classes.
        apart = np.vstack(differences)
        sides = np.where(np.arange(len(apart)) % 2 == 0, 1.0, -1.0)
        model = LogisticRegression(C=strength, fit_intercept=False, max_iter=2000)
        model.fit(apart * sides[:, None], sides, sample_weight=np.concatenate(shares))
        weights = model.coef_[0]
        return cls(tuple(centre.tolist()), tuple(scale.tolist()), tuple(weights.tolist()))

    def rank(
        self,
        passage: Passage,
        effect: int,
        known: KnownLinks,
        *,
        other_sections_only: bool = False,
    ) -> list[LikelyCause]:
        """Rank the events of a passage as causes of one of them.

        Parameters
        ----------
        passage : Passage
            Its own links are not read.
        effect : int
            The place of the event asked about.
        known : KnownLinks
            Links of other passages.
        other_sections_only : bool, default False
            Leave the effect's own section out of the candidates.

        Returns
        -------
        list of LikelyCause
            Likeliest first, equals in the order told.

        Raises
        ------
        InvalidInputError
            An effect that is not in the passage.
        """
        if not 0 <= effect < len(passage):
            raise InvalidInputError(
                f"effect is {effect}: the passage has events 0..{len(passage) - 1}"
            )
        candidates = candidates_of(passage, effect, other_sections_only=other_sections_only)
        if not candidates:
            return []
        rows = compared(evidence(passage, known)[candidates, effect])
        parts = (rows - self.centre) / self.scale * self.weights
        scores = parts.sum(axis=1)
        return [
            LikelyCause(
                candidates[at],
                float(scores[at]),
                tuple(zip(NAMES, parts[at].tolist(), strict=True)),
            )
            for at in np.argsort(-scores, kind="stable").tolist()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the ranker as plain floats under the names of its evidence."""
        return {
            name: {"centre": centre, "scale": scale, "weight": weight}
            for name, centre, scale, weight in zip(
                NAMES, self.centre, self.scale, self.weights, strict=True
            )
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Mapping[str, float]]) -> CauseRanker:
        """Restore what `to_dict` gave.

        Raises
        ------
        InvalidInputError
            Names other than those of the evidence.
        """
        if set(kept) != set(NAMES):
            wrong = sorted(set(kept) ^ set(NAMES))
            raise InvalidInputError(f"evidence {wrong}: the ranker was kept by another version")
        columns = (
            tuple(float(kept[name][part]) for name in NAMES)
            for part in ("centre", "scale", "weight")
        )
        return cls(*columns)


def _questions(
    passage: Passage, passages: Sequence[Passage]
) -> Iterator[tuple[Floats, npt.NDArray[np.bool_]]]:
    """Yield (evidence, which rows are causes) for every effect that can teach."""
    if not passage.links:
        return
    others = [one for one in passages if one is not passage and one.topic == passage.topic]
    pairs = evidence(passage, KnownLinks(others))
    for effect in sorted({effect for _, effect in passage.links}):
        causes = passage.causes_of(effect)
        for other_sections_only in (False, True):
            candidates = candidates_of(passage, effect, other_sections_only=other_sections_only)
            is_cause = np.array([at in causes for at in candidates], bool)
            if is_cause.any() and not is_cause.all():
                yield compared(pairs[candidates, effect]), is_cause
