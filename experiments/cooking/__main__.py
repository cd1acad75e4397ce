"""The learning experiment on TextWorld's cooking games: ``python -m experiments.cooking``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(argv: Sequence[str] | None = None) -> int:
    """Play the experiment; return 0, or 2 where something asked for cannot be played."""
    from experiments.cooking.levels import LEVELS
    from experiments.cooking.material import DEFAULT_CACHE, Cooking
    from experiments.harness.command import parser, run_command

    options = parser("python -m experiments.cooking", __doc__)
    options.set_defaults(max_steps=100)
    options.add_argument("--cache", type=Path, default=Path(DEFAULT_CACHE), help="made games")
    options.add_argument(
        "--demonstrations",
        type=int,
        default=len(LEVELS),
        metavar="N",
        help="of the N simplest levels; default of each",
    )
    return run_command(options, lambda found: Cooking(found.cache, found.demonstrations), argv)


if __name__ == "__main__":
    sys.exit(main())
