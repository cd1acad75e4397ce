"""The command ``cvx``.

A command is a function of its own name in a file of its own name in ``cvx.cli.commands``, and a
line in ``cvx.cli.app.COMMANDS``. Everything costly is imported inside the functions.
"""


def main() -> None:
    """Run the command and leave with its exit code."""
    from cvx.cli.app import run

    run()


__all__ = ["main"]
