"""Counting successes in nested contexts, and estimating from few of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

Context = Hashable


class SuccessCounts:
    """Trials, successes and summed rewards by context, with estimates that back off.

    Parameters
    ----------
    prior_strength : float, default 2.0
        How many trials the more general context is worth; above 0.

    Examples
    --------
    >>> counts = SuccessCounts(prior_strength=2.0)
    >>> for won in (True, True, True, False):
    ...     counts.add(["everywhere"], 1.0 if won else 0.0, won)
    >>> counts.add(["here"], 1.0, True)
    >>> round(counts.estimate(["everywhere"]), 4)         # (3 + 2 * 1/2) / (4 + 2)
    0.6667
    >>> round(counts.estimate(["everywhere", "here"]), 4)  # (1 + 2 * 2/3) / (1 + 2)
    0.7778
    """

    def __init__(self, prior_strength: float = 2.0) -> None:
        self.prior_strength = prior_strength
        self._cells: dict[Context, list[float]] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._cells.clear()

    def add(self, contexts: Iterable[Context], reward: float, won: bool, times: int = 1) -> None:
        """Count one trial in each of the contexts; ``times=-1`` takes it back."""
        cells = self._cells
        for context in contexts:
            cell = cells.get(context)
            if cell is None:
                cell = cells[context] = [0, 0, 0.0]
            cell[0] += times
            if won:
                cell[1] += times
            cell[2] += reward * times
            if cell[0] == 0:
                del cells[context]

    def trials(self, context: Context) -> int:
        """Return how often the context was counted."""
        cell = self._cells.get(context)
        return int(cell[0]) if cell else 0

    def wins(self, context: Context) -> int:
        """Return how often it was counted as a success."""
        cell = self._cells.get(context)
        return int(cell[1]) if cell else 0

    def mean_reward(self, context: Context) -> float | None:
        """Return the mean reward, or None where nothing was counted."""
        cell = self._cells.get(context)
        return cell[2] / cell[0] if cell else None

    def estimate(self, chain: Sequence[Context]) -> float:
        """Return the success rate of the last context, smoothed by those before it.

        The estimate of each context is the mean of a Beta posterior whose prior mean is the
        estimate of the context before it:
        ``p_i = (wins_i + s * p_(i-1)) / (trials_i + s)``, with ``p_(-1) = 1/2`` and
        ``s = prior_strength``. A context that was never counted passes on its prior.

        Parameters
        ----------
        chain : sequence of contexts
            From the most general to the most specific.
        """
        p = 0.5
        s = self.prior_strength
        for context in chain:
            cell = self._cells.get(context)
            if cell is not None:
                p = (cell[1] + s * p) / (cell[0] + s)
        return p
