"""Generated games: seeded, balanced, sane, and what the official package would load."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from experiments.alfworld.engine import AlfworldGame, open_engine
from experiments.alfworld.floorplans import floor_plan, tables
from experiments.alfworld.generator import TASK_TYPES, generate_games, task_choices
from experiments.alfworld.package import alfworld_module
from experiments.errors import GameError

if TYPE_CHECKING:
    from pathlib import Path

_ASKED_OF = {
    "pick_clean_then_place_in_recep": ("cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("coolable", "Fridge"),
}


class Room:
    """The initial facts of a game file, read back with regular expressions."""

    def __init__(self, path: Path) -> None:
        self.game = json.loads(path.read_text())
        self.beside = json.loads(path.with_name("traj_data.json").read_text())
        self.params = self.beside["pddl_params"]
        self.type = self.beside["task_type"]
        init = self.game["pddl_problem"].partition("(:init")[2].partition("(:goal")[0]
        self.facts = [tuple(f.split()) for f in re.findall(r"^\s*\((.+)\)$", init, re.MULTILINE)]
        self.objects = {f[1]: f[2].removesuffix("Type") for f in self.named("objectType")}
        self.kinds = {f[1]: f[2].removesuffix("Type") for f in self.named("receptacleType")}
        self.inside = {f[1]: f[2] for f in self.named("inReceptacle")}

    def named(self, predicate: str) -> list[tuple[str, ...]]:
        return [fact for fact in self.facts if fact[0] == predicate]

    def goal(self) -> str:
        found = re.search(r"Your task is to: (.*?)\.\"", self.game["grammar"])
        assert found is not None
        return found[1]


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> list[Room]:
    return [Room(path) for path in generate_games(180, 3, tmp_path_factory.mktemp("many"))]


def _bytes(paths: list[Path], root: Path) -> dict[str, bytes]:
    files = [file for path in paths for file in (path, path.with_name("traj_data.json"))]
    return {str(file.relative_to(root)): file.read_bytes() for file in files}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two, longer, other = (tmp_path / name for name in "abcd")
    first = _bytes(generate_games(7, 5, one), one)
    assert first == _bytes(generate_games(7, 5, two), two)
    assert first == _bytes(generate_games(12, 5, longer)[:7], longer), "a run grows at its end"
    assert not set(first.values()) & set(_bytes(generate_games(7, 6, other), other).values())


def test_generating_leaves_the_global_random_state_alone(tmp_path: Path) -> None:
    random.seed(1)
    before = random.getstate()
    generate_games(6, 0, tmp_path)
    assert random.getstate() == before


def test_task_types_take_turns(rooms: list[Room]) -> None:
    assert [room.type for room in rooms[:6]] == list(TASK_TYPES)
    assert Counter(room.type for room in rooms) == dict.fromkeys(TASK_TYPES, 30)


def test_goal_sentences_are_the_packages_with_all_paraphrases(rooms: list[Room]) -> None:
    used: dict[str, set[int]] = {task: set() for task in TASK_TYPES}
    for room in rooms:
        written = [
            template.format(
                obj=room.params["object_target"].lower(),
                recep=room.params["parent_target"].lower(),
                toggle=room.params["toggle_target"].lower(),
            )
            for template in tables().goals[room.type]["templates"]
        ]
        used[room.type].add(written.index(room.goal()))
        assert room.beside["turk_annotations"]["anns"][0]["task_desc"] == room.goal()
    assert used == {task: {0, 1} for task in TASK_TYPES}


def test_objects_lie_where_the_packages_tables_allow(rooms: list[Room]) -> None:
    holds = alfworld_module("gen.constants").VAL_RECEPTACLE_OBJECTS
    for room in rooms:
        assert set(room.objects) == set(room.inside)
        for name, place in room.inside.items():
            kind = "AlarmClock" if room.objects[name] == "DeskLamp" else room.objects[name]
            assert kind in holds[room.kinds[place]]
        allowed = {(f[1], f[2]) for f in room.named("canContain")}
        assert allowed == {
            (f"{place}Type", f"{kind}Type")
            for place in set(room.kinds.values())
            for kind in set(room.objects.values())
            if kind in holds[place]
        }
        assert max(Counter(room.objects.values()).values()) <= 3


def test_doors_are_closed_at_the_start(rooms: list[Room]) -> None:
    openable = set(alfworld_module("gen.constants").OPENABLE_CLASS_LIST)
    for room in rooms:
        assert not room.named("opened")
        assert {f[1] for f in room.named("openable")} == {
            name for name, kind in room.kinds.items() if kind in openable
        }
    assert any(room.named("openable") for room in rooms)


def test_what_is_asked_for_is_there_and_not_done_yet(rooms: list[Room]) -> None:
    for room in rooms:
        wanted = [n for n, kind in room.objects.items() if kind == room.params["object_target"]]
        assert len(wanted) >= (2 if room.type == "pick_two_obj_and_place" else 1)
        pickupable = {f[1] for f in room.named("pickupable")}
        assert set(wanted) <= pickupable
        if room.type == "look_at_obj_in_light":
            lamps = [n for n, kind in room.objects.items() if kind == "DeskLamp"]
            assert lamps
            assert not set(lamps) & pickupable
            assert set(lamps) <= {f[1] for f in room.named("toggleable")}
            continue
        parent = room.params["parent_target"]
        assert parent in room.kinds.values()
        assert parent not in {room.kinds[room.inside[name]] for name in wanted}
        if room.type in _ASKED_OF:
            treatment, place = _ASKED_OF[room.type]
            assert set(wanted) <= {f[1] for f in room.named(treatment)}
            assert place in room.kinds.values()


def test_places_of_different_kinds_are_apart(rooms: list[Room]) -> None:
    for room in rooms:
        kinds_at: dict[str, set[str]] = {}
        for _, name, place in room.named("receptacleAtLocation"):
            kinds_at.setdefault(place, set()).add(room.kinds[name])
        assert max(map(len, kinds_at.values())) == 1


def test_games_differ(rooms: list[Room]) -> None:
    tasks = Counter(
        (r.type, *sorted(r.params.items()), r.beside["scene"]["scene_num"]) for r in rooms
    )
    assert max(tasks.values()) <= 3
    assert len(tasks) > 165
    assert len({room.beside["scene"]["scene_num"] for room in rooms}) > 60


def test_the_engine_plays_them_from_an_open_goal(games: list[Path], cache: Path) -> None:
    for path in games:
        with AlfworldGame(path, max_steps=5, cache=cache) as game:
            seen = game.reset()
            assert not game.won
            assert seen.goal == Room(path).goal()
            assert "basinbasin" not in seen.text
            for place, n in Counter(k.lower() for k in Room(path).kinds.values()).items():
                assert all(f"a {place} {i}" in seen.text for i in range(1, n + 1))


def _solution(facts: list[Any], asked: dict[str, str], task: str) -> list[str]:
    """Commands that win a game, put together from its facts by somebody who sees through doors."""
    true = {(fact.name, *(name.strip() for name in fact.names)) for fact in facts}

    def all_of(kind: str) -> list[str]:
        return sorted({n for _, *names in true for n in names if n.split(" ")[0] == kind.lower()})

    home = {fact[1]: fact[2] for fact in true if fact[0] == "inreceptacle"}
    treatment, place = {
        "pick_clean_then_place_in_recep": ("clean", "sinkbasin"),
        "pick_heat_then_place_in_recep": ("heat", "microwave"),
        "pick_cool_then_place_in_recep": ("cool", "fridge"),
    }.get(task, ("", ""))
    commands: list[str] = []
    for thing in [n for n in all_of(asked["object_target"]) if n in home][: 1 + ("two" in task)]:
        commands += [f"go to {home[thing]}", f"open {home[thing]}"]
        commands.append(f"take {thing} from {home[thing]}")
        if treatment:
            at = all_of(place)[0]
            commands += [f"go to {at}", f"{treatment} {thing} with {at}"]
        if task == "look_at_obj_in_light":
            lamp = all_of(asked["toggle_target"])[0]
            return [*commands, f"go to {home[lamp]}", f"use {lamp}"]
        goal = all_of(asked["parent_target"])[0]
        commands += [f"go to {goal}", f"open {goal}", f"move {thing} to {goal}"]
    return commands


def test_every_game_is_solvable_by_its_own_facts(games: list[Path], cache: Path) -> None:
    for path in games:
        env = open_engine(path, cache, facts=True)
        state, room = env.reset(), Room(path)
        for command in _solution(state["facts"], room.params, room.type):
            assert not state["won"]
            # What is open already or reached already needs no second time.
            assert command.startswith(("go", "open")) or command in state["admissible_commands"]
            state, _, _ = env.step(command)
        assert state["won"]
        env.unwrapped.close()


def test_the_official_package_collects_them(games: list[Path]) -> None:
    root = games[0].parents[2]
    ours: dict[str, Any] = {
        "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6]},
        "dataset": {"eval_id_data_path": str(root), "num_eval_games": 0},
    }
    official = alfworld_module("agents.environment.alfred_tw_env").AlfredTWEnv(
        ours, train_eval="eval_in_distribution"
    )
    assert sorted(official.game_files) == sorted(map(str, games))


def test_floor_plans_can_be_chosen(tmp_path: Path) -> None:
    seen = {
        Room(p).beside["scene"]["scene_num"]
        for p in generate_games(8, 0, tmp_path, floor_plans=[7, 301, 302, 401])
    }
    assert seen <= {7, 301, 302, 401}
    assert {c.object for c in task_choices("pick_heat_then_place_in_recep", floor_plan(7))} <= (
        tables().actions["Heatable"]
    )
    assert task_choices("pick_heat_then_place_in_recep", floor_plan(401)) == []


def test_impossible_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GameError, match="0 games were asked for: ask for at least 1"):
        generate_games(0, 0, tmp_path)
    with pytest.raises(GameError, match=r"unknown task types \['juggle'\]: choose from pick_and"):
        generate_games(1, 0, tmp_path, task_types=["juggle"])
    with pytest.raises(GameError, match=r"\[401\] allows pick_heat.*name more floor plans"):
        generate_games(1, 0, tmp_path, ["pick_heat_then_place_in_recep"], floor_plans=[401])
    assert not list(tmp_path.iterdir())


def test_games_can_be_read_while_another_worker_makes_them_again(tmp_path: Path) -> None:
    games = generate_games(4, 5, tmp_path)

    def read() -> None:
        for _ in range(300):
            for game in games:
                json.loads(game.read_text())

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        while not reading.done():
            generate_games(4, 5, tmp_path)
        reading.result()
    assert not list(tmp_path.rglob("*.part"))
