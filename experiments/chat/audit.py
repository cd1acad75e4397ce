"""The audit log of a run: one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

from experiments.errors import AuditError


class AuditLog:
    """A file that grows by a line for everything that is noted.

    Each line is written at once: what a process noted before it died is there, and a line that it
    left cut is cut off. Nothing but what is noted gets in, no time and no place, so that a repeated
    run writes the same file.

    Parameters
    ----------
    path : path-like
        Appended to, by one log at a time; folders on the way are made.

    Raises
    ------
    AuditError
        It cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _end_at_a_line(self.path)
            self._file: IO[bytes] = self.path.open("ab", buffering=0)
        except OSError as error:
            raise AuditError(f"{self.path} cannot be written: {error}") from error

    def note(self, kind: str, **values: Any) -> None:
        """Write one line.

        Parameters
        ----------
        kind : str
            What it tells of.
        **values
            Anything JSON can hold.
        """
        line = json.dumps({"kind": kind, **values}, ensure_ascii=True) + "\n"
        try:
            self._file.write(line.encode())
        except (OSError, ValueError) as error:
            raise AuditError(f"{self.path} cannot be written: {error}") from error

    @property
    def size(self) -> int:
        """How many bytes were noted."""
        return self._file.seek(0, os.SEEK_END)

    def cut(self, size: int) -> None:
        """Take back what was noted beyond a size; of a shorter log, nothing.

        Raises
        ------
        AuditError
            It cannot be written.
        """
        try:
            if size < self.size:
                self._file.truncate(size)
        except (OSError, ValueError) as error:
            raise AuditError(f"{self.path} cannot be written: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end_at_a_line(path: Path) -> None:
    """Cut off what stands after the last whole line: the next one would become part of it."""
    if path.is_file():
        with path.open("rb+") as file:
            whole = sum(len(line) for line in file if line.endswith(b"\n"))
            file.truncate(whole)


def read_audit(path: str | os.PathLike[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a log, oldest first.

    A last line that is cut, as a process leaves it that dies while it writes, is left out.

    Raises
    ------
    AuditError
        The file cannot be read, or a line in the middle is not JSON.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise AuditError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines[:-1], start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise AuditError(f"line {number} of {path} is damaged: {line[:80]!r}") from error
