"""What is printed: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from cvx.escaping import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from cvx.types import Event

_OLDEST = 10**14
"""Timestamps from here on (1973) are taken for microseconds since 1970."""


def emit(value: Mapping[str, Any]) -> None:
    """Print one JSON object on a line of its own."""
    typer.echo(printable(json.dumps(value, ensure_ascii=False, allow_nan=False)))


def line(text: str = "", *, dim: bool = False, bold: bool = False) -> None:
    """Print a line; styles only reach a terminal."""
    typer.echo(typer.style(printable(text), dim=dim or None, bold=bold or None))


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


def when(timestamp: int) -> str:
    """Return a time as a person reads it; numbers that are no microseconds since 1970 stay.

    Examples
    --------
    >>> when(1_700_000_000_000_000), when(42)
    ('2023-11-14 22:13:20', '42')
    """
    if timestamp < _OLDEST:
        return str(timestamp)
    try:
        return datetime.fromtimestamp(timestamp / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(timestamp)


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
