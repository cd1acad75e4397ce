"""Trajectories of the region model: an episode as regions, actions, rewards and outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from cvx.errors import UnknownError
from cvx.index import RawIndex
from cvx.store.namespaces import least_visible, owner, readers
from cvx.types import DEFAULT_NAMESPACE, Episode, Event, Vector, task_of_tags

SUCCESS, FAILURE, UNKNOWN = -1, -2, -3
"""Where the last step of an episode leads: regions are node ids and never negative."""

_DOZENS = 32
_FIRST_WORD = {
    "go": "go_to",
    "take": "take",
    "pick": "take",
    "put": "put",
    "move": "put",
    "clean": "clean",
    "heat": "heat",
    "cool": "cool",
    "use": "use",
    "toggle": "use",
    "open": "open",
    "close": "close",
    "examine": "examine",
}


def classify_action(action: str) -> str:
    """Return the kind of a household command by its first word; a kind stays what it is.

    Any function from a command to a word may take its place wherever the library asks for one.

    Parameters
    ----------
    action : str
        Such as "go to fridge 1".

    Returns
    -------
    str
        "go_to", "take", "put", "clean", "heat", "cool", "use", "open", "close", "examine" or
        "other".

    Examples
    --------
    >>> [classify_action(a) for a in ("go to fridge 1", "put mug 1 in sink 1", "sing")]
    ['go_to', 'put', 'other']
    >>> classify_action("go_to")
    'go_to'
    """
    words = action.replace("_", " ").split(None, 1)
    return _FIRST_WORD.get(words[0].lower(), "other") if words else "other"


def default_level(index: RawIndex) -> int:
    """Return the level whose regions hold some dozens of nodes.

    A node is a hub of level L with probability m^-L, so regions of level L hold m^L nodes on
    average: the level with m^L nearest to 32 is taken, of those that have regions. Level 0, in
    which every node is its own region, is taken only where there is no other.
    """
    per_level = math.log(index.params["m"])
    levels = [level for level in index.region_levels if level > 0]
    return min(levels, key=lambda level: abs(level * per_level - math.log(_DOZENS)), default=0)


class Move(NamedTuple):
    """One action of an episode.

    Attributes
    ----------
    region : int
        Where it was taken.
    action : str
        Its kind.
    arrived : int
        The region it led to; the end of the episode for its last step.
    reward : float or None
        Its own, or else the outcome of its episode.
    won : bool or None
        Whether its episode succeeded, None where nobody said.
    """

    region: int
    action: str
    arrived: int
    reward: float | None
    won: bool | None


def end_of(won: bool | None) -> int:
    """Return where the last step of an episode leads that was won, lost, or neither."""
    if won is None:
        return UNKNOWN
    return SUCCESS if won else FAILURE


@dataclass(slots=True)
class Trajectory:
    """One episode as the region model keeps it: four columns of equal length, family and outcome.

    Attributes
    ----------
    task_type : str or None
        Which family of goals.
    nodes : list of int
        Index rows, in time order; rows without a vector are left out.
    actions : list of (str or None)
        Kind of action taken at each.
    rewards : list of (float or None)
        Of each step: its own, or else the outcome.
    regions : list of int
        Where each lies, in the epoch of the model.
    outcome : float, optional
        Of the episode; without one, each step is judged by its own reward.
    readers : str, default ""
        Who may read the episode, see ``cvx.store.namespaces.readers``.
    trust : float, default 1.0
        How much of a trial it counts as, in [0, 1].
    """

    task_type: str | None
    nodes: list[int]
    actions: list[str | None]
    rewards: list[float | None]
    regions: list[int]
    outcome: float | None = None
    readers: str = ""
    trust: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists."""
        return {
            "task_type": self.task_type,
            "nodes": self.nodes,
            "actions": self.actions,
            "rewards": self.rewards,
            "regions": self.regions,
            "outcome": self.outcome,
            "readers": self.readers,
            "trust": self.trust,
        }

    @property
    def weight(self) -> float:
        """How much of a trial it counts as; sums of whole numbers stay such."""
        return 1 if self.trust == 1.0 else self.trust

    def won(self, success_above: float, place: int = -1) -> bool | None:
        """Tell whether the episode succeeded, None where nobody said.

        Without an outcome of the episode it is the reward of one step that tells, by default that
        of the last.
        """
        if not self.rewards:
            return None
        result = self.rewards[place] if self.outcome is None else self.outcome
        return None if result is None else result > success_above

    def template(self, start: int = 0) -> tuple[str, ...]:
        """Return the kinds of action from a place on, runs of the same kind as one."""
        out: list[str] = []
        for action in self.actions[start:]:
            if action is not None and (not out or out[-1] != action):
                out.append(action)
        return tuple(out)

    def moves(self, success_above: float) -> Iterator[Move]:
        """Yield what was done and where it led; steps without an action are no moves."""
        last = len(self.nodes) - 1
        for place, action in enumerate(self.actions):
            if action is not None:
                won = self.won(success_above, place)
                arrived = self.regions[place + 1] if place < last else end_of(won)
                yield Move(self.regions[place], action, arrived, self.rewards[place], won)

    def placed(self, regions: Iterable[int | None]) -> Trajectory:
        """Return it in other regions, one for each node; nodes without one drop out."""
        kept = [(place, region) for place, region in enumerate(regions) if region is not None]
        return Trajectory(
            self.task_type,
            [self.nodes[place] for place, _ in kept],
            [self.actions[place] for place, _ in kept],
            [self.rewards[place] for place, _ in kept],
            [region for _, region in kept],
            self.outcome,
            self.readers,
            self.trust,
        )

    def without(self, nodes: Set[int]) -> Trajectory:
        """Return it without these steps: what came after one followed on what came before."""
        if nodes.isdisjoint(self.nodes):
            return self
        pairs = zip(self.nodes, self.regions, strict=True)
        return self.placed(None if node in nodes else region for node, region in pairs)

    def path(self) -> tuple[int, ...]:
        """Return the regions passed through, stays in one region as one."""
        out: list[int] = []
        for region in self.regions:
            if not out or out[-1] != region:
                out.append(region)
        return tuple(out)


