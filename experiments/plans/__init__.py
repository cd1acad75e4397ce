"""Plans: how goals were reached by commands, remembered with variables in the place of names.

Nothing here knows a word of any domain. What a word of a goal means is learned from the commands
that it shares episodes with; a demonstrated command becomes a subgoal by taking out the names that
the goal gave; what is recalled for a new goal is filled with the new names.
"""

from experiments.plans.attempt import (
    Attempt,
    Consulted,
    Item,
    OpenClauses,
    Wish,
    plan_of,
    use_key,
)
from experiments.plans.binding import Binding, signature, verbs
from experiments.plans.choices import Choices, Search, moment
from experiments.plans.demonstration import Demonstrations, Observation, Played
from experiments.plans.lessons import PLAN, SUBGOAL
from experiments.plans.lexicon import Lexicon
from experiments.plans.memory import PlanMemory
from experiments.plans.place_map import PlaceMap
from experiments.plans.pursuit import Pursuit, complete
from experiments.plans.returns import Returns, Walk
from experiments.plans.words import arguments, kind, mentions, shape, template

__all__ = [
    "PLAN",
    "SUBGOAL",
    "Attempt",
    "Binding",
    "Choices",
    "Consulted",
    "Demonstrations",
    "Item",
    "Lexicon",
    "Observation",
    "OpenClauses",
    "PlaceMap",
    "PlanMemory",
    "Played",
    "Pursuit",
    "Returns",
    "Search",
    "Walk",
    "Wish",
    "arguments",
    "complete",
    "kind",
    "mentions",
    "moment",
    "plan_of",
    "shape",
    "signature",
    "template",
    "use_key",
    "verbs",
]
