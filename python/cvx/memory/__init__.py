"""cvx.Memory: everything an agent remembers, in one folder or in RAM."""

from cvx.memory.memory import Memory

__all__ = ["Memory"]
