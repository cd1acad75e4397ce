"""Writes JSON natively, several times faster than ``json``, and sums rows up by it."""

from cvx._cvx import compact_json, row_checksums

__all__ = ["compact_json", "row_checksums"]
