"""Looks up closed episodes by number or by node, and adds continuations to hits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import overload

from cvx.index import RawIndex
from cvx.types import Edge, Episode, Hit, Step, task_of_tags


class ClosedEpisodes(Sequence[Episode]):
    """The closed episodes, oldest first; those of the record are read when they are asked for.

    Parameters
    ----------
    read : callable, optional
        From numbers of episodes to those of them that are there, in any order.
    """

    def __init__(self, read: Callable[[Collection[int]], Iterable[Episode]] | None = None) -> None:
        self._read = read
        # None for one that was not read yet.
        self._known: dict[int, Episode | None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, number: object) -> bool:
        return number in self._known

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.of([*self._known]))

    @overload
    def __getitem__(self, place: int) -> Episode: ...
    @overload
    def __getitem__(self, place: slice) -> list[Episode]: ...
    def __getitem__(self, place: int | slice) -> Episode | list[Episode]:
        numbers = [*self._known][place]
        return self.of(numbers) if isinstance(numbers, list) else self.of([numbers])[0]

    def append(self, episode: Episode) -> None:
        """Add an episode at the end."""
        self._known[int(episode.episode_id or 0)] = episode

    def note(self, numbers: Iterable[int]) -> None:
        """Add episodes at the end that are to be read when they are asked for."""
        for number in numbers:
            self._known.setdefault(number, None)

    def of(self, numbers: Sequence[int]) -> list[Episode]:
        """Return the episodes of these numbers, without those that are none of them."""
        missing = {n for n in numbers if n in self._known and self._known[n] is None}
        if missing and self._read is not None:
            self._known.update((int(one.episode_id or 0), one) for one in self._read(missing))
        found = (self._known.get(number) for number in numbers)
        return [episode for episode in found if episode is not None]

    @property
    def numbers(self) -> list[int]:
        """The numbers of the episodes, oldest first."""
        return [*self._known]

    def renew(self, touched: Collection[int], there: Collection[int]) -> list[Episode]:
        """Read episodes anew when they are asked for, and drop those that are not there any more.

        Returns
        -------
        list of Episode
            Those of them that had been read, as they were.
        """
        before = [one for number in touched if (one := self._known.get(number)) is not None]
        for number in touched:
            if number not in there:
                self._known.pop(number, None)
            elif number in self._known:
                self._known[number] = None
        return before


class EpisodeLookup:
    """Finds the episode that a node is part of, and makes hits with their continuations.

    Continuations of known episodes are slices of tuples made once, which costs a fraction of
    reading them off the index; other nodes are read off the index.

    Parameters
    ----------
    index : RawIndex
        Where the nodes live.
    read : callable, optional
        From a node that no episode was added of to the episode that it is a step of, if any.

    Attributes
    ----------
    away : set of int
        Nodes that are no part of a continuation: they were archived, quarantined or erased.
    """

    def __init__(
        self, index: RawIndex, read: Callable[[int], Episode | None] = lambda _: None
    ) -> None:
        self.away: set[int] = set()
        self._read = read
        self._index = index
        self._inverse = index.metric == "l2"
        # None for a node that is no step of a closed episode.
        self._origin: dict[int, tuple[Episode, tuple[Step, ...], int, int] | None] = {}

    def _find(self, node: int) -> tuple[Episode, tuple[Step, ...], int, int] | None:
        if node not in self._origin:
            episode = self._read(node)
            if episode is not None:
                self.add(episode)
            self._origin.setdefault(node, None)
        return self._origin[node]

    def add(self, episode: Episode) -> None:
        """Take in an episode; its steps without node stay unknown."""
        steps = [
            Step(step.node, step.entity_id, step.timestamp, step.action, step.reward)
            for step in episode.steps
            if step.node is not None
        ]
        if len(steps) < len(episode.steps):
            return
        shown = self._shown(steps)
        at = 0
        for place, step in enumerate(steps):
            self._origin[step.node_id] = (episode, shown, at, place)
            at += step.node_id not in self.away

    def _shown(self, steps: Iterable[Step]) -> tuple[Step, ...]:
        return tuple(step for step in steps if step.node_id not in self.away)

    def put_away(self, gone: Collection[int], back: Collection[int] = ()) -> None:
        """Leave nodes out of every continuation, and let others be part of them again."""
        self.away.update(gone)
        self.away.difference_update(back)
        known = (self._origin.get(node) for node in (*gone, *back))
        for episode in {id(one[0]): one[0] for one in known if one is not None}.values():
            self.add(episode)

    def forget(self, nodes: Iterable[int]) -> None:
        """Look for the episodes of these nodes anew when they are asked for."""
        for node in nodes:
            self._origin.pop(node, None)

    def episode(self, node: int) -> Episode | None:
        """Return the episode that a node is a step of."""
        known = self._find(node)
        return known[0] if known else None

    def task_type(self, node: int) -> str | None:
        """Return the family of goals of a node: that of its episode, or else as it is tagged."""
        episode = self.episode(node)
        return task_of_tags(self._index.tags(node)) if episode is None else episode.task_type

    def place(self, node: int) -> int | None:
        """Return the number of the step within its episode."""
        known = self._find(node)
        return known[3] if known else None

    def hit(
        self,
        node: int,
        distance: float,
        context: int,
        path: tuple[Edge, ...] = (),
        bonus: float = 0.0,
    ) -> Hit:
        """Return a node as a hit, scored by similarity and the edges that led to it.

        Parameters
        ----------
        node : int
            Index row, not one that was put away.
        distance : float
            As the search gave it.
        context : int
            How many steps before and after to carry along.
        path : tuple of Edge
            How it was reached.
        bonus : float, default 0.0
            What the edges on the way add to its score.
        """
        similarity = 1.0 / (1.0 + distance) if self._inverse else 1.0 - distance
        known = self._find(node)
        if known is None:
            own = self._index.step(node)
            event = None
            before = self._shown(self._index.predecessors(node, context))
            after = self._shown(self._index.successors(node, context))
        else:
            episode, steps, at, place = known
            own = steps[at]
            event = episode.steps[place]
            before = steps[max(0, at - context) : at]
            after = steps[at + 1 : at + 1 + context]
        return Hit(
            node=node,
            distance=distance,
            score=similarity + bonus,
            similarity=similarity,
            entity_id=own.entity_id,
            timestamp=own.timestamp,
            reward=self._index.reward(node),
            action=own.action,
            predecessors=before,
            successors=after,
            path=path,
            event=event,
        )
