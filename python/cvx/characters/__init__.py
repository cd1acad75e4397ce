"""Characters of a simulation that find out who they are, and remember what happened to them."""

from cvx.characters.cast import Cast
from cvx.characters.character import TYPES, Answer, Character, Gate
from cvx.characters.distortion import Distortion, DistortionFilter, Inverter
from cvx.characters.filters import memory_filter
from cvx.characters.prompts import TOOLS

__all__ = [
    "TOOLS",
    "TYPES",
    "Answer",
    "Cast",
    "Character",
    "Distortion",
    "DistortionFilter",
    "Gate",
    "Inverter",
    "memory_filter",
]
