"""The scorer: joins weighted features into a score whose factors add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import among, checked, some_weights
from cvx.errors import InvalidInputError, UnknownError
from cvx.index import recall_columns
from cvx.scoring.formulas import NEUTRAL_REWARD, recency_weight
from cvx.types import Factor, Hit, IntArray

if TYPE_CHECKING:
    from cvx.scoring.usage import UsageTracker

Column = npt.NDArray[np.float64]
Mode = Literal["sum", "log-product"]
MODES = ("sum", "log-product")

# What Factor._make does, less its count of the fields: a recall makes hundreds of them.
_factor = partial(tuple.__new__, Factor)


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of n candidates, and what made them.

    Parameters
    ----------
    names : tuple of str
        The m features that weigh something.
    values : ndarray of shape (n, m), float64
        What each feature was.
    weights : ndarray of shape (m,), float64
        What each feature weighs.
    shares : ndarray of shape (n, m), float64
        What each contributed, before the trust in the candidate.
    trust : ndarray of shape (n,), float64
        What all shares of a candidate are multiplied by.
    total : ndarray of shape (n,), float64
        The scores.
    doubts : tuple of (str, ndarray of shape (n,), ndarray of shape (n,))
        What was taken off for a reason, by its name: how far it applies, in [0, 1], and the score
        that it was taken from, negative.
    """

    names: tuple[str, ...]
    values: Column
    weights: Column
    shares: Column
    trust: Column
    total: Column
    doubts: tuple[tuple[str, Column, Column], ...] = ()

    def less(self, name: str, doubt: Column) -> Scored:
        """Return scores that lose a share, of shape (n,), as one more factor below 0."""
        off = -np.abs(self.total) * (doubt > 0)
        return replace(
            self, total=self.total + off * doubt, doubts=(*self.doubts, (name, doubt, off))
        )

    def factors(self, places: IntArray) -> list[tuple[Factor, ...]]:
        """Return the factors of some candidates; what is not known of one contributes nothing.

        Doubts that it is spared are left out.
        """
        by = self.trust[places, np.newaxis]
        numbers = self.values[places], self.weights * by, self.shares[places] * by
        every = [
            [*map(_factor, zip(self.names, *row, strict=True))]
            for row in zip(*(columns.tolist() for columns in numbers), strict=True)
        ]
        for name, doubt, off in self.doubts:
            much, taken = doubt[places], off[places]
            told = zip(every, much.tolist(), taken.tolist(), (taken * much).tolist(), strict=True)
            for own, *rest in told:
                own.append(_factor((name, *rest)))
        return [tuple([one for one in own if one[1] or one[2]]) for own in every]


def check_weights(weights: Mapping[str, float]) -> None:
    """Refuse weights that are no finite numbers.

    Raises
    ------
    InvalidInputError
        No weight at all, or one that is NaN or infinite.
    """
    if not weights:
        raise InvalidInputError("weights are empty: give at least one feature its weight")
    for name, weight in weights.items():
        if not math.isfinite(weight):
            raise InvalidInputError(f"the weight of {name!r} is {weight}: give a finite number")


@checked(mode=among(*MODES))
def score_columns(
    columns: Mapping[str, Column],
    weights: Mapping[str, float],
    *,
    mode: Mode = "sum",
    bias: float = 0.0,
    floor: float = 1e-6,
    trust: Column | None = None,
) -> Scored:
    """Join columns into scores whose shares add up.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n,)
        The features. NaN is not known: it contributes nothing.
    weights : mapping of str to float
        By feature, finite; a negative one is evidence against. One of 0 is left out.
    mode : {"sum", "log-product"}, default "sum"
        Add weight * value, or weight * log(value): a product of powers, in which a value near 0
        vetoes.
    bias : float, default 0.0
        Added to every score, as the factor "bias".
    floor : float, default 1e-6
        Smallest value whose logarithm is taken.
    trust : ndarray of shape (n,), optional
        In the source of each candidate, in [0, 1]. In a sum it multiplies a score above 0 and its
        shares, and 2 - trust one below; in a product it is one more factor.

    Raises
    ------
    UnknownError
        A weight without its column.
    InvalidInputError
        A weight that is not finite, or an unknown mode.

    Examples
    --------
    >>> columns = {"similarity": np.array([0.9, 0.5]), "salience": np.array([0.0, 1.0])}
    >>> score_columns(columns, {"similarity": 1.0, "salience": 0.5}).total.tolist()
    [0.9, 1.0]
    """
    check_weights(weights)
    if trust is not None and mode == "log-product":
        columns, weights = {**columns, "trust": trust}, {**weights, "trust": 1.0}
    names = tuple(name for name, weight in weights.items() if weight)
    missing = [name for name in names if name not in columns]
    if missing:
        raise UnknownError(
            f"there is no column {missing[0]!r} to weigh: there are {', '.join(columns)}"
        )
    n = len(next(iter(columns.values()))) if columns else 0
    each = [float(weights[name]) for name in names]
    known = [np.ascontiguousarray(columns[name], dtype=np.float64) for name in names]
    added = known
    if mode == "log-product":
        added = [np.log(np.maximum(values, floor)) for values in known]
    if bias:
        names, each, ones = (*names, "bias"), [*each, float(bias)], np.ones(n)
        known, added = [*known, ones], [*added, ones]
    if not names:
        nothing = np.zeros((n, 0))
        return Scored((), nothing, np.zeros(0), nothing, np.ones(n), np.zeros(n))
    if trust is not None:
        all_of_it = mode == "log-product" or (trust == 1.0).all()
        trust = None if all_of_it else np.ascontiguousarray(trust, dtype=np.float64)
    values, shares, by, total = recall_columns.weighed(added, each, trust)
    if added is not known:
        values = np.array(known)
    return Scored(names, values.T, np.array(each), shares.T, by, total)


