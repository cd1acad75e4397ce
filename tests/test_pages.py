"""The documentation is whole: blocks run, links lead somewhere, nothing public is missing."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import cvx
from cvx.cli.app import build
from tests.cli.command import Cvx
from tools.commands import PAGE, commands, options, page

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "rfcs").glob("*.md"),
    ROOT / "crates" / "cvx-index" / "README.md",
]
# Decisions and changes tell what was; their blocks are of their time.
LIVING = [one for one in PAGES if one.parent.name != "rfcs" and one.name != "CHANGELOG.md"]
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, *languages: str) -> list[str]:
    """The fenced blocks of a page that have one of these languages."""
    found = _BLOCK.findall(path.read_text())
    return [text for language, text in found if language.partition(":")[0].strip() in languages]


def prose(path: Path) -> str:
    """A page without its blocks and inline code."""
    return re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", path.read_text()))


def anchors(path: Path) -> set[str]:
    """What links to headings of a page may name."""
    titles = re.findall(r"^#{1,4} (.+)$", _BLOCK.sub("", path.read_text()), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {one.strip().replace(" ", "-") for one in words}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_no_link_leads_nowhere(path: Path) -> None:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        if not found.exists() or (anchor and anchor not in anchors(found)):
            dead.append(target)
    assert dead == []


@pytest.mark.parametrize("path", LIVING, ids=name_of)
def test_every_block_is_of_a_kind_that_is_tried(path: Path) -> None:
    kinds = {language for language, _ in _BLOCK.findall(path.read_text())}
    directives = {"{toctree}", "{eval-rst}"} if (ROOT / "docs") in path.parents else set()
    # Rust blocks are doctests of the crate; blocks of no language are drawings, files or sessions.
    # A cluster takes several machines: its lines are compiled, and tests/cluster runs their like.
    several = {"py"} if path.name == "cluster.md" else set()
    assert kinds <= {"", "python", "json", "sh", "toml", "rust", *directives, *several}
    for text in blocks(path, "py"):
        compile(text, name_of(path), "exec")
    assert not [one for one in blocks(path, "python") if ">>> " not in one]
    assert not [one for one in blocks(path, "") if re.search("^(import|from) |^>>> ", one, re.M)]
    for text in blocks(path, "json"):
        try:
            json.loads(text)
        except json.JSONDecodeError:
            # JSON Lines.
            assert all(isinstance(json.loads(line), dict) for line in text.splitlines())


def shell_lines(path: Path) -> Iterator[tuple[str, str]]:
    """The commands of a page's sessions, each with what it is said to print."""
    for text in (one.replace("\\\n", " ") for one in blocks(path, "")):
        if re.match("(cvx|make|python -m|pip) ", text):
            yield from ((line.partition("#")[0], "") for line in text.splitlines())
        elif text.startswith("$ "):
            for told in ("\n" + text).split("\n$ ")[1:]:
                line, _, output = told.partition("\n")
                yield line, output
    for text in blocks(path, "sh"):
        yield from ((line, "") for line in text.replace("\\\n", " ").splitlines() if line.strip())


def cvx_arguments(line: str) -> list[str]:
    program, *arguments = shlex.split(line.partition(" # ")[0])
    return arguments if program == "cvx" else []


COMMANDS = {name.removeprefix("cvx "): one for name, one in commands(get_command(build()))}


@pytest.mark.parametrize("path", LIVING, ids=name_of)
def test_every_command_of_a_page_is_one(path: Path) -> None:
    for line, _ in shell_lines(path):
        words = shlex.split(line.partition(" # ")[0])
        if not words:
            continue
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        elif words[:2] == ["python", "-m"] and words[2].split(".")[0] in ("benches", "experiments"):
            there = ROOT / words[2].replace(".", "/")
            assert there.with_suffix(".py").exists() or there.is_dir(), line
        elif words[0] == "cvx":
            name = " ".join(words[1:3]) if " ".join(words[1:3]) in COMMANDS else words[1]
            known = {one for param in COMMANDS[name].params for one in param.opts} | {"--help"}
            given = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}
            assert given <= known, line
        else:
            # What stands beside: exports, installations, servers of others.
            assert words[0] in ("export", "pip", "ollama", "cargo"), line


# docs/cli.md has a test of its own; a server does not end by itself.
SESSIONS = sorted(
    one
    for one in LIVING
    if one.name not in ("cli.md", "commands.md")
    and re.search(r"^(\$ |```sh$)", one.read_text(), re.M)
)
_CHANGES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d*\.\d+|\d+%")
"""What differs from run to run, or when recall and causes weigh differently."""


