"""Beliefs about a chance after counting: Beta, Dirichlet, and counts in nested contexts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from cvx.statistics import Beta

Context = Hashable
Cell: TypeAlias = tuple[float, float, float]
"""Trials, wins and summed rewards."""

NO_TRIAL = 1e-9
"""No trial weighs so little: what is left of a sum of weights that were taken back is less."""

_NEVER = (0, 0, 0.0)


class Dirichlet(NamedTuple):
    """The belief about where an action leads.

    Attributes
    ----------
    alphas : mapping of int to float
        By region or end: how often it was reached, with what the prior is worth.

    Examples
    --------
    >>> belief = Dirichlet({4: 3.0, 9: 1.0})
    >>> belief.mean(4), belief.mean(5)
    (0.75, 0.0)
    """

    alphas: Mapping[int, float]

    def mean(self, there: int) -> float:
        """Return the chance to expect of one place; 0 for a place that is not in it."""
        total = sum(self.alphas.values())
        return self.alphas.get(there, 0.0) / total if total else 0.0

    def sample(self, rng: np.random.Generator) -> dict[int, float]:
        """Draw chances that the belief allows."""
        places = list(self.alphas)
        drawn = rng.dirichlet([self.alphas[place] for place in places])
        return dict(zip(places, drawn.tolist(), strict=True))


def backed_off(cells: Sequence[tuple[float, float]], strength: float) -> Beta:
    """Return what is believed of the success rate of the last of nested contexts.

    The prior of each context is the mean of the context before it, from the trials that the
    next one does not hold: with ``p_i = (wins_i + s * p_(i-1)) / (trials_i + s)``,
    ``p_(-1) = 1/2`` and ``s = strength``, the belief about the last one is
    ``Beta(wins + s * p, losses + s * (1 - p))``. So each trial counts once, however many
    contexts it was counted in: one success in ten nested contexts is one success.

    Parameters
    ----------
    cells : sequence of (trials, wins)
        From the most general context to the most specific, each holding those after it.
    strength : float
        How many trials the mean of a context is worth as the prior of the next one.
    """
    p = 0.5
    trials = wins = 0.0
    for (n, won), (inner, inner_won) in zip(cells, [*cells[1:], (0.0, 0.0)], strict=True):
        p = (wins + strength * p) / (trials + strength)
        # Regions of two levels need not nest exactly: never fewer than none.
        trials = max(n - inner, 0)
        wins = min(max(won - inner_won, 0), trials)
    return Beta(wins + strength * p, trials - wins + strength * (1.0 - p))


class SuccessCounts:
    """Trials, successes and summed rewards by context, with estimates that back off.

    Parameters
    ----------
    prior_strength : float, default 2.0
        How many trials the more general context is worth; above 0.
    parts : sequence of SuccessCounts, optional
        Count nothing here: what these count is added up, also what they count later.

    Attributes
    ----------
    cells : mapping of context to (float, float, float)
        Trials, wins and summed rewards, each trial by its weight; whole numbers where all weigh 1.

    Examples
    --------
    >>> counts = SuccessCounts(prior_strength=2.0)
    >>> for won in (True, True, True, False):
    ...     counts.add(["everywhere"], float(won), won)
    >>> counts.add(["everywhere", "here"], 1.0, True)
    >>> round(counts.estimate(["everywhere"]), 4)          # (4 + 2 * 1/2) / (5 + 2)
    0.7143
    >>> round(counts.estimate(["everywhere", "here"]), 4)  # (1 + 2 * 2/3) / (1 + 2)
    0.7778
    """

    def __init__(
        self, prior_strength: float = 2.0, parts: Sequence[SuccessCounts] | None = None
    ) -> None:
        self.prior_strength = prior_strength
        # Tuples of numbers: the garbage collector passes over them.
        self.own: dict[Context, Cell] = {}
        self.cells: Mapping[Context, Cell] = (
            self.own if parts is None else _Sums([part.cells for part in parts])
        )

    def add(self, contexts: Iterable[Context], reward: float, won: bool, times: float = 1) -> None:
        """Count one trial in each of the contexts, ``times`` of it; less than 0 takes it back."""
        cells = self.own
        reward *= times
        win = times if won else 0
        for context in contexts:
            trials, wins, rewards = cells.get(context, _NEVER)
            if trials + times > NO_TRIAL:
                cells[context] = (trials + times, wins + win, rewards + reward)
            else:
                del cells[context]

    def trials(self, context: Context) -> float:
        """Return how often the context was counted."""
        return self.cells.get(context, _NEVER)[0]

    def wins(self, context: Context) -> float:
        """Return how often it was counted as a success."""
        return self.cells.get(context, _NEVER)[1]

    def mean_reward(self, context: Context) -> float | None:
        """Return the mean reward, or None where nothing was counted."""
        cell = self.cells.get(context)
        return cell[2] / cell[0] if cell else None

    def estimate(self, chain: Sequence[Context]) -> float:
        """Return the success rate of the last context, smoothed by those before it.

        The mean of ``posterior``.
        """
        return self.posterior(chain).mean

    def posterior(self, chain: Sequence[Context]) -> Beta:
        """Return what is believed of the success rate of the last context.

        A context without trials of its own passes on its prior; see ``backed_off``.

        Parameters
        ----------
        chain : sequence of contexts
            From the most general to the most specific, each holding those after it.
        """
        cells = [(cell[0], cell[1]) for at in chain if (cell := self.cells.get(at)) is not None]
        if chain and chain[-1] not in self.cells:
            # Nothing was counted there: only the prior that the wider contexts give it is left.
            cells.append((0.0, 0.0))
        return backed_off(cells, self.prior_strength)


class _Sums(Mapping[Context, Cell]):
    """The cells of several counts, added up when they are asked for."""

    def __init__(self, parts: Sequence[Mapping[Context, Cell]]) -> None:
        self._parts = parts

    def __getitem__(self, context: Context) -> Cell:
        found = [cell for part in self._parts if (cell := part.get(context)) is not None]
        if not found:
            raise KeyError(context)
        trials, wins, rewards = map(sum, zip(*found, strict=True))
        return trials, wins, rewards

    def __iter__(self) -> Iterator[Context]:
        return iter({context: None for part in self._parts for context in part})

    def __len__(self) -> int:
        return sum(1 for _ in self)
