"""The learning experiment on ScienceWorld: ``python -m experiments.scienceworld``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(argv: Sequence[str] | None = None) -> int:
    """Play the experiment; return 0, or 2 where something asked for cannot be played."""
    from experiments.harness.command import parser, run_command
    from experiments.scienceworld.material import TASKS, ScienceWorld

    options = parser("python -m experiments.scienceworld", __doc__)
    options.set_defaults(max_steps=25, seeds=3, rounds=1, games_per_round=18, measured=12)
    options.add_argument("--tasks", default=",".join(TASKS), help="joined by commas")
    options.add_argument("--simplified", default="easy", help="the simulator's; '' for none")
    return run_command(
        options,
        lambda found: ScienceWorld(
            tuple(name for name in found.tasks.split(",") if name), found.simplified
        ),
        argv,
    )


if __name__ == "__main__":
    sys.exit(main())
