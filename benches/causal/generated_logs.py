"""Generates event logs with interleaved stories and known causes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_FILE = Path(__file__).with_name("logs.toml")
_BECAUSE = ("because", "since", "as a result of the fact that", "now that")


class Log(NamedTuple):
    """Events in the order of their times.

    Attributes
    ----------
    texts : tuple of str
        What they say.
    times : tuple of int
        When they happened, in seconds; equal for what is told together.
    links : frozenset of (int, int)
        (cause, effect), places in ``texts``; only direct ones.
    """

    texts: tuple[str, ...]
    times: tuple[int, ...]
    links: frozenset[tuple[int, int]]


class Chain(NamedTuple):
    """A story: its events, which led to which, and what is of the same place and leads nowhere."""

    events: tuple[str, ...]
    causes: tuple[tuple[int, int], ...]
    asides: tuple[str, ...]


def stories() -> tuple[list[Chain], Mapping[str, Any]]:
    """Return the stories of ``logs.toml``, and what their blanks are filled with."""
    told = tomllib.loads(_FILE.read_text("utf-8"))
    return [
        Chain(
            tuple(story["events"]),
            tuple((at, at + 1) for at in range(len(story["events"]) - 1)),
            tuple(story["asides"]),
        )
        for story in told["story"]
    ], told


def interleaved(
    chains: Sequence[Chain],
    everyday: Sequence[str],
    blanks: Mapping[str, Any],
    rng: np.random.Generator,
    *,
    distractors: int,
    said: float = 0.15,
) -> Log:
    """Tell several stories at once, among everyday events.

    Parameters
    ----------
    chains : sequence of Chain
        Each begins anywhere in the day; its events follow at gaps of minutes to hours.
    everyday : sequence of str
        What the distractors are drawn from.
    blanks : mapping
        ``who``, ``host`` and ``where`` to choices.
    rng : numpy.random.Generator
        Of everything.
    distractors : int
        How many everyday events lie among the stories.
    said : float, default 0.15
        Share of the effects that name their cause ("..., because ...").
    """
    rows: list[tuple[float, str, tuple[int, int] | None]] = []
    for number, chain in enumerate(chains):
        filled = _filler(blanks, rng)
        texts = [filled(text) for text in chain.events]
        time = rng.uniform(0, 40_000)
        for place, text in enumerate(texts):
            cause = next((a for a, b in chain.causes if b == place), None)
            if cause is not None and rng.random() < said:
                text = _naming(text, texts[cause], rng)
            rows.append((time, text, (number, place)))
            time += float(rng.lognormal(8.0, 1.0))
        told = [aside for aside in chain.asides if rng.random() < 0.7]
        rows += [(rng.uniform(0, time), filled(aside), None) for aside in told]
    last = max(time for time, _, _ in rows)
    for _ in range(distractors):
        text = _filler(blanks, rng)(str(rng.choice(list(everyday))))
        rows.append((rng.uniform(0, last), text, None))
    rows.sort(key=lambda row: row[0])
    place_of = {name: at for at, (_, _, name) in enumerate(rows) if name is not None}
    links = frozenset(
        (place_of[number, a], place_of[number, b])
        for number, chain in enumerate(chains)
        for a, b in chain.causes
    )
    return Log(tuple(text for _, text, _ in rows), tuple(int(row[0]) for row in rows), links)


def recurring(
    chains: Sequence[Chain],
    everyday: Sequence[str],
    blanks: Mapping[str, Any],
    rng: np.random.Generator,
    *,
    rounds: int,
    distractors: int,
) -> Log:
    """Tell the first steps of stories again and again; at times the effect does not come.

    What happens at every hour whatever else does is among the distractors.
    """
    rows: list[tuple[float, str, tuple[int, int] | None]] = []
    fillers = [_filler(blanks, rng) for _ in chains]
    for number, (chain, filled) in enumerate(zip(chains, fillers, strict=True)):
        pair = [filled(text) for text in chain.events[:2]]
        comes = rng.uniform(0.5, 1.0)
        for turn in range(rounds):
            time = rng.uniform(0, 100_000 * rounds)
            rows.append((time, pair[0], (number, 2 * turn)))
            if rng.random() < comes:
                later = time + float(rng.lognormal(7.0, 0.5))
                rows.append((later, pair[1], (number, 2 * turn + 1)))
    chosen = [_filler(blanks, rng)(str(text)) for text in rng.choice(list(everyday), 5)]
    rows += [
        (rng.uniform(0, 100_000 * rounds), str(rng.choice(chosen)), None)
        for _ in range(distractors)
    ]
    rows.sort(key=lambda row: row[0])
    place = {name: at for at, (_, _, name) in enumerate(rows) if name is not None}
    links = frozenset(
        (at, place[number, step + 1])
        for (number, step), at in place.items()
        if step % 2 == 0 and (number, step + 1) in place
    )
    return Log(tuple(text for _, text, _ in rows), tuple(int(row[0]) for row in rows), links)


def _filler(blanks: Mapping[str, Any], rng: np.random.Generator) -> Any:
    chosen = {name: str(rng.choice(blanks[name])) for name in ("who", "host", "where")}
    chosen["id"] = str(rng.integers(100, 10_000))
    return lambda text: text.format(**chosen)


def _naming(effect: str, cause: str, rng: np.random.Generator) -> str:
    """An effect that names its cause, in whole or in part."""
    clause = cause[0].lower() + cause[1:]
    kind = rng.integers(3)
    if kind == 0:
        return f"{effect} {rng.choice(_BECAUSE)} {clause}"
    if kind == 1:
        return f"After {clause}, {effect[0].lower() + effect[1:]}"
    return f"{effect} ({' '.join(cause.split()[-3:])})"
