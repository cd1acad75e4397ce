"""Plans on the region model: value iteration, the likeliest path to success, Thompson sampling."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from cvx.arguments import above_zero
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import SUCCESS, UNKNOWN
from cvx.learn.transition_counts import END, Counts, Floats

_PRECISION = 1e-9
_MOST_SWEEPS = 10_000


class WayToSuccess(NamedTuple):
    """The most probable way from a region to success.

    Attributes
    ----------
    steps : tuple of (int, str)
        Region and kind of action, in order.
    probability : float
        That every step leads on to the next and the last one wins, in (0, 1].
    """

    steps: tuple[tuple[int, str], ...]
    probability: float


class Planner:
    """Looks ahead in a region model: an action is worth what the regions behind it are worth.

    Where a move leads has a Dirichlet posterior over what was counted. Its prior, worth
    ``prior_strength`` moves, is that the episode ends there with the chance of success that the
    model has for the action, which borrows from wider contexts. So few counts move a value little,
    and values stay in [0, 1] without a discount. Moves into an unknown outcome count for nothing.

    A planner is a picture of the model when it was made: make another one after the model has
    learned.

    Parameters
    ----------
    mdp : RegionMDP
        What was learned.
    task_type : str, optional
        Only the moves of this family of goals.
    prior_strength : float, default 2.0
        How many moves the prior is worth; above 0.

    Raises
    ------
    InvalidInputError
        A strength that is not above 0.

    References
    ----------
    Bellman 1957, Dynamic Programming (value iteration). Strens 2000, A Bayesian framework for
    reinforcement learning (Thompson sampling of models). Dijkstra 1959.

    Examples
    --------
    >>> from cvx.learn.region_mdp import RegionMDP
    >>> from cvx.temporal_index import TemporalIndex
    >>> from cvx.types import Episode, Event
    >>> index = TemporalIndex(dim=2)
    >>> nodes = index.bulk_insert([1, 1], [1, 2], [[1, 0], [0, 1]]).tolist()
    >>> index.refresh_regions()
    >>> mdp = RegionMDP(index, level=0)
    >>> done = ("go to sink", "take egg")
    >>> steps = tuple(Event("", 1, node=n, action=a) for n, a in zip(nodes, done))
    >>> mdp.update(Episode(entity="1", steps=steps, reward=1.0))
    >>> way = Planner(mdp).way_to_success(0)
    >>> way.steps, round(way.probability, 3)
    (((0, 'go_to'), (1, 'take')), 0.111)
    """

    def __init__(
        self, mdp: RegionMDP, task_type: str | None = None, *, prior_strength: float = 2.0
    ) -> None:
        self.mdp = mdp
        self.task_type = task_type
        self.prior_strength = above_zero("prior_strength", prior_strength)
        self._moves = {
            pair: Counter({there: n for there, n in counts.items() if there != UNKNOWN})
            for pair, counts in mdp.moves(task_type).items()
        }
        pairs = sorted(self._moves)
        ends = {there for led in self._moves.values() for there in led if there >= 0}
        self._at = {region: at for at, region in enumerate(sorted(ends | {at for at, _ in pairs}))}
        self._counts, self._kinds = Counts(None), [*dict.fromkeys(kind for _, kind in pairs)]
        for region, kind in pairs:
            pair = self._counts.pair_at(self._at[region], self._kinds.index(kind))
            for there, n in self._moves[region, kind].items():
                won = float(there == SUCCESS)
                self._counts.add(pair, self._at.get(there, END), won, n)
        chances = [mdp.success(region, kind, task_type) for region, kind in pairs]
        self._prior = np.array([0.5 if one is None else one for one in chances], dtype=np.float64)
        self._leaves = np.array([mdp.region_quality(region, task_type) for region in self._at])
        strength = np.full(len(pairs), prior_strength)
        self._worth, self._values = self._solve(self._counts.count.all, self._prior, strength)

    def _solve(self, weights: Floats, prior: Floats, strength: Floats) -> tuple[Floats, Floats]:
        """Return the value of each pair and of each region, where moves have these weights.

        Staying in a region only asks the same question again: it is left out, and the other
        moves stand for all of it, which gives the same values in fewer sweeps.
        """
        counts = self._counts
        stays = counts.next.all == counts.state.all[counts.pair.all]
        values = np.append(self._leaves, 0.0)
        worth = counts.carry_back(
            values, np.where(stays, 0.0, weights), prior, np.maximum(strength, _PRECISION), 1.0,
            sweeps=_MOST_SWEEPS, enough=_PRECISION,
        )  # fmt: skip
        return worth, values

    def _ranked(self, region: int, worth: Floats) -> list[tuple[str, float]]:
        """Return the kinds of action of a region by their worth, best first."""
        pairs = self._counts.pairs_at.get(self._at.get(region, END), ())
        kinds = [self._kinds[self._counts.action[pair]] for pair in pairs]
        own = zip(kinds, worth[[*pairs]].tolist(), strict=True)
        return sorted(own, key=lambda one: (-one[1], one[0]))

    def value(self, region: int) -> float:
        """Return the chance to win from a region on when the best is always done.

        Where nothing was done yet it is the region's quality.

        Raises
        ------
        UnknownError
            No such region.
        """
        at = self._at.get(region)
        if at is None:
            return self.mdp.region_quality(region, self.task_type)
        return float(self._values[at])

    def _require(self, region: int) -> None:
        # A region of the picture stays one, also when the model has moved on to other regions.
        if region not in self._at:
            self.mdp.require(region)

    def action_values(self, region: int) -> list[tuple[str, float]]:
        """Return the kinds of action done there with the chance to win after each, best first.

        Raises
        ------
        UnknownError
            No such region.
        """
        self._require(region)
        return self._ranked(region, self._worth)

    def sample_action(self, region: int, rng: np.random.Generator) -> str | None:
        """Return the best action of a model drawn from the posterior: Thompson sampling.

        What was tried often is known well and chosen as often as it is probably the best; what
        was tried seldom gets its chance.

        Parameters
        ----------
        region : int
            Where the agent is.
        rng : numpy Generator
            Source of chance.

        Returns
        -------
        str or None
            A kind of action; ``None`` where none was done yet.

        Raises
        ------
        UnknownError
            No such region.
        """
        self._require(region)
        # Of a Dirichlet: what was counted, and what the prior says of success and of failure.
        won, lost = (rng.gamma(self.prior_strength * p) for p in (self._prior, 1.0 - self._prior))
        weights, strength = rng.gamma(self._counts.count.all), np.maximum(won + lost, _PRECISION)
        worth, _ = self._solve(weights, won / strength, strength)
        return next((kind for kind, _ in self._ranked(region, worth)), None)

    def way_to_success(self, region: int) -> WayToSuccess | None:
        """Return the most probable way to success over moves that were seen.

        The probability of a move is its count over all counts of its action there and the prior,
        which stands for everything not seen.

        Returns
        -------
        WayToSuccess or None
            ``None`` where no counted way leads to success.

        Raises
        ------
        UnknownError
            No such region.
        """
        self._require(region)
        best: dict[int, float] = {region: 0.0}
        queue: list[tuple[float, int, tuple[tuple[int, str], ...]]] = [(0.0, region, ())]
        while queue:
            cost, here, steps = heapq.heappop(queue)
            if here == SUCCESS:
                return WayToSuccess(steps, math.exp(-cost))
            if cost > best[here]:
                continue
            for action, _ in self._ranked(here, self._worth):
                counts = self._moves[(here, action)]
                total = counts.total() + self.prior_strength
                for there, n in sorted(counts.items()):
                    further = cost - math.log(n / total)
                    if (there >= 0 or there == SUCCESS) and further < best.get(there, math.inf):
                        best[there] = further
                        heapq.heappush(queue, (further, there, (*steps, (here, action))))
        return None
