"""Applying decay once a game and memory, and taking it back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from cvx.decay.case import DecayCase, DecayPolicy
from cvx.errors import InvalidParameterError


class RewardIndex(Protocol):
    """The part of a temporal index that decay needs."""

    def reward(self, node: int) -> float | None:
        """Return the reward of a node."""
        ...

    def set_reward(self, node: int, reward: float) -> None:
        """Set the reward of a node."""
        ...


class Judged(NamedTuple):
    """A case that a ledger was given.

    Attributes
    ----------
    game, node : int
        Number of the failed game, and the memory.
    case : DecayCase
        How it was recalled there.
    """

    game: int
    node: int
    case: DecayCase


class DecayLedger:
    """Applies decay to an index, remembers every change, and can take all of them back.

    Trajectories are never deleted: a decay lowers a reward, and ``reset`` restores it.

    Parameters
    ----------
    index : TemporalIndex
        Whose rewards are changed.
    keep : int, default 10_000
        How many cases are kept to be looked at later, the oldest forgotten first.

    Attributes
    ----------
    original : dict of int to float
        Rewards before any decay, of what decayed.
    cases : deque of Judged
        What was recalled in failed games, oldest first; those of earlier processes are not known.
    """

    def __init__(self, index: RewardIndex, *, keep: int = 10_000) -> None:
        self.index = index
        self.cases: deque[Judged] = deque(maxlen=keep)
        self.original: dict[int, float] = {}
        self._done: set[tuple[int, int]] = set()

    def apply(
        self, game: int, cases: Mapping[int, DecayCase], policy: DecayPolicy
    ) -> list[tuple[int, int, float, float]]:
        """Decay the memories recalled in one failed game, each at most once.

        Parameters
        ----------
        game : int
            Number of the game; a second call for it leaves alone what the first one saw.
        cases : mapping of int to DecayCase
            By node. A node without reward is left alone.
        policy : DecayPolicy
            What each case costs.

        Returns
        -------
        list of (game, node, before, after)
            What changed.

        Raises
        ------
        InvalidParameterError
            The policy returned a factor outside [0, 1]; nothing was changed.
        """
        changes: list[tuple[int, int, float, float]] = []
        for node, case in cases.items():
            if (game, node) in self._done:
                continue
            factor = policy.factor(case)
            if not 0.0 <= factor <= 1.0:
                raise InvalidParameterError(
                    f"{type(policy).__name__} returned the factor {factor}: give one in [0, 1]"
                )
            before = self.index.reward(node) if factor < 1.0 else None
            if before is not None:
                changes.append((game, node, before, before * factor))
        for _, node, before, after in changes:
            self.original.setdefault(node, before)
            self.index.set_reward(node, after)
        self.cases.extend(
            Judged(game, node, case)
            for node, case in cases.items()
            if (game, node) not in self._done
        )
        self._done.update((game, node) for node in cases)
        return changes

    def revert(self, game: int, changes: Iterable[tuple[int, int, float, float]]) -> None:
        """Take back what ``apply`` did for one game."""
        for _, node, before, _ in changes:
            self.index.set_reward(node, before)
            if self.original.get(node) == before:
                del self.original[node]
        self._done = {pair for pair in self._done if pair[0] != game}
        while self.cases and self.cases[-1].game == game:
            self.cases.pop()

    def load(self, decays: Iterable[tuple[int, int, float, float]]) -> None:
        """Take over decays that a record remembers, oldest first; the index is not changed."""
        for game, node, before, _ in decays:
            self.original.setdefault(node, before)
            self._done.add((game, node))

    def undecayed(self, nodes: Iterable[int] | None = None) -> dict[int, float]:
        """Return the rewards before any decay, of these nodes or of all that ever changed."""
        chosen = self.original if nodes is None else dict.fromkeys(nodes)
        return {n: self.original[n] for n in chosen if n in self.original}

    def reset(self, nodes: Iterable[int] | None = None) -> dict[int, float]:
        """Restore the rewards as they were before any decay.

        Parameters
        ----------
        nodes : iterable of int, optional
            Only these; by default all that ever changed.

        Returns
        -------
        dict of int to float
            The rewards restored, by node.
        """
        restored = self.undecayed(nodes)
        for node, reward in restored.items():
            del self.original[node]
            self.index.set_reward(node, reward)
        return restored
