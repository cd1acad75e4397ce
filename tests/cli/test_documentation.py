"""docs/cli.md says what the command does."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cvx.cli.app import COMMANDS
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.store.doctor.findings import Check
from tests.cli.command import Cvx
from tests.evaluation.generated_talk import generated_talk
from tests.evaluation.labelled_file import write_labels
from tests.store.planted import sql

TEXT = (Path(__file__).parent.parent.parent / "docs" / "cli.md").read_text()
_CHANGES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d\.\d{4}")
"""What differs from run to run, or when recall weighs differently."""


def sessions() -> Iterator[tuple[list[str], str]]:
    """Every command in the page with its output."""
    for block in re.findall(r"```\n(\$ .*?)```", TEXT, re.DOTALL):
        for told in block.split("$ ")[1:]:
            command, _, output = told.partition("\n")
            program, *arguments = shlex.split(command)
            if program == "cvx":
                yield arguments, output


def test_the_sessions_of_the_page_are_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cvx = Cvx(Path("notes"))
    ran = 0
    for arguments, expected in sessions():
        if arguments == ["doctor"]:
            sql("UPDATE events SET text = 'the cellar floodee' WHERE event_id = 3")(Path("notes"))
        done = cvx(*arguments)
        assert _CHANGES.sub("#", done.err + done.out) == _CHANGES.sub("#", expected), arguments
        ran += 1
    assert ran == 12


def table(heading: str) -> dict[str, str]:
    """The rows of a table by the words in its first column."""
    start = TEXT.index(f"| {heading} |")
    rows = TEXT[start:].split("\n\n", 1)[0].splitlines()[2:]
    return {cells[0]: cells[1] for cells in (row.strip("| ").split(" | ", 1) for row in rows)}


def words(cell: str) -> list[str]:
    return re.findall(r"`([a-z_ ]+)`", cell)


def evaluated(folder: Path) -> dict[str, object]:
    """What `cvx eval` prints when weights are fitted."""
    questions = folder / "questions.jsonl"
    with Memory.open(folder / "talk", embedder=LexicalEmbedder()) as memory:
        write_labels(questions, generated_talk(memory, sessions=8))
    done = Cvx(folder / "talk")("eval", questions, "--tune", "--folds", "2", "--json")
    return dict(done.json)


def test_the_keys_of_every_command_are_those_of_the_page(cvx: Cvx, tmp_path: Path) -> None:
    told = {}
    for name, cell in table("command | keys").items():
        for one in words(name):
            told[one] = words(re.sub(r"\([^)]*\)", "", cell))
    # The keys of what these list stand behind their own.
    nested = {"recall", "why", "doctor", "show", "list", "tail"}
    cvx("add", "it rained all night")
    flood = "the cellar flooded because it rained all night"
    runs = {
        "add": ("add", flood, "--entity", "ana"),
        "causes": ("causes", flood),
        "link": ("link", 1, 2),
        "recall": ("recall", "cellar"),
        "why": ("why", 2),
        "list": ("list",),
        "show": ("show", 2),
        "edit": ("edit", 1, "--tag", "rain"),
        "tail": ("tail",),
        "report": ("report", "--out", tmp_path / "memory.html"),
        "stats": ("stats",),
        "forget": ("forget", 1, "--dry-run"),
        "doctor": ("doctor",),
        "export": ("export", tmp_path / "all.jsonl"),
        "reembed": ("reembed", "lexical:32"),
        "compact": ("compact",),
    }
    got = {name: cvx(*arguments, "--json").json for name, arguments in runs.items()}
    got["import"] = Cvx(tmp_path / "new")("import", tmp_path / "all.jsonl", "--json").json
    got["eval"] = evaluated(tmp_path)
    # A server does not end by itself: tests/inspect starts it.
    assert told.pop("inspect") == ["url"]
    assert got.keys() == told.keys() == {name.removesuffix("_") for name in COMMANDS} - {"inspect"}
    for name, found in got.items():
        own = told[name][: len(found)] if name in nested else told[name]
        assert set(found) == set(own), name
    event = words(TEXT[TEXT.index("An event: ") :])
    assert list(got["list"]["events"][0]) == event
    (hit,) = [hit for hit in got["recall"]["hits"] if hit["id"] == 2]
    assert list(hit) == [*event, "score", "similarity", "factors"]


def test_every_finding_of_the_doctor_is_in_the_page() -> None:
    named = [word for cell in table("check | means | cure") for word in words(cell)]
    assert sorted(named) == sorted(str(check) for check in Check)
