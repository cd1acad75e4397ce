"""The adapter: the same game as stock TextWorld, with typed errors."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.alfworld.demonstrations import demonstrate
from experiments.alfworld.engine import AlfworldGame, find_games, game_file
from experiments.alfworld.grammar import Context, Grammar
from experiments.errors import DemonstrationError, GameError, GameNotFoundError

STOCK = Path(__file__).with_name("stock.py")
LIMIT = 10_000


def _wander(path: Path, plan: list[str], cache: Path, extra: int) -> list[str]:
    """Commands that reach many kinds of texts: the way to win, with looks and detours between."""
    rng = random.Random(5)
    commands: list[str] = []
    with AlfworldGame(path, max_steps=LIMIT, cache=cache) as game:
        seen = game.reset()
        for command in plan[:-1]:
            commands.append(command)
            seen, _, _ = game.step(command)
            looks = [c for c in seen.admissible_commands if c.startswith(("examine", "inventory"))]
            commands.append(rng.choice(looks))
            seen, _, _ = game.step(commands[-1])
    return [*commands, "fly to the moon", plan[-1], *_random_tail(rng, extra)]


def _random_tail(rng: random.Random, n: int) -> list[str]:
    return [rng.choice(["look", "inventory", "help", "eat the lamp"]) for _ in range(n)]


def _random_walk(path: Path, cache: Path, n: int) -> list[str]:
    rng = random.Random(6)
    commands: list[str] = []
    with AlfworldGame(path, max_steps=LIMIT, cache=cache) as game:
        seen = game.reset()
        while len(commands) < n and not game.won:
            near = [c for c in seen.admissible_commands if not c.startswith("go to")]
            commands.append(rng.choice(near if rng.random() < 0.6 else seen.admissible_commands))
            seen, _, _ = game.step(commands[-1])
    return commands


def _stock(plays: list[tuple[Path, list[str]]]) -> list[list[Any]]:
    asked = json.dumps([[str(path), commands] for path, commands in plays])
    done = subprocess.run(
        [sys.executable, str(STOCK)], input=asked, capture_output=True, text=True, check=True
    )
    states: list[list[Any]] = json.loads(done.stdout)
    return states


def _ours(plays: list[tuple[Path, list[str]]], cache: Path) -> list[list[Any]]:
    """States as `stock.py` writes them, played past the end of a game as there."""
    played: list[list[Any]] = []
    for path, commands in plays:
        with AlfworldGame(path, max_steps=LIMIT, cache=cache) as game:
            seen = game.reset()
            states: list[Any] = [[seen.text, list(seen.admissible_commands), game.won, 0, False]]
            for command in commands:
                seen, reward, done = game.step(command)
                states.append([seen.text, list(seen.admissible_commands), game.won, reward, done])
                if done:
                    break
            played.append(states)
    return played


def _assert_same(ours: list[list[Any]], stock: list[list[Any]]) -> None:
    for mine, theirs in zip(ours, stock, strict=True):
        for i, state in enumerate(mine):
            assert state == theirs[i], f"step {i}"


def test_generated_games_play_as_on_the_stock_engine(games: list[Path], cache: Path) -> None:
    plays = []
    for path in games[:6]:
        won = demonstrate(path, attempts=10, max_steps=100, cache=cache)
        commands = [step.command for step in won]
        plays.append(
            (path, _wander(path, commands[-12:] if len(commands) > 40 else commands, cache, 2))
        )
    ours = _ours(plays, cache)
    _assert_same(ours, _stock(plays))
    kinds = {command.split()[0] for _, commands in plays for command in commands}
    assert kinds >= {"go", "take", "move", "open", "clean", "heat", "cool", "use", "examine"}
    assert sum(states[-1][2] for states in ours) == len(plays), "every game ends won"


def test_real_games_play_as_on_the_stock_engine(data: Path, cache: Path) -> None:
    found = find_games(data / "alfworld" / "json_2.1.1" / "valid_seen")
    plays = [(path, _random_walk(path, cache, 25)) for path in found[7::60]]
    ours = _ours(plays, cache)
    assert sum(map(len, ours)) > 60
    _assert_same(ours, _stock(plays))


def test_the_goal_is_the_sentence_of_the_game(games: list[Path], cache: Path) -> None:
    for path in games:
        written = re.search(r"Your task is to: (.*?)\.\"", json.loads(path.read_text())["grammar"])
        assert written is not None
        with AlfworldGame(path, max_steps=5, cache=cache) as game:
            seen = game.reset()
            assert seen.goal == game.goal == written[1]
            assert f"Your task is to: {seen.goal}." in seen.text
            after, _, _ = game.step("look")
            assert after.goal == seen.goal


def test_playing_leaves_the_callers_random_state_and_arguments_alone(
    games: list[Path], tmp_path: Path
) -> None:
    random.seed(3)
    before, arguments = random.getstate(), list(sys.argv)
    with AlfworldGame(games[5], max_steps=5, cache=tmp_path) as game:
        game.reset()
        game.step("look")
    assert random.getstate() == before
    assert sys.argv == arguments


def test_a_reset_starts_the_same_episode_again(games: list[Path], cache: Path) -> None:
    with AlfworldGame(games[0], max_steps=50, cache=cache) as game:
        commands = _random_walk(games[0], cache, 20)
        first = [game.reset(), *(game.step(command)[0] for command in commands)]
        again = [game.reset(), *(game.step(command)[0] for command in commands)]
    assert first == again


def test_two_games_at_once_do_not_disturb_each_other(games: list[Path], cache: Path) -> None:
    alone = _ours([(g, _random_walk(g, cache, 15)) for g in games[1:3]], cache)
    with (
        AlfworldGame(games[1], max_steps=50, cache=cache) as one,
        AlfworldGame(games[2], max_steps=50, cache=cache) as two,
    ):
        texts = [[one.reset().text], [two.reset().text]]
        walks = [_random_walk(games[1], cache, 15), _random_walk(games[2], cache, 15)]
        for pair in zip(*walks, strict=True):
            for game, told, command in zip((one, two), texts, pair, strict=True):
                told.append(game.step(command)[0].text)
    assert texts == [[state[0] for state in states] for states in alone]


def test_the_step_limit_ends_an_episode_without_a_reward(games: list[Path], cache: Path) -> None:
    with AlfworldGame(games[0], max_steps=3, cache=cache) as game:
        game.reset()
        ends = [game.step("look")[1:] for _ in range(3)]
        assert ends == [(0.0, False), (0.0, False), (0.0, True)]
        with pytest.raises(GameError, match=r"over: call reset\(\)"):
            game.step("look")
        game.reset()
        assert game.step("look")[2] is False


def _in_the_older_grammar(path: Path, folder: Path) -> Path:
    content = json.loads(path.read_text())
    newer = 'template :: "move {o} to {r}"'
    assert newer in content["grammar"]
    content["grammar"] = content["grammar"].replace(newer, 'template :: "put {o} in/on {r}"')
    older = folder / path.name
    older.write_text(json.dumps(content))
    return older


def test_both_grammars_are_understood(games: list[Path], cache: Path, tmp_path: Path) -> None:
    commands = [s.command for s in demonstrate(games[0], max_steps=100, cache=cache)]
    last = re.fullmatch(r"move (.+) to (.+)", commands[-1])
    assert last is not None
    put, move = f"put {last[1]} in/on {last[2]}", commands[-1]
    older = _in_the_older_grammar(games[0], tmp_path)
    for path, said, listed in ((games[0], put, move), (older, move, put), (older, put, put)):
        with AlfworldGame(path, max_steps=101, cache=cache) as game:
            game.reset()
            for command in commands[:-1]:
                seen, _, done = game.step(command)
            assert not done
            assert listed in seen.admissible_commands
            _, reward, done = game.step(said)
            assert (reward, done) == (1.0, True)


def test_a_damaged_cache_costs_time_not_answers(games: list[Path], tmp_path: Path) -> None:
    script = (
        "import sys; from experiments.alfworld.engine import AlfworldGame;"
        "game = AlfworldGame(sys.argv[1], max_steps=5, cache=sys.argv[2]);"
        "print(game.reset()); print(game.step('inventory')); print(sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, str(games[5]), str(tmp_path)]

    def play() -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    fresh = play()
    (kept,) = (tmp_path / "sas").iterdir()
    whole = kept.read_bytes()
    for damage in (whole[: len(whole) // 2], b"", b"\x00\n\x00", whole.replace(b"7", b"8")):
        kept.write_bytes(damage)
        assert play() == fresh
        assert len(kept.read_bytes()) > len(whole) // 2 + 1000, "replaced by a good one"
    assert "Your task is to" in fresh


def test_a_missing_game_is_named_with_the_cure(tmp_path: Path, games: list[Path]) -> None:
    with pytest.raises(GameNotFoundError, match=r"no game at .*nowhere.*check the path"):
        AlfworldGame(tmp_path / "nowhere", max_steps=5)
    with pytest.raises(FileNotFoundError, match=r"holds 0 game\.tw-pddl files"):
        AlfworldGame(tmp_path, max_steps=5)
    with pytest.raises(GameNotFoundError, match=r"holds 12 game\.tw-pddl files"):
        game_file(games[0].parents[2])
    with pytest.raises(GameNotFoundError, match=r"no game\.tw-pddl below .*generate some"):
        find_games(tmp_path)
    assert game_file(games[0].parent) == games[0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "is damaged"),
        (lambda _text: "", "is damaged"),
        (lambda _text: "[1, 2]", "lacks pddl_domain, grammar, pddl_problem"),
        (lambda text: text.replace('"grammar"', '"grandma"'), "lacks grammar"),
        (lambda text: text.replace("(:init", "(:unit"), "is damaged"),
        (lambda text: text.replace("(:objects", "(:objets"), "is damaged"),
        (lambda text: text.replace("action GotoLocation", "action {"), "is damaged"),
        (lambda text: text.replace(" - receptacle\\n", " - receptacel\\n"), "is damaged"),
    ],
)
def test_a_damaged_game_is_named_with_the_cure(
    games: list[Path], tmp_path: Path, damage: Any, message: str
) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_text(damage(games[5].read_text()))
    with pytest.raises(GameError, match=message) as caught:
        AlfworldGame(path, max_steps=5)
    assert str(path) in str(caught.value)
    assert "get the file anew" in str(caught.value)
    # What failed to load leaves no engine behind that could spoil the next game.
    with AlfworldGame(games[5], max_steps=5) as game:
        assert "Welcome" in game.reset().text


def test_a_grammar_with_a_hole_is_a_damaged_game(games: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "game.tw-pddl"
    text = games[5].read_text()
    path.write_text(text.replace('\\"inventory.feedback\\": [', '\\"other\\": ['))
    with AlfworldGame(path, max_steps=5) as game:
        game.reset()
        with pytest.raises(GameError, match=r"Can't find symbol '#inventory.feedback#'"):
            game.step("inventory")
    path.write_text(text.replace('\\"intro\\": [', '\\"outro\\": ['))
    with AlfworldGame(path, max_steps=5) as game, pytest.raises(GameError, match="'#intro#'"):
        game.reset()


def test_a_grammar_runs_no_python() -> None:
    thing = SimpleNamespace(name="mug 1", id="", indefinite="a")
    known = Context(None, {}, {}, {"o": thing})
    said = "{o.indefinite + ' ' + o.name }, {o.id or o.name}"
    assert Grammar({"said": [(said, "")]}).derive("#said#", known) == "a mug 1, mug 1"
    for hidden in ("o.__class__", "o.name.upper()", "(o.name).__class__", "open('/etc/passwd')"):
        with pytest.raises(GameError, match="only entities and their attributes"):
            Grammar({"said": [("{" + hidden + "}", "")]}).derive("#said#", known)


def test_a_game_is_played_in_its_order_only(games: list[Path], cache: Path) -> None:
    with pytest.raises(GameError, match="max_steps is 0, at least 1"):
        AlfworldGame(games[0], max_steps=0)
    game = AlfworldGame(games[0], max_steps=5, cache=cache)
    with pytest.raises(GameError, match="before step"):
        game.step("look")
    game.close()
    game.close()
    with pytest.raises(GameError, match="is closed"):
        game.reset()
    assert issubclass(DemonstrationError, GameError)
