"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Store = Annotated[
    Path | None,
    typer.Option("--store", "-s", envvar="CVX_STORE", help="The folder of the memory."),
]
EmbedderSpec = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        "-e",
        help="lexical, local:DIR, ollama:MODEL[@URL] or openai:MODEL[@URL]; the store remembers "
        "it. A server's key is read from CVX_EMBEDDER_KEY.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Which memory; the default one is unnamed.")
]
Since = Annotated[
    str | None, typer.Option("--since", help="Not before: a date and time, or the store's number.")
]
Until = Annotated[
    str | None, typer.Option("--until", help="Before: a date and time, or the store's number.")
]
