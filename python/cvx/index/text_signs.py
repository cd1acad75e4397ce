"""Looks natively, and quickly, for texts that are worth a closer look."""

from cvx._cvx import may_hide_orders

__all__ = ["may_hide_orders"]
