"""A view answers what the page asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import CvxError, InvalidInputError, ReadOnlyError, UnknownError
from cvx.inspect import PageData
from cvx.inspect.map_layout import flattened
from cvx.inspect.server import ASKED, WHOLE
from cvx.memory import Memory
from tests.inspect.conftest import DAY, HOSTILE, START


@pytest.fixture
def view(store: Path) -> Iterator[PageData]:
    with Memory.open(store, read_only=True) as memory:
        yield PageData(memory)


def ids(view: PageData, **asked: str) -> list[int]:
    return [row["id"] for row in view.events(asked)["rows"]]


def test_the_overview_counts_and_lists_what_a_filter_can_choose(view: PageData) -> None:
    told = view.overview()
    assert (told["events"], told["active"], told["episodes"]) == (16, 16, 4)
    assert {one["value"]: one["events"] for one in told["namespace"]} == {"": 15, "bob": 1}
    assert told["source"][0]["value"] == ""
    assert {one["value"] for one in told["tag"]} >= {"house", "task:hats"}


def test_filters_agree_with_the_filters_of_the_memory(view: PageData) -> None:
    for asked, where in (
        ({"entity": "ana"}, {"entities": "ana"}),
        ({"kind": "note"}, {"kind": "note"}),
        ({"source": "log"}, {"source": "log"}),
        ({"tag": "house"}, {"tags": "house"}),
        ({"since": str(START + DAY), "until": str(START + 3 * DAY)},
         {"since": START + DAY, "until": START + 3 * DAY}),
        ({"outcome": "won"}, {"min_reward": 0.51}),
        ({"outcome": "lost"}, {"max_reward": 0.5}),
    ):  # fmt: skip
        expected = view.memory.events(where, newest=True)
        assert ids(view, **asked, namespace="") == [one.id for one in expected], asked
    assert ids(view, namespace="bob") == [8]
    assert ids(view, q="CELLAR") == [2]
    assert ids(view, q="cellar", entity="nobody") == []


def test_every_page_of_many_events_comes_once(tmp_path: Path) -> None:
    with Memory(embedder=LexicalEmbedder(32)) as memory:
        memory.add_many([{"text": f"rain {at}", "timestamp": at // 3} for at in range(120)])
        view = PageData(memory)
        pages = [ids(view, page=str(page)) for page in range(3)]
        assert [len(page) for page in pages] == [50, 50, 20]
        assert sorted(number for page in pages for number in page) == list(range(1, 121))
        assert ids(view, page="3") == []


def test_the_timeline_counts_what_passes(view: PageData) -> None:
    told = view.timeline({"namespace": ""})
    assert sum(one["won"] for one in told["bins"]) == len(ids(view, outcome="won"))
    assert sum(one["lost"] for one in told["bins"]) == len(ids(view, outcome="lost"))
    total = sum(one["won"] + one["lost"] + one["other"] for one in told["bins"])
    assert total == len(ids(view, namespace=""))
    within = told["bins"][0]
    found = view.events({"since": str(within["since"]), "until": str(within["until"])})
    assert found["total"] >= within["won"] + within["lost"] + within["other"]


def test_times_from_end_to_end_of_what_a_store_can_hold_have_a_timeline() -> None:
    with Memory(embedder=LexicalEmbedder(32), clock="ticks") as memory:
        for time in (-(2**62), 0, 2**62 - 1):
            memory.add("an end of time", timestamp=time)
        told = PageData(memory).timeline({})
        assert sum(one["other"] for one in told["bins"]) == 3


def test_an_event_is_told_with_versions_links_and_where_it_was_shown(view: PageData) -> None:
    drain, flood = view.event({"id": "1"}), view.event({"id": "2"})
    assert [one["text"] for one in drain["history"]] == ["the drain was full"]
    assert drain["version"] == 2
    assert [one["id"] for one in flood["causes"]] == [1]
    assert [one["id"] for one in flood["consequences"]] == [3]
    assert "the cellar flooded" in [one["cue"] for one in flood["shown"]]
    with pytest.raises(UnknownError, match="no event 99"):
        view.event({"id": "99"})
    with pytest.raises(InvalidInputError, match="id is 'x'"):
        view.event({"id": "x"})


def test_a_chain_has_causes_before_and_consequences_after(view: PageData) -> None:
    told = view.chain({"of": "2"})
    assert {node["id"]: node["depth"] for node in told["nodes"]} == {1: -1, 2: 0, 3: 1}
    assert {(edge["from"], edge["to"]) for edge in told["edges"]} == {(1, 2), (2, 3)}
    assert view.chain({"of": "the cellar flooded"})["of"] == 2
    assert view.linked()["rows"][0]["links"] >= 1


@pytest.mark.requirement("B21")
def test_a_recall_is_taken_apart_factor_by_factor_beside_what_it_was_then(view: PageData) -> None:
    told = view.recall({"cue": "The Cellar flooded"})
    for hit in told["now"]:
        shares = sum(factor["share"] for factor in hit["factors"])
        assert shares == pytest.approx(hit["score"], abs=0.01)
    assert told["now"][0]["id"] == 2
    assert told["then"]["hits"][0]["id"] == 2
    assert told["then"]["hits"][0]["factors"]
    assert told["then"]["outcome"] == 1.0
    again = view.recall({"decision": str(told["then"]["decision"])})
    assert again["now"] == told["now"]
    assert view.recall({"cue": "something never asked"})["then"] is None


def test_asking_for_a_recall_counts_and_notes_nothing(store: Path) -> None:
    with Memory.open(store) as memory:
        before = memory.frames.decisions().height
        PageData(memory).recall({"cue": "the cellar"})
        assert memory.frames.decisions().height == before


@pytest.mark.requirement("B21")
def test_an_episode_tells_what_each_action_was_expected_to_be_worth(view: PageData) -> None:
    last = view.episodes({})["rows"][0]
    told = view.episode({"id": str(last["id"])})
    assert [step["action"] for step in told["steps"]] == ["right", "take"]
    advice = told["steps"][0]["advice"]
    assert {one["action"] for one in advice["options"]} == {"left", "right"}
    assert advice["options"][0]["value"] >= advice["options"][1]["value"]
    worth = {one["action"]: one["value"] for one in advice["options"]}
    assert advice["predicted"] == worth["right"]
    assert (told["reward"], advice["outcome"]) == (1.0, 1.0)
    assert view.episodes({"outcome": "lost"})["total"] == 1
    assert view.episodes({"q": "HAT", "task": "hats"})["total"] == 4


def test_an_episode_that_has_not_ended_is_shown(tmp_path: Path) -> None:
    with Memory(embedder=LexicalEmbedder(32)) as memory:
        run = memory.episode("find the hat")
        run.advise("a hall", ["left"])
        run.act("left")
        told = PageData(memory).episode({"id": str(run.id)})
        assert (told["reward"], told["steps"][0]["action"]) == (None, "left")
        run.discard()


def test_learning_tells_curves_regions_and_weights(view: PageData) -> None:
    told = view.learning({})
    (curve,) = told["curves"]
    assert (curve["name"], curve["episodes"]) == ("hats", 4)
    assert [value for _, value in curve["points"]] == pytest.approx([0.0, 0.5, 2 / 3, 0.75])
    assert told["mdp"]["regions"]
    assert {move["to"] for move in told["mdp"]["moves"]} & {"success", "failure"}
    assert told["weights"]


def test_curves_of_tasks_stand_where_their_episodes_were_among_all() -> None:
    with Memory(embedder=LexicalEmbedder(32)) as memory:
        for at, task in enumerate(("hats", "keys", "hats", "keys", "keys")):
            with memory.episode(task, task=task) as episode:
                episode.act("look", observation=f"a room {at}")
                episode.end(float(task == "keys"))
        curves = {one["name"]: one["points"] for one in PageData(memory).curves()}
        assert [at for at, _ in curves["keys"]] == [2, 4, 5]
        assert [at for at, _ in curves["hats"]] == [1, 3]
        assert curves["all tasks"][-1] == [5, pytest.approx(0.6)]


def test_every_event_lies_in_one_region_of_the_map(view: PageData) -> None:
    told = view.map()
    assert sum(one["events"] for one in told["regions"]) == 16
    for one in told["regions"]:
        assert max(abs(one["x"]), abs(one["y"])) <= 1.0
        assert len(ids(view, region=str(one["id"]))) == one["events"]
    assert {point["id"] for point in told["points"]} == set(range(1, 17))


def test_places_are_the_same_in_every_run_and_fill_the_picture() -> None:
    rows = list(np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32))
    places, share = flattened(rows)
    assert places == flattened(rows)[0]
    assert np.allclose(np.abs(np.array(places)).max(axis=0), 1.0)
    assert 0.25 < share < 1.0
    assert flattened([]) == ([], 1.0)
    assert flattened([rows[0]] * 3)[0] == [(0.0, 0.0)] * 3
    assert flattened([None, rows[0]])[0][0] is not None


def test_an_empty_store_answers_everything_with_nothing(tmp_path: Path) -> None:
    Memory.open(tmp_path / "new", embedder=LexicalEmbedder(32)).close()
    with Memory.open(tmp_path / "new", read_only=True) as memory:
        view = PageData(memory)
        assert view.events({})["rows"] == view.timeline({})["bins"] == []
        assert view.map()["regions"] == view.linked()["rows"] == view.episodes({})["rows"] == []
        assert view.learning({})["curves"] == []
        assert view.recall({"cue": "anything"})["now"] == []
        assert view.overview()["events"] == 0


def test_a_memory_of_a_megabyte_is_short_in_lists_and_whole_by_itself(tmp_path: Path) -> None:
    text = "all the same " * 80_000
    with Memory(embedder=LexicalEmbedder(32)) as memory:
        memory.add(text)
        view = PageData(memory)
        assert len(view.events({})["rows"][0]["text"]) == 300
        assert len(json.dumps([view.map(), view.chain({"of": "1"}), view.decisions({})])) < 5_000
        assert view.event({"id": "1"})["text"] == text
        assert ids(view, q="same all the same all") == [1]


def test_words_find_the_memories_of_every_namespace() -> None:
    with Memory(embedder=LexicalEmbedder(64)) as memory:
        ana = memory.within("ana")
        tea = ana.add("Ana poured the tea", key="\u202etea").id
        ana.add("the cellar flooded at night")
        boat = memory.within("bob").add("Bob painted his boat").id
        view = PageData(memory)
        assert view.recall({"cue": "who poured the tea?"})["now"][0]["id"] == tea
        assert view.recall({"cue": "the tea", "namespace": ""})["now"] == []
        bob = memory.within("bob")
        bob.feedback(bob.context("his boat"), helped=True)
        (asked,) = view.decisions({})["rows"]
        again = view.recall({"decision": str(asked["decision"])})
        assert (again["namespace"], again["now"][0]["id"]) == ("bob", boat)
        assert view.chain({"of": "poured the tea"})["of"] == tea
        assert view.chain({"of": "painted his boat"})["of"] == boat
        assert view.event({"id": str(tea)})["key"] == "\\u202etea"


@pytest.mark.parametrize("page", [2**62, 2**31])
def test_a_page_that_no_store_has_is_refused(view: PageData, page: int) -> None:
    for ask in (view.events, view.decisions, view.episodes):
        with pytest.raises(InvalidInputError, match="page is"):
            ask({"page": str(page)})


def test_what_hides_or_steers_is_written_out(view: PageData) -> None:
    assert view.event({"id": "4"})["text"] == HOSTILE
    assert view.event({"id": "5"})["text"] == "\\u001b[31mred\\u001b[0m \\u202egnp.exe"


def test_what_others_write_is_seen(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    with Memory.open(folder, embedder=LexicalEmbedder(32)) as writer:
        writer.add("before")
        with Memory.open(folder, read_only=True) as memory:
            view = PageData(memory)
            assert ids(view) == [1]
            writer.add("after")
            assert ids(view, q="after") == [2]
            assert sum(one["events"] for one in view.map()["regions"]) == 2


def test_before_all_events_are_read_a_page_shows_those_written_last(view: PageData) -> None:
    whole = view.events({})
    view._first.clear()
    told = view.events({"state": "active"})
    assert told["total"] is None
    assert told["rows"] == whole["rows"]
    assert [row["id"] for row in told["rows"] if row["episode"] == 3] == [16, 15]
    assert (view.overview()["active"], view.overview()["entity"]) == (16, [])
    assert view.events({"q": "cellar"})["total"] == 1


def test_what_was_prepared_is_what_would_be_read(view: PageData) -> None:
    view.prepare()
    assert view.timeline({})["bins"]
    assert view.overview()["events"] == 16


def test_a_view_that_only_reads_changes_nothing(view: PageData) -> None:
    with pytest.raises(ReadOnlyError):
        view.change({"id": 1, "text": "other words"})


def test_a_bound_memory_has_no_view_of_the_whole_store() -> None:
    with Memory(embedder=LexicalEmbedder(32)) as memory, pytest.raises(CvxError):
        PageData(memory.within("ana")).overview()


def test_every_answer_of_a_view_is_json(view: PageData) -> None:
    asked = {"event": {"id": "1"}, "chain": {"of": "1"}, "recall": {"cue": "rain"}}
    asked |= {"episode": {"id": "0"}}
    for name in ASKED:
        assert json.dumps(getattr(view, name)(asked.get(name, {})), allow_nan=False)
    for name in WHOLE:
        assert json.dumps(getattr(view, name)(), allow_nan=False)
