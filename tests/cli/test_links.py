"""What led to what, and what happened when."""

from pathlib import Path

import pytest

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from tests.cli.command import Cvx, process
from tests.store.planted import rich_store


def flooded(cvx: Cvx) -> None:
    for place, text in enumerate(
        ["it rained all night", "the drain was full", "the cellar flooded"]
    ):
        cvx("add", text, "--entity", 7, "--time", 10 * place)
    cvx("link", 1, 2, "--why", "more than it takes")
    cvx("link", 2, 3, "--weight", 0.5, "--evidence", "seen")


def test_why_walks_back_to_the_first_cause(cvx: Cvx) -> None:
    flooded(cvx)
    told = cvx("why", 3, "--json").json
    assert told["event"]["text"] == "the cellar flooded"
    assert [(s["depth"], s["event"]["id"]) for s in told["steps"]] == [(1, 2), (2, 1)]
    assert told["steps"][0]["link"] == {
        "from": 2, "to": 3, "kind": "caused", "weight": 0.5, "why": "", "evidence": "seen",
    }  # fmt: skip
    said = cvx("why", 3).out
    assert said.index("drain was full") < said.index("more than it takes") < said.index("rained")
    assert len(cvx("why", 3, "--depth", 1, "--json").json["steps"]) == 1


def test_why_finds_the_event_that_words_mean(cvx: Cvx) -> None:
    flooded(cvx)
    assert cvx("why", "the flooded cellar", "--json").json == cvx("why", 3, "--json").json
    told = cvx("why", "the cellar flooded").out
    assert "It rained all night, so the drain was full (more than it takes)." in told


@pytest.mark.requirement("B13")
def test_causes_proposes_with_chances_and_says_where_nothing_is_likely(cvx: Cvx) -> None:
    cvx("add", "the drain was blocked", "--time", 1)
    cvx("add", "the cellar flooded because the drain was blocked", "--time", 2)
    found = cvx("causes", "the cellar flooded", "--json").json
    assert (found["cause"], found["effect"], found["state"]) == (1, 2, "judged")
    assert 0.5 <= found["probability"] < 1
    assert "probably" in cvx("why", 2).out
    assert "judged" in cvx("causes", 2, "--draw", 0.5).out
    nothing = cvx("causes", 1)
    assert nothing.code == 1
    assert "nothing" in nothing.out


def test_consequences_are_the_other_direction(cvx: Cvx) -> None:
    flooded(cvx)
    told = cvx("why", 1, "--consequences", "--json").json
    assert [step["event"]["id"] for step in told["steps"]] == [2, 3]


def test_no_cause_and_no_event_are_exit_code_1(tmp_path: Path) -> None:
    process(tmp_path / "s", "add", "a mug")
    none = process(tmp_path / "s", "why", 1)
    assert (none.code, none.out.splitlines()[-1]) == (1, "no cause is known")
    missing = process(tmp_path / "s", "why", 9)
    assert (missing.code, missing.out) == (1, "")
    assert "no event 9" in missing.err


def test_a_kind_of_ones_own_is_declared_once(cvx: Cvx) -> None:
    flooded(cvx)
    refused = cvx("link", 1, 3, "--kind", "reminded_of")
    assert refused.code == 1
    assert "declare" in refused.err
    assert cvx("link", 1, 3, "--kind", "reminded_of", "--declare").code == 0
    assert cvx("link", 2, 3, "--kind", "reminded_of").code == 0
    assert cvx("link", 1, 1).code == 2


def test_the_steps_of_an_episode_are_listed_without_its_embedder(tmp_path: Path) -> None:
    rich_store(tmp_path / "m")
    done = process(tmp_path / "m", "list", "--episode", 0, "--oldest")
    assert done.code == 0
    assert "did: go to sink" in done.out
    assert process(tmp_path / "m", "list", "--episode", 99).code == 1


def test_what_was_linked_by_the_command_is_there_in_python(cvx: Cvx) -> None:
    flooded(cvx)
    with Memory.open(cvx.store, embedder=LexicalEmbedder()) as memory:
        assert [step.edge.why for step in memory.why(3).steps] == ["", "more than it takes"]
