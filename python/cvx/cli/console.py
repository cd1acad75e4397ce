"""Shared parts of the commands: opening a store, options, times, output and exit codes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvx.dates import when
from cvx.errors import (
    CvxError,
    EmbedderError,
    FileError,
    InternalError,
    InvalidInputError,
    MissingExtraError,
    SettingsMismatchError,
    SnapshotError,
    StoreError,
    StoreNotFoundError,
    UnknownError,
)
from cvx.escaping import one_line, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from cvx.embed import Embedder
    from cvx.memory import Memory
    from cvx.store.database import Description
    from cvx.types import Event

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


def timestamp_of(text: str | None, option: str = "--time") -> int | None:
    """Return a time in the store's unit: an integer as it is, a date in microseconds since 1970.

    A date without a zone is UTC.

    Raises
    ------
    typer.BadParameter
        Neither of both.

    Examples
    --------
    >>> timestamp_of("1970-01-02"), timestamp_of("17"), timestamp_of("1970-01-01T01:00:00+01:00")
    (86400000000, 17, 0)
    """
    if text is None:
        return None
    with suppress(ValueError):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{option} {text!r}: give an integer, or a date such as 2026-11-21 or "
            "2026-11-21T17:30:00+01:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def emit(value: Mapping[str, Any]) -> None:
    """Print one JSON object on a line of its own."""
    typer.echo(printable(json.dumps(value, ensure_ascii=False, allow_nan=False)))


def line(text: str = "", *, dim: bool = False, bold: bool = False) -> None:
    """Print a line; styles only reach a terminal."""
    typer.echo(typer.style(printable(text), dim=dim or None, bold=bold or None))


def tell(value: Mapping[str, Any], *texts: str, as_json: bool) -> None:
    """Print an answer: as one line of JSON, or else in words."""
    if as_json:
        emit(value)
    else:
        for text in texts:
            line(text)


def note(text: str) -> None:
    """Say something on stderr that is no result."""
    typer.echo(f"cvx: {printable(text)}", err=True)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "event"), counted(2, "event")
    ('1 event', '2 events')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def plain_event(event: Event) -> dict[str, Any]:
    """Return an event as JSON; its vector is left out."""
    return {
        "id": event.event_id,
        "text": event.text,
        "time": event.timestamp,
        "entity": event.entity,
        "namespace": event.namespace,
        "key": event.key,
        "kind": event.kind,
        "action": event.action,
        "reward": event.reward,
        "episode": event.episode_id,
        "tags": list(event.tags),
        "metadata": dict(event.metadata),
        "source": event.source,
        "trust": event.trust,
        "visibility": event.visibility,
        "salience": event.salience,
        "state": event.state,
        "recorded": event.recorded,
    }


def note_elsewhere(memory: Memory, namespace: str) -> None:
    """Say on stderr which namespace was asked, and how many events the others hold."""
    held = memory.record.query(
        "SELECT namespace, count(*) FROM events WHERE namespace != ? AND state = 'active'"
        " GROUP BY namespace ORDER BY count(*) DESC, namespace",
        (namespace,),
    )
    if not held:
        return
    asked = f"namespace {one_line(namespace)!r}" if namespace else "the unnamed namespace"
    named = [f"{one_line(name, 40)!r}: {number:,}" for name, number in held[:5]]
    further = [f"{counted(len(held) - 5, 'further one')}"] if len(held) > 5 else []
    total = counted(sum(number for _, number in held), "event")
    note(
        f"{asked} was asked; other namespaces hold {total} "
        f"({', '.join([*named, *further])}): name one with -n"
    )


def show_event(event: Event, score: str = "") -> None:
    """Print an event: its number, time and outcome in one line, its text, and what was done."""
    end = "" if event.reward is None else f"  reward {event.reward:g}"
    away = "" if event.state == "active" else f"  ({event.state})"
    line(f"{event.event_id:>6}  {score}{when(event.timestamp)}{end}{away}", dim=True)
    line(f"        {one_line(event.text)}")
    if event.action:
        line(f"        did: {one_line(event.action)}")


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a long piece of work is, on stderr and only where that is a terminal.

    Yields
    ------
    callable
        Takes (done, of how many).
    """
    if not sys.stderr.isatty():
        yield lambda _done, _of: None
        return

    def tell(done: int, of: int) -> None:
        sys.stderr.write(f"\r{label}: {done:,} of {of:,}")
        sys.stderr.flush()

    try:
        yield tell
    finally:
        sys.stderr.write("\r\x1b[K")


