"""The learning experiment on ALFWorld: ``python -m experiments.alfworld``."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(argv: Sequence[str] | None = None) -> int:
    """Play the experiment; return 0, or 2 where something asked for cannot be played."""
    from experiments.alfworld.demonstrations import DEFAULT_CACHE
    from experiments.alfworld.material import Alfworld
    from experiments.harness.command import parser, run_command

    program = "python -m experiments.alfworld"
    options = parser(program, __doc__)
    add = options.add_argument
    add("--games", type=Path, help="folder of real ALFWorld games (json_2.1.1); default: generated")
    add(
        "--cache",
        type=Path,
        default=Path(DEFAULT_CACHE),
        help="games, demonstrations and translations",
    )
    add(
        "--demonstrations",
        type=int,
        metavar="N",
        help="N winning ones of games of any type, 0 for none; default one a type",
    )
    given = list(sys.argv[1:] if argv is None else argv)
    found = options.parse_args(given)
    domain = Alfworld(found.games, found.cache, found.demonstrations)
    return run_command(domain, found, shlex.join([*program.split(), *given]))


if __name__ == "__main__":
    sys.exit(main())
