"""cvx eval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cvx.cli.opening import opened
from cvx.cli.options import EmbedderSpec, Json, Store
from cvx.cli.output import emit, line


def eval_(
    labels: Annotated[
        Path,
        typer.Argument(help="JSON Lines: query, gold (event ids or keys); see docs/evaluation.md."),
    ],
    tune: Annotated[
        bool, typer.Option("--tune", help="Fit the weights to a part, measure on the other.")
    ] = False,
    train: Annotated[
        list[str] | None,
        typer.Option(help="A group to fit to; may be repeated. Default: a seeded half."),
    ] = None,
    floor: Annotated[
        bool, typer.Option("--floor", help="Calibrate when to answer nothing, on the same part.")
    ] = False,
    at: Annotated[
        list[int] | None, typer.Option("--at", help="Where rankings are cut; default 5, 10, 20.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split and of the intervals.")] = 0,
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Measure recall on labelled questions, beside the plain ways; nothing is changed.

    For example:
      cvx eval questions.jsonl
      cvx eval questions.jsonl --tune --floor --json
    """
    from cvx import evaluation as ev

    asked = ev.read_labels(labels)
    with opened(store, embedder) as memory:
        found = ev.evaluated(
            memory, asked, tune=tune, train=train, floor=floor, at=at or (5, 10, 20), seed=seed
        )
    if json:
        emit(found.as_json())
        return
    line(ev.table(found.measured))
    for name, value in found.fitted().items():
        line()
        line(f"{name}: {_told(value)}")


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    return str(value)
