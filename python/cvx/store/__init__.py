"""The store: the SQLite record, the index that follows it, snapshots; all writes to disk.

From below: ``rows`` (columns, checksums, nouns as rows), ``fulltext``, ``schema`` (tables and
migrations), ``lock``, ``database`` (one SQLite file), ``writer``, ``transactions``, ``record``,
``history`` (what is kept of the past), ``replica`` (an index that follows the record),
``snapshots``, ``store`` (all of these in one folder), ``erase``, ``reembed``; ``doctor`` and
``transfer`` stand above.
"""

from cvx.store.record import Record
from cvx.store.store import IndexKind, Store
from cvx.store.writer import Writer

__all__ = ["IndexKind", "Record", "Store", "Writer"]
