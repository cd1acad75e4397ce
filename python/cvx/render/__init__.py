"""Renders memories as text for a prompt: labels, blocks, token budgets.

Escaping stands below, in `cvx.escaping`, since errors and reprs need it too.
"""

from cvx.dates import calendar_time
from cvx.render.block import Entry, Renderer, entries_of, kind_of
from cvx.render.packing import Budget, Fitted, first_within, fit

__all__ = [
    "Budget",
    "Entry",
    "Fitted",
    "Renderer",
    "calendar_time",
    "entries_of",
    "first_within",
    "fit",
    "kind_of",
]
