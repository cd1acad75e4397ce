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
    save: Annotated[
        bool, typer.Option("--save", help="Let the store recall with what was fitted.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the split and of the intervals.")] = 0,
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Measure recall on labelled questions, beside the plain ways.

    For example:
      cvx eval questions.jsonl
      cvx eval questions.jsonl --tune --floor --save
    """
    from cvx import evaluation as ev

    if save and not (tune or floor):
        raise typer.BadParameter("--save keeps what was fitted: give --tune, --floor or both")
    asked = ev.read_labels(labels)
    with opened(store, embedder, reads=not save) as memory:
        found = ev.evaluated(
            memory, asked, tune=tune, train=train, floor=floor, at=at or (5, 10, 20), seed=seed
        )
        if save:
            memory.learning.recall_with(
                None if found.tuned is None else found.tuned.weights, found.answerable
            )
    if json:
        emit(found.as_json())
        return
    for row in ev.table(found.measured).splitlines():
        line(row)
    for name, value in found.fitted().items():
        line()
        line(f"{name}: {_told(value)}")


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    return str(value)
