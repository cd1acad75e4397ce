"""The loop in one object: recall, act, close, learn."""

from cvx.active.attribution import Attribution, Taken
from cvx.active.edges import ALL_EDGES, HELPFUL, OUTCOME_EDGES, edge_bonus
from cvx.active.memory import ActiveMemory
from cvx.active.parts import task_and_entity

__all__ = [
    "ALL_EDGES",
    "HELPFUL",
    "OUTCOME_EDGES",
    "ActiveMemory",
    "Attribution",
    "Taken",
    "edge_bonus",
    "task_and_entity",
]
