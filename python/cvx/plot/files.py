"""Writing a picture where it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvx.errors import FileError, InvalidInputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figure(figure: Figure, path: str) -> None:
    """Write a picture in the format that the ending of the path names.

    Raises
    ------
    InvalidInputError
        It knows no format with that ending.
    FileError
        The file cannot be written.
    """
    try:
        figure.savefig(path)
    except ValueError as error:
        raise InvalidInputError(f"{path!r} cannot be drawn: {error}") from error
    except OSError as error:
        raise FileError(f"{path!r} cannot be written: {error}") from error
