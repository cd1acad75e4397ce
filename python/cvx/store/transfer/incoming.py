"""What every format is read back as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from cvx.store.transfer.header import Header
from cvx.store.transfer.tables import Batch


class Incoming(Protocol):
    """An export that is being read."""

    header: Header

    def batches(self) -> Iterator[Batch]:
        """Yield every row with its checksum, checked, in the order of `ORDER`.

        Raises
        ------
        ExportError
            A row, named, is not what was written, or some are missing.
        """
        ...


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Parameters
    ----------
    merged : bool
        Whether the record held something before: ids are new ones then.
    counts : mapping
        Rows of each table that were taken in.
    left_out : mapping
        Rows of each table that a merge leaves out: what was learned and logged in another
        history.
    """

    merged: bool
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
