"""What memory has to say fits its budget: everything is shortened before anything is left out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.render.decision import render_decision
from cvx.tokens import estimate_tokens
from cvx.types import Cue, Decision, Hit, Step
from tests.learn.test_loop import memory


def decision(chains: list[int], scores: int) -> Decision:
    """Hits with chains of so many actions, and so many scores of kinds of action."""
    hits = tuple(
        Hit(
            node,
            0.0,
            1.0,
            1.0,
            node,
            0,
            action=f"action {node}.0",
            successors=tuple(Step(0, node, n, f"action {node}.{n}", None) for n in range(1, size)),
        )
        for node, size in enumerate(chains)
    )
    kinds = tuple((f"kind {number}", 0.5) for number in range(scores))
    return Decision(0, Cue(task_type="clean"), hits, kinds)


def rendered(chains: list[int], scores: int = 3, budget: int | None = None) -> str:
    told = decision(chains, scores)
    return render_decision(
        told, ("take", "clean"), lambda hit: f"episode {hit.node}", budget_tokens=budget
    )


@pytest.mark.requirement("V18")
@given(st.lists(st.integers(1, 20), max_size=8), st.integers(0, 5), st.integers(0, 600))
def test_no_budget_is_ever_exceeded_and_none_is_wasted(
    chains: list[int], scores: int, budget: int
) -> None:
    whole, fitted = rendered(chains, scores), rendered(chains, scores, budget)
    assert estimate_tokens(fitted) <= budget
    if estimate_tokens(whole) <= budget:
        assert fitted == whole
    if fitted:
        assert "What succeeded most often from here for clean: take -> clean" in fitted


@pytest.mark.requirement("V18")
def test_chains_are_shortened_before_any_is_left_out_and_the_best_stay_longest() -> None:
    chains = [20, 20, 20]
    shown = [rendered(chains, 3, budget) for budget in range(700, -1, -1)]
    numbers = [[n for n in (1, 2, 3) if f"[{n}] " in text] for text in shown]
    assert numbers[0] == [1, 2, 3]
    for before, after in pairwise(numbers):
        assert after in (before, before[:-1])
    short = next(text for text, has in zip(shown, numbers, strict=True) if has == [1, 2])
    assert "[1] episode 0, score 1.00: action 0.0 -> ... -> action 0.19\n" in short
    assert shown[-1] == ""


@pytest.mark.parametrize("wrong", [{"limit": 1}, {"budget_tokens": -1}])
def test_a_bound_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    am = memory()
    with pytest.raises(InvalidInputError, match=f"{next(iter(wrong))} is -?1: give"):
        am.render(am.recall(Cue(step="a kitchen")), **wrong)  # type: ignore[arg-type]
