"""What goes in by the command comes out of it, in another process too."""

import json
from pathlib import Path

import pytest

from tests.cli.command import Cvx, process


@pytest.mark.requirement("W26")
def test_what_one_process_adds_another_recalls(tmp_path: Path) -> None:
    added = process(tmp_path / "s", "add", "the spare key is under the green pot")
    assert (added.code, added.out) == (0, "remembered event 1\n")
    assert "made a new memory" in added.err
    found = process(tmp_path / "s", "recall", "where is the key?", "--json")
    assert found.code == 0
    assert [hit["text"] for hit in found.json["hits"]] == ["the spare key is under the green pot"]
    assert found.err == ""


def test_every_option_of_add_is_stored(cvx: Cvx) -> None:
    done = cvx(
        *("add", "ana waters the fern", "--entity", 3, "--time", "2026-11-21T10:00:00+01:00"),
        *("--tag", "house", "--tag", "plants", "--alias", "fern care", "--namespace", "ana"),
        *("--metadata", "room=kitchen", "--metadata", "litres=2", "--reward", 0.5),
        *("--salience", 0.25, "--source", "diary", "--trust", 0.75, "--action", "water fern"),
        *("--key", "fern-1", "--kind", "observation", "--visibility", "shared", "--json"),
    )
    assert done.json == {"ids": [1], "added": 1}
    (hit,) = cvx("recall", "fern care", "--namespace", "ana", "--json").json["hits"]
    del hit["recorded"], hit["score"], hit["similarity"], hit["factors"]
    assert hit == {
        "id": 1,
        "text": "ana waters the fern",
        "time": 1_795_251_600_000_000,
        "entity": "3",
        "namespace": "ana",
        "key": "fern-1",
        "kind": "observation",
        "action": "water fern",
        "reward": 0.5,
        "episode": None,
        "tags": ["house", "plants"],
        "metadata": {"room": "kitchen", "litres": 2},
        "source": "diary",
        "trust": 0.75,
        "visibility": "shared",
        "salience": 0.25,
        "state": "active",
    }


def test_standard_input_is_one_event_or_one_a_line(cvx: Cvx) -> None:
    assert cvx("add", "-", stdin="a long note\nof two lines\n").code == 0
    rows = [{"text": "one", "time": 5}, {"text": "two", "entity": 4, "aliases": ["zwei"]}]
    lines = "\n".join(map(json.dumps, rows)) + "\n"
    assert cvx("add", "--file", "-", "--entity", 9, "--json", stdin=lines).json["ids"] == [2, 3]
    hits = cvx("recall", "one", "-k", 1, "--json").json["hits"]
    assert [(hit["text"], hit["time"], hit["entity"]) for hit in hits] == [("one", 5, "9")]
    hits = cvx("recall", "zwei", "-k", 1, "--json").json["hits"]
    assert [(hit["text"], hit["entity"]) for hit in hits] == [("two", "4")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 is no JSON"),
        ("[1]", "line 2"),
        ("[" * 100_000, "nested too deep: nest it at most 32 deep"),
        ('{"text": ' + "[" * 900 + "]" * 900 + "}", "line 2: text is [[[["),
        ('{"text": ""}', "line 2: text is empty"),
        ('{"txt": "x"}', "line 2: 'txt' is no key"),
        ('{"text": "x", "reward": "high"}', "line 2: reward is 'high'"),
        ('{"text": "x", "reward": 2}', "reward"),
        ('{"text": "x", "entity": 1.5}', "line 2: entity is 1.5"),
        ('{"text": "x", "action": 7}', "line 2: action is 7"),
        ('{"text": "x", "time": "soon"}', "line 2: time 'soon'"),
        ('{"text": "x", "tags": "house"}', "line 2: tags is 'house'"),
        ('{"text": "x", "metadata": []}', "line 2: metadata is []"),
        ('{"text": "x", "vector": ["a"]}', "line 2: no vector"),
        ('{"text": "x", "vector": [1.0, 2.0]}', "shape (2,)"),
        ('{"text": "x", "visibility": "all"}', "visibility is 'all'"),
    ],
)
def test_one_bad_line_keeps_the_whole_file_out(cvx: Cvx, line: str, said: str) -> None:
    cvx("add", "there before")
    done = cvx("add", "--file", "-", stdin=f'{{"text": "good"}}\n{line}\n')
    assert done.code == 2
    assert said in done.err
    assert cvx("stats", "--json").json["events"] == 1


