"""The rooms of ALFWorld: floor plans and tables of the installed alfworld package."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.alfworld.package import alfworld_module, package_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

Point = tuple[float, float]

# Floor plans name these receptacles by the fixture around them.
_FIXTURES = {"SinkBasin": "Sink", "BathtubBasin": "Bathtub"}
# Stoves have four burners; of every other receptacle without coordinates a room gets one.
_COUNTS = {"StoveBurner": 4}
_CELL = 0.25  # metres between the points of a layout


@dataclass(frozen=True, slots=True)
class Tables:
    """What may stand where, and what may be done with it.

    Attributes
    ----------
    holds : mapping of str to tuple of str
        For every kind of receptacle the kinds of objects it takes, sorted.
    actions : mapping of str to frozenset of str
        ``Heatable``, ``Coolable``, ``Cleanable``, ``Toggleable``, ``Sliceable``: kinds of objects.
    openable, movable : frozenset of str
        Kinds of receptacles with a door; kinds of objects that take objects.
    receptacles, objects : tuple of str
        All kinds, sorted.
    goals : mapping
        The package's goal library: ``pddl`` and ``templates`` by task type.
    scenes : mapping of str to tuple of int
        Numbers of the floor plans where a task type makes sense.
    domain, grammar : str
        The texts of ``alfred.pddl`` and ``alfred.twl2``.
    """

    holds: Mapping[str, tuple[str, ...]]
    actions: Mapping[str, frozenset[str]]
    openable: frozenset[str]
    movable: frozenset[str]
    receptacles: tuple[str, ...]
    objects: tuple[str, ...]
    goals: Mapping[str, Any]
    scenes: Mapping[str, tuple[int, ...]]
    domain: str
    grammar: str


@cache
def tables() -> Tables:
    """Read the package's tables.

    Raises
    ------
    GameError
        If alfworld is not installed.
    """
    constants = alfworld_module("gen.constants")
    data = package_folder() / "data"
    movable = frozenset(constants.MOVABLE_RECEPTACLES)
    receptacles = tuple(sorted(set(constants.RECEPTACLES) - movable))
    # Objects come whole: slices are made by playing.
    holds = {
        kind: tuple(sorted(k for k in kinds if not k.endswith("Sliced")))
        for kind, kinds in constants.VAL_RECEPTACLE_OBJECTS.items()
        if kind in receptacles
    }
    return Tables(
        holds=holds,
        actions={name: frozenset(k) for name, k in constants.VAL_ACTION_OBJECTS.items()},
        openable=frozenset(constants.OPENABLE_CLASS_LIST),
        movable=movable,
        receptacles=receptacles,
        objects=tuple(sorted(constants.OBJECTS_SET - set(receptacles))),
        goals=alfworld_module("gen.goal_library").gdict,
        scenes={
            task: tuple(sorted(n for room in rooms for n in constants.SCENE_TYPE[room]))
            for task, rooms in constants.GOALS_VALID.items()
        },
        domain=(data / "alfred.pddl").read_text(encoding="utf-8"),
        grammar=(data / "alfred.twl2").read_text(encoding="utf-8"),
    )


@dataclass(frozen=True, slots=True)
class Receptacle:
    """Furniture: its PDDL name, kind, position (x, y, z), and where one stands to use it."""

    name: str
    kind: str
    position: tuple[float, float, float]
    location: str


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """A room.

    Attributes
    ----------
    number : int
    receptacles : tuple of Receptacle
        Those of the plan, and one of each kind that the plan names without a place (four burners).
    objects : tuple of str
        Kinds of objects found in the room, sorted.
    points : tuple of (x, z)
        Where an agent can stand, metres.
    """

    number: int
    receptacles: tuple[Receptacle, ...]
    objects: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of receptacles in the room, sorted."""
        return tuple(sorted({r.kind for r in self.receptacles}))

    def places(self, kind: str) -> tuple[str, ...]:
        """Return the kinds of receptacles here that take objects of ``kind``."""
        return tuple(k for k in self.kinds if kind in tables().holds.get(k, ()))


@cache
def floor_plan(number: int) -> FloorPlan:
    """Read floor plan ``number`` of the package, for example 7 (a kitchen)."""
    folder = package_folder() / "gen" / "layouts"
    found = json.loads((folder / f"FloorPlan{number}-objects.json").read_text(encoding="utf-8"))
    placed = json.loads((folder / f"FloorPlan{number}-openable.json").read_text(encoding="utf-8"))
    layout = np.load(folder / f"FloorPlan{number}-layout.npy")
    points = tuple(sorted({(float(x), float(z)) for x, z in layout}))
    receptacles: list[Receptacle] = []
    for name, (x, z, rotation, horizon) in sorted(placed.items()):
        receptacles.append(_placed(name, x, z, rotation, horizon, receptacles, points))
    known = {r.kind for r in receptacles}
    unplaced = [
        kind
        for kind in tables().receptacles
        if kind in found and kind not in known
        for _ in range(_COUNTS.get(kind, 1))
    ]
    # Spread over the room; the plan does not say where these stand.
    for i, kind in enumerate(unplaced):
        x, z = points[(2 * i + 1) * len(points) // (2 * len(unplaced))]
        fixture = _FIXTURES.get(kind)
        position = "|".join(coordinate(v) for v in (x, 0.9, z))
        name = f"{fixture}|{position}|{kind}" if fixture else f"{kind}|{position}"
        receptacles.append(_placed(name, x, z, 0, 30, receptacles, points))
    return FloorPlan(
        number=number,
        receptacles=tuple(receptacles),
        objects=tuple(sorted(set(found) & set(tables().objects))),
        points=points,
    )


def _placed(
    name: str,
    x: float,
    z: float,
    rotation: float,
    horizon: float,
    others: list[Receptacle],
    points: tuple[Point, ...],
) -> Receptacle:
    parts = name.split("|")
    kind = parts[4] if len(parts) == 5 else parts[0]
    # Stacked drawers may share a spot, as in the release; a basin and a microwave may not, or one
    # would clean things standing at the microwave.
    taken = {other.location for other in others if other.kind != kind}
    spots = [(x, z), *sorted(points, key=lambda p: (math.hypot(p[0] - x, p[1] - z), p))]
    spot = next(
        (s for s in (location(*p, rotation, horizon) for p in spots) if s not in taken),
        location(x, z, rotation, horizon),
    )
    position = (float(parts[1]), float(parts[2]), float(parts[3]))
    return Receptacle(pddl_name(name), kind, position, spot)


def location(x: float, z: float, rotation: float, horizon: float) -> str:
    """Return the PDDL name of a place to stand: cells, quarter turns, degrees of looking down."""
    cells = f"{round(x / _CELL)}|{round(z / _CELL)}"
    return pddl_name(f"loc|{cells}|{round(rotation / 90)}|{round(horizon)}")


def coordinate(value: float) -> str:
    """Write a coordinate as ALFRED's object ids do.

    Examples
    --------
    >>> coordinate(2.5), coordinate(-0.333), coordinate(0)
    ('+02.50', '-00.33', '+00.00')
    """
    return f"{round(value, 2) + 0.0:+06.2f}"


def pddl_name(name: str) -> str:
    """Spell an ALFRED object id with the characters that PDDL allows.

    Examples
    --------
    >>> pddl_name("Mug|+02.56|-00.89")
    'Mug_bar__plus_02_dot_56_bar__minus_00_dot_89'
    """
    for character, word in (("-", "minus"), ("|", "bar"), ("+", "plus"), (".", "dot")):
        name = name.replace(character, f"_{word}_")
    return name
