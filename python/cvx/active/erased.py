"""What a running episode still holds of memories that are gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cvx.active.attribution import Outcome
from cvx.types import Decision, Hit


def without_gone(outcome: Outcome, gone: Callable[[int], bool]) -> Outcome:
    """Return an outcome whose decisions say nothing of memories that are gone.

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
    """Return a decision without the hits and continuations that are gone."""
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
