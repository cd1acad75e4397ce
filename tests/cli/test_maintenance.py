"""Forgetting, erasing, compacting, and another embedder."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cvx.embed import CachedEmbedder, LexicalEmbedder
from cvx.memory import Memory
from tests.cli.command import Cvx, environment, process
from tests.embed_server import OPENAI, Server, running

SECRET = "the safe opens with 4711"


def filled(cvx: Cvx) -> None:
    cvx("add", SECRET, "--source", "diary", "--time", 10)
    cvx("add", "a mug on a shelf", "--source", "diary", "--time", 20, "--namespace", "ana")
    cvx("add", "a cup in a sink", "--time", 30)


def state(cvx: Cvx) -> tuple[int, int]:
    told = cvx("stats", "--json").json
    return told["events"], told["active"]


def test_what_is_forgotten_can_be_brought_back(cvx: Cvx) -> None:
    filled(cvx)
    told = cvx("forget", 1, 3, "--json").json
    assert told == {"ids": [1, 3], "done": "put away", "dry_run": False, "complete": True}
    assert cvx("recall", "safe").code == 1
    assert state(cvx) == (3, 1)
    assert cvx("forget", 1, "--undo").code == 0
    assert SECRET in cvx("recall", "safe").out


def test_a_dry_run_changes_nothing(cvx: Cvx) -> None:
    filled(cvx)
    for how in ([], ["--erase"]):
        done = cvx("forget", "--source", "diary", "--dry-run", *how)
        assert done.code == 0
        assert "2 events would be" in done.out
        assert SECRET in done.out
    assert state(cvx) == (3, 3)


def test_what_is_erased_is_in_no_file_any_more(tmp_path: Path) -> None:
    store = tmp_path / "s"
    process(store, "add", SECRET)
    process(store, "add", "a mug")
    refused = process(store, "forget", 1, "--erase")
    assert refused.code == 2
    assert "--yes" in refused.err
    done = process(store, "forget", 1, "--erase", "--yes", "--json")
    assert done.json["done"] == "erased"
    whole = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    assert b"4711" not in whole
    assert process(store, "forget", 1, "--erase", "--yes").code == 1


def test_an_erase_says_that_it_does_not_know_the_file_of_a_cache(cvx: Cvx, tmp_path: Path) -> None:
    cached = CachedEmbedder(LexicalEmbedder(), tmp_path / "vectors.sqlite")
    with Memory.open(cvx.store, embedder=cached) as memory:
        memory.add(SECRET)
        memory.add("a mug")
    assert "CachedEmbedder" not in cvx("forget", 1, "--erase", "--dry-run").err
    said = cvx("forget", 1, "--erase", "--yes").err
    assert len(cached) == 2
    assert "CachedEmbedder" in said
    with Memory.open(cvx.store, embedder=cached) as memory:
        memory.erase(2)
    assert len(cached) == 1


def test_an_erase_by_source_takes_what_was_put_away_too(cvx: Cvx) -> None:
    cvx("add", "a secret", "--source", "diary")
    cvx("add", "another", "--source", "diary")
    cvx("forget", 1)
    assert cvx("forget", "--source", "diary", "--erase", "--yes", "--json").json["ids"] == [1, 2]
    assert cvx("stats", "--json").json["events"] == 0


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (["--source", "diary"], [1, 2]),
        (["--before", "25"], [1, 2]),
        (["--source", "diary", "--before", "15"], [1]),
        (["--source", "diary", "--namespace", "ana"], [2]),
        (["--budget", "1"], [1, 2]),
        (["--budget", "3KB"], [1, 2]),
        (["--budget", "10MB"], []),
        (["--source", "nobody"], []),
    ],
)
def test_events_are_chosen_by_what_is_known_of_them(
    cvx: Cvx, options: list[str], gone: list[int]
) -> None:
    filled(cvx)
    done = cvx("forget", *options, "--json")
    assert sorted(done.json["ids"]) == gone
    assert done.code == (0 if gone else 1)
    assert state(cvx) == (3, 3 - len(gone))


@pytest.mark.parametrize(
    "options",
    [
        [],
        [1, "--source", "diary"],
        ["--budget", "much"],
        [1, "--namespace", "ana"],
        [1, "--erase", "--undo"],
        ["--budget", "1", "--undo"],
        ["--before", "soon"],
    ],
)
def test_contradictions_are_refused(cvx: Cvx, options: list[object]) -> None:
    filled(cvx)
    assert cvx("forget", *options).code == 2
    assert cvx("forget", 1, 99).code == 1
    assert state(cvx) == (3, 3)


def test_compacting_makes_the_store_smaller_and_loses_nothing(cvx: Cvx) -> None:
    lines = "\n".join(f'{{"text": "note {n} {"x" * 500}"}}' for n in range(200))
    cvx("add", "--file", "-", stdin=lines)
    cvx("forget", *range(1, 190))
    with Memory.open(cvx.store, embedder=LexicalEmbedder()) as memory:
        with memory.record.transaction() as write:
            # Free pages, as an older erase that could not compact leaves them.
            write.connection.execute("CREATE TABLE bulk AS SELECT zeroblob(3000000)")
            write.connection.execute("DROP TABLE bulk")
        memory.admin.snapshot()
    done = cvx("compact", "--json").json
    assert done["complete"] is True
    assert done["after"] < done["before"]
    assert len(list((cvx.store / "index").glob("*.cvx"))) == 1
    assert cvx("doctor").out.endswith("sound\n")
    assert cvx("recall", "note 195").code == 0
    again = cvx("compact", "--json").json
    assert again["after"] == pytest.approx(done["after"], rel=0.05)
    assert again["before"] == sum(p.stat().st_size for p in cvx.store.rglob("*") if p.is_file())


def test_a_store_moves_to_another_embedder_and_remembers_it(cvx: Cvx) -> None:
    filled(cvx)
    told = cvx("reembed", "lexical:64", "--json").json
    assert (told["from"], told["to"]) == ("cvx-lexical-1/512/3-5/1", "cvx-lexical-1/64/3-5/1")
    assert (told["dim"], told["embedded"]) == (64, 3)
    assert SECRET in cvx("recall", "safe").out
    assert cvx("stats", "--json").json["embedder"] == "lexical:64"
    assert "nothing to do" in cvx("reembed", "lexical:64").out
    assert cvx("reembed", "magic").code == 2


@pytest.mark.requirement("B16")
def test_a_served_model_is_remembered_and_asked_only_with_the_users_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "s"
    monkeypatch.setenv("CVX_CONFIG", str(tmp_path / "mine.toml"))
    process(store, "add", "a mug on a shelf")
    with running(Server(endpoints=OPENAI)) as server:
        moved = process(store, "reembed", f"openai:toy@{server.url}/v1", "--json")
        assert moved.json["to"] == "served/toy/8"
        spec, asked = f"openai:toy@{server.url}/v1", len(server.requests)
        refused = process(store, "recall", "a mug on a shelf", "--json")
        assert (refused.code, len(server.requests)) == (4, asked)
        error = json.loads(refused.err)["error"]
        assert error["kind"] == "EmbedderNotApprovedError"
        assert f"--embedder {spec}" in error["message"]
        assert f'embedders = ["{spec}"] in {tmp_path / "mine.toml"}' in error["message"]
        named = process(store, "recall", "a mug on a shelf", "--json", "--embedder", spec)
        assert named.json["hits"][0]["similarity"] == pytest.approx(1, abs=1e-5)
        (tmp_path / "mine.toml").write_text(f'embedders = ["{spec}"]')
        found = process(store, "recall", "a mug on a shelf", "--json").json["hits"]
        assert found[0]["similarity"] == pytest.approx(1, abs=1e-5)
    down = process(store, "add", "a cup")
    assert (down.code, down.out) == (4, "")
    assert down.err.startswith("cvx: ")
    assert "Traceback" not in down.err
    told = process(store, "recall", "a mug on a shelf")
    assert told.code == 0
    assert "a mug on a shelf" in told.out
    assert "cvx: embedder: " in told.err
    assert process(store, "recall", "mug", "--json").json["problems"]
    # What embeds nothing needs no server.
    assert process(store, "stats", "--json").json["embedder_id"] == "served/toy/8"
    assert process(store, "doctor").code == 0


def test_an_interrupted_move_leaves_130_and_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "s"
    lines = "\n".join(f'{{"text": "note number {n}"}}' for n in range(60))
    process(store, "add", "--file", "-", stdin=lines)
    with running(Server(endpoints=OPENAI)) as server:
        spec = f"openai:toy@{server.url}/v1"
        server.modes = ["good", "good", "silent"]
        running_move = subprocess.Popen(
            [sys.executable, "-m", "cvx", "reembed", spec, "--batch", "20"],
            env=environment(store),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert server.arrived.wait(300)
        running_move.send_signal(signal.SIGINT)
        _, said = running_move.communicate(timeout=300)
        assert running_move.returncode == 130, said
        assert "Traceback" not in said
    assert "number 3" in process(store, "recall", "number 3").out
    with running(Server(endpoints=OPENAI)) as server:
        spec = f"openai:toy@{server.url}/v1"
        told = process(store, "reembed", spec, "--json").json
        assert told["embedded"] <= 40
        assert process(store, "recall", "number 3", "--embedder", spec).code == 0
    assert process(store, "doctor").code == 0


def test_a_store_made_in_python_is_opened_by_the_command_and_back(cvx: Cvx) -> None:
    with Memory.open(cvx.store, embedder=LexicalEmbedder(dim=32)) as memory:
        memory.add("made in python")
    assert cvx("add", "made by the command").code == 0
    with Memory.open(cvx.store, embedder=LexicalEmbedder(dim=32)) as memory:
        assert [event.text for event in memory.record.events()] == [
            "made in python",
            "made by the command",
        ]


def test_stats_and_compact_count_the_same_bytes(cvx: Cvx) -> None:
    for number in range(20):
        cvx("add", f"a mug of {number} colours")
    done = cvx("compact", "--json").json
    files = [path for path in cvx.store.rglob("*") if path.is_file()]
    assert cvx("stats", "--json").json["bytes"] == sum(path.stat().st_size for path in files)
    assert cvx("compact", "--json").json["before"] <= done["after"]


def test_a_file_in_the_place_of_a_store_is_refused_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for command in (["stats"], ["add", "a mug"]):
        done = Cvx(tmp_path / "empty")(*command)
        assert done.code == 2
        assert f"{tmp_path / 'empty'} is a file, and a store is a folder" in done.err
