"""The application `cvx`: lists its commands and shows their errors."""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings

import typer

from cvx.cli.console import INTERRUPTED, report
from cvx.escaping import printable

COMMANDS = {
    "add": "write",
    "recall": "read",
    "list_": "list_and_edit",
    "show": "list_and_edit",
    "edit": "list_and_edit",
    "tail": "list_and_edit",
    "inspect": "inspect",
    "report": "inspect",
    "link": "write",
    "why": "read",
    "causes": "read",
    "stats": "read",
    "forget": "maintenance",
    "eval_": "read",
    "doctor": "maintenance",
    "export": "transfer",
    "import_": "transfer",
    "reembed": "transfer",
    "compact": "maintenance",
}
"""The module of each function, in the order of the help; ``import_`` is called ``import``."""

_HELP = """The memory of an AI agent, in one folder.

Start here:
  export CVX_STORE=~/notes          the folder; made by the first `add`
  cvx add "the spare key is under the green pot"
  cvx recall "where is the key?"

Every command has --json for scripts, and --help with an example.
"""

_EPILOG = (
    "Exit codes: 0 done, 1 nothing found or problems found, 2 wrong usage or input, 3 the store "
    "failed, 4 something outside failed (embedder, file, package), 5 a fault of cvx, "
    "130 interrupted."
)


def build() -> typer.Typer:
    """Return the application with every command of ``COMMANDS``."""
    app = typer.Typer(
        epilog=_EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=_help(_HELP))(_top)
    for name, module in COMMANDS.items():
        command = getattr(importlib.import_module(f"cvx.cli.{module}"), name)
        app.command(name.removesuffix("_"), help=_help(command.__doc__))(command)
    app.add_typer(_mcp(), name="mcp")
    return app


def _mcp() -> typer.Typer:
    """Return the command that has commands of its own, with their docstrings as help."""
    from cvx.cli.mcp import app, mcp

    app.callback(invoke_without_command=True, help=_help(mcp.__doc__ or ""))(mcp)
    for command in app.registered_commands:
        command.help = _help(getattr(command.callback, "__doc__", None) or "")
    return app


def _help(docstring: str) -> str:
    """Return a docstring as help: paragraphs with indented lines keep their line breaks."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(f"\b\n{one}" if "\n  " in one else one for one in paragraphs)


def _version(wanted: bool) -> None:
    if wanted:
        import cvx

        typer.echo(f"cvx {cvx.__version__}")
        raise typer.Exit


def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Hold the options that stand before the command."""
    del version


def _note_warning(message: Warning | str, *_: object, **__: object) -> None:
    sys.stderr.write(f"cvx: {printable(str(message))}\n")


def run(arguments: list[str] | None = None) -> None:
    """Run a command line and exit.

    Parameters
    ----------
    arguments : list of str, optional
        Without the name of the program; by default those of the process.
    """
    given = sys.argv[1:] if arguments is None else arguments
    warnings.showwarning = _note_warning
    try:
        build()(given, prog_name="cvx")
    except KeyboardInterrupt:
        sys.stderr.write("\ncvx: interrupted\n")
        sys.exit(INTERRUPTED)
    except Exception as error:
        sys.exit(report(error, as_json="--json" in given))
