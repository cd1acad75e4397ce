"""The record of what happened: SQLite from the standard library, the one place that writes."""

from cvx.store.record import Record
from cvx.store.writer import Writer

__all__ = ["Record", "Writer"]
