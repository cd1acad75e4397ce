"""The command ``cvx``.

A command is a function of its own name and a line in ``cvx.cli.app.COMMANDS``, which says in which
module. Everything costly is imported inside the functions.
"""


def main() -> None:
    """Run the command and leave with its exit code."""
    from cvx.cli.app import run

    run()


__all__ = ["main"]
