"""The cue: built from the agent's state, every turn."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.cue import LONGEST, cue_hash, dense_text, lexical_text, sound_cue
from cvx.errors import InvalidInputError, StaleCueWarning
from cvx.recall import build_cue, cue_of
from cvx.types import Cue
from tests.recall.rooms import at, axis, room


@dataclass
class State:
    goal: str = "deploy the tier migration"
    active_subtask: str = "run the staging check"
    open_loops: list[str] = field(default_factory=lambda: ["who is on call?", "is it green?"])


@pytest.mark.requirement("R1")
def test_a_cue_says_goal_step_and_open_questions_in_three_lines() -> None:
    assert build_cue(State()) == (
        "Goal: deploy the tier migration\n"
        "Current step: run the staging check\n"
        "Open questions: who is on call?; is it green?"
    )


@pytest.mark.requirement("R1", "R2")
def test_the_state_is_embedded_and_the_raw_words_are_looked_for() -> None:
    cue = cue_of(State(), "error E1234", place=3)
    assert dense_text(cue) == build_cue(State())
    assert lexical_text(cue) == "error E1234"
    assert cue.place == 3
    # Without raw words, those of the state; without a state, the words for both.
    assert lexical_text(cue_of(State())).startswith("deploy the tier migration run")
    assert dense_text(Cue(text="error E1234")) == "error E1234"


@given(st.text(), st.text(), st.text())
def test_cues_are_equal_by_hash_exactly_if_they_ask_the_same(goal: str, a: str, b: str) -> None:
    assert (cue_hash(Cue(goal=goal, text=a)) == cue_hash(Cue(goal=goal, text=b))) == (a == b)


@pytest.mark.requirement("R1")
def test_an_unchanged_cue_is_called_stale_at_its_third_turn() -> None:
    memory = room()
    memory.add("x one", vector=axis("x"))

    def ask(turn: int, step: str) -> list[str]:
        block = memory.context(Cue(goal="g", step=step, vector=axis("x"), place=turn))
        return block.trace.problems

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(1, "a") == ask(2, "a") == ask(2, "a") == []
    with pytest.warns(StaleCueWarning, match="the same cue for 3 turns"):
        assert ask(3, "a") == ["the same cue for 3 turns: build it anew from the agent's state"]
    # A cue that moves with the state is not.
    assert ask(4, "b") == []


@pytest.mark.requirement("R1")
def test_the_record_of_a_recall_carries_the_hash_and_the_turn_of_its_cue() -> None:
    memory = room()
    memory.add("x one", vector=axis("x"))
    cue = Cue(goal="g", vector=at(0.9), place=7)
    found = memory.learning.attribution(memory.context(cue))
    assert (found.turn, found.cue_hash) == (7, cue_hash(cue))


@given(st.text(st.characters(), max_size=200))
def test_control_characters_never_reach_a_source(text: str) -> None:
    clean = sound_cue(text).text
    assert len(clean) == len(text)
    assert all(a == b or b == " " for a, b in zip(text, clean, strict=True))
    assert not any(sign in clean for sign in map(chr, (*range(32), 127)))


@pytest.mark.parametrize("none", [None, b"x", 5, ["x"]])
def test_a_cue_that_is_none_is_refused(none: Any) -> None:
    for ask in (sound_cue, room().recall, room().context):
        with pytest.raises(InvalidInputError, match=r"give a str, a cvx\.Cue or a vector"):
            ask(none)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"text": 5}, "cue.text is 5: give a str"),
        ({"goal": None}, "cue.goal is None: give a str"),
        ({"questions": ("who?", 5)}, r"cue.questions is .*5.*: give a list of str"),
        ({"questions": "who?"}, r"cue.questions is 'who\?': give a list"),
        ({"timestamp": 1.5}, r"timestamp is 1\.5: give an int"),
        ({"timestamp": "now"}, "timestamp is 'now'"),
        ({"place": "here"}, "place is 'here'"),
    ],
)
def test_a_part_of_a_cue_that_is_none_is_refused(part: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        sound_cue(Cue(**part))


def test_a_cue_may_bear_the_time_of_an_array() -> None:
    assert type(sound_cue(Cue(text="x", timestamp=np.int64(5))).timestamp) is int  # type: ignore[arg-type]


def test_an_empty_cue_is_answered_by_nothing_and_the_trace_says_why() -> None:
    memory = room()
    memory.add("x one", vector=axis("x"))
    for empty in ("", "   ", "\x00\x07"):
        hits = memory.recall(empty)
        assert hits == []
        assert hits.trace.problems == ["the cue says nothing: nothing was looked for"]


def test_of_a_cue_of_100000_characters_the_beginning_is_used() -> None:
    memory = room()
    event = memory.add("x lantern", vector=axis("x")).id
    hits = memory.recall("x lantern " + "word " * 20_000)
    assert [hit.event.event_id for hit in hits if hit.event] == [event]
    assert hits.trace.problems == ["the cue has 100010 characters: its beginning was used"]
    assert len(hits.trace.cue) <= LONGEST


def test_a_vector_of_numbers_too_large_for_its_type_is_refused_without_a_warning() -> None:
    with pytest.raises(InvalidInputError, match="fit 32-bit floats"):
        sound_cue(np.array([1e300, 0.0]))