class EpisodeLike(Protocol):
    """Anything that names an entity; ``Episode`` adds outcome, family, steps and namespace."""

    @property
    def entity_id(self) -> int:
        """Whose timeline it is."""
        ...


def read_trajectory(
    index: RawIndex,
    episode: EpisodeLike,
    classify: Callable[[str], str],
    locate: Callable[[list[int], list[Vector | None]], Sequence[int | None]],
) -> Trajectory:
    """Read an episode off the index.

    Steps come from the episode itself where all of them know their node, else from the entity's
    timeline. Their rewards are their own; those of a timeline may have decayed in the index, and
    count only where the episode has no outcome. It is as visible as its least visible step, and as
    trusted as its least trusted one.

    Parameters
    ----------
    locate : callable
        Returns the regions of nodes; their vectors are given where they are at hand.
    """
    given = getattr(episode, "reward", None)
    outcome = None if given is None else float(given)
    own: Sequence[Event] = getattr(episode, "steps", ())
    namespace = getattr(episode, "namespace", DEFAULT_NAMESPACE)
    rows: list[tuple[int, str | None, float | None, Vector | None]]
    if own and all(step.node is not None for step in own):
        rows = [(int(s.node), s.action, s.reward, s.vector) for s in own if s.node is not None]
    else:
        steps = index.trajectory(episode.entity_id, namespace=namespace or None)
        kept = [step.reward if outcome is None else None for step in steps]
        rows = [(s.node_id, s.action, r, None) for s, r in zip(steps, kept, strict=True)]
    trajectory = Trajectory(
        task_type=getattr(episode, "task_type", None),
        nodes=[node for node, *_ in rows],
        actions=[None if action is None else classify(action) for _, action, *_ in rows],
        rewards=[outcome if reward is None else reward for _, _, reward, _ in rows],
        regions=[],
        outcome=outcome,
        readers=readers(namespace, least_visible(step.visibility for step in own))
        if own
        else namespace,
        trust=min((step.trust for step in own), default=1.0),
    )
    return trajectory.placed(locate(trajectory.nodes, [vector for *_, vector in rows]))


def timelines(index: RawIndex, nodes: Iterable[int]) -> list[Episode]:
    """Return what an index alone knows of its nodes: each timeline as one episode without outcome.

    Rewards of the steps are those that the index has now: decay may have lowered them.

    Parameters
    ----------
    nodes : iterable of int
        Those to be told of, in the order of the timelines that they begin.
    """
    members: dict[tuple[str, int], set[int]] = {}
    for node in nodes:
        members.setdefault((index.namespace(node), index.step(node).entity_id), set()).add(node)
    episodes = []
    for (space, entity), told in members.items():
        namespace, visibility = owner(space)
        steps = [step for step in index.trajectory(entity, namespace=space) if step.node_id in told]
        episodes.append(
            Episode(
                entity_id=entity,
                task_type=task_of_tags(index.tags(steps[0].node_id)),
                namespace=namespace,
                steps=tuple(
                    Event(
                        entity_id=entity,
                        timestamp=step.timestamp,
                        action=step.action,
                        reward=step.reward,
                        namespace=namespace,
                        node=step.node_id,
                        visibility=visibility,
                    )
                    for step in steps
                ),
            )
        )
    return episodes


def vector_of(index: RawIndex, node: int) -> Vector | None:
    """Return the vector of a node, None if it has none or was deleted."""
    try:
        return index.vector(node)
    except UnknownError:
        return None
