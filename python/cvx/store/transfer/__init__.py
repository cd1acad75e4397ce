"""A whole store in another format, and back: JSON Lines, Parquet, DuckDB.

Each format of ``format`` writes batches of rows, and reads them back as an `Incoming`;
``importing`` takes one in, as it was or under new ids.
"""

from cvx.store.transfer.exporting import FORMATS, export_record, format_of, reader_of
from cvx.store.transfer.format import Header, Imported, Incoming
from cvx.store.transfer.importing import import_into

__all__ = [
    "FORMATS",
    "Header",
    "Imported",
    "Incoming",
    "export_record",
    "format_of",
    "import_into",
    "reader_of",
]
