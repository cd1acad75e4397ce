"""Writes JSON natively, faster than ``json`` where there are many floats; and checksums of it."""

from cvx._cvx import compact_json, row_crc

__all__ = ["compact_json", "row_crc"]
