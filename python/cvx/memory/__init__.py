"""cvx.Memory: everything an agent remembers, in one folder or in RAM."""

from typing import TYPE_CHECKING

from cvx.lazy import names_of
from cvx.memory.memory import Memory

if TYPE_CHECKING:
    from cvx.memory.advice import Advice as Advice
    from cvx.memory.advice import Option as Option
    from cvx.memory.episode import RunningEpisode as RunningEpisode

_HOME = {"Advice": "advice", "Option": "advice", "RunningEpisode": "episode"}

__all__ = ["Advice", "Memory", "Option", "RunningEpisode"]
__getattr__, __dir__ = names_of(__name__, _HOME)
