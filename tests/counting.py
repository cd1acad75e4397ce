"""Says how far the long form of a test has come: a run that was stopped counts, too."""

import os
import sys
from pathlib import Path

NIGHTLY = "CVX_NIGHTLY" in os.environ
ROUND = int(os.environ.get("CVX_ROUND", "0"))
"""Long forms with another round draw other cases."""
LOG = Path(__file__).resolve().parent.parent / "runs" / "nightly.log"


def size(name: str, nightly: int, short: int) -> int:
    """Return how many cases to try: what the environment says, or the form's own number."""
    return int(os.environ.get(name, nightly if NIGHTLY else short))


def tried(what: str, count: int, every: int = 500) -> None:
    """Tell the terminal and ``runs/nightly.log`` each so many; in the nightly run alone."""
    if NIGHTLY and count and count % every == 0:
        LOG.parent.mkdir(exist_ok=True)
        line = f"{what}: {count:,}\n"
        with LOG.open("a") as log:
            log.write(line)
        sys.stderr.write(line)
