"""Nobody goes on with vectors that were replaced behind their back."""

from __future__ import annotations

from cvx.errors import SettingsMismatchError
from cvx.store.record import Record
from cvx.store.writer import Writer


class EmbedderGuard:
    """Follows a record, and refuses once another process has moved it to another embedder.

    An index and an embedder that were opened before the move know nothing of it: what they would
    write and answer is of other vectors than what is stored.

    Parameters
    ----------
    record : Record
        What is followed.
    embedder : str
        The id of the embedder that it was opened with.
    """

    def __init__(self, record: Record, embedder: str) -> None:
        self._record = record
        self._embedder = embedder

    def begun(self, write: Writer) -> None:
        """Refuse a transaction, before anything is written.

        Raises
        ------
        SettingsMismatchError
            The vectors are those of another embedder by now.
        """
        del write
        self.refresh()

    def ended(self) -> None:
        """Do nothing: what was begun was right."""

    def taken_back(self) -> None:
        """Do nothing: it holds nothing of them."""

    def refresh(self) -> None:
        """Refuse to read, as ``begun`` to write."""
        stored = self._record.meta("embedder")
        if stored != self._embedder:
            raise SettingsMismatchError(
                f"{self._record.path} was opened with {self._embedder} and has been moved to "
                f"{stored} since: open it again with that embedder"
            )