NOTHING = 1
USAGE = 2
STORE = 3
OUTSIDE = 4
FAULT = 5
INTERRUPTED = 130

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (InternalError, FAULT),
    (UnknownError, NOTHING),
    (StoreNotFoundError, STORE),
    (SettingsMismatchError, STORE),
    (StoreError, STORE),
    (SnapshotError, STORE),
    (MissingExtraError, OUTSIDE),
    (EmbedderError, OUTSIDE),
    (FileError, OUTSIDE),
    (InvalidInputError, USAGE),
    (CvxError, USAGE),
    (OSError, OUTSIDE),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error: the first class of the table that fits."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAULT)


def report(error: Exception, *, as_json: bool) -> int:
    """Say on stderr what went wrong, without a traceback; return the exit code.

    With ``as_json`` it is one object: ``{"error": {"kind", "message", "exit"}}``.
    """
    code = exit_code(error)
    message = str(error) or type(error).__name__
    if code == FAULT:
        message = f"a fault of cvx: {type(error).__name__}: {message}; please report it"
    if as_json:
        told = {"kind": type(error).__name__, "message": message, "exit": code}
        sys.stderr.write(json.dumps({"error": told}) + "\n")
    else:
        sys.stderr.write(f"cvx: {printable(message)}\n")
    return code


def folder_of(store: Path | None) -> Path:
    """Return the folder that is meant.

    Raises
    ------
    InvalidInputError
        Neither --store nor CVX_STORE says it, or it is a file.
    """
    if store is None or not str(store).strip():
        raise InvalidInputError("no store: say --store FOLDER, or set CVX_STORE to a folder")
    folder = store.expanduser()
    if folder.is_file():
        raise InvalidInputError(f"{folder} is a file, and a store is a folder: give that one")
    return folder


@contextmanager
def opened(
    store: Path | None,
    spec: str | None = None,
    *,
    create: bool = False,
    whole: bool = False,
    embeds: bool = True,
    reads: bool = False,
    read_only: bool = False,
) -> Iterator[Memory]:
    """Open the memory for one command.

    Parameters
    ----------
    store : Path or None
        As given.
    spec : str, optional
        The embedder as given; by default the one that the store remembers.
    create : bool, default False
        Whether a store may be made.
    whole : bool, default False
        Whether a store that is made is kept only where the command succeeds.
    embeds : bool, default True
        Whether the command embeds anything; where not, no embedder is made or reached.
    reads : bool, default False
        Whether the command only reads, and so works where nothing can be written.
    read_only : bool, default False
        Whether nothing may be written, not even what reading notes.

    Raises
    ------
    StoreNotFoundError
        There is no store, and none may be made.
    SettingsMismatchError
        The store is of another embedder, or of one that must be named.
    """
    from cvx.embed.registry import spec_of
    from cvx.memory import Memory
    from cvx.store.database import describe
    from cvx.store.new_store import staged

    folder = folder_of(store)
    try:
        known = describe(folder)
    except StoreNotFoundError:
        if not create:
            raise
        known = None
    embedder = embedder_for(known, spec, embeds=embeds)
    metric = "cosine" if known is None else known.metric
    read_only = read_only or (reads and not _writable(folder))
    stays = known is not None or not whole
    with (
        nullcontext(folder) if stays else staged(folder) as place,
        Memory.open(
            place, embedder=embedder, metric=metric, create=create, read_only=read_only
        ) as memory,
    ):
        if not read_only:
            memory._shared.remember_spec(None if spec is None else spec_of(spec))
        if known is None and stays:
            _note_made(folder, embedder)
        yield memory
    if not stays:
        _note_made(folder, embedder)


def _note_made(folder: Path, embedder: Embedder) -> None:
    semantic = embedder.info()["semantic"]
    of_spelling = "" if semantic else "; its embedder knows spelling, not meaning (see --embedder)"
    note(f"made a new memory in {folder}{of_spelling}")


def embedder_for(known: Description | None, spec: str | None, *, embeds: bool) -> Embedder:
    """Return the embedder for a store, or for one that is to be made."""
    from cvx.embed import LexicalEmbedder
    from cvx.embed.check import check
    from cvx.embed.registry import Absent, embedder_from
    from cvx.memory.settings import embedder_of_store

    if known is None or known.embedder is None or known.dim is None:
        made = LexicalEmbedder() if spec is None else embedder_from(spec)
        check(made)
        return made
    if spec is not None:
        return embedder_from(spec, dim=known.dim)
    if not embeds:
        return Absent(known.embedder, known.dim)
    return embedder_of_store(known)


def _writable(folder: Path) -> bool:
    return all(os.access(path, os.W_OK) for path in (folder, folder / "memory.db"))
