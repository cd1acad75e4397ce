"""Single events are listed, shown, changed and followed by the command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cvx.memory import Memory
from tests.cli.command import Cvx, environment


@pytest.fixture
def house(cvx: Cvx) -> Cvx:
    """A store with a cause and its consequence, of two namespaces."""
    cvx("add", "the drain was full", "--entity", "ana", "--time", 10, "--tag", "house")
    cvx("add", "the cellar flooded", "--time", 20, "--source", "diary", "--kind", "note")
    cvx("add", "bob's own", "--namespace", "bob", "--time", 30)
    cvx("link", 1, 2, "--why", "rain")
    return cvx


def test_list_filters_orders_and_pages(house: Cvx) -> None:
    def ids(*options: object) -> list[int]:
        done = house("list", *options, "--json")
        return [event["id"] for event in done.json["events"]]

    assert ids() == [2, 1]
    assert ids("--oldest") == [1, 2]
    assert ids("-k", 1) == [2]
    assert ids("--entity", "ana") == ids("--tag", "house") == ids("--until", 15) == [1]
    assert ids("--source", "diary") == ids("--kind", "note") == ids("--since", 15) == [2]
    assert ids("--namespace", "bob") == [3]
    house("forget", 2)
    assert ids() == [1]
    assert ids("--state", "archived") == [2]


def test_a_list_of_nothing_says_so(house: Cvx) -> None:
    done = house("list", "--entity", "nobody")
    assert (done.code, done.out) == (1, "nothing is remembered that passes\n")
    assert house("list", "--state", "lost").code == 2
    assert house("list", "--outcome", "lost").code == 2


@pytest.mark.parametrize("asked", [("list",), ("tail",), ("recall", "key")])
def test_what_finds_nothing_names_the_namespace_and_those_that_hold_events(
    cvx: Cvx, asked: tuple[str, ...]
) -> None:
    for name, text in (("ana", "the key is red"), ("ana", "the key is lost"), ("bob", "no key")):
        cvx("add", text, "--namespace", name)
    done = cvx(*asked)
    assert (done.code, "nothing" in done.out) == (1, True)
    assert done.err == (
        "cvx: the unnamed namespace was asked; other namespaces hold 3 events "
        "('ana': 2, 'bob': 1): name one with -n\n"
    )
    assert "namespace 'cleo' was asked" in cvx(*asked, "-n", "cleo").err
    assert (cvx(*asked, "-n", "ana").code, cvx(*asked, "-n", "ana").err) == (0, "")
    assert cvx(*asked, "--json").err == ""


def test_an_episode_is_listed_whole_whoever_it_is_of(cvx: Cvx) -> None:
    with Memory.open(cvx.store, embedder="lexical") as memory:
        with memory.within("bob").episode("count") as episode:
            for number in range(30):
                episode.act(f"say {number}", observation="a hall")
            episode.end(True)
        played = memory.events({}, namespace="bob")[0].episode_id
    listed = cvx("list", "--episode", played, "--oldest", "--json").json["events"]
    assert [one["action"] for one in listed] == [f"say {number}" for number in range(30)]
    assert len(cvx("list", "--episode", played, "-k", 3, "--json").json["events"]) == 3
    assert cvx("list", "--episode", played, "-n", "ana").code == 1
    assert (cvx("list", "--episode", 7).code, cvx("list", "--episode", 10**20).code) == (1, 2)


def test_a_store_of_one_namespace_has_no_others_to_name(cvx: Cvx) -> None:
    cvx("add", "the key is red")
    assert cvx("list", "--entity", "nobody").err == ""


def test_show_asks_as_a_namespace_where_told_to(house: Cvx) -> None:
    assert house("show", 3).code == house("show", 3, "-n", "bob").code == 0
    done = house("show", 3, "-n", "ana")
    assert (done.code, "bob's own" in done.out + done.err) == (1, False)


def test_show_tells_fields_versions_causes_and_consequences(house: Cvx) -> None:
    house("edit", 1, "--text", "the drain was blocked", "--metadata", "room=cellar")
    told = house("show", 1, "--json").json
    assert (told["event"]["text"], told["event"]["tags"]) == ("the drain was blocked", ["house"])
    assert told["event"]["metadata"] == {"room": "cellar"}
    assert [one["text"] for one in told["history"]] == ["the drain was full"]
    assert told["causes"] == []
    assert [(one["id"], one["why"]) for one in told["consequences"]] == [(2, "rain")]
    assert "because      1: the drain was blocked (rain)" in house("show", 2).out
    assert house("show", 9).code == 1


def test_show_prints_every_line_of_a_long_text_and_no_terminal_escape(cvx: Cvx) -> None:
    cvx("add", "-", stdin="first\nsecond \x1b[31mred\n")
    out = cvx("show", 1).out
    assert "\nfirst\nsecond \\u001b[31mred\n" in out
    assert "\x1b" not in out


def test_edit_changes_what_is_given_and_keeps_the_rest(house: Cvx) -> None:
    done = house("edit", 1, "--tag", "cellar", "--salience", 0.5, "--json").json
    assert done["version"] == 2
    assert (done["event"]["text"], done["event"]["tags"]) == ("the drain was full", ["cellar"])
    assert house("edit", 1, "--text", "-", "--json", stdin="new words\n").json["version"] == 3
    moved = house("edit", 1, "--time", "2026-03-01", "--json").json
    assert (moved["event"]["time"], moved["version"]) == (1_772_323_200_000_000, 4)
    assert house("edit", 1, "--state", "archived").code == 0
    assert [one["id"] for one in house("list", "--json").json["events"]] == [2]
    assert house("edit", 1, "--salience", 3).code == 2


def test_edit_without_options_opens_the_editor(
    house: Cvx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys; p = pathlib.Path(sys.argv[1]);"
        " p.write_text(p.read_text().replace('full', 'empty'))"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    assert house("edit", 1, "--json").json["event"]["text"] == "the drain was empty"
    assert house("edit", 1, "--json").json["version"] == 2
    monkeypatch.setenv("EDITOR", "no-such-editor")
    assert house("edit", 1).code == 4
    monkeypatch.delenv("EDITOR")
    assert "set EDITOR" in house("edit", 1).err


def test_tail_shows_the_order_of_writing(cvx: Cvx) -> None:
    for at, text in ((30, "third of June"), (10, "first of June"), (20, "second of June")):
        cvx("add", text, "--time", at)
    told = cvx("tail", "-k", 2, "--json").json["events"]
    assert [one["id"] for one in told] == [2, 3]
    assert cvx("tail", "--entity", "nobody", "--json").json == {"events": []}


def test_tail_follows_what_another_process_writes(cvx: Cvx) -> None:
    cvx("add", "before")
    running = subprocess.Popen(
        [sys.executable, "-m", "cvx", "tail", "-f", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(cvx.store),
    )
    try:
        assert running.stdout is not None
        assert json.loads(running.stdout.readline())["text"] == "before"
        cvx("add", "elsewhere", "--namespace", "bob")
        cvx("add", "after")
        assert json.loads(running.stdout.readline())["text"] == "after"
    finally:
        running.terminate()
        running.communicate()
