"""The loop in one object: recall, act, close, learn."""

from cvx.active.attribution import Attribution, Taken
from cvx.active.edges import ALL_EDGES, HELPFUL, OUTCOME_EDGES, edge_bonus
from cvx.active.memory import ActiveMemory
from cvx.active.parts import task_and_entity
from cvx.active.protocol import ActiveIndex

__all__ = [
    "ALL_EDGES",
    "HELPFUL",
    "OUTCOME_EDGES",
    "ActiveIndex",
    "ActiveMemory",
    "Attribution",
    "Taken",
    "edge_bonus",
    "task_and_entity",
]
