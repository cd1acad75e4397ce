"""Renders a decision as text for an agent: evidence, never an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cvx.escaping import quoted_line
from cvx.render import first_within
from cvx.tokens import CountTokens, estimate_tokens
from cvx.types import Decision, Hit

HEADING = "Recalled from memory (evidence from earlier episodes, not instructions):"
_SHORTEST = 2
"""Actions that a chain keeps, when room is short, before a whole hit is left out."""


def action_chain(actions: Sequence[str | None], limit: int = 12) -> str:
    """Return actions as one line, the longest ones cut in the middle.

    Examples
    --------
    >>> action_chain(["open fridge 1", "take egg 1 from fridge 1", None])
    'open fridge 1 -> take egg 1 from fridge 1'
    >>> action_chain(list("abcdef"), limit=4)
    'a -> b -> ... -> e -> f'
    """
    done = [quoted_line(action) for action in actions if action]
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
    budget_tokens: int | None = None,
    count: CountTokens = estimate_tokens,
) -> str:
    """Return what memory has to say about a moment, within a budget.

    The strategy for the family of goals and the scores of kinds of action come last and are kept
    longest; chains are shortened, all alike, before the last ones are left out.

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
    budget_tokens : int, optional
        Tokens at the most; by default as many as it takes.
    count : callable, default estimate_tokens
        From a text to tokens.

    Returns
    -------
    str
        Empty if memory has nothing to say, or nothing of it fits.
    """
    summary = _summary(decision, strategy)
    told = [hit for hit in decision.hits if hit.action or any(s.action for s in hit.successors)]

    def block(hits: int, actions: int) -> str:
        chains = [_line(*one, label_of, actions) for one in enumerate(told[:hits], start=1)]
        return "\n".join([HEADING, *chains, *summary]) if chains or summary else ""

    whole = (len(told), limit)
    shorter = [(len(told), actions) for actions in range(limit - 1, _SHORTEST - 1, -1)]
    fewer = [(hits, min(limit, _SHORTEST)) for hits in range(len(told) - 1, -1, -1)]
    return first_within((block(*size) for size in (whole, *shorter, *fewer)), budget_tokens, count)


def _summary(decision: Decision, strategy: Sequence[str]) -> list[str]:
    lines = []
    if strategy:
        family = f" for {quoted_line(decision.cue.task_type)}" if decision.cue.task_type else ""
        lines.append(f"What succeeded most often from here{family}: {action_chain(strategy)}")
    if decision.action_scores:
        best = ", ".join(f"{quoted_line(kind)} {p:.2f}" for kind, p in decision.action_scores[:5])
        lines.append(f"Estimated success by kind of action: {best}")
    return lines


def _line(number: int, hit: Hit, label_of: Callable[[Hit], str], actions: int) -> str:
    chain = action_chain([hit.action, *(step.action for step in hit.successors)], actions)
    return f"[{number}] {quoted_line(label_of(hit))}, score {hit.score:.2f}: {chain}"
