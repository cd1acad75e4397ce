"""New ALFWorld games, made of the alfworld package's own parts.

Domain, grammar, goal sentences, floor plans and the tables of what goes where all come from the
installed package; drawn are the room, the task, and how many objects of each kind lie where. The
files are as the official environment loads them. Say "ALFWorld-generated" where they are measured:
they are not the games of the ALFWorld release.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.alfworld.engine import GAME_FILE
from experiments.alfworld.files import write_whole
from experiments.alfworld.floorplans import (
    FloorPlan,
    coordinate,
    floor_plan,
    location,
    pddl_name,
    tables,
)
from experiments.errors import GameError

if TYPE_CHECKING:
    from collections.abc import Sequence

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)

_MOST = 3  # objects of a kind in a room, as in ALFRED's MAX_NUM_OF_OBJ_INSTANCES
# What a task type asks of its object, and the receptacle without which it cannot be done.
_TREATMENT = {
    "pick_clean_then_place_in_recep": ("Cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("Heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("Coolable", "Fridge"),
}
_LIGHT = "look_at_obj_in_light"
_TWO = "pick_two_obj_and_place"
_LAMP = "DeskLamp"
# The package's tables say nothing of lamps: they stand where an alarm clock may stand, in the open.
_STANDS_LIKE = "AlarmClock"


@dataclass(frozen=True, slots=True)
class Task:
    """What a game asks for: ``parent`` is empty for looking, ``lamp`` for everything else."""

    type: str
    object: str
    parent: str
    lamp: str
    plan: FloorPlan


@dataclass(frozen=True, slots=True)
class _Thing:
    name: str
    kind: str
    receptacle: str
    location: str


def generate_games(
    n: int,
    seed: int,
    out_dir: str | Path,
    task_types: Sequence[str] = TASK_TYPES,
    floor_plans: Sequence[int] | None = None,
) -> list[Path]:
    """Write ``n`` games, the task types taking turns.

    Game ``i`` depends on ``seed`` and ``i`` alone, so a longer run begins with the games of a
    shorter one. The same arguments give the same bytes. Every game is solvable by construction:
    the object asked for exists, lies in a receptacle that can be reached and opened, outside of
    where it has to go, and what treats it (basin, microwave, fridge, lamp) is in the room.

    Parameters
    ----------
    n : int
        Number of games, at least 1.
    seed : int
    out_dir : path-like
        Created when missing. Game ``i`` becomes
        ``<task type>-<object>-None-<goal receptacle or lamp>-<floor plan>/trial_<seed>_<i>/``
        with ``game.tw-pddl`` and ``traj_data.json``.
    task_types : sequence of str, default: all six
    floor_plans : sequence of int, optional
        Numbers of the rooms to draw from (kitchens 1-30, living rooms 201-230, bedrooms 301-330,
        bathrooms 401-430). Default: all 120.

    Returns
    -------
    list of Path
        The ``game.tw-pddl`` files in order.

    Raises
    ------
    GameError
        If ``n`` is below 1, a task type unknown, or the floor plans leave no game to make.
    """
    if n < 1:
        raise GameError(f"{n} games were asked for: ask for at least 1")
    unknown = sorted(set(task_types) - set(TASK_TYPES))
    if unknown or not task_types:
        raise GameError(f"unknown task types {unknown}: choose from {', '.join(TASK_TYPES)}")
    paths = []
    for i in range(n):
        rng = random.Random(f"alfworld {seed} {i}")
        task = _draw_task(task_types[i % len(task_types)], floor_plans, rng)
        goal = _sentence(task, rng)
        trial = f"trial_{seed}_{i:04d}"
        folder = Path(out_dir) / _folder_name(task) / trial
        folder.mkdir(parents=True, exist_ok=True)
        game = {
            "pddl_domain": tables().domain,
            "grammar": tables().grammar.replace("UNKNOWN GOAL", goal),
            "pddl_problem": _problem(task, trial, rng),
            "solvable": True,
            "walkthrough": None,
        }
        _write(folder / GAME_FILE, game)
        _write(folder / "traj_data.json", _trajectory(task, trial, goal))
        paths.append(folder / GAME_FILE)
    return paths


def task_choices(task_type: str, plan: FloorPlan) -> list[Task]:
    """Return every task of a type that can be set in a room."""
    known = tables()
    found = [kind for kind in plan.objects if plan.places(kind)]
    if task_type == _LIGHT:
        if _LAMP not in plan.objects or not _lamp_stands(plan):
            return []
        return [Task(task_type, kind, "", _LAMP, plan) for kind in found]
    if task_type in _TREATMENT:
        treatment, place = _TREATMENT[task_type]
        if place not in plan.kinds:
            return []
        found = [kind for kind in found if kind in known.actions[treatment]]
    # With a single place for a kind there is nowhere else to put it before it is asked for.
    return [
        Task(task_type, kind, parent, "", plan)
        for kind in found
        if len(plan.places(kind)) > 1
        for parent in plan.places(kind)
    ]


def _draw_task(task_type: str, floor_plans: Sequence[int] | None, rng: random.Random) -> Task:
    numbers = [
        number
        for number in tables().scenes[task_type]
        if floor_plans is None or number in floor_plans
    ]
    rng.shuffle(numbers)
    for number in numbers:
        choices = task_choices(task_type, floor_plan(number))
        if choices:
            kind = rng.choice(sorted({task.object for task in choices}))
            return rng.choice([task for task in choices if task.object == kind])
    raise GameError(f"no floor plan of {floor_plans} allows {task_type}: name more floor plans")


def _sentence(task: Task, rng: random.Random) -> str:
    template = rng.choice(tables().goals[task.type]["templates"])
    return str(
        template.format(
            obj=task.object.lower(), recep=task.parent.lower(), toggle=task.lamp.lower(), mrecep=""
        )
    )


def _folder_name(task: Task) -> str:
    return f"{task.type}-{task.object}-None-{task.parent or task.lamp}-{task.plan.number}"


def _lamp_stands(plan: FloorPlan) -> list[str]:
    return [kind for kind in plan.places(_STANDS_LIKE) if kind not in tables().openable]


def _place_objects(task: Task, rng: random.Random) -> list[_Thing]:
    things: list[_Thing] = []
    names: set[str] = set()
    for kind in task.plan.objects:
        places = list(task.plan.places(kind))
        least, most = 1, _MOST
        if kind == task.object:
            places = [place for place in places if place != task.parent]
            least = 2 if task.type == _TWO else 1
        elif kind == _LAMP:
            places, most = _lamp_stands(task.plan), 1
        if not places:
            continue
        for _ in range(rng.randint(least, most)):
            # First the kind of place, then which: else a kitchen's many cabinets hold everything.
            place = rng.choice(places)
            home = rng.choice([r for r in task.plan.receptacles if r.kind == place])
            while True:
                position = [v + rng.uniform(-0.3, 0.3) for v in home.position]
                name = pddl_name("|".join([kind, *map(coordinate, position)]))
                if name not in names:
                    break
            names.add(name)
            things.append(_Thing(name, kind, home.name, home.location))
    return things


def _problem(task: Task, trial: str, rng: random.Random) -> str:
    known, plan = tables(), task.plan
    things = sorted(_place_objects(task, rng), key=lambda thing: thing.name)
    spots = sorted({r.location for r in plan.receptacles})
    start = rng.choice(
        [s for s in (location(x, z, 0, 30) for x, z in plan.points) if s not in spots]
        or ["loc_bar_start"]
    )
    kinds = sorted({thing.kind for thing in things})
    declared = [
        "agent1 - agent",
        *(f"{kind}Type - otype" for kind in known.objects),
        *(f"{kind}Type - rtype" for kind in known.receptacles),
        *(f"{thing.name} - object" for thing in things),
        *(f"{r.name} - receptacle" for r in plan.receptacles),
        *(f"{spot} - location" for spot in [*spots, start]),
    ]
    facts = [f"atLocation agent1 {start}"]
    for r in plan.receptacles:
        facts += [
            f"receptacleType {r.name} {r.kind}Type",
            f"receptacleAtLocation {r.name} {r.location}",
        ]
        if r.kind in known.openable:
            facts.append(f"openable {r.name}")
    for thing in things:
        facts += [
            f"objectType {thing.name} {thing.kind}Type",
            f"inReceptacle {thing.name} {thing.receptacle}",
            f"objectAtLocation {thing.name} {thing.location}",
        ]
        if thing.kind != _LAMP:
            facts.append(f"pickupable {thing.name}")
        if thing.kind in known.movable:
            facts.append(f"isReceptacleObject {thing.name}")
        for treatment, suited in sorted(known.actions.items()):
            if thing.kind in suited:
                facts.append(f"{treatment.lower()} {thing.name}")
    for place in plan.kinds:
        takes = [kind for kind in known.holds.get(place, ()) if kind in kinds]
        facts += [f"canContain {place}Type {kind}Type" for kind in takes]
    goal = known.goals[task.type]["pddl"].format(
        obj=task.object, recep=task.parent, toggle=task.lamp
    )
    return "\n".join(
        [
            f"(define (problem plan_{trial})",
            "(:domain alfred)",
            "(:objects",
            *(f"    {line}" for line in declared),
            ")",
            "(:init",
            *(f"    ({fact})" for fact in facts),
            ")",
            # The package's goals write # for the dash of a type, and close the problem.
            goal.replace("#", "-").rstrip(),
            "",
        ]
    )


def _trajectory(task: Task, trial: str, goal: str) -> dict[str, object]:
    """What alfworld's expert and official environment read beside a game."""
    return {
        "task_id": trial,
        "task_type": task.type,
        "pddl_params": {
            "mrecep_target": "",
            "object_sliced": False,
            "object_target": task.object,
            "parent_target": task.parent,
            "toggle_target": task.lamp,
        },
        "scene": {"floor_plan": f"FloorPlan{task.plan.number}", "scene_num": task.plan.number},
        "turk_annotations": {"anns": [{"task_desc": goal}]},
    }


def _write(path: Path, content: object) -> None:
    write_whole(path, (json.dumps(content, sort_keys=True) + "\n").encode())
