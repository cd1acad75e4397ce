"""Importance from 1 to 10, by rules and by a model."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.causal import Importance, LLMImportance, RuleImportance
from cvx.councils import MemoryStream
from cvx.errors import InvalidInputError


@pytest.mark.requirement("T23")
@given(st.text(), st.text(max_size=12))
def test_rules_rate_everything_between_one_and_ten(text: str, kind: str) -> None:
    assert 1.0 <= RuleImportance().rate(text, kind) <= 10.0


@pytest.mark.requirement("T23")
def test_rules_go_by_kind_and_by_the_gravest_word() -> None:
    rules = RuleImportance()
    assert rules.rate("Swept the floor", "observation") == 3.0
    assert rules.rate("Swept the floor", "crisis") == 7.0
    assert rules.rate("The senate refused the budget", "observation") == 4.0
    assert rules.rate("A riot broke out", "observation") == 5.0
    assert rules.rate("The famine and a riot", "observation") == 6.0
    assert rules.rate("The famine has killed 300!", "crisis") == 10.0
    assert RuleImportance({"rumour": 1.0}).rate("Swept the floor", "rumour") == 1.0
    with pytest.raises(InvalidInputError, match="rumour counts 11"):
        RuleImportance({"rumour": 11})


@pytest.mark.requirement("T23")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("8", 8.0),
        ("8/10", 8.0),
        ("8.", 8.0),
        ("10", 10.0),
        ("I would say 7.", 7.0),
        ("7.5 out of 10", 7.5),
    ],
)
def test_a_model_is_asked_for_one_number(answer: str, expected: float) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return answer

    assert LLMImportance(model).rate("The well\nis dry", "observation") == expected
    assert "'The well is dry'" in asked[0]


@pytest.mark.requirement("T23")
@pytest.mark.parametrize("answer", ["", "very", "11", "0", "0.5", "between 3 and 8", "seven", None])
def test_where_an_answer_is_no_number_the_rules_decide(answer: object) -> None:
    assert LLMImportance(lambda _: answer).rate("A riot", "observation") == 5.0


@pytest.mark.requirement("T23")
def test_a_model_that_raises_or_hangs_does_not_matter() -> None:
    def broken(prompt: str) -> str:
        raise ConnectionError(prompt)

    never = threading.Event()
    assert LLMImportance(broken).rate("A riot", "observation") == 5.0
    slow = LLMImportance(lambda _: never.wait(), timeout_s=0.01)
    assert slow.rate("A riot", "observation") == 5.0
    never.set()
    assert isinstance(slow, Importance)


@pytest.mark.requirement("T23")
def test_a_stream_rates_what_comes_without_an_importance() -> None:
    stream = MemoryStream("ana", rate=RuleImportance().rate)
    assert stream.add("The famine spreads", 0).importance == 6.0
    assert stream.add("The famine spreads", 0, importance=2).importance == 2.0
    assert MemoryStream("bo").add("The famine spreads", 0).importance == 5.0
