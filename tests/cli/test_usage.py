"""Help teaches, mistakes are explained, exit codes are those of the help."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cvx.cli.app import COMMANDS
from tests.cli.command import Cvx, environment, process


@pytest.mark.parametrize("command", [name.removesuffix("_") for name in COMMANDS])
def test_every_command_shows_an_example_and_takes_json(cvx: Cvx, command: str) -> None:
    done = cvx(command, "--help")
    assert done.code == 0
    assert f"cvx {command} " in done.out.split("xample", 1)[1]
    assert "--json" in done.out


def test_help_of_the_whole_teaches_the_first_steps(tmp_path: Path) -> None:
    done = process(tmp_path, "--help")
    assert done.code == 0
    for words in ("CVX_STORE", "cvx add", "cvx recall", "Exit codes"):
        assert words in done.out


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    done = process(tmp_path, "--help", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.err.splitlines()}
    assert "cvx.cli.app" in loaded
    assert not loaded & {"numpy", "polars", "sklearn", "duckdb", "rich", "cvx.memory", "sqlite3"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("recall",), 2, "Missing argument"),
        (("recall", "x", "-k", "0"), 2, "k is 0"),
        (("recall", "x", "--since", "yesterday"), 2, "--since 'yesterday'"),
        (("recall", "x", "--outcome", "maybe"), 2, "--outcome 'maybe'"),
        (("recall", "x", "--since", "9", "--until", "3"), 2, "until 3"),
        (("add",), 2, "give a text to remember"),
        (("add", " "), 2, "the text is empty"),
        (("add", "x", "--reward", "3"), 2, "reward"),
        (("add", "x", "--metadata", "novalue"), 2, "--metadata 'novalue'"),
        (("add", "x", "--metadata", "a=" + "[" * 9_000), 2, "at most 32 deep"),
        (("add", "x", "--entity", ""), 2, "entity is ''"),
        (("add", "--file", "/no/such/file"), 4, "/no/such/file cannot be read"),
        (("add", "x", "--embedder", "magic"), 2, "embedder 'magic'"),
        (("add", "x", "--embedder", "local:/no/such/model"), 4, "/no/such/model"),
        (("unknown",), 2, "No such command"),
    ],
)
def test_wrong_input_is_explained(
    cvx: Cvx, arguments: tuple[str, ...], code: int, said: str
) -> None:
    cvx("add", "there before")
    done = cvx(*arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_without_a_store_the_cure_is_named(tmp_path: Path) -> None:
    missing = process(tmp_path / "none", "recall", "x")
    assert missing.code == 3
    assert "cvx add" in missing.err
    assert not (tmp_path / "none").exists()
    unset = process(tmp_path, "recall", "x", CVX_STORE="")
    assert unset.code == 2
    assert "--store" in unset.err


@pytest.mark.parametrize(
    "arguments",
    [("add", ""), ("add", "x", "--trust", "7"), ("add", "--file", "nowhere.jsonl")],
)
def test_input_that_is_refused_makes_no_store(cvx: Cvx, arguments: tuple[str, ...]) -> None:
    assert cvx(*arguments).code != 0
    assert not cvx.store.exists()


def test_a_store_whose_making_broke_off_is_made_to_the_end(cvx: Cvx) -> None:
    cvx.store.mkdir()
    (cvx.store / "memory.db").touch()
    refused = cvx("recall", "x")
    assert refused.code == 3
    assert "cvx add" in refused.err
    assert cvx("add", "a mug").code == 0
    assert "a mug" in cvx("recall", "mug").out


@pytest.mark.requirement("X9")
@pytest.mark.parametrize("how", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_lost_record_is_not_taken_for_a_new_store(
    cvx: Cvx, how: Callable[[Path], object]
) -> None:
    cvx("add", "a mug")
    how(cvx.store / "memory.db")
    for arguments in (
        ("recall", "mug"),
        ("add", "a cup"),
        ("doctor",),
        ("doctor", "--repair", cvx.store.with_name("new")),
    ):
        refused = cvx(*arguments)
        assert refused.code == 3
        assert "restore a copy" in refused.err


def test_errors_are_one_json_object_where_json_was_asked_for(tmp_path: Path) -> None:
    done = process(tmp_path / "none", "stats", "--json")
    assert (done.code, done.out) == (3, "")
    told = json.loads(done.err)["error"]
    assert (told["kind"], told["exit"]) == ("StoreNotFoundError", 3)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("somebody else's")
    for arguments in (("stats",), ("add", "x"), ("recall", "x")):
        done = process(tmp_path, *arguments)
        assert done.code == 3, done
        assert "memory.db" in done.err
    assert (tmp_path / "memory.db").read_text() == "somebody else's"


def test_progress_is_shown_on_a_terminal_and_nowhere_else(tmp_path: Path) -> None:
    lines = "\n".join(f'{{"text": "note {n}"}}' for n in range(300))
    quiet = process(tmp_path / "a", "add", "--file", "-", stdin=lines)
    assert quiet.err.count("\n") == 1
    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    # A terminal takes a few thousand bytes, then whoever writes to it waits.
    reader = threading.Thread(target=read_all, args=(ours, shown))
    reader.start()
    with subprocess.Popen(
        [sys.executable, "-m", "cvx", "add", "--file", "-"],
        env=environment(tmp_path / "b", TERM="xterm"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as running:
        os.close(theirs)
        out, _ = running.communicate(lines, timeout=300)
    reader.join()
    assert b"embedding" in b"".join(shown)
    assert out == "remembered 300 events\n"


def read_all(terminal: int, into: list[bytes]) -> None:
    # The end of a terminal is an error on Linux.
    with suppress(OSError):
        while piece := os.read(terminal, 4096):
            into.append(piece)
    os.close(terminal)
