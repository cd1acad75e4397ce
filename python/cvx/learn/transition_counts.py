"""Counts of what actions led to, by state and action, and values carried back through them.

The one table behind advice, the region model and its planner: what an action led to in a state,
with which reward, and how often.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

END = -1
"""The next state of an action that ended its episode."""

_LATE = (1, 2, 3, 4, 6, 8, 12)
"""How many of the last outcomes are held against the older ones, to see a change."""

NO_TRIAL = 1e-9
"""No trial weighs so little: what is left of a sum of weights that were taken back is less."""


class Column:
    """A growable one-dimensional array.

    Parameters
    ----------
    dtype : numpy dtype
    values : sequence, default ()
        What it holds at first.
    """

    def __init__(self, dtype: Any, values: Any = ()) -> None:
        self._n = len(values)
        self._held = np.zeros(max(64, self._n), dtype=dtype)
        self._held[: self._n] = values

    def __len__(self) -> int:
        """Return how many values it holds."""
        return self._n

    def append(self, value: float) -> None:
        """Add a value at the end."""
        if self._n == len(self._held):
            self._held = np.concatenate([self._held, np.zeros_like(self._held)])
        self._held[self._n] = value
        self._n += 1

    def __getitem__(self, at: int) -> Any:
        return self._held.item(at)

    def __setitem__(self, at: int, value: float) -> None:
        self._held[at] = value

    @property
    def all(self) -> Any:
        """The values, as a view that writes through."""
        return self._held[: self._n]


class Counts:
    """How often an action led from a state to another one, and with which reward.

    A *pair* is a state and an action that can be done there; a *row* is one outcome of a pair: the
    next state, or the end, with its reward. Pairs that were never tried have no rows.

    Parameters
    ----------
    gate : float, optional
        By what factor the Dirichlet evidence must favour a change for the outcomes of a pair that
        are older than it to be dropped; infinity never drops any. None: their order is not kept,
        nor what leads into a state.

    Attributes
    ----------
    pair_of : dict of (int, int) to int
        By state and action.
    state, action, n : Column
        Of each pair: its state, its action, how much was counted.
    pair, next, reward, count : Column
        Of each row.
    rows : list of list of int
        Of each pair: its rows.
    repeats, surprises : float
        How many outcomes had an earlier one of the same pair, and how many differed from the
        last one before.
    """

    def __init__(self, gate: float | None = 100.0) -> None:
        self._gate = None if gate is None else math.log(gate)
        self.pair_of: dict[tuple[int, int], int] = {}
        self.pairs_at: dict[int, list[int]] = {}
        self.state, self.action, self.n = Column(np.int64), Column(np.int64), Column(np.float64)
        self.pair, self.next = Column(np.int64), Column(np.int64)
        self.reward, self.count = Column(np.float64), Column(np.float64)
        self.rows: list[list[int]] = []
        self.into: dict[int, set[int]] = {}
        # Of each row: the size of its first reward.
        self._size = Column(np.float64)
        self._row_of: dict[tuple[int, int, float], int] = {}
        self._late: dict[int, deque[tuple[int, float]]] = {}
        # Pairs in the order of their states, where each state starts in it, and the states.
        self._order: tuple[Ints, Ints, Ints] = (np.zeros(0, np.int64),) * 3
        self.repeats = self.surprises = 0.0
        self.dropped = 0

    def pair_at(self, state: int, action: int) -> int:
        """Return the number of a pair, making it if it is new."""
        pair = self.pair_of.get((state, action))
        if pair is None:
            pair = self.pair_of[state, action] = len(self.rows)
            self.pairs_at.setdefault(state, []).append(pair)
            self.state.append(state)
            self.action.append(action)
            self.n.append(0.0)
            self.rows.append([])
        return pair

    def add(self, pair: int, next_state: int, reward: float, weight: float = 1.0) -> None:
        """Count one outcome of a pair.

        Parameters
        ----------
        pair : int
        next_state : int
            Or ``END``.
        reward : float
        weight : float, default 1
            How much it counts: the trust in who tells it. Below 0 it is taken back.
        """
        # Rewards of one size are one outcome, told by its mean: they may differ every time.
        size = _size(reward)
        key = (pair, next_state, size)
        row = self._row_of.get(key)
        if row is None:
            row = self._row_of[key] = len(self.pair)
            self.pair.append(pair)
            self.next.append(next_state)
            self.reward.append(reward)
            self._size.append(size)
            self.count.append(0.0)
            self.rows[pair].append(row)
            if next_state != END and self._gate is not None:
                self.into.setdefault(next_state, set()).add(pair)
        if self._gate is not None:
            late = self._late.setdefault(pair, deque(maxlen=_LATE[-1]))
            if late:
                self.repeats += weight
                self.surprises += weight * (late[-1][0] != row)
            late.append((row, weight))
        left = self.count[row] + weight
        self.count[row] = left if left > NO_TRIAL else 0.0
        if left > NO_TRIAL:
            mean = self.reward[row]
            self.reward[row] = mean + (reward - mean) * weight / left
        self.n[pair] += weight

    def latest(self, pair: int) -> int:
        """Return the row of the last outcome of a pair that was tried."""
        return self._late[pair][-1][0]

    @property
    def acted_in(self) -> Ints:
        """The states in which something can be done."""
        if len(self._order[0]) != len(self.rows):
            order = np.argsort(self.state.all, kind="stable")
            states = self.state.all[order]
            starts = np.flatnonzero(np.diff(states, prepend=-1))
            self._order = order, starts, states[starts]
        return self._order[2]

    def carry_back(
        self, values: Floats, weights: Floats, prior: Floats, strength: Floats, gamma: float,
        *, sweeps: int, enough: float,
    ) -> Floats:  # fmt: skip
        """Carry values back through what was counted: value iteration.

        Parameters
        ----------
        values : ndarray of shape (states + 1,), float64
            Where to start, with a last 0 for the end; states in which nothing can be done keep
            theirs. Changed in place.
        weights : ndarray of shape (rows,), float64
            How often each outcome is taken to have come: as counted, or as drawn from that.
        prior, strength : ndarray of shape (pairs,), float64
            What each pair is expected to be worth, and how many trials that counts as.
        gamma : float
            What a value is worth one step before.
        sweeps : int
            How often at the most.
        enough : float
            It is over when no value changes by as much.

        Returns
        -------
        ndarray of shape (pairs,), float64
            What each pair is worth.

        References
        ----------
        Bellman 1957, Dynamic Programming.
        """
        pair, to, pairs, heads = self.pair.all, self.next.all, len(self.rows), self.acted_in
        order, starts, _ = self._order
        total = np.bincount(pair, weights, pairs) + strength
        base = (np.bincount(pair, weights * self.reward.all, pairs) + strength * prior) / total
        share = weights / total[pair] * gamma
        worth = base
        for _ in range(sweeps if pairs else 0):
            worth = base + np.bincount(pair, share * values[to], pairs)
            better = np.maximum.reduceat(worth[order], starts)
            change = float(np.abs(better - values[heads]).max())
            values[heads] = better
            if change < enough:
                break
        return worth

    def saved(self) -> dict[str, Any]:
        """Return all of it as numbers and arrays."""
        kept = [self._late.get(pair, ()) for pair in range(len(self.rows))]
        late = [one for some in kept for one in some]
        return {
            "pairs": [self.state.all, self.action.all, self.n.all],
            "rows": [
                column.all for column in (self.pair, self.next, self.reward, self._size, self.count)
            ],
            "late": [
                np.array([len(some) for some in kept], dtype=np.int64),
                np.array([row for row, _ in late], dtype=np.int64),
                np.array([weight for _, weight in late], dtype=np.float64),
            ],
            "told": [self.repeats, self.surprises, self.dropped],
        }

    @classmethod
    def restored(
        cls, told: Mapping[str, Any], gate: float | None, states: int, actions: int
    ) -> Self:
        """Return what was saved; states and actions are numbered below these bounds.

        Raises
        ------
        ValueError
            A number is out of bounds.
        """
        made = cls(gate)
        state, action, n = told["pairs"]
        pair, to, reward, size, count = told["rows"]
        lengths, late, weights = told["late"]
        pairs, rows = len(state), len(pair)
        for numbers, least, bound in (
            (state, 0, states), (action, 0, actions), (pair, 0, pairs), (to, END, states),
            (late, 0, rows), (lengths, 0, _LATE[-1] + 1),
        ):  # fmt: skip
            if len(numbers) and not least <= numbers.min() <= numbers.max() < bound:
                raise ValueError(f"{numbers.min()} to {numbers.max()}, not {least} to {bound - 1}")
        made.state, made.action = Column(np.int64, state), Column(np.int64, action)
        made.n, made._size = Column(np.float64, n), Column(np.float64, size)
        made.pair, made.next = Column(np.int64, pair), Column(np.int64, to)
        made.reward, made.count = Column(np.float64, reward), Column(np.float64, count)
        made.rows = [[] for _ in range(pairs)]
        named = zip(state.tolist(), action.tolist(), strict=True)
        made.pair_of = {one: number for number, one in enumerate(named)}
        for number, at in enumerate(state.tolist()):
            made.pairs_at.setdefault(at, []).append(number)
        named_rows = zip(pair.tolist(), to.tolist(), size.tolist(), strict=True)
        made._row_of = {one: number for number, one in enumerate(named_rows)}
        for number, (of, there, _) in enumerate(made._row_of):
            made.rows[of].append(number)
            if there != END and gate is not None:
                made.into.setdefault(there, set()).add(of)
        each = iter(zip(late.tolist(), weights.tolist(), strict=True))
        made._late = {
            at: deque(islice(each, n), maxlen=_LATE[-1])
            for at, n in enumerate(lengths.tolist())
            if n
        }
        if len(made.pair_of) != pairs or len(made._row_of) != rows or next(each, None):
            raise ValueError("a pair, or one of its outcomes, is there twice")
        made.repeats, made.surprises, made.dropped = told["told"]
        return made

    def fade(self, pair: int, factor: float) -> None:
        """Lower the weight of a pair's earlier counts."""
        if factor < 1.0:
            self.count.all[self.rows[pair]] *= factor
            self.n[pair] *= factor

    def forget_what_changed(self, pair: int) -> None:
        """Drop the outcomes of a pair older than a change, where the evidence is strong."""
        if len(self.rows[pair]) < 2 or self._gate in (None, math.inf):
            return
        total = {row: self.count[row] for row in self.rows[pair]}
        if sum(total.values()) < 2:
            return
        alpha = min(0.5, max(0.05, self.surprise))
        whole = _evidence(total.values(), len(total), alpha)
        late = list(self._late[pair])
        # Where outcomes vary anyway, many looks at them would see changes that are none.
        best = self._gate + math.log1p(self.surprise * sum(total.values()))
        kept = None
        new: Counter[int] = Counter()
        for m, (row, weight) in enumerate(reversed(late), 1):
            new[row] += weight  # type: ignore[assignment]
            if m not in _LATE:
                continue
            old = [max(0.0, n - new[row]) for row, n in total.items()]
            if sum(old) <= 0:
                break
            gain = (
                _evidence(old, len(total), alpha)
                + _evidence([new[row] for row in total], len(total), alpha)
                - whole
            )
            if gain > best:
                best, kept = gain, (m, dict(new))
        if kept is None:
            return
        m, counts = kept
        for row in total:
            self.count[row] = counts.get(row, 0.0)
        self.n[pair] = sum(counts.values())
        self._late[pair] = deque(late[-m:], maxlen=_LATE[-1])
        self.dropped += 1

    @property
    def surprise(self) -> float:
        """How often an action that is repeated in a state ends otherwise than before."""
        return (self.surprises + 0.1) / (self.repeats + 1.0)


def _evidence(counts: Iterable[float], kinds: int, alpha: float) -> float:
    """Return the log probability of a sequence with these counts under a Dirichlet prior."""
    total, found = 0.0, 0.0
    for n in counts:
        if n > 0:
            total += n
            found += _log_ratio(n, alpha)
    return found + math.lgamma(kinds * alpha) - math.lgamma(kinds * alpha + total)


@lru_cache(4096)
def _size(reward: float) -> float:
    """Return a reward to one digit."""
    return float(f"{reward:.1g}")


@lru_cache(4096)
def _log_ratio(n: float, alpha: float) -> float:
    """Return the log of gamma(n + alpha) / gamma(alpha)."""
    return math.lgamma(n + alpha) - math.lgamma(alpha)
