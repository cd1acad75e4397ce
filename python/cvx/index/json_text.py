"""Writes JSON natively: several times faster than ``json`` where there are many floats."""

from cvx._cvx import compact_json

__all__ = ["compact_json"]
