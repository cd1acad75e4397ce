"""Samples the order of a recall (Plackett-Luce), and estimates other weights from the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import above_zero, among, check_fields, checked, whole
from cvx.errors import InvalidInputError
from cvx.scoring.logistic import fit_logistic, sigmoid
from cvx.statistics import Floats, bootstrap, ratio
from cvx.store import Record
from cvx.types import Drawn, Hit


@dataclass(frozen=True, slots=True)
class PlackettLuce:
    """Draws hits one after another, each with a chance of softmax(score / temperature).

    Parameters
    ----------
    seed : int
        The same seed, decision and hits give the same order.
    temperature : float, default 0.1
        Above 0; the smaller, the nearer to the order of the scores.

    Raises
    ------
    InvalidInputError
        A temperature of 0 or below.

    References
    ----------
    Plackett 1975, The analysis of permutations.
    """

    seed: int
    temperature: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self, temperature=above_zero)

    def draw(
        self, hits: Sequence[Hit], k: int, decision: int = 0
    ) -> tuple[list[Hit], tuple[float, ...]]:
        """Return k hits in a sampled order, and the probability of each at its place.

        Parameters
        ----------
        hits : sequence of Hit
            What is drawn from.
        k : int
            How many.
        decision : int, default 0
            The number of the decision. It is joined to the seed, so that no two decisions of a
            record are drawn with the same random numbers.

        Returns
        -------
        drawn : list of Hit
        propensities : tuple of float
            Of drawing this hit from what was left at its place, in (0, 1].
        """
        random = np.random.default_rng([self.seed, decision])
        left = list(range(len(hits)))
        worth = np.array([hit.score for hit in hits]) / self.temperature
        drawn, chances = list[Hit](), list[float]()
        while left and len(drawn) < k:
            odds = _shares(worth[left])
            at = int(random.choice(len(left), p=odds))
            chances.append(float(odds[at]))
            drawn.append(hits[left.pop(at)])
        return drawn, tuple(chances)


def _shares(worth: Floats) -> Floats:
    """Return the chance of each to be put first: exp(worth) / sum."""
    weights = np.exp(worth - worth.max())
    return np.asarray(weights / weights.sum())


def drawn_from(pool: Sequence[Hit], drawn: Sequence[Hit], chances: Sequence[float]) -> Drawn | None:
    """Return what is to be logged of a sampled order, None where nothing was drawn.

    Parameters
    ----------
    pool : sequence of Hit
        What was drawn from; all have the same factors.
    drawn, chances
        As ``PlackettLuce.draw`` returned them.
    """
    if not drawn:
        return None
    return Drawn(
        tuple(factor.name for factor in pool[0].factors),
        tuple(tuple(factor.value for factor in hit.factors) for hit in pool),
        [hit.node for hit in pool].index(drawn[0].node),
        chances[0],
    )


Policy: TypeAlias = Callable[[Floats], Floats]
"""From the features of the candidates, (n, d), to the chance of each to be put first, (n,)."""
Method: TypeAlias = Literal["ips", "snips", "dr"]

_FOLDS = 5


@dataclass(frozen=True, slots=True)
class LoggedChoice:
    """One recall whose order was sampled: what there was, what came first, how it ended.

    Parameters
    ----------
    features : ndarray of shape (n, d), float64
        Of every candidate.
    chosen : int
        Which of them came first.
    propensity : float
        The chance it had to, in (0, 1].
    reward : float
        The outcome.
    group : int
        Choices of one group, such as an episode, share an outcome: they are resampled together.

    Raises
    ------
    InvalidInputError
        A chosen candidate that does not exist; a propensity outside (0, 1]; a number that is not
        finite.
    """

    features: Floats
    chosen: int
    propensity: float
    reward: float
    group: int

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or not 0 <= self.chosen < len(self.features):
            raise InvalidInputError(
                f"candidate {self.chosen} was chosen of features of shape {self.features.shape}: "
                "give a row each and the number of one of them"
            )
        if not 0.0 < self.propensity <= 1.0:
            raise InvalidInputError(
                f"propensity is {self.propensity}: only sampled orders with the chance of each, "
                "in (0, 1], can be judged"
            )
        if not (np.isfinite(self.features).all() and np.isfinite(self.reward)):
            raise InvalidInputError("a feature or the reward is not finite: leave it out")


class OffPolicyEstimate(NamedTuple):
    """What a policy would have achieved.

    Attributes
    ----------
    value : float
        Mean reward of a choice.
    low, high : float
        95 % interval, by bootstrap over groups; too narrow with fewer than about ten.
    choices : int
        How many logged choices there are.
    effective : float
        How many equally weighted choices they are worth to this policy (Kish): far below
        ``choices``, the log hardly speaks of it.
    """

    value: float
    low: float
    high: float
    choices: int
    effective: float


def plackett_luce(weights: Sequence[float], temperature: float = 1.0) -> Policy:
    """Return the policy that puts a candidate first with chance exp(score / temperature) / sum.

    Parameters
    ----------
    weights : sequence of d floats
        The score is their sum with the features.
    temperature : float, default 1.0
        Above 0; small ones choose the best nearly always.

    References
    ----------
    Plackett 1975, The analysis of permutations.
    """
    heat = above_zero("temperature", temperature)
    w = np.asarray(weights, dtype=np.float64)

    def policy(features: Floats) -> Floats:
        if features.shape[1] != len(w):
            raise InvalidInputError(
                f"{len(w)} weights for {features.shape[1]} features: give one each"
            )
        return _shares(features @ w / heat)

    return policy


@checked(method=among("ips", "snips", "dr"), resamples=whole(1))
def off_policy_value(
    log: Sequence[LoggedChoice],
    policy: Policy,
    *,
    method: Method = "dr",
    resamples: int = 2000,
    seed: int = 0,
) -> OffPolicyEstimate:
    """Estimate the mean reward that a policy would have had on the logged recalls.

    Parameters
    ----------
    log : sequence of LoggedChoice
        At least two groups.
    policy : callable
        Such as ``plackett_luce(weights)``.
    method : {"ips", "snips", "dr"}, default "dr"
        Inverse propensity weights; the same divided by their sum, with a little bias and less
        variance; or doubly robust: a logistic model of the reward, cross-fitted over groups,
        corrected by weights, right if either the propensities or the model are.
    resamples : int, default 2000
        Of the bootstrap.
    seed : int, default 0
        Of the bootstrap and the folds.

    Raises
    ------
    InvalidInputError
        Fewer than two groups; another method; for "dr", a reward outside [0, 1].
    InvalidInputError
        Candidates with another number of features than the policy has weights.

    References
    ----------
    Horvitz & Thompson 1952. Swaminathan & Joachims 2015, The self-normalized estimator for
    counterfactual learning. Dudik, Langford & Li 2011, Doubly robust policy evaluation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> log = []
    >>> for group in range(400):
    ...     features = np.eye(2)
    ...     chosen = int(rng.integers(2))
    ...     log.append(LoggedChoice(features, chosen, 0.5, float(chosen == 1), group))
    >>> found = off_policy_value(log, plackett_luce([0.0, 5.0]), method="snips")
    >>> round(found.value, 2)
    0.99
    """
    groups = np.array([one.group for one in log])
    names, member = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise InvalidInputError(f"the log has {len(names)} groups: give at least two")
    chances = [policy(one.features) for one in log]
    weights = np.array(
        [p[one.chosen] / one.propensity for p, one in zip(chances, log, strict=True)]
    )
    rewards = np.array([one.reward for one in log])
    if method == "dr":
        expected, predicted = _modelled(log, chances, groups, rewards, seed)
        parts, norm = expected + weights * (rewards - predicted), np.ones(len(log))
    else:
        parts, norm = weights * rewards, weights if method == "snips" else np.ones(len(log))
    sums = np.column_stack([np.bincount(member, parts), np.bincount(member, norm)])
    # A resample in which the policy would have chosen nothing that was logged says nothing.
    low, high = bootstrap(sums, ratio, resamples=resamples, seed=seed)
    value = ratio(sums.sum(axis=0, dtype=np.float64)[None])
    squares = float((weights**2).sum())
    effective = float(weights.sum() ** 2 / squares) if squares > 0 else 0.0
    return OffPolicyEstimate(value.item(), low.item(), high.item(), len(log), effective)


def _modelled(
    log: Sequence[LoggedChoice],
    chances: Sequence[Floats],
    groups: npt.NDArray[np.int64],
    rewards: Floats,
    seed: int,
) -> tuple[Floats, Floats]:
    """Return, a choice each, the reward that a model expects of the policy, and of the chosen.

    Each group is predicted by a model that was fitted on the others.
    """
    if not ((rewards >= 0) & (rewards <= 1)).all():
        raise InvalidInputError("a reward lies outside [0, 1]: scale it, or use ips or snips")
    names = np.random.default_rng(seed).permutation(np.unique(groups))
    fold_of = {name: at % _FOLDS for at, name in enumerate(names.tolist())}
    folds = np.array([fold_of[group] for group in groups.tolist()])
    taken = np.stack([one.features[one.chosen] for one in log])
    expected, predicted = np.zeros(len(log)), np.zeros(len(log))
    for fold in range(_FOLDS):
        model = _reward_model(taken[folds != fold], rewards[folds != fold])
        for at in np.flatnonzero(folds == fold).tolist():
            every = model(log[at].features)
            expected[at] = chances[at] @ every
            predicted[at] = every[log[at].chosen]
    return expected, predicted


def _reward_model(features: Floats, rewards: Floats) -> Callable[[Floats], Floats]:
    # A reward between 0 and 1 counts as that share of a success.
    mean = float(rewards.mean()) if len(rewards) else 0.5
    if mean in (0.0, 1.0) or not len(rewards):
        return lambda rows: np.full(len(rows), mean)
    twice = np.concatenate([features, features])
    labels = np.repeat([1.0, 0.0], len(features))
    model = fit_logistic(twice, labels, np.concatenate([rewards, 1.0 - rewards]))
    return lambda rows: sigmoid(model.log_odds(rows))


def logged_choices(record: Record, names: Sequence[str]) -> list[LoggedChoice]:
    """Return the decisions whose order was sampled and whose outcome is known, oldest first.

    Contexts and decisions of loops are in the same log. Those of one episode share its outcome,
    and are a group; each context is one of its own.

    Parameters
    ----------
    record : Record
        With the decisions of ``Memory.context`` and ``ActiveMemory``.
    names : sequence of str
        Features, in the order of the columns wanted; decisions without one are left out.

    Returns
    -------
    list of LoggedChoice
        For ``off_policy_value``.
    """
    out = []
    for row in record.decisions():
        drawn, reward = row["record"].get("drawn_from"), row["outcome"]
        if drawn is None or reward is None or not set(names) <= set(drawn["names"]):
            continue
        columns = [drawn["names"].index(name) for name in names]
        features = np.nan_to_num(np.array(drawn["features"], dtype=np.float64)[:, columns])
        # Numbers of contexts are below those of episodes.
        group = -1 - row["decision_id"] if row["episode"] is None else row["episode"]
        out.append(
            LoggedChoice(features, drawn["first"], drawn["propensity"], float(reward), group)
        )
    return out
