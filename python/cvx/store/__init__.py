"""The record of what happened, and the one place that writes it to disk.

From below: ``rows`` (columns and checksums), ``text`` (FTS5), ``versions`` and ``schema`` (tables,
migrations), ``lock``, ``journalled`` to ``reads`` (reading), ``journalling`` to ``writer``
(writing), ``transactions``, ``record`` (one SQLite database), ``replica`` (an index that follows
it), ``snapshots``, ``store`` (all of these in one folder), ``erase``, ``past``.
"""

from cvx.store.record import Record
from cvx.store.store import IndexKind, Store
from cvx.store.writer import Writer

__all__ = ["IndexKind", "Record", "Store", "Writer"]
