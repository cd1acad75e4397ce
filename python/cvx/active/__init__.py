"""The loop in one object: recall, act, close, learn."""

from cvx.active.attribution import Taken
from cvx.active.memory import ActiveMemory
from cvx.active.protocol import ActiveIndex

__all__ = ["ActiveIndex", "ActiveMemory", "Taken"]
