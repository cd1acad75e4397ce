"""Attribution: which recalled memories a decision followed, and whether its episode succeeded.

Retrieved, followed and helped are three different things. They are read off decisions here, and
nothing is changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from cvx.cue import cue_hash
from cvx.types import DEFAULT_NAMESPACE, Cue, Decision, Edge, Episode, Factor, Hit

if TYPE_CHECKING:
    from cvx.learn.episode_recorder import OpenEpisode


@dataclass(frozen=True, slots=True)
class Attribution:
    """Which memories drove a decision, and whether it paid.

    What was retrieved and ignored had no part in the outcome, and what was followed helped only if
    it succeeded. Memories are named by the ids of their events, or by nodes where a loop is asked.

    Parameters
    ----------
    decision_id : int
        Which one.
    cue : Cue
        What was asked.
    cue_hash : str
        Equal for equal cues.
    turn : int, optional
        The turn it was asked in: the number of the step in an episode.
    retrieved : tuple of int
        What was recalled, best first.
    shown : tuple of int
        What of it was in the block of a context; all of it for an agent in a loop.
    followed : tuple of int, optional
        What the agent went by; None while nobody said.
    helped : bool, optional
        Whether it succeeded; None while that is unknown, or where a loop followed nothing.
    action : str, optional
        What the agent did.
    outcome : float, optional
        How it ended, in [0, 1].
    propensities : tuple of float, optional
        The probability of each shown memory at its place, where the order was sampled.
    episode_id : int, optional
        The episode of a loop that it was taken in.
    """

    decision_id: int
    cue: Cue
    cue_hash: str
    turn: int | None
    retrieved: tuple[int, ...]
    shown: tuple[int, ...]
    followed: tuple[int, ...] | None = None
    helped: bool | None = None
    action: str | None = None
    outcome: float | None = None
    propensities: tuple[float, ...] | None = None
    episode_id: int | None = None

    @classmethod
    def of(cls, decision: Decision, noted: Mapping[str, Any]) -> Self:
        """Return what is known of a decision, by nodes, with what else was noted of it."""
        nodes, cue, outcome = (
            tuple(hit.node for hit in decision.hits),
            decision.cue,
            decision.outcome,
        )
        # What was noted goes when a memory of the decision is erased.
        helped = outcome > 0.5 if decision.followed and outcome is not None else None
        return cls(
            decision.decision_id,
            cue,
            noted.get("cue_hash") or cue_hash(cue),
            cue.place,
            nodes,
            nodes,
            decision.followed,
            noted.get("helped", helped),
            decision.action,
            outcome,
            decision.propensities,
            decision.episode_id,
        )

    @classmethod
    def logged(cls, row: Mapping[str, Any]) -> Self:
        """Return what ``Record.decision`` knows of a decision, by nodes."""
        return cls.of(decision_of(row), row["record"])


def decision_of(row: Mapping[str, Any]) -> Decision:
    """Return a decision as the record keeps it: its hits are known by number and factors alone."""
    asked, noted = row["cue"], row["record"]
    words = {name: asked[name] for name in ("goal", "step", "text", "task_type", "place")}
    chances = noted.get("propensities")
    return Decision(
        row["decision_id"],
        Cue(**words, timestamp=asked["time"], questions=tuple(asked["questions"])),
        tuple(
            Hit(
                node=int(node),
                distance=distance,
                score=score,
                similarity=1.0 - distance,
                entity_id=entity,
                timestamp=0,
                factors=tuple(
                    Factor(name, value, weight, value * weight) for name, value, weight in factors
                ),
            )
            for node, entity, distance, score, factors in row["hits"]
        ),
        tuple((action, score) for action, score in row["action_scores"]),
        row["episode"],
        asked.get("region"),
        row["rendered"],
        row["action"],
        tuple(row["followed"]),
        row["outcome"],
        None if chances is None else tuple(chances),
        noted.get("predicted"),
        noted.get("namespace", DEFAULT_NAMESPACE),
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """One decision that was acted on, with what was followed.

    Parameters
    ----------
    decision : Decision
        With the action and the nodes that were followed.
    place : int
        Number of the step in its episode.
    noted : mapping, optional
        What else is kept with it, where it is stored already.
    """

    decision: Decision
    place: int
    noted: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an open episode is to be closed as, with its decisions.

    Parameters
    ----------
    run : OpenEpisode
        It stays open until this is written.
    episode : Episode
        With its reward.
    taken : sequence of Taken
        Its decisions, in order.
    won : bool
        Whether the reward counts as a success.
    exposure : float
        Below 1 it was cut off: the chance that a success had shown by then.
    """

    run: OpenEpisode
    episode: Episode
    taken: Sequence[Taken]
    won: bool
    exposure: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory over a whole episode.

    Parameters
    ----------
    hit : Hit
        As it was recalled first, or when it was followed first.
    region : int, optional
        Where the cue lay at that time.
    place : int
        Number of the step at that time.
    followed : bool
        Whether its advice was ever taken in the episode.
    """

    hit: Hit
    region: int | None
    place: int
    followed: bool


def recalled(taken: Iterable[Taken]) -> dict[int, Recalled]:
    """Return every memory recalled in an episode once, by node, in order of recall."""
    out: dict[int, Recalled] = {}
    for one in taken:
        followed = one.decision.followed
        for hit in one.decision.hits:
            known = out.get(hit.node)
            taken_up = hit.node in followed
            if known is None or (taken_up and not known.followed):
                out[hit.node] = Recalled(hit, one.decision.region, one.place, taken_up)
    return out


def attribution_edges(
    taken: Sequence[Taken], nodes: Sequence[int], reward: float, won: bool
) -> list[Edge]:
    """Return the typed edges that an episode gives reason for.

    Followed advice is linked to the step that followed it, as ``caused_success`` with the reward
    as weight or ``caused_failure`` with 1 - reward. What was recalled in a failure and never
    followed is linked to its last step as ``irrelevant``.

    Parameters
    ----------
    taken : sequence of Taken
        The decisions of the episode.
    nodes : sequence of int
        Nodes of the steps of the episode, each of which it has.
    reward : float
        The outcome.
    won : bool
        Whether that counts as a success.
    """
    kind, weight = ("caused_success", reward) if won else ("caused_failure", 1.0 - reward)
    edges: dict[tuple[int, int, str], Edge] = {}
    for one in taken:
        for node in one.decision.followed:
            at = nodes[one.place]
            edges[(node, at, kind)] = Edge(
                node, at, kind, weight, evidence=f"decision {one.decision.decision_id}"
            )
    if not won:
        for node, memory in recalled(taken).items():
            if not memory.followed:
                edges[(node, nodes[-1], "irrelevant")] = Edge(
                    node, nodes[-1], "irrelevant", 1.0, evidence="recalled, not followed"
                )
    return list(edges.values())


class Taught(NamedTuple):
    """Training samples for `LearnedWeights` from decisions, oldest first."""

    features: Sequence[Sequence[float]]
    labels: Sequence[float]
    propensities: Sequence[float]


def usage_contexts(
    memories: Iterable[Recalled], key: Callable[[Hit], Hashable]
) -> dict[Hashable, tuple[bool, float]]:
    """Return the contexts used in an episode, whether advice was taken, and how similar it was.

    Every memory counts under ``key(hit)``, under ("node", node) and under its entity alone, each
    context once an episode. The similarity, cut to [0, 1], is that of the most similar memory whose
    advice was taken, or else of the most similar one.
    """
    out: dict[Hashable, tuple[bool, float]] = {}
    for memory in memories:
        use = memory.followed, min(max(memory.hit.similarity, 0.0), 1.0)
        for context in (key(memory.hit), ("node", memory.hit.node), memory.hit.entity_id):
            out[context] = max(out.get(context, use), use)
    return out


def features_of(hit: Hit, names: Sequence[str]) -> list[float]:
    """Return the values of a hit's factors in this order."""
    values = {factor.name: factor.value for factor in hit.factors}
    return [values[name] for name in names]