@pytest.mark.parametrize("path", SESSIONS, ids=name_of)
def test_the_sessions_of_a_page_are_real(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for export in (ROOT / "tests" / "integrations" / "exports").iterdir():
        shutil.copy(export, tmp_path)
    (tmp_path / "notes.jsonl").write_text('{"content": "It rained.", "created": "2026-11-23"}\n')
    run = Cvx(Path("store"))
    for line, expected in shell_lines(path):
        if line.startswith("export CVX_STORE="):
            run = Cvx(Path(line.partition("=")[2]))
        arguments = cvx_arguments(line)
        serves = arguments[:1] == ["inspect"] or (
            arguments[:1] == ["mcp"] and "install" not in arguments
        )
        if not arguments or serves:
            continue
        done = run(*arguments)
        assert done.code == 0, (line, done.err)
        # An installation names paths of this machine.
        if expected.strip() and arguments[0] != "mcp":
            told = _CHANGES.sub("#", done.err + done.out)
            assert told.strip() == _CHANGES.sub("#", expected).strip(), line


def test_every_command_and_option_is_on_the_page_of_commands() -> None:
    assert page() == PAGE.read_text(), "run: python tools/commands.py"
    bare = [
        f"{name} {written}"
        for name, command in COMMANDS.items()
        for written, told in options(command)
        if not told.strip()
    ]
    assert bare == []
    assert [name for name, command in COMMANDS.items() if "For example:" not in command.help] == []
    guide = (ROOT / "docs" / "cli.md").read_text()
    assert [name for name in COMMANDS if f"`{name.split()[0]}" not in guide] == []


def test_no_public_name_is_without_a_docstring_or_a_place_in_the_reference() -> None:
    told = "\n".join(one.read_text() for one in (ROOT / "docs" / "reference").glob("*.md"))
    missing, bare = [], []
    placed: set[int] = set()
    whole = re.findall(r"automodule:: (cvx[\w.]*)\n   :members:\n", told)
    public = {f"cvx.{name}": getattr(cvx, name) for name in cvx.__all__}
    for name in whole:
        module = importlib.import_module(name)
        listed = getattr(module, "__all__", None) or [
            one
            for one, value in vars(module).items()
            if not one.startswith("_") and getattr(value, "__module__", "") == name
        ]
        public |= {f"{name}.{one}": getattr(module, one) for one in listed}
        placed |= {id(getattr(module, one)) for one in listed}
    for name, value in public.items():
        by_name = re.search(rf":: {re.escape(name)}$", told, re.MULTILINE)
        if id(value) not in placed and not by_name:
            missing.append(name)
        bare += list(without_docstring(name, value))
    assert missing == []
    assert bare == []


def without_docstring(name: str, value: Any) -> Iterator[str]:
    """The public parts of something that say nothing of themselves."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return
    if not (inspect.getdoc(value) or "").strip():
        yield name
    if inspect.isclass(value):
        for part, one in vars(value).items():
            plain = one.__func__ if isinstance(one, classmethod | staticmethod) else one
            told = plain.fget if isinstance(plain, property) else plain
            if not part.startswith("_") and inspect.isfunction(told):
                yield from without_docstring(f"{name}.{part}", told)


def test_the_site_has_every_page() -> None:
    listed = (ROOT / "docs" / "contents.md").read_text()
    pages = {
        str(one.relative_to(ROOT / "docs").with_suffix(""))
        for one in (ROOT / "docs").rglob("*.md")
        if one.name != "contents.md"
    }
    assert [one for one in sorted(pages) if not re.search(rf"^{one}$", listed, re.MULTILINE)] == []


MEMORY = cvx.Memory(embedder="lexical")
_ROOTS = "cvx|[Mm]emory|experiments|benches"


def resolves(name: str) -> bool:
    """Whether a dotted name leads from a module of cvx, or from a memory, to something."""
    head, *parts = name.split(".")
    value: Any = MEMORY if head.lower() == "memory" else importlib.import_module(head)
    for place, part in enumerate(parts):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join([head, *parts[: place + 1]]))
            except ImportError:
                return False
    return True


@pytest.mark.parametrize("path", [one for one in LIVING if one.name != "logging.md"], ids=name_of)
def test_every_name_that_a_page_says_exists(path: Path) -> None:
    code = " ".join(re.findall(r"`([^`]+)`", _BLOCK.sub("", path.read_text())))
    named = set(re.findall(rf"(?<![\w./])(?:{_ROOTS})(?:\.[A-Za-z_]\w*)+", code))
    # Files, a host, and what another specification calls tools.
    known = {"memory.db", "memory.example", "memory.duckdb", "memory.add_event", "memory.query"}
    assert [one for one in sorted(named - known) if not resolves(one)] == []
