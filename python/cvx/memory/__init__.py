"""cvx.Memory: everything an agent remembers, in one folder or in RAM."""

from cvx.memory.advice import Advice, Option
from cvx.memory.episode import RunningEpisode
from cvx.memory.memory import Memory

__all__ = ["Advice", "Memory", "Option", "RunningEpisode"]
