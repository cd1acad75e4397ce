"""A native check of many texts for words of an order to a model, before any pattern is asked."""

from cvx._cvx import may_hide_orders

__all__ = ["may_hide_orders"]
