"""Links that a memory draws itself: who is asked about what, and what becomes of the answers."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvx.causal import CallableJudge, Evidence, Judgement, LLMJudge, Pair, RuleJudge
from cvx.causal.cause_probability import NAMES, Told, reasons
from cvx.causal.hedging import REVERSED
from cvx.causal.narrative import NOTHING_BEFORE
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError, UnjudgedWarning, UnknownError
from cvx.memory import Memory
from cvx.types import Edge, Event


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
    found = {link.cause: link for link in made.causes.propose(flood)}
    assert found[drain].state == "judged"
    assert cat not in found or found[cat].state == "candidate"
    (step,) = made.why(flood).steps
    assert step.event.id == drain
    assert step.edge.weight == found[drain].weight == found[drain].probability
    evidence = Evidence.from_text(step.edge.evidence)
    assert [(one.kind, one.note) for one in evidence.observations] == [("judged", "rules")]
    assert evidence.weight == pytest.approx(step.edge.weight)


@pytest.mark.requirement("C13", "B13")
def test_unless_somebody_is_named_the_shipped_model_decides_and_says_why() -> None:
    made, drain, cat, flood = flooded()
    found = made.causes.propose(flood)
    assert found[0].cause == drain
    assert found[0].state == "judged"
    assert found[0].probability is not None
    assert 0.5 <= found[0].probability < 1.0
    assert found[0].why == 'it says "because" and both speak of drain and blocked'
    assert all(link.cause != cat or link.state == "candidate" for link in found)
    assert "cvx" in found[0].evidence


@pytest.mark.requirement("C13")
def test_words_mean_the_event_that_a_recall_finds_first_as_why_takes_them() -> None:
    made, drain, _, flood = flooded()
    words = "the cellar flooded"
    assert made.why(words).of.id == flood
    (link, *_) = made.causes.propose(words)
    assert (link.cause, link.effect, link.state) == (drain, flood, "judged")
    with pytest.raises(UnknownError, match="no event fits '7'"):
        memory().causes.propose("7")


@pytest.mark.requirement("B13")
def test_a_weaker_link_is_a_candidate_that_nothing_walks_and_no_story_tells() -> None:
    made, drain, _, flood = flooded()
    (likely, *_) = made.causes.propose(flood, draw=None)
    assert (likely.cause, likely.state) == (drain, "candidate")
    assert made.causes.pending()[0] == replace(likely, recorded=made.causes.pending()[0].recorded)
    assert made.why(flood) == []
    graph = made.causes.graph()
    assert graph.predecessors(flood) == {}
    assert graph.causes(flood) == []
    assert "drain was blocked" not in made.causes.story(flood).narrative().split(". ", 1)[1]
    hits = made.recall("the drain was blocked", sources=["graph"])
    assert all(not hit.path for hit in hits)
    with pytest.raises(UnknownError):
        made.link(drain, flood, kind="cause_candidate")


@pytest.mark.requirement("B13")
def test_what_a_person_confirms_is_certain_and_what_they_reject_never_comes_back() -> None:
    made, drain, _, flood = flooded()
    (likely, *_) = made.causes.propose(flood)
    sure = made.causes.confirm(likely, why="the plumber saw it")
    assert (sure.state, sure.weight, sure.probability) == ("confirmed", 1.0, None)
    assert made.why(flood).steps[0].edge.why == "the plumber saw it"
    assert drain not in {link.cause for link in made.causes.propose(flood)}
    assert made.causes.reject(sure).state == "rejected"
    assert made.why(flood) == []
    for judge in (None, CallableJudge(lambda _cause, _effect: True)):
        assert drain not in {link.cause for link in made.causes.propose(flood, judge=judge)}
    assert [link.cause for link in made.causes.pending("rejected")] == [drain]
    assert made.causes.observe(drain, flood, supports=50).state == "rejected"
    assert drain not in {step.event.id for step in made.why(flood).steps}
    made.link(drain, flood)
    assert made.why(flood).steps[0].event.id == drain
    assert made.causes.pending("rejected") == []
    with pytest.raises(InvalidInputError, match="state"):
        made.causes.pending("judged")


@pytest.mark.requirement("B13")
def test_what_is_pending_and_refused_outlives_the_memory(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=LexicalEmbedder(dim=64)) as made:
        for at, text in enumerate(("the drain was blocked", "the cellar flooded")):
            made.add(text, timestamp=at)
        made.causes.reject(Edge(1, 2))
    with Memory.open(tmp_path, embedder=LexicalEmbedder(dim=64)) as made:
        assert [(one.cause, one.effect) for one in made.causes.pending("rejected")] == [(1, 2)]
        assert made.causes.propose(2) == []
        made.erase(1)
        assert made.causes.pending("rejected") == []


@pytest.mark.requirement("B10", "B13")
def test_asking_again_changes_nothing_and_a_stated_link_is_left_alone() -> None:
    made, drain, cat, flood = flooded()
    first = made.causes.propose(flood)
    before = made.record.links()
    assert made.causes.propose(flood) == first
    assert made.record.links() == before
    made.link(cat, flood, weight=0.9, why="it sat on the pump")
    made.causes.propose(flood, judge=Asked(Judgement("no", 0.0)))
    # A denial takes the judged link to the drain out of what is told, and not the stated one.
    assert [link.weight for link in made.causes.graph().causes(flood)] == [0.9]
    assert [link.cause for link in made.causes.pending()] == [drain]


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("word", "least", "most"),
    [
        (Judgement("yes", 0.9), 0.5, 1.0),
        (Judgement("yes"), 0.5, 1.0),
        (Judgement("no"), 0.0, 0.5),
        (Judgement("no", 0.1), 0.0, 0.5),
    ],
)
def test_a_clear_word_of_a_judge_decides(word: Judgement, least: float, most: float) -> None:
    made, _, _, flood = flooded()
    for link in made.causes.propose(flood, judge=Asked(word)):
        assert least <= link.weight <= most
        assert link.state == ("judged" if word.confirmed else "candidate")


def test_the_likeliest_are_asked_about_and_nothing_later() -> None:
    made = memory()
    near = made.add("the drain was blocked", timestamp=1).id
    texts = [made.add(f"unrelated {word}", timestamp=2).id for word in ("apples", "pears", "plums")]
    made.add("the drain was blocked by leaves", timestamp=99)
    again = made.add("The drain is  blocked", timestamp=3).id
    effect = made.add("the drain is blocked", timestamp=50).id
    judge = Asked(Judgement("unjudged"))
    found = made.causes.propose(effect, 3, judge=judge)
    assert len(judge.pairs) == 3
    assert {pair.effect for pair in judge.pairs} == {"the drain is blocked"}
    assert all(pair.lag is not None and pair.lag >= 0 for pair in judge.pairs)
    assert judge.pairs[0].cause_vector is not None
    causes = {link.cause for link in found}
    assert near in causes
    assert again not in causes
    assert causes <= {near, *texts}


@pytest.mark.requirement("B10")
def test_what_keeps_happening_and_is_followed_counts_and_what_is_not_does_not() -> None:
    def chance(pairs: int, alone: int) -> float:
        made = memory()
        time = 0
        for turn in range(pairs):
            made.add("pump seven stopped", timestamp=time)
            made.add("pressure fell in hall two", timestamp=time + 5)
            for other in range(3):
                made.add(f"guard {turn} walked past gate {other}", timestamp=time + 20 + other)
            time += 100
        for _ in range(alone):
            made.add("pump seven stopped", timestamp=time)
            for other in range(5):
                made.add(f"a lorry left by road {other}", timestamp=time + 20 + other)
            time += 100
        cause = made.add("pump seven stopped", timestamp=time).id
        effect = made.add("pressure fell in hall two", timestamp=time + 5)
        found = {link.cause: link for link in made.causes.propose(effect, 20, draw=None)}
        return found[cause].weight if cause in found else 0.0

    assert chance(4, 0) > chance(0, 0)
    assert chance(4, 8) < chance(4, 0)


@pytest.mark.requirement("B10", "B13")
def test_a_link_like_those_that_somebody_stated_is_likelier() -> None:
    def chance(stated: bool) -> float:
        made = memory()
        ids = [
            made.add(text, timestamp=at // 2).id
            for at, text in enumerate(
                ("frost in the harbour", "pipes burst in the harbour", "a ship came in",
                 "frost in the valley", "pipes burst in the valley")
            )
        ]  # fmt: skip
        if stated:
            made.link(ids[0], ids[1])
        for number in (ids[3], ids[4]):
            made.update(number, metadata={"seen": True})
        found = made.causes.propose(ids[4], 20, draw=None)
        return next((link.weight for link in found if link.cause == ids[3]), 0.0)

    assert chance(True) >= chance(False)


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
    assert {link.cause for link in found} == {public, own}
    made.causes.propose(effect, judge=Asked(Judgement("unjudged")))
    assert made.within("eve").causes.pending("unjudged") == []


@pytest.mark.requirement("C7", "C13")
def test_what_nobody_could_judge_is_kept_and_can_be_asked_again() -> None:
    made, drain, cat, flood = flooded()

    def broken(prompt: str) -> str:
        raise ConnectionError(prompt)

    found = made.causes.propose(flood, judge=broken)
    assert {link.state for link in found} == {"unjudged"}
    assert made.why(flood) == []
    assert {link.cause for link in made.causes.pending("unjudged")} == {drain, cat}
    made.erase(cat)
    for effect in {int(link.effect) for link in made.causes.pending("unjudged")}:
        made.causes.propose(effect, judge=CallableJudge(lambda _cause, _effect: True))
    assert [step.event.id for step in made.why(flood).steps] == [drain]
    assert made.causes.pending("unjudged") == []


@pytest.mark.requirement("C13")
def test_a_judge_without_a_clear_word_is_told_of_once() -> None:
    made = memory()
    for at in range(16):
        made.add(f"event {at} of the log", timestamp=at)
    last = [made.add(f"then {at} happened", timestamp=100 + at) for at in range(6)]
    silent = Asked(Judgement("unjudged", why="ERROR 500"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for effect in last:
            made.causes.propose(effect, judge=silent)
    assert [one.category for one in told] == [UnjudgedWarning]
    assert "ERROR 500" in str(told[0].message)


@pytest.mark.requirement("C7", "B13")
@pytest.mark.parametrize("how", ["raises", "hangs", "answers a page", "answers nonsense"])
def test_a_judge_that_gives_no_verdict_links_nothing(how: str) -> None:
    made, drain, cat, flood = flooded()
    never = threading.Event()
    answers: dict[str, Callable[[str], object]] = {
        "raises": lambda prompt: [][len(prompt)],
        "hangs": lambda _: never.wait(),
        "answers a page": lambda _: "It may be one thing or another, who can say. " * 400,
        "answers nonsense": lambda _: {"verdict": [None]},
    }
    found = made.causes.propose(flood, judge=LLMJudge(answers[how], timeout_s=0.05))
    assert {link.cause: link.state for link in found} == {drain: "unjudged", cat: "unjudged"}
    assert made.why(flood) == []
    assert str(made.why(flood)).endswith(NOTHING_BEFORE)
    never.set()


@pytest.mark.requirement("C10", "B13")
def test_links_that_contradict_each_other_are_told_as_they_stand() -> None:
    made = memory()
    fear = made.add("There was fear", timestamp=5)
    flight = made.add("There was flight", timestamp=5)
    made.link(fear, flight, weight=0.9)
    before = made.record.tail()
    with pytest.raises(InvalidInputError, match=r"event 1 led to event 2 already.*causes\.reject"):
        made.link(flight, fear, weight=0.2)
    assert made.record.tail() == before
    made.link(flight, fear, weight=0.2, effect_first="allow")
    assert (
        str(made.why(flight))
        == "There was flight, so there was fear. That is why there was flight."
    )
    # What was stated is not guessed about, and its opposite neither.
    assert made.causes.propose(flight) == made.causes.propose(fear) == []
    (edge,) = made.why(fear, max_depth=1).edges
    made.causes.reject(edge)
    assert made.why(fear) == []
    assert [step.event.id for step in made.why(flight).steps] == [fear.id]
    made.link(flight, fear, effect_first="allow")
    assert made.causes.pending("rejected") == []
    assert [step.event.id for step in made.why(fear).steps] == [flight.id]


def test_no_circle_is_linked_by_way_of_others_nor_of_what_was_noted_as_it_happened() -> None:
    made = memory()
    one, two, three = (
        made.add(f"the {name} is shut", timestamp=5) for name in ("gate", "door", "lid")
    )
    made.link(one, two)
    made.link(two, three)
    with pytest.raises(InvalidInputError, match="event 1 led to event 3 already"):
        made.link(three, one)
    # Neither has a time of its own: either order may be told, but not both.
    utc = Memory(embedder="lexical")
    late, soon = utc.add("the lid is shut"), utc.add("the door was shut")
    utc.link(soon, late)
    with pytest.raises(InvalidInputError, match="event 2 led to event 1 already"):
        utc.link(late, soon)
    # A rejected link is none.
    (edge,) = utc.why(late).edges
    utc.causes.reject(edge)
    utc.link(late, soon)
    # And what tells no cause may go both ways.
    utc.admin.declare_edge_kind("mentions")
    utc.link(late, soon, "mentions")
    utc.link(soon, late, "mentions")


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("Switch sw-b-14 unreachable", "Switch sw-b-14 reachable"),
        ("The valve of tank 2 was opened", "The valve of tank 2 was closed."),
        ("Link to Oslo: down", "Link to Oslo: up"),
    ],
)
def test_a_recovery_is_not_told_as_the_effect_of_what_it_ends(was: str, now: str) -> None:
    made = memory()
    down = made.add(was, timestamp=1)
    found = made.causes.propose(made.add(now, timestamp=2))
    assert [(one.cause, one.state) for one in found] in ([], [(down.id, "candidate")])
    assert all(one.why == REVERSED and one.weight <= 0.1 for one in found)


GERMAN = (
    "Die Pumpe im Keller wurde abgestellt", "Die Post wurde gebracht", "Die Katze wurde gesehen",
    "Die Heizung wurde im Herbst geprueft", "Die Wand wurde im Flur gestrichen",
    "Die Rechnung wurde bezahlt", "Die Lampe im Hof wurde ersetzt", "Die Leitung wurde gespuelt",
    "Die Pumpe wurde warm, und das Wasser stieg im Keller",
)  # fmt: skip


def test_reasons_name_no_words_that_every_other_event_holds() -> None:
    effect, pool = Told(GERMAN[-1]), [Told(text) for text in GERMAN[:-1]]
    nothing_else = np.zeros(len(NAMES))
    assert reasons(effect, pool[0], nothing_else, pool) == "both speak of Pumpe and Keller"
    assert reasons(effect, pool[1], nothing_else, pool) == ""
    english = memory()
    english.add("Which one of all the pumps stopped? One did", timestamp=1)
    flood = english.add(
        "The cellar flooded because one of all the pumps stopped. Which one?", timestamp=2
    )
    (link,) = english.causes.propose(flood)
    assert link.why == 'it says "because" and both speak of pumps and stopped'


@pytest.mark.requirement("B10")
def test_what_happened_later_is_no_cause_however_it_was_written() -> None:
    texts = ["the drain was blocked", "a cat slept", "the cellar flooded", "the books got wet"]
    rng = np.random.default_rng(3)
    for _ in range(8):
        made = memory()
        times = rng.integers(0, 4, 12).tolist()
        ids = [
            made.add(f"{texts[at % 4]} {at}", timestamp=time).id for at, time in enumerate(times)
        ]
        when = dict(zip(ids, times, strict=True))
        for effect in ids:
            for link in made.causes.propose(effect, draw=0.0):
                assert when[int(link.cause)] <= when[effect]
                assert link.cause != effect


def test_a_question_that_nobody_has_a_cause_for_says_so() -> None:
    made, _, cat, _ = flooded()
    story = made.why("Why was the cat on the sofa?")
    assert str(story) == f"A cat slept on the sofa. {NOTHING_BEFORE}"
    assert (story.of.id, list(story)) == (cat, [])
    assert made.why(cat) == []


def test_an_event_without_words_or_vector_is_no_cause_and_has_none_by_itself() -> None:
    made = memory()
    made.add("something", timestamp=1)
    blank = made.add("", timestamp=2, vector=np.ones(64, np.float32))
    assert made.causes.propose(blank, draw=0.0, k=3) == made.causes.propose(blank, draw=0.0, k=3)
    alone = memory()
    assert alone.causes.propose(alone.add("first")) == []
    assert alone.causes.pending() == []
    with pytest.raises(UnknownError):
        alone.causes.propose(99)
    with pytest.raises(InvalidInputError, match="draw"):
        alone.causes.propose(1, draw=2)


@pytest.mark.requirement("B10")
def test_cases_are_counted_on_a_link_and_kept() -> None:
    made, drain, cat, flood = flooded()
    made.causes.observe(drain, flood, supports=3)
    link = made.causes.observe(drain, flood, counters=1)
    assert link.weight == pytest.approx(4 / 6)
    (step,) = made.why(flood).steps
    assert "repetition 3 for; counterexample 1 against" in str(
        Evidence.from_text(step.edge.evidence)
    )
    weak = made.causes.observe(cat, flood, counters=2)
    assert (weak.weight, weak.state) == (0.25, "candidate")
    calls: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: made.causes.observe(drain, 99), UnknownError),
        (lambda: made.causes.observe(drain, drain), InvalidInputError),
        (lambda: made.causes.observe(drain, flood, supports=-1), InvalidInputError),
    ]
    for call, error in calls:
        with pytest.raises(error):
            call()
    assert made.why(flood).steps[0].weight == pytest.approx(4 / 6)
    made.link(cat, flood, weight=0.8)
    stated = made.causes.observe(cat, flood, counters=6)
    assert stated.state == "stated"
    assert stated.weight == pytest.approx(0.2)


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
