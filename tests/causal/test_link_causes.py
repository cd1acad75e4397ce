"""Links that a memory draws itself: who is asked about what, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cvx.causal import CallableJudge, CauseSearch, Evidence, Judgement, Pair, RuleJudge
from cvx.embed import LexicalEmbedder
from cvx.errors import (
    InvalidInputError,
    UnknownError,
)
from cvx.memory import Memory
from cvx.types import Event


def memory() -> Memory:
    ticks = iter(range(1000, 100_000))
    return Memory._opened(None, LexicalEmbedder(dim=64), now=ticks.__next__)


class Asked:
    """A judge with one answer that remembers its pairs."""

    name = "asked"

    def __init__(self, answer: Judgement) -> None:
        self.answer = answer
        self.pairs: list[Pair] = []

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        self.pairs += pairs
        return [self.answer for _ in pairs]


def flooded() -> tuple[Memory, int, int, int]:
    made = memory()
    drain = made.add("the drain was blocked", timestamp=10).id
    cat = made.add("a cat slept on the sofa", timestamp=20).id
    flood = made.add("the cellar flooded because the drain was blocked", timestamp=30).id
    return made, drain, cat, flood


@pytest.mark.requirement("B10", "C13")
def test_rules_link_what_the_words_connect_without_a_language_model() -> None:
    made, drain, cat, flood = flooded()
    made.causes.judge = RuleJudge()
    found = made.causes.propose(flood)
    assert [link.cause for link in found.links] == [drain]
    assert (found.denied, found.unjudged) == ((cat,), ())
    (step,) = made.why(flood)
    assert step.event.event_id == drain
    assert step.edge.weight == found.links[0].weight
    evidence = Evidence.from_text(step.edge.evidence)
    assert [one.kind for one in evidence.observations] == ["judged"]
    assert evidence.observations[0].note == "rules"
    assert evidence.weight == pytest.approx(step.edge.weight)


@pytest.mark.requirement("C13")
def test_unless_somebody_is_named_the_statistical_judge_is_asked() -> None:
    made, drain, cat, flood = flooded()
    found = made.causes.propose(flood)
    assert [link.cause for link in found.links] == [drain]
    assert found.denied == (cat,)
    evidence = Evidence.from_text(found.links[0].evidence)
    assert evidence.observations[0].note == "statistical"


@pytest.mark.requirement("B10")
def test_the_same_judgement_again_raises_a_weight_and_a_denial_lowers_it() -> None:
    made, _, _, flood = flooded()
    weights = []
    for answer in (
        Judgement("yes", 1.0),
        Judgement("yes", 1.0),
        Judgement("no", 0.0),
        Judgement("no", 0.0),
        Judgement("no"),
    ):
        made.causes.propose(flood, judge=Asked(answer), search=CauseSearch(most=1))
        weights.append(made.why(flood)[0].weight)
    assert weights == pytest.approx([2 / 3, 3 / 4, 3 / 5, 3 / 6, 3 / 7])


@pytest.mark.requirement("B10")
def test_a_denial_of_what_nobody_claimed_leaves_nothing_behind() -> None:
    made, _, _, flood = flooded()
    made.causes.propose(flood, judge=Asked(Judgement("no", 0.1)))
    assert made.why(flood) == []
    assert made.record.links() == []


@pytest.mark.requirement("B10")
def test_a_judgement_moves_a_weight_that_a_person_gave_from_there() -> None:
    made, drain, _, flood = flooded()
    made.link(drain, flood, weight=0.9, why="the plumber said so", evidence="a letter")
    made.causes.propose(flood, judge=Asked(Judgement("no", 0.0)))
    (step,) = made.why(flood)
    # Two cases at .9, and one against.
    assert step.weight == pytest.approx(1.8 / 3)
    assert step.edge.why == "the plumber said so"
    assert "a letter" in str(Evidence.from_text(step.edge.evidence))


def test_the_nearest_and_the_latest_are_asked_about_in_turn_and_nothing_later() -> None:
    made = memory()
    near = made.add("the drain was blocked", timestamp=1).id
    texts = [made.add(f"unrelated {word}", timestamp=2).id for word in ("apples", "pears", "plums")]
    made.add("the drain was blocked by leaves", timestamp=99)
    again = made.add("The drain is  blocked", timestamp=3).id
    effect = made.add("the drain is blocked", timestamp=50).id
    judge = Asked(Judgement("unjudged"))
    found = made.causes.propose(effect, judge=judge, search=CauseSearch(most=3))
    assert found.unjudged == (near, texts[2], texts[1])
    assert [pair.effect for pair in judge.pairs] == ["the drain is blocked"] * 3
    assert [pair.lag for pair in judge.pairs] == [49, 48, 48]
    assert judge.pairs[0].cause_vector is not None
    assert again not in found.unjudged


def test_a_window_leaves_out_what_is_too_old() -> None:
    made = memory()
    made.add("the drain was blocked", timestamp=1)
    recent = made.add("the drain was cleaned", timestamp=40).id
    effect = made.add("the drain overflowed", timestamp=50).id
    judge = Asked(Judgement("yes"))
    found = made.causes.propose(effect, judge=judge, search=CauseSearch(window=10))
    assert [link.cause for link in found.links] == [recent]
    impossible = [{"most": 0}, {"threshold": -2}, {"window": 0}, {"latest": -1}]
    for options in impossible:
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            CauseSearch(**options)


@pytest.mark.requirement("B9")
def test_causes_are_looked_for_only_where_the_effect_may_see() -> None:
    made = memory()
    made.add("the drain was blocked", namespace="ana", timestamp=1)
    public = made.add("the drain was blocked", namespace="ana", visibility="public", timestamp=2).id
    own = made.add("rain on the drain", namespace="bob", timestamp=3).id
    gone = made.add("an old drain", namespace="bob", timestamp=3).id
    made.forget(gone)
    effect = made.add("the drain overflowed", namespace="bob", timestamp=9).id
    found = made.causes.propose(effect, judge=Asked(Judgement("yes")))
    assert {link.cause for link in found.links} == {public, own}


@pytest.mark.requirement("C7", "C13")
def test_what_nobody_could_judge_is_asked_again() -> None:
    made, drain, cat, flood = flooded()

    def broken(prompt: str) -> str:
        raise ConnectionError(prompt)

    found = made.causes.propose(flood, judge=broken)
    assert set(found.unjudged) == {drain, cat}
    assert made.why(flood) == []
    assert set(made.causes.pending()) == {(drain, flood), (cat, flood)}
    made.erase(cat)
    settled = made.causes.retry(CallableJudge(lambda _cause, _effect: True))
    assert [link.cause for one in settled for link in one.links] == [drain]
    assert made.causes.pending() == []
    assert made.causes.retry() == []
    made.causes.propose(flood, judge=broken)
    made.erase(flood)
    assert made.causes.retry() == []
    assert made.causes.pending() == []


def test_an_event_without_words_or_vector_has_recent_candidates_only() -> None:
    made = memory()
    before = made.add("something", timestamp=1).id
    blank = made.add("", timestamp=2, vector=np.ones(64, np.float32)).id
    found = made.causes.propose(blank)
    assert found.unjudged == (before,)
    assert made.causes.pending() == [(before, blank)]
    alone = memory()
    assert alone.causes.propose(alone.add("first").id) == ((), (), ())
    with pytest.raises(UnknownError):
        alone.causes.propose(99)


@pytest.mark.requirement("B10")
def test_cases_are_counted_on_a_link_and_kept() -> None:
    made, drain, cat, flood = flooded()
    made.causes.observe(drain, flood, supports=3, note="three winters")
    link = made.causes.observe(drain, flood, counters=1, evidence="counterexample")
    assert link.weight == pytest.approx(4 / 6)
    (step,) = made.why(flood)
    assert "repetition 3 for (three winters); counterexample 1 against" in str(
        Evidence.from_text(step.edge.evidence)
    )
    assert made.causes.observe(cat, flood, counters=2, kind="granger_causal").weight == 0.25
    calls: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: made.causes.observe(drain, 99), UnknownError),
        (lambda: made.causes.observe(drain, drain), InvalidInputError),
        (lambda: made.causes.observe(drain, flood, kind="irrelevant"), UnknownError),
        (lambda: made.causes.observe(drain, flood, supports=-1), InvalidInputError),
    ]
    for call, error in calls:
        with pytest.raises(error):
            call()
    assert made.why(flood)[0].weight == pytest.approx(4 / 6)


@pytest.mark.requirement("B10")
def test_cases_are_counted_on_though_an_end_cannot_be_seen() -> None:
    made, drain, _, flood = flooded()
    made.causes.observe(drain, flood, supports=8)
    made.forget(drain)
    assert made.causes.observe(drain, flood, counters=1).weight == pytest.approx(9 / 11)
    ana, bob = made.add("it froze", namespace="ana"), made.add("a pipe broke", namespace="bob")
    made.causes.observe(ana, bob, supports=1)
    assert made.causes.observe(ana, bob, supports=1).weight == pytest.approx(3 / 4)


@pytest.mark.requirement("B10")
def test_of_many_who_count_at_once_no_case_is_lost() -> None:
    made, drain, _, flood = flooded()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: made.causes.observe(drain, flood, supports=1), range(40)))
    assert made.causes.observe(drain, flood).weight == pytest.approx(41 / 42)


@pytest.mark.parametrize("door", ["link", "observe", "graph"])
def test_an_end_that_is_in_no_index_is_refused_by_every_door(door: str) -> None:
    made, drain, _, _ = flooded()
    with made.record.transaction() as write:
        (bare,) = write.add_events([Event(timestamp=99, text="in no index")])
    doors: dict[str, Callable[[], object]] = {
        "link": lambda: made.link(drain, bare),
        "observe": lambda: made.causes.observe(drain, bare, supports=1),
        "graph": lambda: made.causes.graph().link(drain, bare),
    }
    with pytest.raises(UnknownError, match=f"event {bare} is in no index"):
        doors[door]()
    assert made.causes.graph().causes(bare) == []
