"""The closed episodes of a memory, by the nodes of their steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cvx.types import Edge, Episode, Event, Hit, Step, task_of_tags

if TYPE_CHECKING:
    from cvx.index import RawIndex


class EpisodeLookup:
    """Finds the episode that a node is part of, and makes hits with their continuations.

    Continuations of known episodes are slices of tuples made once, which costs a fraction of
    reading them off the index; other nodes are read off the index.

    Parameters
    ----------
    index : RawIndex
        Where the nodes live.

    Attributes
    ----------
    away : set of int
        Nodes that are no part of a continuation: they were archived, quarantined or erased.
    """

    def __init__(self, index: RawIndex) -> None:
        self.away: set[int] = set()
        self._index = index
        self._inverse = index.metric == "l2"
        self._origin: dict[int, tuple[Episode, tuple[Step, ...], int, int]] = {}

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

    def put_away(self, nodes: Iterable[int]) -> None:
        """Leave these nodes out of every continuation."""
        self.away.update(nodes)
        self._add_again(nodes)

    def bring_back(self, nodes: Iterable[int]) -> None:
        """Let nodes be part of continuations again."""
        self.away.difference_update(nodes)
        self._add_again(nodes)

    def _add_again(self, nodes: Iterable[int]) -> None:
        known = (self._origin.get(node) for node in nodes)
        for episode in {id(one[0]): one[0] for one in known if one is not None}.values():
            self.add(episode)

    def forget(self, nodes: Iterable[int]) -> None:
        """Let go of the episodes that these nodes are steps of."""
        for node in nodes:
            known = self._origin.get(node)
            for step in known[0].steps if known is not None else ():
                if step.node is not None:
                    self._origin.pop(step.node, None)

    def episode(self, node: int) -> Episode | None:
        """Return the episode that a node is a step of."""
        known = self._origin.get(node)
        return known[0] if known else None

    def task_type(self, node: int) -> str | None:
        """Return the family of goals of a node: that of its episode, or else as it is tagged."""
        episode = self.episode(node)
        return task_of_tags(self._index.tags(node)) if episode is None else episode.task_type

    def place(self, node: int) -> int | None:
        """Return the number of the step within its episode."""
        known = self._origin.get(node)
        return known[3] if known else None

    def event(self, node: int) -> Event | None:
        """Return the step as it was recorded."""
        known = self._origin.get(node)
        return known[0].steps[known[3]] if known else None

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
        known = self._origin.get(node)
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
