"""Plans on the region model: value iteration, the likeliest path to success, Thompson sampling."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cvx.arguments import above_zero
from cvx.learn.region_mdp import RegionMDP
from cvx.learn.region_mdp.trajectories import SUCCESS, UNKNOWN

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Pair: TypeAlias = tuple[int, str]

_PRECISION = 1e-9
_MOST_SWEEPS = 10_000


class Moves(NamedTuple):
    """Transition arrays for planning: state, action, next state, weight.

    Attributes
    ----------
    base : ndarray of shape (pairs,), float64
        Of each pair of a state and an action: what it is worth apart from where it leads.
    pair, to : ndarray of shape (moves,), int64
        Of each move: its pair, and the state it leads to.
    weight : ndarray of shape (moves,), float64
        What the value of that state counts for.
    order, starts, heads : ndarray, int64
        As ``by_state`` returns them.
    """

    base: Floats
    pair: Ints
    to: Ints
    weight: Floats
    order: Ints
    starts: Ints
    heads: Ints


def by_state(state: Ints) -> tuple[Ints, Ints, Ints]:
    """Return pairs in the order of their states, where each state starts in it, and the states."""
    order = np.argsort(state, kind="stable")
    starts = np.flatnonzero(np.diff(state[order], prepend=-1))
    return order, starts, state[order][starts]


def carry_back(moves: Moves, values: Floats, *, sweeps: int, enough: float) -> Floats:
    """Value iteration: propagate values back through transitions.

    Parameters
    ----------
    moves : Moves
    values : ndarray of shape (states,), float64
        Where to start; states without an action keep theirs. Changed in place.
    sweeps : int
        How often at the most.
    enough : float
        It is over when no value changes by as much.

    Returns
    -------
    ndarray of shape (pairs,), float64
        What each pair is worth.
    """
    worth = moves.base
    for _ in range(sweeps):
        ahead = np.bincount(moves.pair, moves.weight * values[moves.to], len(moves.base))
        worth = moves.base + ahead
        if not len(moves.heads):
            break
        better = np.maximum.reduceat(worth[moves.order], moves.starts)
        change = float(np.abs(better - values[moves.heads]).max())
        values[moves.heads] = better
        if change < enough:
            break
    return worth


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
        self._table = _Table(mdp, task_type, self._moves, prior_strength)
        mean = (
            self._table.alphas / np.bincount(self._table.pair, self._table.alphas)[self._table.pair]
        )
        self._action_values, self._values = self._table.solve(mean)

    def value(self, region: int) -> float:
        """Return the chance to win from a region on when the best is always done.

        Where nothing was done yet it is the region's quality.

        Raises
        ------
        UnknownError
            No such region.
        """
        at = self._table.state_of.get(region)
        if at is None:
            return self.mdp.region_quality(region, self.task_type)
        return float(self._values[at])

    def _require(self, region: int) -> None:
        # A region of the picture stays one, also when the model has moved on to other regions.
        if region not in self._table.state_of:
            self.mdp.require(region)

    def action_values(self, region: int) -> list[tuple[str, float]]:
        """Return the kinds of action done there with the chance to win after each, best first.

        Raises
        ------
        UnknownError
            No such region.
        """
        self._require(region)
        return self._table.ranked(region, self._action_values)

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
        table = self._table
        if region not in self._table.actions_of:
            return None
        drawn = rng.gamma(table.alphas)
        # A sum of zero needs every share to underflow: its pair keeps an even split then.
        sums = np.bincount(table.pair, drawn)[table.pair]
        sizes = np.bincount(table.pair)[table.pair]
        shares = np.where(sums > 0, drawn / np.where(sums > 0, sums, 1.0), 1.0 / sizes)
        values, _ = table.solve(shares)
        return table.ranked(region, values)[0][0]

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
        came: dict[int, tuple[int, str]] = {}
        queue: list[tuple[float, int]] = [(0.0, region)]
        while queue:
            cost, here = heapq.heappop(queue)
            if here == SUCCESS:
                return WayToSuccess(_back(came, region), math.exp(-cost))
            if cost > best[here]:
                continue
            for action in self._table.actions_of.get(here, ()):
                counts = self._moves[(here, action)]
                total = counts.total() + self.prior_strength
                for there, n in sorted(counts.items()):
                    further = cost - math.log(n / total)
                    if (there >= 0 or there == SUCCESS) and further < best.get(there, math.inf):
                        best[there] = further
                        came[there] = (here, action)
                        heapq.heappush(queue, (further, there))
        return None


class _Table:
    """All moves as columns, a row for each place a pair of region and action was seen to lead to.

    ``pair``: which of ``pairs``; ``state``: where it leads, -1 for an end; ``wins``: 1 where that
    end is success; ``alphas``: parameters of its pair's Dirichlet posterior.
    """

    def __init__(
        self,
        mdp: RegionMDP,
        task_type: str | None,
        moves: dict[Pair, Counter[int]],
        prior: float,
    ) -> None:
        self.pairs = sorted(moves)
        self.actions_of: dict[int, list[str]] = defaultdict(list)
        for region, action in self.pairs:
            self.actions_of[region].append(action)
        ends = {there for counts in moves.values() for there in counts if there >= 0}
        self.regions = sorted(ends | set(self.actions_of))
        self.state_of = {region: at for at, region in enumerate(self.regions)}
        rows: list[tuple[int, int, float, float]] = []
        for at, (region, action) in enumerate(self.pairs):
            chance = mdp.success(region, action, task_type)
            chance = 0.5 if chance is None else chance
            counts = moves[(region, action)]
            won = counts[SUCCESS]
            lost = counts.total() - won - sum(n for there, n in counts.items() if there >= 0)
            rows.append((at, -1, 1.0, won + prior * chance))
            rows.append((at, -1, 0.0, lost + prior * (1.0 - chance)))
            rows += [
                (at, self.state_of[there], 0.0, n) for there, n in counts.items() if there >= 0
            ]
        table = np.array(rows, dtype=np.float64).reshape(-1, 4)
        self.pair, self.state = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        self.wins, self.alphas = table[:, 2], np.maximum(table[:, 3], _PRECISION)
        own = np.array([self.state_of[region] for region, _ in self.pairs], dtype=np.int64)
        self._by_state = by_state(own)
        self._stays = self.state == own[self.pair] if len(own) else np.zeros(0, dtype=bool)
        self._leaves = np.array(
            [0.0 if region in self.actions_of else mdp.region_quality(region, task_type)
             for region in self.regions]
        )  # fmt: skip

    def solve(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the value of each pair and of each state, where moves have these shares.

        Staying in a region only asks the same question again: it is left out, and the other
        shares stand for all of it, which gives the same values in fewer sweeps.
        """
        n = len(self.pairs)
        stay = np.bincount(self.pair, shares * self._stays, n)
        scale = 1.0 / (1.0 - stay)
        base = np.bincount(self.pair, shares * self.wins, n) * scale
        goes = (self.state >= 0) & ~self._stays
        pair, state = self.pair[goes], self.state[goes]
        weight = shares[goes] * scale[pair]
        values = self._leaves.copy()
        moves = Moves(base, pair, state, weight, *self._by_state)
        worth = carry_back(moves, values, sweeps=_MOST_SWEEPS, enough=_PRECISION)
        return worth, values

    def ranked(self, region: int, worth: Floats) -> list[tuple[str, float]]:
        """Return the actions of a region by their worth, best first."""
        at = bisect_left(self.pairs, (region, ""))
        own = [
            (action, float(worth[at + place]))
            for place, action in enumerate(self.actions_of.get(region, ()))
        ]
        return sorted(own, key=lambda pair: (-pair[1], pair[0]))


def _back(came: dict[int, tuple[int, str]], start: int) -> tuple[tuple[int, str], ...]:
    steps: list[tuple[int, str]] = []
    at = SUCCESS
    while at != start:
        steps.append(came[at])
        at = came[at][0]
    return tuple(reversed(steps))
