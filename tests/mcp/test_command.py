"""``cvx mcp install`` and ``inspect``, and that nothing else pays for the SDK."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from cvx.mcp.host_settings import HOSTS
from cvx.mcp.tools import GROUPS, TABLE
from tests.cli.command import Cvx, environment
from tests.mcp.sessions import ask

_CHANGES = re.compile(r"\d+%.*")
"""What differs when causes are judged differently."""


@pytest.fixture
def cvx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cvx:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Cvx(tmp_path / "store")


def test_a_look_at_the_tools_leaves_a_folder_of_something_else_alone(cvx: Cvx) -> None:
    cvx.store.mkdir()
    (cvx.store / "notes.txt").write_text("mine")
    done = cvx("mcp", "inspect", "recall", '{"cue": "key"}')
    assert done.code == 3
    assert "is no store" in done.err
    assert [path.name for path in cvx.store.iterdir()] == ["notes.txt"]


def test_install_prints_settings_that_start_the_server(cvx: Cvx, tmp_path: Path) -> None:
    done = cvx("mcp", "install", "claude-code", "--namespace", "ana", "--tools", "memory")
    (entry,) = json.loads(done.out.split("\n", 1)[1])["mcpServers"].values()
    assert entry["args"][-6:] == ["--store", str(tmp_path / "store"), "--namespace", "ana",
                                  "--tools", "memory"]  # fmt: skip
    assert not (tmp_path / ".mcp.json").exists()
    every = cvx("mcp", "install").out
    assert all(name in every for name in HOSTS)

    async def session(client: Client) -> None:
        await ask(client, "memory_add_event", effect="it rained")

    async def run() -> None:
        parameters = StdioServerParameters(**entry, env=environment(tmp_path / "store"))
        async with Client(parameters) as client:
            await session(client)

    asyncio.run(run())
    assert cvx("recall", "rain", "--namespace", "ana").code == 0


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_writing_keeps_what_is_there_and_a_copy_of_it(cvx: Cvx, tmp_path: Path, host: str) -> None:
    path = HOSTS[host].path()
    assert path.absolute().is_relative_to(tmp_path)
    assert cvx("mcp", "install", host, "--write").code == 0
    key = HOSTS[host].key
    fresh = json.loads(path.read_text())
    assert [*fresh] == [key]
    before = json.dumps({"theme": "dämmerung", key: {"other": {"command": "x"}}})
    path.write_text(before, "utf-8")
    done = cvx("mcp", "install", host, "--write", "--name", "memory")
    assert done.code == 0, done.err
    after = json.loads(path.read_text("utf-8"))
    assert (after["theme"], [*after[key]]) == ("dämmerung", ["other", "memory"])
    assert after[key]["memory"] == fresh[key]["cvx"]
    (copy,) = path.parent.glob("*.bak")
    assert copy.read_text("utf-8") == before


def test_writing_what_stands_there_already_leaves_no_copy(cvx: Cvx, tmp_path: Path) -> None:
    assert cvx("mcp", "install", "claude-code", "--write").code == 0
    before = (tmp_path / ".mcp.json").read_text()
    assert "has it already" in cvx("mcp", "install", "claude-code", "--write").out
    assert (tmp_path / ".mcp.json").read_text() == before
    assert not [*tmp_path.glob("*.bak")]


@pytest.mark.parametrize("command", ["install", "inspect"])
def test_the_help_of_both_commands_keeps_an_example_a_line(cvx: Cvx, command: str) -> None:
    lines = [line.strip() for line in cvx("mcp", command, "--help").out.splitlines()]
    examples = [line for line in lines if line.startswith(f"cvx mcp {command} ")]
    assert len(examples) == 2


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_writing_keeps_links_modes_and_every_copy(cvx: Cvx, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text('{"mcpServers": {"other": {"env": {"KEY": "secret"}}}}')
    real.chmod(0o600)
    (tmp_path / ".mcp.json").symlink_to(real)
    for name in ("one", "two", "three"):
        assert cvx("mcp", "install", "claude-code", "--write", "--name", name).code == 0
    assert (tmp_path / ".mcp.json").is_symlink()
    assert {*json.loads(real.read_text())["mcpServers"]} == {"other", "one", "two", "three"}
    copies = sorted(tmp_path.glob("dotfiles.json.*.bak"))
    assert [len(json.loads(one.read_text())["mcpServers"]) for one in copies] == [1, 2, 3]
    assert {one.stat().st_mode & 0o777 for one in [real, *copies]} == {0o600}


def test_settings_that_cannot_be_understood_are_left_alone(cvx: Cvx, tmp_path: Path) -> None:
    for text in ('{"mcpServers": [', "[]", '{"mcpServers": 3}', "// a comment\n{}"):
        (tmp_path / ".mcp.json").write_text(text)
        done = cvx("mcp", "install", "claude-code", "--write")
        assert done.code == 2
        assert "add the entry by hand" in done.err
        assert (tmp_path / ".mcp.json").read_text() == text
    assert cvx("mcp", "install", "nonsense").code == 2
    assert cvx("mcp", "install", "--write").code == 2


def test_inspect_lists_tools_and_calls_one(cvx: Cvx) -> None:
    assert cvx("mcp", "inspect").code == 3
    assert cvx("add", "the key is under the pot").code == 0
    listed = cvx("mcp", "inspect", "--tools", "recall,why").out.splitlines()
    assert [line.split(":")[0] for line in listed] == ["recall", "why"]
    assert listed[1].endswith("Arguments: event, or also max_depth.")
    tool = cvx("mcp", "inspect", "--tools", "why", "--json").json["tools"][0]
    assert [*tool["arguments"]["properties"]] == ["event", "max_depth"]
    called = cvx("mcp", "inspect", "recall", '{"cue": "where is the key?"}', "--json").json
    assert called["answer"]["memories"][0]["content"] == "the key is under the pot"
    assert cvx("mcp", "inspect", "recall", "{}").code == 1
    for wrong in ("{", "[1]"):
        assert cvx("mcp", "inspect", "recall", wrong).code == 2
    assert cvx("mcp", "inspect", "--tools", "nonsense").code == 2
    assert cvx("mcp", "--tokens", "x").code == 2


def test_only_serving_imports_the_sdk(tmp_path: Path) -> None:
    code = (
        "import sys, cvx\n"
        "from cvx.cli.app import run\n"
        "try: run(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "assert not {'mcp', 'starlette'} & {*sys.modules}, 'imported'\n"
    )
    for arguments in (["--help"], ["mcp", "--help"], ["mcp", "install", "cursor"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment(tmp_path / "store"),
        )
        assert done.returncode == 0, done.stderr


def test_the_session_of_the_page_is_real(cvx: Cvx, tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "mcp.md").read_text()
    (session,) = re.findall(r"```\n(\$ cvx mcp inspect.*?)```", page, re.DOTALL)
    for told in session.split("$ ")[1:]:
        asked, _, answer = told.partition("\n")
        program, *arguments = shlex.split(asked)
        assert program == "cvx"
        done = cvx(*arguments)
        assert _CHANGES.sub("#", done.out) == _CHANGES.sub("#", answer), asked


def test_every_tool_is_in_the_table_of_the_page() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "mcp.md").read_text()
    for group in GROUPS:
        (row,) = re.findall(rf"^\| `{group}` \| (.*) \|$", page, re.MULTILINE)
        assert {*re.findall(r"`(\w+)`", row)} == {one.name for one in TABLE if group in one.groups}
