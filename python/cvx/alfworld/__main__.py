"""The command line of the learning experiment: ``python -m cvx.alfworld``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cvx.errors import OutputError

if TYPE_CHECKING:
    from cvx.alfworld.material import Setup

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(argv: Sequence[str] | None = None) -> int:
    """Play the experiment; return 0, or 2 where something asked for cannot be played."""
    from cvx.alfworld.material import Setup
    from cvx.errors import CvxError
    from cvx.textgames.arms import ARMS

    options = _parser().parse_args(argv)
    real = options.games is not None
    usual = [name for name, arm in ARMS.items() if arm.readable or not options.llm]
    setup = Setup(
        seeds=(3 if real else 5) if options.seeds is None else options.seeds,
        rounds=(7 if real else 3) if options.rounds is None else options.rounds,
        games_per_round=options.games_per_round,
        first_seed=options.first_seed,
        arms=tuple(options.arms.split(",") if options.arms else usual),
        games=options.games,
        workers=options.workers,
        max_steps=options.max_steps,
        cache=options.cache,
        llm=options.llm,
        model=options.model,
        store=options.store,
    )
    try:
        return _run(setup, options.out)
    except CvxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = "the same command goes on with it" if options.store else "give --store to keep it"
        print(f"stopped: what was played is not reported; {kept}", file=sys.stderr)
        return 130


def _run(setup: Setup, out: Path | None) -> int:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from cvx.alfworld.experiment import run
    from cvx.alfworld.report import conditions, draw, render, summary, write_json

    # A file or a pipe has no width of its own: wide enough that nothing is cut.
    console = Console(width=None if sys.stdout.isatty() else 110)
    setup.check()
    kind = "generated" if setup.games is None else "real"
    base = out or Path("runs") / "alfworld" / time.strftime(f"{kind}-%Y%m%d-%H%M%S")
    _check_writable(base.parent)
    console.print(conditions(setup))
    each = setup.rounds * setup.games_per_round
    start = time.monotonic()
    played = []
    with Progress(
        TextColumn("{task.description:>11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[won]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        total = each * setup.seeds
        whole = progress.add_task("all games", total=total * len(setup.arms), won="")
        bars = {a: progress.add_task(a, total=total, won="") for a in setup.arms}
        for game in run(setup):
            played.append(game)
            own = [g.won for g in played if g.arm == game.arm]
            progress.update(bars[game.arm], advance=1, won=f"{100 * sum(own) / len(own):3.0f}% won")
            progress.update(whole, advance=1)
            if not console.is_terminal and len(played) % 100 == 0:
                console.print(f"{len(played)} of {total * len(setup.arms)} games played")
    seconds = time.monotonic() - start
    figures = summary(setup, played)
    console.print(render(setup, figures))
    files = base.with_suffix(".json"), base.with_suffix(".png")
    write_json(files[0], setup, figures, played, seconds)
    draw(files[1], setup, figures)
    console.print(
        f"{len(played)} games in {seconds:.0f} s", *(f"wrote {f}" for f in files), sep="\n"
    )
    return 0


def _check_writable(folder: Path) -> None:
    """Fail before the games are played rather than after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written to ({error}): choose another --out"
        ) from error


def _parser() -> argparse.ArgumentParser:
    from cvx.alfworld.demonstrations import DEFAULT_CACHE
    from cvx.textgames.arms import ARMS

    parser = argparse.ArgumentParser(prog="python -m cvx.alfworld", description=__doc__)
    add = parser.add_argument
    add("--games", type=Path, help="folder of real ALFWorld games (json_2.1.1); default: generated")
    add("--seeds", type=int, help="default 5, with --games 3")
    add("--first-seed", type=int, default=0, help="the others count up from it; default 0")
    add("--rounds", type=int, help="default 3, with --games 7")
    add("--games-per-round", type=int, default=20, help="default 20")
    add("--max-steps", type=int, default=50, help="of a game; default 50")
    add("--arms", help=f"names joined by commas; default {','.join(ARMS)}")
    add("--workers", type=int, default=2, help="processes; default 2")
    add("--out", type=Path, help="where to write, without ending; default runs/alfworld/<time>")
    add(
        "--cache",
        type=Path,
        default=Path(DEFAULT_CACHE),
        help="games, demonstrations and translations",
    )
    add(
        "--store",
        type=Path,
        metavar="DIR",
        help="keep memories and results there; the same command goes on where it was broken off",
    )
    add("--llm", metavar="URL", help="an OpenAI-compatible server that plays in the agent's place")
    add("--model", metavar="NAME", help="the model's name there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
