"""Export and import by the command."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cvx.store.failpoints import ENVIRONMENT
from tests.cli.command import Cvx, environment, process
from tests.store.planted import rich_store


@pytest.mark.requirement("W26", "X9")
@pytest.mark.parametrize("ending", ["jsonl", "parquet", "duckdb"])
def test_a_store_is_copied_by_two_commands(tmp_path: Path, ending: str) -> None:
    rich_store(tmp_path / "m")
    path = tmp_path / f"all.{ending}"
    written = process(tmp_path / "m", "export", path, "--json")
    assert (written.code, written.err) == (0, "")
    assert written.json["rows"]["events"] == 16
    taken = process(tmp_path / "copy", "import", path, "--json")
    assert taken.json == {"merged": False, "rows": written.json["rows"], "left_out": {}}
    assert "rain fell" in process(tmp_path / "copy", "recall", "it poured").out
    assert process(tmp_path / "copy", "doctor").out.endswith("sound\n")


def test_an_export_goes_through_a_pipe(cvx: Cvx, tmp_path: Path) -> None:
    cvx("add", "a mug on a shelf", "--alias", "a cup")
    done = cvx("export", "-")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out.splitlines()[0])["cvx"] == "export"
    assert cvx("export", "-", "--json").code == 2
    (tmp_path / "all").write_text(done.out)
    other = Cvx(tmp_path / "other")
    assert other("import", tmp_path / "all").code == 2
    assert other("import", tmp_path / "all", "--format", "jsonl").code == 0
    assert "a mug on a shelf" in other("recall", "cup").out


def test_twice_in_a_row_is_refused_and_wrong_input_is_explained(cvx: Cvx, tmp_path: Path) -> None:
    cvx("add", "a mug")
    path = tmp_path / "all.jsonl"
    cvx("export", path)
    again = cvx("export", path)
    assert (again.code, again.out) == (4, "")
    assert "there already" in again.err
    other = Cvx(tmp_path / "other")
    assert other("import", path).code == 0
    refused = other("import", path)
    assert refused.code == 2
    assert "--again" in refused.err
    merged = other("import", path, "--again")
    assert merged.code == 0
    assert "added to what is here" in merged.out
    for wrong, code in (("no-such.jsonl", 4), ("no-such.parquet", 4), ("no-such.duckdb", 4)):
        done = Cvx(tmp_path / "third")("import", tmp_path / wrong)
        assert (done.code, done.out) == (code, "")
        assert wrong in done.err
    (tmp_path / "events.jsonl").write_text('{"text": "not an export"}\n')
    done = Cvx(tmp_path / "third")("import", tmp_path / "events.jsonl")
    assert done.code == 2
    assert "cvx add --file" in done.err
    assert "cvx import --from jsonl" in done.err
    assert "KeyError" not in done.err
    assert not (tmp_path / "third").exists()
    assert cvx("import", path, "--keep-vectors").code == 2


def test_what_another_memory_exported_is_taken_over_whole_or_leaves_nothing(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"text": "a mug on a shelf"}\n')
    bad.write_text('{"text": "a mug"}\n{"says": "no text"}\n')
    for path, origin, code, said in (
        (bad, "jsonl", 2, "line 2 has no text"),
        (tmp_path / "none.json", "chroma", 4, "none.json"),
    ):
        done = Cvx(tmp_path / "new")("import", path, "--from", origin)
        assert (done.code, done.out) == (code, "")
        assert said in done.err
        assert "made a new memory" not in done.err
        assert not (tmp_path / "new").exists()
    done = Cvx(tmp_path / "new")("import", good, "--from", "jsonl")
    assert (done.code, done.out) == (0, "1 event taken over\n")
    assert "made a new memory" in done.err
    assert (tmp_path / "new" / "index").is_dir()
    # What is there already stays as it is.
    assert Cvx(tmp_path / "new")("import", bad, "--from", "jsonl").code == 2
    assert "a mug on a shelf" in Cvx(tmp_path / "new")("recall", "mug").out
    assert process(tmp_path / "new", "doctor").out.endswith("sound\n")


def test_an_empty_store_is_exported_and_taken_in(cvx: Cvx, tmp_path: Path) -> None:
    cvx("add", "a mug")
    cvx("forget", 1, "--erase", "--yes")
    cvx("export", tmp_path / "all.jsonl")
    other = Cvx(tmp_path / "other")
    assert other("import", tmp_path / "all.jsonl", "--json").json["rows"]["events"] == 0
    assert other("recall", "mug").code == 1
    assert other("add", "a cup", "--json").json["ids"] == [2]


def test_a_damaged_store_is_not_exported(cvx: Cvx, tmp_path: Path) -> None:
    from tests.store.planted import sql

    cvx("add", "a mug")
    sql("UPDATE events SET text = 'a jug'")(cvx.store)
    for ending in ("jsonl", "parquet", "duckdb"):
        done = cvx("export", tmp_path / f"all.{ending}")
        assert done.code == 3
        assert "cvx doctor" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_the_file_of_a_causal_core_is_taken_over(cvx: Cvx, tmp_path: Path) -> None:
    cvx("add", "it rained")
    cvx("add", "the cellar flooded")
    cvx("link", 1, 2, "--why", "the drain was full")
    cvx("export", tmp_path / "core.duckdb")
    other = Cvx(tmp_path / "other")
    taking = "import", tmp_path / "core.duckdb", "--from", "core"
    done = other(*taking, "--embedder", "lexical:64")
    assert (done.code, done.out) == (0, "2 events taken over\n")
    assert "the drain was full" in other("why", 2).out
    assert other(*taking).code == 2
    assert other(*taking, "-n", "x", "--keep-vectors").code == 2
    assert other(*taking, "-n", "x", "--json").json["rows"]["events"] == 2


def test_an_interrupted_import_takes_nothing_in_and_starts_again(tmp_path: Path) -> None:
    rich_store(tmp_path / "m")
    path = tmp_path / "all.jsonl"
    process(tmp_path / "m", "export", path)
    killed = process(tmp_path / "copy", "import", path, **{ENVIRONMENT: "import.written@3"})
    assert killed.code == -signal.SIGKILL
    assert process(tmp_path / "copy", "import", path, "--json").json["merged"] is False
    assert process(tmp_path / "copy", "doctor").code == 0


def test_ctrl_c_leaves_quietly_with_130(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.jsonl"
    os.mkfifo(fifo)
    waiting = subprocess.Popen(
        [sys.executable, "-m", "cvx", "add", "--file", str(fifo)],
        env=environment(tmp_path / "s"),
        stderr=subprocess.PIPE,
        text=True,
    )
    # Once it reads from the pipe it is past its imports.
    with open_to(waiting, fifo):
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=300)
    assert waiting.returncode == 130
    assert "Traceback" not in said


@contextmanager
def open_to(reader: subprocess.Popen[str], fifo: Path) -> Iterator[None]:
    """Hold the writing end of a pipe open, once the process has opened the other."""
    pipe = None
    while pipe is None:
        try:
            pipe = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"it ended with {reader.wait(0.05)} and never read")
    try:
        yield
    finally:
        os.close(pipe)
