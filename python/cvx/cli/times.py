"""Times as a person writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import typer


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
    try:
        return int(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{option} {text!r}: give an integer, or a date such as 2026-11-21 or "
            "2026-11-21T17:30:00+01:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (seconds.days * 86_400 + seconds.seconds) * 1_000_000 + seconds.microseconds