def scale(values: Column, how: Literal["min-max", "max", "none"] = "min-max") -> Column:
    """Bring one column of a pool to a common range; NaN becomes 0, unless it is left as it is.

    Parameters
    ----------
    values : ndarray of shape (n,)
    how : {"min-max", "max", "none"}, default "min-max"
        To [0, 1] by the smallest and largest value; divided by the largest where that is above 0;
        or left. A column that is constant becomes 0 under "min-max".

    Examples
    --------
    >>> scale(np.array([2.0, 4.0, np.nan])).tolist()
    [0.0, 1.0, 0.0]
    """
    if how == "none":
        return values
    if how == "min-max":
        return stretched({"": values})[""]
    known = np.isfinite(values)
    top = float(values[known].max(initial=-np.inf))
    return np.where(known, values / top if top > 0.0 else values, 0.0)


def stretched(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Scale several columns as ``scale`` does by "min-max", in one call.

    Examples
    --------
    >>> found = stretched({"a": np.array([2.0, 4.0]), "b": np.array([3.0, 3.0])})
    >>> {name: column.tolist() for name, column in found.items()}
    {'a': [0.0, 1.0], 'b': [0.0, 0.0]}
    """
    rows = [np.ascontiguousarray(column, dtype=np.float64) for column in columns.values()]
    return dict(zip(columns, recall_columns.stretched(rows), strict=True))


HOUR_US = 3.6e9
"""An hour in microseconds."""


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """What is known about the moment, and where to look up the rest.

    Parameters
    ----------
    now : int, optional
        For ages; ``None`` gives everything the age 0.
    region : int, optional
        Where the cue lies.
    task_type : str, optional
        The family of goals.
    region_of : callable
        From a hit to its region, or None.
    task_of : callable
        From a hit to the family of goals it comes from, or None.
    usage_of : callable
        From a hit to how well following it went, in [0, 1].
    action_success : callable
        From a hit to the chance of success of the action it advises, in [0, 1].
    age_unit : float, default 1
        How much of the timestamps is 1 in an age: 1 where they count steps, `HOUR_US` where they
        are microseconds.
    told : callable, optional
        From a tracker of use to what the asker may know of it; by default all.
    doubted : mapping of int to float, optional
        The trust, in [0, 1], in the sources of hits that are not fully trusted, by node.
    """

    now: int | None = None
    region: int | None = None
    task_type: str | None = None
    region_of: Callable[[Hit], int | None] = field(default=lambda _: None)
    task_of: Callable[[Hit], str | None] = field(default=lambda _: None)
    usage_of: Callable[[Hit], float] = field(default=lambda _: 0.5)
    action_success: Callable[[Hit], float] = field(default=lambda _: 0.5)
    age_unit: float = 1.0
    told: Callable[[UsageTracker], UsageTracker] | None = None
    doubted: Mapping[int, float] = field(default_factory=dict)


Feature: TypeAlias = Callable[[Hit, ScoringContext], float]
"""From a hit in its context to a number in [0, 1], higher is better."""


def _recency(hit: Hit, context: ScoringContext) -> float:
    age = 0 if context.now is None else max(0, context.now - hit.timestamp)
    return recency_weight(age / context.age_unit)


FEATURES: Mapping[str, Feature] = {
    "similarity": lambda hit, _: math.exp(-hit.distance),
    "recency": _recency,
    "reward": lambda hit, _: NEUTRAL_REWARD if hit.reward is None else hit.reward,
    "region_match": lambda hit, context: float(
        context.region is not None and context.region_of(hit) == context.region
    ),
    "usage_success": lambda hit, context: context.usage_of(hit),
    "task_match": lambda hit, context: float(
        context.task_type is not None and context.task_of(hit) == context.task_type
    ),
    "action_success": lambda hit, context: context.action_success(hit),
}

DEFAULT_WEIGHTS: Mapping[str, float] = {
    "similarity": 1.0,
    "recency": 0.3,
    "reward": 0.5,
    "region_match": 0.2,
    "usage_success": 0.4,
    "task_match": 0.3,
    "action_success": 0.3,
}


class Scorer:
    """Joins named features into one score, and says how.

    ``mode="sum"`` adds weight * value. ``mode="log-product"`` adds weight * log(value): the
    logarithm of a product of powers, in which a value near 0 vetoes. Either way the shares of the
    factors add up to the score, into which the trust in a hit's source enters as it does in a
    recall, see ``score_columns``.

    Parameters
    ----------
    weights : mapping of str to float, optional
        By feature; one that is missing weighs nothing and is not computed. Default
        ``DEFAULT_WEIGHTS``: those of RFC-013, with .3 for each of the two that came later.
    mode : {"sum", "log-product"}, default "sum"
    features : mapping of str to callable, optional
        More features, or others under the same names.
    floor : float, default 1e-6
        Smallest value whose logarithm is taken.

    Attributes
    ----------
    names : tuple of str
        The features that weigh something.

    Raises
    ------
    UnknownError
        A weight whose feature does not exist.
    InvalidInputError
        A weight that is not finite, or an unknown mode.

    Examples
    --------
    >>> from cvx.types import Hit
    >>> hit = Hit(node=0, distance=0.0, score=1.0, similarity=1.0, entity_id=0, timestamp=0,
    ...           reward=1.0)
    >>> scorer = Scorer({"similarity": 1.0, "reward": 0.5})
    >>> [(f.name, f.share) for f in scorer.score(hit, ScoringContext())]
    [('similarity', 1.0), ('reward', 0.5)]
    """

    def __init__(
        self,
        weights: Mapping[str, float] | None = None,
        *,
        mode: Mode = "sum",
        features: Mapping[str, Feature] | None = None,
        floor: float = 1e-6,
    ) -> None:
        if not 0 < floor < 1:
            raise InvalidInputError(f"floor is {floor}: give one between 0 and 1")
        self.features: dict[str, Feature] = {**FEATURES, **(features or {})}
        self.weights = some_weights("weights", DEFAULT_WEIGHTS if weights is None else weights)
        strange = next((name for name in self.weights if name not in self.features), None)
        if strange is not None:
            raise UnknownError(
                f"there is no feature {strange!r}: this scorer has {', '.join(self.features)}"
            )
        self.mode: Mode = among(*MODES)("mode", mode)
        self.floor = floor
        self.names = tuple(name for name, weight in self.weights.items() if weight)

    def with_weights(self, weights: Mapping[str, float]) -> Scorer:
        """Return the same scorer with other weights."""
        return Scorer(weights, mode=self.mode, features=self.features, floor=self.floor)

    def scored(self, hits: Sequence[Hit], context: ScoringContext) -> Scored:
        """Return the scores of hits, and what made them."""
        columns = {
            name: np.array([feature(hit, context) for hit in hits], dtype=np.float64)
            for name, feature in ((name, self.features[name]) for name in self.names)
        }
        told = [context.doubted.get(hit.node, 1.0) for hit in hits] if context.doubted else None
        trust = None if told is None else np.array(told)
        if not columns:
            nothing, zeros = np.zeros((len(hits), 0)), np.zeros(len(hits))
            return Scored((), nothing, np.zeros(0), nothing, zeros, zeros)
        return score_columns(columns, self.weights, mode=self.mode, floor=self.floor, trust=trust)

    def score(self, hit: Hit, context: ScoringContext) -> tuple[Factor, ...]:
        """Return the factors of one hit; their shares add up to its score."""
        return self.scored([hit], context).factors(np.zeros(1, dtype=np.int64))[0]

    def rank(
        self,
        hits: Iterable[Hit],
        context: ScoringContext,
        k: int | None = None,
        *,
        distinct: Callable[[Hit], Hashable] | None = None,
    ) -> list[Hit]:
        """Return the hits with their scores and factors, best first, ties by node id.

        Parameters
        ----------
        hits : iterable of Hit
            The candidates.
        context : ScoringContext
            What is known about the moment.
        k : int, optional
            How many; default all.
        distinct : callable, optional
            Of hits for which it returns the same, only the best stays.
        """
        listed = list(hits)
        scored = self.scored(listed, context)
        totals = scored.total.tolist()
        best: list[int] = []
        seen: set[Hashable] = set()
        for at in sorted(range(len(listed)), key=lambda at: (-totals[at], listed[at].node)):
            if distinct is not None:
                mark = distinct(listed[at])
                if mark in seen:
                    continue
                seen.add(mark)
            best.append(at)
            if len(best) == k:
                break
        told = zip(best, scored.factors(np.array(best, dtype=np.int64)), strict=True)
        return [_rescored(listed[at], totals[at], factors) for at, factors in told]


def _rescored(hit: Hit, score: float, factors: tuple[Factor, ...]) -> Hit:
    # dataclasses.replace takes twice as long, and this runs for every hit of every decision.
    return Hit(
        node=hit.node,
        distance=hit.distance,
        score=score,
        similarity=hit.similarity,
        entity_id=hit.entity_id,
        timestamp=hit.timestamp,
        reward=hit.reward,
        action=hit.action,
        predecessors=hit.predecessors,
        successors=hit.successors,
        factors=factors,
        path=hit.path,
        event=hit.event,
    )
