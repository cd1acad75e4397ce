"""The learning experiment on ALFWorld: ``python -m experiments.alfworld``."""

from __future__ import annotations

import os
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

    options = parser("python -m experiments.alfworld", __doc__)
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
    return run_command(
        options, lambda found: Alfworld(found.games, found.cache, found.demonstrations), argv
    )


if __name__ == "__main__":
    sys.exit(main())
