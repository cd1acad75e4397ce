"""A whole store in another format, and back: JSON Lines, Parquet, DuckDB.

``header`` (what an export says of itself), ``tables`` (columns and their types), ``outgoing``
(batches of checked rows in one view of the record); a module a format, each of which writes what
``outgoing`` yields and reads it back as an `Incoming`; ``restoring`` takes one into an empty
record as it was, ``merging`` into one that holds something, under new ids; ``founding`` makes a
record that appears whole or not at all. ``blueprint`` derives
the columns of the Causal Memory Core for DuckDB.
"""

from cvx.store.transfer.formats import FORMATS, export_record, format_of, import_into
from cvx.store.transfer.header import Header
from cvx.store.transfer.incoming import Imported, Incoming

__all__ = [
    "FORMATS",
    "Header",
    "Imported",
    "Incoming",
    "export_record",
    "format_of",
    "import_into",
]