def weight_samples(taken: Iterable[Taken], names: Sequence[str], won: bool) -> Taught:
    """Return the features of everything that was followed, the outcome, and its propensity.

    What was recalled and ignored says nothing about its worth, and is left out, as is what was
    ranked by other features: advice ranks actions, and its hits have none. Where the order was not
    sampled, or only what was shown of it is known, the propensity is NaN.
    """
    rows: list[list[float]] = []
    propensities: list[float] = []
    for one in taken:
        hits, chances = one.decision.hits, one.decision.propensities or ()
        if len(chances) != len(hits):
            chances = (math.nan,) * len(hits)
        for hit, chance in zip(hits, chances, strict=True):
            known = {factor.name for factor in hit.factors}
            if hit.node in one.decision.followed and known.issuperset(names):
                rows.append(features_of(hit, names))
                propensities.append(chance)
    return Taught(rows, [float(won)] * len(rows), propensities)


def without_gone(outcome: Outcome, gone: Callable[[int], bool]) -> Outcome:
    """Return an outcome without the memories that were erased.

    Another process may have erased a memory after it was recalled: a decision then loses the hit,
    and what was shown of it, as it would have if it had been written down before.

    Parameters
    ----------
    outcome : Outcome
        Of an episode that is about to be closed.
    gone : callable
        Whether a node is no longer there.
    """
    taken = [replace(one, decision=without(one.decision, gone)) for one in outcome.taken]
    return replace(outcome, taken=taken)


def without(decision: Decision, gone: Callable[[int], bool]) -> Decision:
    """Return a decision without the hits that were erased."""
    if not any(gone(node) for hit in decision.hits for node in _shown(hit)):
        return decision
    kept = [place for place, hit in enumerate(decision.hits) if not gone(hit.node)]
    chances = decision.propensities
    return replace(
        decision,
        hits=tuple(_cut(decision.hits[place], gone) for place in kept),
        followed=tuple(node for node in decision.followed if not gone(node)),
        rendered="",
        propensities=None if chances is None else tuple(chances[place] for place in kept),
        drawn_from=decision.drawn_from if len(kept) == len(decision.hits) else None,
    )


def _shown(hit: Hit) -> list[int]:
    return [hit.node, *(step.node_id for step in (*hit.predecessors, *hit.successors))]


def _cut(hit: Hit, gone: Callable[[int], bool]) -> Hit:
    return replace(
        hit,
        predecessors=tuple(step for step in hit.predecessors if not gone(step.node_id)),
        successors=tuple(step for step in hit.successors if not gone(step.node_id)),
    )
