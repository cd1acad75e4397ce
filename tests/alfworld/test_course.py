"""An experiment that is killed in the middle of a round goes on where it was."""

from __future__ import annotations

import hashlib
import random
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from cvx.alfworld.course import Course, Played, folder_of, play_arm
from cvx.alfworld.material import Setup
from cvx.errors import InvalidParameterError
from cvx.memory import Memory
from cvx.plans import Lexicon
from cvx.textgames.agent import Agent
from cvx.textgames.arms import arm_of
from tests.store.processes import CONTEXT

ROUNDS, GAMES = 2, 3


def setup(cache: Path, store: Path | None = None) -> Setup:
    return Setup(
        seeds=1, rounds=ROUNDS, games_per_round=GAMES, max_steps=30, cache=cache, store=store
    )


def learned(memory: Memory) -> dict[str, Any]:
    """All that a player has learned, but for numbers that count what was broken off too."""
    record = memory.record
    return {
        "episodes": [(e.kind, e.goal, e.task_type, e.reward, e.actions) for e in record.episodes()],
        "events": [(e.node, e.text, e.action, e.reward, e.tags) for e in record.events()],
        "links": [(e.from_node, e.to_node, e.kind, e.weight) for e in record.links()],
        "usage": record.usage(),
        "decays": sorted(decay[1:] for decay in record.decays()),
        "decisions": [(d["hits"], d["action"], d["followed"]) for d in record.decisions()],
        "draws": record.state("alfworld player"),
    }


def words_of(lexicon: Lexicon) -> dict[str, Any]:
    plain = dict(vars(lexicon))
    return {**plain, "goals": vars(plain["goals"]), "moments": vars(plain["moments"])}


def untimed(games: list[Played]) -> list[dict[str, Any]]:
    return [asdict(replace(game, seconds=0.0)) for game in games]


def play_and_say(plan: Setup, arm: str, said: Connection) -> None:
    for game in play_arm(plan, arm, 0):
        said.send(game.place)
    said.send("done")


@pytest.mark.slow
@pytest.mark.requirement("V16", "W26", "X9")
@pytest.mark.parametrize("arm", ["full", "shuffled"])
def test_a_player_killed_in_the_middle_of_its_games_ends_as_one_that_was_not(
    cache: Path, tmp_path: Path, arm: str
) -> None:
    with arm_of(arm).open(None, 0) as memory:
        expected = untimed(list(Course(setup(cache), arm, 0, memory).play()))
        unbroken = learned(memory)
    plan, rng = setup(cache, tmp_path), random.Random(arm)
    deaths, last = 0, None
    while last != "done":
        here, there = CONTEXT.Pipe(duplex=False)
        player = CONTEXT.Process(target=play_and_say, args=(plan, arm, there), daemon=True)
        player.start()
        there.close()
        # It is killed while it plays the game after one of those that it has reported.
        for _ in range(deaths + 1):
            last = here.recv()
        if last != "done" and last != ROUNDS * GAMES - 1:
            for _ in range(rng.randrange(20_000)):
                hashlib.blake2b(b"some work instead of a sleep").digest()
            player.kill()
        elif last != "done":
            last = here.recv()
        deaths += last != "done"
        player.join()
        here.close()
    assert deaths >= 3
    assert untimed(list(play_arm(plan, arm, 0))) == expected
    with arm_of(arm).open(folder_of(plan, arm, 0), 0) as memory:
        assert memory.damage() == []
        assert learned(memory) == unbroken
        assert sum(e.kind == "demonstration" for e in memory.record.episodes()) == 6


@pytest.mark.requirement("W26")
def test_an_agent_on_a_reopened_memory_knows_the_words_again(cache: Path, tmp_path: Path) -> None:
    plan = replace(setup(cache, tmp_path), rounds=1, games_per_round=2)
    with arm_of("full").open(folder_of(plan, "full", 0), 0) as memory:
        course = Course(plan, "full", 0, memory)
        assert isinstance(course.player, Agent)
        assert len(list(course.play())) == 2
        before = words_of(course.player.plans.lexicon)
        assert before["verbs"]
        assert before["nouns"]
    with arm_of("full").open(folder_of(plan, "full", 0), 0) as memory:
        again = Course(plan, "full", 0, memory).player
        assert isinstance(again, Agent)
        assert words_of(again.plans.lexicon) == before


def test_a_store_of_other_games_is_refused(cache: Path, tmp_path: Path) -> None:
    plan = replace(setup(cache, tmp_path), rounds=1, games_per_round=1)
    assert len(list(play_arm(plan, "none", 0))) == 1
    with pytest.raises(InvalidParameterError, match="other games"):
        next(play_arm(replace(plan, games_per_round=2), "none", 0))
