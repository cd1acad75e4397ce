"""Write docs/reference/commands.md: every command of `cvx` with its options.

``python tools/commands.py`` writes it; a test of the documentation compares it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from cvx.cli.app import build

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"
_HEAD = """# Commands

Written by `python tools/commands.py` from the program itself; `cvx COMMAND --help` says the same.
What the commands are for, with sessions to follow, is in [the command](../cli.md).
"""


def commands(command: Any, name: str = "cvx") -> Iterator[tuple[str, Any]]:
    """Yield every command below one, with its whole name."""
    for own, one in getattr(command, "commands", {}).items():
        yield f"{name} {own}", one
        yield from commands(one, f"{name} {own}")


def options(command: Any) -> Iterator[tuple[str, str]]:
    """Yield how each argument and option of a command is written, and its help."""
    for one in command.params:
        if one.name == "help":
            continue
        if one.param_type_name == "argument":
            written = f"`{(one.metavar or one.name or '').upper()}`"
        else:
            written = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
        default = "" if one.default in (None, "", False) else f" Default {one.default}."
        yield written, " ".join((one.help or "").split()) + default


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", r"\<")


def page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for name, command in commands(get_command(build())):
        text = inspect.cleandoc((command.help or "").replace("\b\n", ""))
        # Examples are indented; in Markdown four columns make a block.
        shown = re.sub(r"(?m)^ +(?=\S)", "    ", text).replace(":\n    ", ":\n\n    ")
        rows = [f"| {one} | {_cell(told)} |" for one, told in options(command)]
        table = "\n".join(["| | |", "|---|---|", *rows]) + "\n" if rows else ""
        parts.append(f"## {name}\n\n{shown}\n\n{table}")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
