"""Writing a picture where it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvx.errors import InvalidParameterError, OutputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figure(figure: Figure, path: str) -> None:
    """Write a picture in the format that the ending of the path names.

    Raises
    ------
    InvalidParameterError
        It knows no format with that ending.
    OutputError
        The file cannot be written.
    """
    try:
        figure.savefig(path)
    except ValueError as error:
        raise InvalidParameterError(f"{path!r} cannot be drawn: {error}") from error
    except OSError as error:
        raise OutputError(f"{path!r} cannot be written: {error}") from error
