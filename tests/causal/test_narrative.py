"""Stories: sentences, tables and pictures of what led where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.causal.generated_logs import interleaved, stories
from cvx.causal import CausalEvent, CausalGraph, Story, Walk
from cvx.causal.narrative import NOTHING_BEFORE, UNKNOWN_CAUSE, middle, sentence, tell_chain
from cvx.embed import LexicalEmbedder
from cvx.errors import FileError, InvalidInputError, UnknownError
from cvx.memory import Memory
from cvx.types import Edge
from tests.causal.graphs import Drawn, built, drawn_graphs


def graph(*events: str, links: list[tuple[str, str, float, str]]) -> CausalGraph:
    made = CausalGraph()
    for tick, text in enumerate(events):
        made.add_event(text.split()[-1].rstrip("."), text, tick)
    for cause, effect, weight, why in links:
        made.link(cause, effect, weight, why=why)
    return made


@pytest.mark.requirement("C9")
def test_a_chain_is_told_from_its_end_back_to_its_root() -> None:
    texts = ["The senate cut the budget.", "quarantine was refused", "the plague spread"]
    hows = ["There was no money.", "the sick stayed in town"]
    assert tell_chain(texts, hows) == (
        "The plague spread. "
        "This was because quarantine was refused (the sick stayed in town). "
        "That was a result of this: the senate cut the budget (there was no money)."
    )
    assert tell_chain(["a single event"], []) == "A single event."
    assert tell_chain([], []) == ""


@pytest.mark.requirement("C9", "C10")
def test_a_chain_a_thousand_deep_is_told_whole() -> None:
    texts = [f"event number {place} happened" for place in range(1000)]
    told = tell_chain(texts, [""] * 999)
    assert told.startswith("Event number 999 happened. This was because event number 998 happened.")
    assert told.endswith("And that was because event number 0 happened.")
    assert told.count("result of") == 1
    assert told.count("was because") == 998

    chain = CausalGraph()
    for place, text in enumerate(texts):
        chain.add_event(place, text, place)
        if place:
            chain.link(place - 1, place)
    story = chain.story(999, max_depth=2000)
    assert story.narrative().count("happened") == 1000
    assert story.frame().height == 1000


@pytest.mark.requirement("C9")
def test_a_fork_is_told_from_its_root_and_names_all_causes() -> None:
    told = graph(
        "A dry summer.",
        "A late harvest.",
        "The grain ran out.",
        "The people starved.",
        links=[
            ("summer", "harvest", 0.5, ""),
            ("harvest", "out", 0.9, ""),
            ("summer", "out", 0.4, ""),
            ("out", "starved", 1.0, "no grain came"),
        ],
    )
    assert told.story("starved").narrative() == (
        "A dry summer led to a late harvest. "
        "The grain ran out because of a dry summer and because of a late harvest. "
        "So the people starved (no grain came)."
    )


@pytest.mark.requirement("C9")
def test_what_is_a_cause_twice_over_is_told_before_what_it_led_to() -> None:
    told = graph(
        "Rain fell.",
        "The pump failed.",
        "The cellar flooded.",
        links=[
            ("fell", "failed", 1.0, ""),
            ("fell", "flooded", 1.0, ""),
            ("failed", "flooded", 1.0, ""),
        ],
    )
    assert told.story("flooded").narrative() == (
        "Rain fell, so the pump failed. The cellar flooded because rain fell and because the pump "
        "failed."
    )
    against_time = CausalGraph(effect_first="allow")
    for tick, name in enumerate(("The cellar flooded", "The pump failed", "Rain fell")):
        against_time.add_event(name, name, tick)
    against_time.link("Rain fell", "The pump failed")
    against_time.link("The pump failed", "The cellar flooded")
    against_time.link("Rain fell", "The cellar flooded")
    assert (
        against_time.story("The cellar flooded")
        .narrative()
        .startswith("Rain fell, so the pump failed.")
    )


@pytest.mark.requirement("C9")
def test_an_event_alone_says_that_nothing_is_known_of_it() -> None:
    alone = graph("It rained.", links=[])
    assert alone.story("rained").narrative() == f"It rained. {NOTHING_BEFORE}"


@pytest.mark.requirement("C14")
def test_what_followed_is_told_in_a_paragraph_of_its_own() -> None:
    told = graph(
        "It rained.",
        "The cellar flooded.",
        "The books are mouldy.",
        "A lawsuit.",
        links=[
            ("rained", "flooded", 1.0, ""),
            ("flooded", "mouldy", 0.9, "paper soaks it up"),
            ("mouldy", "lawsuit", 0.8, ""),
        ],
    ).story("rained")
    assert told.narrative().splitlines() == [
        f"It rained. {NOTHING_BEFORE}",
        "Because of that, the cellar flooded. "
        "That is why the books are mouldy (paper soaks it up). There is more after that.",
    ]
    assert told.frame()["role"].to_list() == ["event", "consequence", "consequence"]


@pytest.mark.requirement("C10")
def test_a_cause_that_is_gone_is_told_as_unknown() -> None:
    flood = CausalEvent("flood", "The cellar flooded.", 1)
    link = Edge("gone", "flood", why="somebody knew")
    nothing = Walk((), truncated=False)
    story = Story(flood, {"flood": flood}, (link,), (), nothing, nothing)
    assert story.narrative() == (f"Because of {UNKNOWN_CAUSE}, the cellar flooded (somebody knew).")


@pytest.mark.requirement("C10")
def test_a_story_in_a_circle_ends() -> None:
    circle = CausalGraph()
    for name in ("fear", "flight"):
        circle.add_event(name, f"There was {name}.", 0)
    circle.link("fear", "flight")
    circle.link("flight", "fear")
    told = circle.story("fear").narrative()
    assert told.splitlines() == [
        "There was fear, so there was flight. That is why there was fear.",
        "Because of that, there was flight.",
    ]


@pytest.mark.requirement("B13")
def test_what_was_judged_is_told_as_probable_and_what_is_known_is_not_hedged() -> None:
    made = CausalGraph()
    for tick, text in enumerate(("It rained.", "The well overflowed.", "A late harvest.")):
        made.add_event(tick, text, tick)
    made.data.put(
        [Edge(0, 1, weight=0.62, state="judged"), Edge(1, 2, weight=0.55, state="judged")]
    )
    assert made.story(2).narrative() == (
        "It rained; that is probably (62%) why the well overflowed. "
        "That probably (55%) led to a late harvest."
    )
    made.data.put([Edge(0, 1, state="confirmed"), Edge(1, 2, weight=0.4)])
    assert "probably" not in made.story(2).narrative()


@pytest.mark.requirement("B13", "C9")
def test_thirty_stories_of_many_guesses_hedge_every_guess_and_no_fact() -> None:
    chains, blanks = stories()
    rng = np.random.default_rng(5)
    told = guesses = false = facts = 0
    for _ in range(6):
        some = [chains[at] for at in rng.permutation(len(chains))[:4]]
        log = interleaved(some, blanks["everyday"], blanks, rng, distractors=8)
        memory = Memory(embedder=LexicalEmbedder())
        ids = [
            memory.add(text, timestamp=time).id
            for text, time in zip(log.texts, log.times, strict=True)
        ]
        true = {(ids[a], ids[b]) for a, b in log.links}
        for place, (a, b) in enumerate(sorted(true)[::3]):
            made = memory.link(a, b)
            if place % 2:
                assert memory.causes.confirm(made).state == "confirmed"
        # Drawn from far below .5, so that many are false.
        drawn = [link for one in ids for link in memory.causes.propose(one, draw=0.08)]
        for effect in [link.effect for link in drawn if link.state == "judged"][:5]:
            story = memory.why(effect)
            links = story.told.causes
            judged = [link for link in links if link.state == "judged"]
            assert str(story).count("probably (") == len(judged)
            told, guesses, facts = told + 1, guesses + len(judged), facts + len(links) - len(judged)
            false += sum((link.cause, link.effect) not in true for link in judged)
        memory.close()
    assert told == 30
    assert min(guesses - false, false, facts) >= 5


def test_a_cause_that_the_effect_names_itself_is_said_once() -> None:
    made = CausalGraph()
    texts = (
        "The drain was blocked",
        "The cellar flooded since the drain was blocked",
        "Mould grew",
    )
    for tick, text in enumerate(texts):
        made.add_event(tick, text, tick)
    made.link(0, 1)
    made.link(1, 2)
    assert made.story(2).narrative() == (
        "The drain was blocked, so the cellar flooded. That is why mould grew."
    )
    made = CausalGraph()
    for tick, text in enumerate((*texts[1:], "The books rotted (no pump was there)")):
        made.add_event(tick, text, tick)
    made.link(0, 1)
    made.link(1, 2)
    assert made.story(2).narrative() == (
        "The cellar flooded since the drain was blocked, so mould grew. That is why the books "
        "rotted (no pump was there)."
    )


def test_days_are_named_where_a_story_has_several() -> None:
    made, day = CausalGraph(), 86_400_000_000
    noon = 1_709_294_400_000_000
    for name, tick in (("It rained", noon), ("The well overflowed", noon + 2 * day)):
        made.add_event(name, name, tick)
    made.link("It rained", "The well overflowed")
    assert made.story("The well overflowed").narrative() == (
        "On 1 March 2024 it rained, so on 3 March the well overflowed."
    )


def test_common_words_lose_their_capital_and_names_keep_it() -> None:
    assert [middle(text) for text in ("Soil slid", "Infrastructure cuts", "Adler fell", "IBM")] == [
        *("soil slid", "infrastructure cuts", "Adler fell", "IBM")
    ]


def test_a_story_that_was_cut_off_says_so() -> None:
    wide = CausalGraph()
    wide.add_event("end", "It ended.", 9)
    for place in range(5):
        wide.add_event(place, f"Cause {place}.", 0)
        wide.link(place, "end")
    story = wide.story("end", max_nodes=3)
    assert story.truncated
    assert story.narrative().splitlines()[-1] == "There is more than is told here."


@given(drawn_graphs(), st.integers(1, 4), st.integers(0, 3))
def test_every_event_that_was_reached_is_told_and_stands_in_the_table(
    drawn: Drawn, max_depth: int, after: int
) -> None:
    story = built(drawn).story(0, max_depth, after=after)
    told = story.narrative()
    reached = [*story.before, *story.after]
    for event in reached:
        assert f"event {event.id}" in told.lower()
    table = story.frame()
    assert table.height == 1 + len(reached)
    assert table.filter(table["role"] == "event")["event"].to_list() == ["0"]
    assert table["depth"].max() == max([0, *(event.depth for event in reached)])


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_any_texts_make_a_chain_that_is_told_on_one_line(texts: list[str]) -> None:
    told = tell_chain(texts, texts[1:])
    assert told
    assert len(told.splitlines()) == 1


def test_texts_are_fitted_into_sentences() -> None:
    assert middle("  The dam \n broke. ") == "the dam broke"
    assert middle("NASA launched it.") == "NASA launched it"
    assert sentence("why?") == "Why?"
    assert sentence(" ") == "Something happened that left no words."


def test_the_table_names_the_link_towards_the_subject() -> None:
    told = graph(
        "It rained.",
        "The cellar flooded.",
        links=[("rained", "flooded", 0.75, "the drain")],
    )
    (row,) = told.story("flooded").frame().filter(depth=1).rows(named=True)
    assert (row["role"], row["event"], row["next"]) == ("cause", "rained", "flooded")
    assert (row["weight"], row["path_weight"], row["why"]) == (0.75, 0.75, "the drain")


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_story_is_drawn_into_a_file(tmp_path: Path, suffix: str) -> None:
    told = graph(
        "It rained $1 all_night.",
        "The cellar flooded.",
        "The books are mouldy.",
        links=[("all_night", "flooded", 0.75, ""), ("flooded", "mouldy", 0.5, "")],
    )
    path = tmp_path / f"story.{suffix}"
    told.story("flooded").draw(path)
    assert path.stat().st_size > 1000
    if suffix == "svg":
        assert "cellar" in path.read_text()
    with pytest.raises(FileError, match=r"give a \.png"):
        told.story("flooded").draw(tmp_path / "story.txt2")


def test_a_story_of_nothing_is_refused() -> None:
    with pytest.raises(UnknownError):
        CausalGraph().story("nothing")
    with pytest.raises(InvalidInputError, match="after"):
        graph("It rained.", links=[]).story("rained", after=-1)


def test_a_text_loses_its_full_stop_in_the_middle_of_a_sentence_in_any_script() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    rain, flood = memory.add("一晩中雨が降った。"), memory.add("地下室が浸水した。")
    memory.link(rain, flood, why="排水管が小さすぎる。")
    told = "一晩中雨が降った led to 地下室が浸水した (排水管が小さすぎる)."
    assert str(memory.why(flood)) == told


@pytest.mark.parametrize(
    "text",
    [
        "run_tests failed",
        "orders-db was full",
        "loadConfig raised",
        "db3 was lost",
        "src/app.py broke",
    ],
)
def test_names_that_programs_give_stay_as_they_are(text: str) -> None:
    told = graph(text, "ALL nodes stopped", links=[(text.split()[-1], "stopped", 1.0, "")])
    assert str(told.story("stopped")) == f"{text}, so ALL nodes stopped."
    assert sentence(text) == f"{text}."
    assert middle("ImportMessage was lost") == "ImportMessage was lost"


def test_a_subject_without_causes_is_escaped_once() -> None:
    memory = Memory(embedder="lexical")
    backup = memory.add("the <b>backup</b> & its copy failed")
    assert str(memory.why(backup)).startswith("The &lt;b>backup&lt;/b> & its copy failed. ")
