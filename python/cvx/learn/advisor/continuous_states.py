"""Advice for numeric observations: a nearest-neighbour transition model and planning on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cvx.learn.transition_counts import Floats, Ints
from cvx.types import Vector

_MOST_CELLS = 800
_MOST_POINTS = 6000
_SWEEPS = 250
_NEAREST = 4
_MOST_JUDGED, _MOST_PAID = 400, 1000
"""Of how many of the newest steps of an action it is judged whether the action itself pays, and of
how many it is then remembered what it paid."""
_WIDTHS = (0.5, 1.0, 2.0)
"""Of the kernel, as shares of the reach: the best of them is taken."""
_LEAST_GAIN = 0.05
"""From which share of the variance that it explains on what an action pays counts."""
_MIX = np.random.default_rng(0).integers(1, 2**62, 4096) | 1
"""Odd numbers that mix the places of a cell into one."""


class Transition(NamedTuple):
    """One step between two observations.

    Attributes
    ----------
    here, there : ndarray of shape (dim,)
    action : int
    reward : float
    ended : bool
        Whether the episode was over there.
    episode : str
    """

    here: Vector
    action: int
    reward: float
    there: Vector
    ended: bool
    episode: str


class Worth(NamedTuple):
    """What an action is worth in an observation.

    Attributes
    ----------
    value, hope, spread : float
        Expected; when exploring; the standard deviation of what is known around there.
    trials : int
        How often it was done near there.
    episodes : tuple of str
        The latest of those.
    """

    value: float
    hope: float
    spread: float
    trials: int
    episodes: tuple[str, ...]


class _Ahead(NamedTuple):
    """Where an action leads from each of n observations, and what it pays.

    Attributes
    ----------
    cell, share : ndarray of shape (n, nearest)
        The cells nearest to where it leads, and the chances to go on there.
    reward, unsure : ndarray of shape (n,)
        Expected, and the standard deviation of what the action itself pays.
    going, known : ndarray of shape (n,)
        The chance to go on at all; 1 where it leads to what was seen before, else 0.
    """

    cell: Ints
    share: Floats
    reward: Floats
    unsure: Floats
    going: Floats
    known: Floats


class ActionRewards:
    """What actions pay here beside what is paid, by whatever action, where they lead to.

    A kernel regression towards 0 over what was paid too much or too little, one an action. It
    counts only where it foretells rewards of steps that it leaves out: where places alone say what
    is paid, there is nothing for it to tell.

    Parameters
    ----------
    paid : mapping of int to (ndarray of shape (n, dim), ndarray of shape (n,))
        By action, oldest first: where it was done, and how much more it paid than was foretold.
    reach : float
        How far an observation tells what holds around it.

    References
    ----------
    Nadaraya 1964, On estimating regression. Watson 1964, Smooth regression analysis.
    """

    def __init__(self, paid: Mapping[int, tuple[Floats, Floats]], reach: float) -> None:
        self._paid = paid
        judged = [(z[-_MOST_JUDGED:], rest[-_MOST_JUDGED:]) for z, rest in paid.values()]
        rest = np.concatenate([one for _, one in judged])
        whole = float(np.square(rest).sum())
        apart = [_squares_between(z, z) for z, _ in judged]
        for squares in apart:
            np.fill_diagonal(squares, np.inf)
        left = whole
        self._width = 0.0
        for width in (share * reach for share in _WIDTHS if whole > 0.0):
            missed = 0.0
            for squares, (_, own) in zip(apart, judged, strict=True):
                near = np.exp(squares / (-2.0 * width**2))
                missed += float(np.square(own - near @ own / (near.sum(1) + 1.0)).sum())
            if missed < left:
                left, self._width = missed, width
        self.counts = left < (1.0 - _LEAST_GAIN) * whole
        # What it cannot foretell is noise; what it can is how much actions differ.
        self._noise = left / len(rest)
        self._differ = max((whole - left) / len(rest), 1e-12)

    def of(self, action: int, z: Floats) -> tuple[Floats, Floats]:
        """Return what an action pays besides, and how uncertain that is.

        Parameters
        ----------
        action : int
        z : ndarray of shape (n, dim)

        Returns
        -------
        ndarray of shape (n,), ndarray of shape (n,)
            Mean and standard deviation.
        """
        points, rest = self._paid[action]
        near = np.exp(_squares_between(z, points) / (-2.0 * self._width**2))
        prior = max(self._noise / self._differ, 0.05)
        weight = near.sum(1) + prior
        return near @ rest / weight, np.sqrt(self._differ * prior / weight)


class VectorModel:
    """A model of moves between vectors, and values that are planned on it.

    Displacements are fitted by ridge regression on polynomials of the standardised observation,
    one an action; rewards and ends are those of the nearest observations, and what an action pays
    besides (`ActionRewards`). Values stand on cells of visited space and carry over by the nearest
    ones. Where no observation is near, nothing is known: exploring takes that for the best,
    exploiting for the worst.

    Parameters
    ----------
    gamma : float
    reach : float, default 0.35
        How far, in standard deviations, an observation tells what holds around it.

    References
    ----------
    Brafman & Tennenholtz 2002, R-max. Jong & Stone 2007, Model-based exploration in continuous
    state spaces (fitted R-max). Ormoneit & Sen 2002, Kernel-based reinforcement learning.
    """

    def __init__(self, gamma: float, reach: float = 0.35, grain: float = 0.05) -> None:
        self.gamma, self.reach, self.grain = gamma, reach, grain
        self.n = self._planned = 0
        self._columns: list[list[Floats]] = [[], [], [], [], []]
        self.paid: ActionRewards | None = None
        self._episodes: list[str] = []

    def add(self, moves: Sequence[Transition]) -> None:
        """Learn the moves of an episode; the plan follows when it is asked for."""
        if moves:
            columns = list(zip(*moves, strict=True))
            for held, new in zip(self._columns, columns[:5], strict=True):
                held.append(np.array(new, dtype=np.float64))
            self._episodes += [move.episode for move in moves]
            self.n += len(moves)

    def saved(self) -> dict[str, Any]:
        """Return the moves; the plan follows from them."""
        columns = [np.concatenate(parts) if parts else np.zeros(0) for parts in self._columns]
        return {"moves": columns, "episodes": self._episodes}

    def restore(self, told: Mapping[str, Any]) -> None:
        """Take over the moves that were saved."""
        columns, episodes = told["moves"], told["episodes"]
        if len({len(episodes), *map(len, columns)}) != 1 or columns[0].shape != columns[3].shape:
            raise ValueError("columns of different lengths")
        if episodes:
            self._columns = [[column] for column in columns]
            self._episodes, self.n = list(episodes), len(episodes)

    def _features(self, z: Floats) -> Floats:
        n, d = z.shape
        parts = [np.ones((n, 1)), z]
        if d <= 8:
            i, j = np.triu_indices(d)
            parts.append(z[:, i] * z[:, j])
        if d <= 4:
            parts += [z**3, z**4] if d <= 2 else [z**3]
        return np.concatenate(parts, axis=1)

    def plan(self) -> None:
        """Fit the moves and plan on them, if enough is new since it was done last."""
        n = self.n
        if n < self._planned * 1.02 + 1:
            return
        self._planned = n
        columns = [np.concatenate(parts) for parts in self._columns]
        self._columns = [[column] for column in columns]
        here, action, reward, there, ended = columns
        self.middle = here.mean(0)
        self.spread = np.maximum(here.std(0), 1e-6)
        z, z2 = (here - self.middle) / self.spread, (there - self.middle) / self.spread
        self.known = [int(a) for a in np.unique(action)]
        self.fits, self.tried = {}, {}
        for a in self.known:
            at = np.flatnonzero(action == a)[-_MOST_POINTS:]
            self.tried[a] = z[at], at
            f = self._features(z[at])
            gram = f.T @ f + 1e-3 * np.eye(f.shape[1])
            self.fits[a] = np.linalg.solve(gram, f.T @ (z2[at] - z[at]))
        grain = self.grain
        cells = np.concatenate([z2, z])
        while True:
            names = np.floor(cells / grain).astype(np.int64)
            mixed = (names * _MIX[: names.shape[1]]).sum(1)
            _, first, at = np.unique(mixed, return_index=True, return_inverse=True)
            if len(first) <= _MOST_CELLS:
                break
            grain *= 1.25
        size = np.bincount(at).astype(np.float64)
        self.at = np.stack([np.bincount(at, column) for column in cells.T], axis=1) / size[:, None]
        there_at, count = at[:n], np.bincount(at[:n], minlength=len(size))
        entered = np.maximum(count, 1)
        # A cell that was only left, never entered, is told of by the mean of all.
        self.reward = np.bincount(there_at, reward, len(size)) / entered
        self.reward[count == 0] = float(reward.mean())
        self.ended = np.bincount(there_at, ended, len(size)) / entered
        self.low, self.high = float(reward.min()), float(reward.max())
        self.paid = None
        if self.high > self.low:
            paid = {}
            for a, (points, rows) in self.tried.items():
                points, rows = points[-_MOST_PAID:], rows[-_MOST_PAID:]
                paid[a] = points, reward[rows] - self._ahead(points, a).reward
            found = ActionRewards(paid, self._reach(z.shape[1]))
            self.paid = found if found.counts else None
        moved = [self._ahead(self.at, a) for a in self.known]
        self.values = self._solve(moved, bold=False)
        self.best = (
            max(0.0, float(self.values.max()))
            if self.high <= 0
            else max(self.high, float(self.values.max()))
        )
        self.bold = self._solve(moved, bold=True)

    def _reach(self, dim: int) -> float:
        return self.reach * math.sqrt(dim / 2)

    def _ahead(self, z: Floats, action: int) -> _Ahead:
        """Return where an action leads from some observations."""
        after = z + self._features(z) @ self.fits[action]
        off, cell = _nearest(self.at, after, _NEAREST)
        share = 1.0 / (off + 0.02) ** 2
        share /= share.sum(1, keepdims=True)
        reward = (share * self.reward[cell]).sum(1)
        ended = self.ended[cell]
        unsure = np.zeros(len(z))
        if self.paid is not None:
            besides, unsure = self.paid.of(action, z)
            reward = reward + besides
        known = (off[:, 0] <= self._reach(z.shape[1])).astype(np.float64)
        going = 1.0 - (share * ended).sum(1)
        return _Ahead(cell, share * (1.0 - ended), reward, unsure, going, known)

    def _solve(self, moved: Sequence[_Ahead], *, bold: bool) -> Floats:
        values = np.zeros(len(self.at))
        outside = self.best if bold else min(0.0, self.low / (1 - self.gamma))
        parts = []
        for to in moved:
            base = to.known * to.reward + (1 - to.known) * outside
            parts.append((to.cell, to.share * (to.known * self.gamma)[:, None], base))
        cell = np.stack([part[0] for part in parts])
        share = np.stack([part[1] for part in parts])
        base = np.stack([part[2] for part in parts])
        for _ in range(_SWEEPS):
            new = (base + np.einsum("ank,ank->an", share, values[cell])).max(0)
            change = float(np.abs(new - values).max())
            values = new
            if change < 1e-3 * max(1e-6, self.high - self.low, abs(self.high)):
                break
        return values

    def worth(self, observation: Vector, actions: Sequence[int | None]) -> list[Worth]:
        """Return what actions are worth, by their numbers.

        Parameters
        ----------
        observation : ndarray of shape (dim,)
        actions : sequence of int or None
            None for one that was never done: it is hoped to be the best.
        """
        self.plan()
        if not self.n:
            return [Worth(0.0, 0.0, 1.0, 0, ())] * len(actions)
        z = ((observation - self.middle) / self.spread)[None, :]
        out = []
        worst = min(0.0, self.low / (1 - self.gamma))
        for action in actions:
            if action is None or action not in self.fits:
                out.append(Worth(worst, self.best, self.best - worst, 0, ()))
                continue
            to = self._ahead(z, action)
            cell, share, unsure = to.cell[0], to.share[0], float(to.unsure[0])
            near = self.values[cell]
            value = float(to.reward[0] + self.gamma * (share @ near))
            hope = float(to.reward[0] + unsure + self.gamma * (share @ self.bold[cell]))
            middle = float(share @ near) / max(1e-9, float(to.going[0]))
            varied = max(0.0, float(share @ np.square(near - middle)))
            spread = math.hypot(self.gamma * math.sqrt(varied), unsure)
            points, at = self.tried[action]
            off = np.square(points - z).sum(1)
            within = np.flatnonzero(off <= self._reach(z.shape[1]) ** 2)
            told = dict.fromkeys(self._episodes[at[i]] for i in within[-12:])
            out.append(
                Worth(
                    value, hope if to.known[0] else self.best, spread, len(within), tuple(told)[-3:]
                )
            )
        return out

    def joined(
        self, told: Worth, observation: Vector, own: Sequence[tuple[Vector, float, Vector]]
    ) -> Worth:
        """Return what an action is worth where an open episode did it itself, too.

        Where it was never done near here before, that is all there is to go by; else the model
        knows better, and it is one more trial.

        Parameters
        ----------
        told : Worth
            As ``worth`` returned it.
        observation : ndarray of shape (dim,)
        own : sequence of (here, reward, there)
            What the action did in the episode.
        """
        here = np.array([one[0] for one in own], dtype=np.float64)
        scale = self.spread if self.n else np.maximum(here.std(0), 1e-6)
        off = np.linalg.norm((here - observation) / scale, axis=1)
        near = np.flatnonzero(off <= self._reach(len(observation)))
        if told.trials or not len(near):
            return told._replace(trials=told.trials + len(near))
        told_near = [own[at] for at in near.tolist()]
        reward = np.array([one[1] for one in told_near])
        after, hoped = np.zeros(len(near)), np.zeros(len(near))
        if self.n:
            there = np.array([one[2] for one in told_near], dtype=np.float64)
            away, cell = _nearest(self.at, (there - self.middle) / self.spread, _NEAREST)
            share = 1.0 / (away + 0.02) ** 2
            share /= share.sum(1, keepdims=True)
            known = away[:, 0] <= self._reach(len(observation))
            after = (share * self.values[cell]).sum(1)
            hoped = np.where(known, (share * self.bold[cell]).sum(1), self.best)
        n = len(near)
        value = float((reward + self.gamma * after).mean())
        hope = float((reward + self.gamma * hoped).mean())
        return Worth(value, hope, told.spread / math.sqrt(1.0 + n), n, told.episodes)


def _squares_between(some: Floats, others: Floats) -> Floats:
    """Return squared distances, of shape (some, others)."""
    sums = np.square(some).sum(1)[:, None] + np.square(others).sum(1)
    squares: Floats = np.maximum(sums - 2.0 * (some @ others.T), 0.0)
    return squares


def _nearest(points: Floats, asked: Floats, k: int) -> tuple[Floats, Ints]:
    """Return distances to the nearest points, and their numbers, of shape (asked, k)."""
    k = min(k, len(points))
    off, which = np.empty((len(asked), k)), np.empty((len(asked), k), dtype=np.int64)
    sizes = np.square(points).sum(1)
    for start in range(0, len(asked), 256):
        some = asked[start : start + 256]
        away = sizes - 2.0 * (some @ points.T)
        rows = np.arange(len(some))
        for at in range(k):
            best = away.argmin(1)
            which[start : start + 256, at] = best
            away[rows, best] = np.inf
    off = np.sqrt(np.square(asked[:, None, :] - points[which]).sum(2))
    return off, which
