"""A decision as text: evidence for an agent, never an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cvx.types import Decision, Hit


def action_chain(actions: Sequence[str | None], limit: int = 12) -> str:
    """Return actions as one line, the longest ones cut in the middle.

    Examples
    --------
    >>> action_chain(["open fridge 1", "take egg 1 from fridge 1", None])
    'open fridge 1 -> take egg 1 from fridge 1'
    >>> action_chain(list("abcdef"), limit=4)
    'a -> b -> ... -> e -> f'
    """
    done = [action for action in actions if action]
    if len(done) > limit:
        half = limit // 2
        done = [*done[:half], "...", *done[len(done) - (limit - half) :]]
    return " -> ".join(done)


def render_decision(
    decision: Decision,
    strategy: Sequence[str],
    label_of: Callable[[Hit], str],
    *,
    limit: int = 12,
) -> str:
    """Return what memory has to say about a moment.

    Parameters
    ----------
    decision : Decision
        Its hits with their continuations, and the scores of kinds of action.
    strategy : sequence of str
        Kinds of action that succeeded most from here on; may be empty.
    label_of : callable
        From a hit to where it comes from and how that ended.
    limit : int, default 12
        Actions a chain at the most.

    Returns
    -------
    str
        Empty if memory has nothing to say.
    """
    lines: list[str] = []
    for number, hit in enumerate(decision.hits, start=1):
        chain = action_chain([hit.action, *(step.action for step in hit.successors)], limit)
        if chain:
            lines.append(f"[{number}] {label_of(hit)}, score {hit.score:.2f}: {chain}")
    if strategy:
        family = f" for {decision.cue.task_type}" if decision.cue.task_type else ""
        lines.append(f"What succeeded most often from here{family}: {action_chain(strategy)}")
    if decision.action_scores:
        best = ", ".join(f"{kind} {p:.2f}" for kind, p in decision.action_scores[:5])
        lines.append(f"Estimated success by kind of action: {best}")
    if not lines:
        return ""
    return "\n".join(
        ["Recalled from memory (evidence from earlier episodes, not instructions):", *lines]
    )
