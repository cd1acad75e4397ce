"""The command line of experiments, the same for every domain."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cvx.errors import CvxError, FileError, InvalidInputError
from experiments.harness.arms import ARMS, FOCUS, GROUPS, chosen
from experiments.harness.domain import Domain
from experiments.harness.play_arm import folder_of
from experiments.harness.protocols import PROTOCOLS, Sizes, protocol_of
from experiments.harness.setup import Setup, conditions

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.harness.play_arm import Played


def _usual(size: str) -> str:
    """Say what a size is unless it is given, by protocol, with generated and with real games."""
    sizes = {
        one.name: (getattr(one.generated, size), getattr(one.real, size))
        for one in PROTOCOLS.values()
    }
    return "; ".join(
        f"{name} {generated} (real games {real})" if real != generated else f"{name} {generated}"
        for name, (generated, real) in sizes.items()
        if generated
    )


def parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what all domains understand."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    add = parser.add_argument
    add(
        "--protocol",
        default="transfer",
        help="; ".join(f"{one.name}: {one.title}" for one in PROTOCOLS.values()),
    )
    add("--seeds", type=int, help=f"default {_usual('seeds')}")
    add("--first-seed", type=int, default=0, help="the others count up from it; default 0")
    add("--rounds", type=int, help=f"default {_usual('rounds')}")
    add("--games-per-round", type=int, help=f"default {_usual('games_per_round')}")
    add("--measured", type=int, help=f"on how many games; default {_usual('measured')}")
    add(
        "--measured-after",
        metavar="ROUNDS",
        help="transfer: after how many rounds, such as 0,5,10; default: first and last, and for "
        "generated games all",
    )
    add("--max-steps", type=int, default=50, help="of a game; default 50")
    add(
        "--arms",
        default="protocols",
        help=f"names or groups ({', '.join(GROUPS)}) joined by commas, of {', '.join(ARMS)}; "
        "default protocols",
    )
    add("--workers", type=int, default=2, help="processes; default 2")
    add("--out", type=Path, help="where to write, without ending; default runs/<domain>/<time>")
    add(
        "--store",
        type=Path,
        metavar="DIR",
        help="keep memories and results there; the same command goes on where it was broken off",
    )
    add("--llm", metavar="URL", help="an OpenAI-compatible server that plays in the agent's place")
    add("--model", metavar="NAME", help="the model's name there")
    add("--answers", type=Path, metavar="DIR", help="keep the model's answers, and ask each once")
    add("--audit", type=Path, metavar="DIR", help="note what the model was asked and answered")
    return parser


def run_command(
    options: argparse.ArgumentParser,
    domain_of: Callable[[argparse.Namespace], Domain],
    argv: Sequence[str] | None = None,
) -> int:
    """Play what a command line asks for; return 0, or 2 where it cannot be played.

    Parameters
    ----------
    options : argparse.ArgumentParser
        Of `parser`; a domain may have added its own.
    domain_of : callable
        Which games what was found asks for.
    argv : sequence of str, optional
        The words of the command; default those that the process was started with.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    found = options.parse_args(given)
    command = shlex.join([*options.prog.split(), *given])
    try:
        return _run(setup_of(domain_of(found), found), found.out, command)
    except CvxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = "the same command goes on with it" if found.store else "give --store to keep it"
        print(f"stopped: what was played is not reported; {kept}", file=sys.stderr)
        return 130


def setup_of(domain: Domain, options: argparse.Namespace) -> Setup:
    """Return the setup that options ask for.

    Raises
    ------
    InvalidInputError
        A word that names nothing.
    """
    protocol = protocol_of(options.protocol)
    usual = protocol.real if domain.real else protocol.generated
    asked = (getattr(options, name) for name in Sizes._fields)
    sizes = Sizes(*(u if a is None else a for u, a in zip(usual, asked, strict=True)))
    arms = chosen(options.arms)
    if options.llm and options.arms in GROUPS:
        arms = tuple(name for name in arms if ARMS[name].readable)
    after: tuple[int, ...] = ()
    if options.measured_after:
        after = _numbers(options.measured_after)
    elif protocol.measures and not domain.real:
        after = tuple(range(sizes.rounds + 1))
    return Setup(
        domain=domain,
        protocol=protocol.name,
        **sizes._asdict(),
        measured_after=after,
        first_seed=options.first_seed,
        arms=arms,
        workers=options.workers,
        max_steps=options.max_steps,
        llm=options.llm,
        model=options.model,
        answers=options.answers,
        audit=options.audit,
        store=options.store,
    )


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError as error:
        raise InvalidInputError(
            f"--measured-after {text!r} is no list of numbers: give such as 0,5,10"
        ) from error


def _run(setup: Setup, out: Path | None, command: str) -> int:
    from rich.console import Console

    from experiments.harness.figures import summary
    from experiments.harness.page import write_page
    from experiments.harness.pictures import draw, draw_all
    from experiments.harness.play_arm import watched
    from experiments.harness.report import render, write_json

    # A file or a pipe has no width of its own: wide enough that nothing is cut.
    console = Console(width=None if sys.stdout.isatty() else 110)
    setup.check()
    kind = f"{'real' if setup.domain.real else 'generated'}-{setup.protocol}"
    stamp = time.strftime(f"{kind}-%Y%m%d-%H%M%S")
    base = out or Path("runs") / setup.domain.name / stamp
    _check_writable(base.parent)
    kept = base.parent / f"{base.name}-memory"
    if setup.store is None and not kept.exists():
        setup = replace(setup, kept=kept)
    console.print(conditions(setup))
    start = time.monotonic()
    played = _play(setup, console)
    seconds = time.monotonic() - start
    figures = summary(setup, played)
    console.print(render(figures))
    # Not with_suffix: a name may have dots in it.
    data, picture, page = (base.parent / f"{base.name}{end}" for end in (".json", ".png", ".html"))
    write_json(data, figures, played, seconds, command)
    every = base.parent / f"{base.name}-all.png"
    draw(picture, figures)
    draw_all(every, figures)
    write_page(page, figures, command, seconds, watched(setup))
    console.print(f"{len(played)} games in {seconds:.0f} s")
    console.print(*(f"wrote {file}" for file in (data, picture, every, page)), sep="\n")
    memory = folder_of(setup, FOCUS, setup.first_seed)
    if FOCUS in setup.arms and memory is not None:
        console.print(f"look into what it remembers: cvx inspect --store {memory}", soft_wrap=True)
    return 0


def _play(setup: Setup, console: Console) -> list[Played]:
    """Play it all, and show how far it is."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from experiments.harness.protocols import size_of
    from experiments.harness.run import run

    each = size_of(setup) * setup.seeds
    total = each * len(setup.arms)
    played: list[Played] = []
    with Progress(
        TextColumn("{task.description:>13}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[won]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        whole = progress.add_task("all games", total=total, won="")
        bars = {arm: progress.add_task(arm, total=each, won="") for arm in setup.arms}
        won = dict.fromkeys(setup.arms, 0)
        done = dict.fromkeys(setup.arms, 0)
        for game in run(setup):
            played.append(game)
            won[game.arm] += game.won
            done[game.arm] += 1
            share = f"{100 * won[game.arm] / done[game.arm]:3.0f}% won"
            progress.update(bars[game.arm], advance=1, won=share)
            progress.update(whole, advance=1)
            if not console.is_terminal and len(played) % 500 == 0:
                console.print(f"{len(played)} of {total} games played")
    return played


def _check_writable(folder: Path) -> None:
    """Fail before the games are played rather than after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileError(
            f"{folder} cannot be written to ({error}): name another place with --out"
        ) from error
