"""The loop in one object: recall, act, close, learn."""

from cvx.active.attribution import Taken
from cvx.active.memory import ActiveMemory
from cvx.active.parts import task_and_entity
from cvx.active.protocol import ActiveIndex

__all__ = ["ActiveIndex", "ActiveMemory", "Taken", "task_and_entity"]