def test_filters_of_recall_hold(cvx: Cvx) -> None:
    for day, house in enumerate(["red", "red", "blue"], 1):
        cvx("add", f"a letter for the {house} house", "--time", f"2026-01-0{day}", "--tag", house)
    found = cvx("recall", "letter", "--since", "2026-01-02", "--tag", "red", "--json").json
    assert [hit["id"] for hit in found["hits"]] == [2]
    found = cvx("recall", "letter", "--until", "2026-01-02", "--json").json
    assert [hit["id"] for hit in found["hits"]] == [1]
    assert cvx("recall", "letter", "--namespace", "ben", "--json").json["hits"] == []


def test_nothing_found_is_exit_code_1(cvx: Cvx) -> None:
    cvx("add", "a")
    done = cvx("recall", "something else entirely")
    assert (done.code, done.out) == (1, "nothing fits\n")
    assert cvx("recall", "something else entirely", "--json").code == 1


def test_a_floor_keeps_out_what_is_only_the_nearest(cvx: Cvx) -> None:
    cvx("add", "the spare key is under the green pot")
    cvx("add", "the cellar flooded")
    found = cvx("recall", "the spare key", "--floor", 0.5, "--json").json["hits"]
    assert [hit["id"] for hit in found] == [1]
    assert cvx("recall", "quantum chromodynamics", "--floor", 0.5).code == 1


def test_an_explanation_lists_the_factors_that_add_up(cvx: Cvx) -> None:
    cvx("add", "the spare key is under the green pot")
    (hit,) = cvx("recall", "the spare key", "--json").json["hits"]
    assert sum(factor["share"] for factor in hit["factors"]) == pytest.approx(hit["score"])
    shown = cvx("recall", "the spare key", "--explain").out
    for factor in hit["factors"]:
        assert (f"{factor['name']}: " in shown) == bool(factor["share"])


def test_stats_counts_and_says_what_the_store_is_made_with(cvx: Cvx) -> None:
    cvx("add", "a mug", "--embedder", "lexical:64", "--alias", "a cup", "--namespace", "ana")
    told = cvx("stats", "--json").json
    expected = {"events": 1, "active": 1, "aliases": 1, "links": 0, "dim": 64}
    assert expected.items() <= told.items()
    assert (told["namespaces"], told["embedder"]) == ({"ana": 1}, "lexical:64")
    assert "lexical:64" in cvx("stats").out


def test_a_store_remembers_its_embedder_and_refuses_another(cvx: Cvx) -> None:
    cvx("add", "a mug", "--embedder", "lexical:64")
    assert cvx("recall", "mug", "--json").json["hits"]
    refused = cvx("recall", "mug", "--embedder", "lexical:32")
    assert refused.code == 3
    assert "reembed" in refused.err
    assert cvx("stats", "--json").json["embedder"] == "lexical:64"


def test_a_file_that_begins_with_a_byte_order_mark_is_read(cvx: Cvx, tmp_path: Path) -> None:
    file = tmp_path / "from-windows.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"text": "water in the cellar"}\r\n')
    assert cvx("add", "--file", file, "--json").json == {"ids": [1], "added": 1}


def test_a_file_of_plain_lines_is_refused_with_a_line_that_would_do(
    cvx: Cvx, tmp_path: Path
) -> None:
    file = tmp_path / "plain.txt"
    file.write_text("water in the cellar\n")
    done = cvx("add", "--file", file)
    assert done.code == 2
    assert 'give a JSON object a line, such as {"text": "..."}' in done.err
