"""An experiment that is killed in the middle of a round goes on where it was."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("statsmodels")

from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.store import failpoints
from experiments.chat import read_audit
from experiments.harness import arms
from experiments.harness.arms import ARMS, arm_of
from experiments.harness.play_arm import Course, Played, folder_of, play_arm
from experiments.harness.setup import Setup
from experiments.plans import Lexicon, Observation
from experiments.tests.harness.hat_domain import Hats, small
from experiments.tests.textgames.hats import HatGame
from experiments.textgames.agent import Agent
from experiments.textgames.reader import Policy
from tests.store.processes import CONTEXT


def play(setup: Setup, arm: str) -> tuple[list[Played], dict[str, Any]]:
    """Play in RAM; return the games, and all that was learned."""
    with arm_of(arm).open(None, 0) as memory:
        games = list(Course(setup, arm, 0, memory).play())
        return untimed(games), learned(memory)


def learned(memory: Memory) -> dict[str, Any]:
    """All that a player has learned, but for numbers that count what was broken off too."""
    record = memory.record
    return {
        "episodes": [(e.kind, e.goal, e.task_type, e.reward, e.actions) for e in record.episodes()],
        "events": [(e.node, e.text, e.action, e.reward, e.tags) for e in record.events()],
        "links": [(e.from_node, e.to_node, e.kind, e.weight) for e in record.links()],
        "usage": sorted((_nameless(context), *counts) for context, *counts in record.usage()),
        "decays": sorted(decay[1:] for decay in record.decays()),
        # Without entities: those of games that were measured, or broken off, have numbers too.
        "decisions": [
            ([(node, *rest) for node, _, *rest in d["hits"]], d["action"], d["followed"])
            for d in record.decisions()
        ],
        "draws": record.state("experiment player"),
    }


def _nameless(context: str) -> str:
    return "an entity" if context.isdigit() else context


def words_of(lexicon: Lexicon) -> dict[str, Any]:
    plain = dict(vars(lexicon))
    return {**plain, "goals": vars(plain["goals"])}


def untimed(games: list[Played]) -> list[Played]:
    return [replace(game, seconds=0.0) for game in games]


@dataclass(frozen=True, slots=True)
class Deadly(Hats):
    """Hats, one command of which, counted over all games, kills the process."""

    commands: Iterator[int] = field(default_factory=lambda: iter(()))

    @contextmanager
    def open(self, game: Path, setup: Setup) -> Iterator[HatGame]:
        """Open a game."""
        with Hats.open(self, game, setup) as whole:
            step = whole.step

            def deadly(command: str) -> tuple[Observation, float, bool]:
                if next(self.commands, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return step(command)

            whole.step = deadly  # type: ignore[method-assign]
            yield whole


def play_until_killed(plan: Setup, arm: str, place: str, times: int) -> None:
    """Play until this process reaches a place for the so-manyth time."""
    if place == "command":
        plan = replace(plan, domain=Deadly(commands=iter(range(1, times))))
    else:
        failpoints._wanted = f"{place}@{times}"
    assert list(play_arm(plan, arm, 0))


@pytest.mark.slow
@pytest.mark.requirement("V16", "W26", "X9")
@pytest.mark.parametrize("arm", ["full", "shuffled"])
def test_a_player_killed_in_the_middle_of_its_games_ends_as_one_that_was_not(
    tmp_path: Path, arm: str
) -> None:
    expected, unbroken = play(small(games_per_round=2, measured=2), arm)
    plan = small(games_per_round=2, measured=2, store=tmp_path)
    for place, times in (
        ("command", 2),
        ("transaction.written", 9),
        ("command", 14),
        ("transaction.committed", 2),
        ("command", 5),
        ("tail.written", 1),
    ):
        player = CONTEXT.Process(target=play_until_killed, args=(plan, arm, place, times))
        player.start()
        player.join()
        assert player.exitcode == -signal.SIGKILL, f"{place} was not reached {times} times"
    assert untimed(list(play_arm(plan, arm, 0))) == expected
    with arm_of(arm).open(folder_of(plan, arm, 0), 0) as memory:
        assert memory.admin.check() == []
        assert learned(memory) == unbroken
        assert sum(e.kind == "demonstration" for e in memory.record.episodes()) == 2


@pytest.mark.requirement("V21")
@pytest.mark.parametrize("arm", ["full", "shuffled", "e8", "frequency"])
def test_measuring_leaves_no_trace_in_what_is_learned_or_drawn(arm: str) -> None:
    rare, often = (small(measured_after=after) for after in ((2,), (0, 1, 2)))
    (few, once), (many, thrice) = play(rare, arm), play(often, arm)

    def results(games: list[Played], *, measured: bool) -> list[tuple[Any, ...]]:
        return [(g.game, g.won, g.steps) for g in games if g.measured == measured]

    assert results(few, measured=False) == results(many, measured=False)
    assert results(few, measured=True) == results(many, measured=True)[-3:]
    assert once == thrice


def test_a_memory_that_learns_nothing_is_measured_alike_in_every_round() -> None:
    games, _ = play(small(measured=6, measured_after=(0, 1, 2)), "frozen")
    rounds = [[(g.game, g.won, g.steps) for g in games if g.measured and g.round == n]
              for n in range(3)]  # fmt: skip
    assert rounds[0] == rounds[1] == rounds[2]
    assert {(g.wins_held, g.failures_held) for g in games} == {(2, 0)}


@pytest.mark.requirement("V21")
def test_what_memory_held_is_told_with_every_game() -> None:
    games, _ = play(small(protocol="repeat", measured=0), "e7c")
    assert (games[0].wins_held, games[0].failures_held) == (2, 0)
    held = [(g.wins_held, g.failures_held) for g in games]
    assert held == sorted(held), "it only grows"
    assert games[-1].failures_advising == games[-1].failures_held > 0
    full, _ = play(small(protocol="repeat", measured=0), "full")
    assert full[-1].failures_held > 0
    assert full[-1].failures_advising == 0


@pytest.mark.requirement("W26")
def test_an_agent_on_a_reopened_memory_knows_the_words_again(tmp_path: Path) -> None:
    plan = small(protocol="stream", rounds=1, measured=0, store=tmp_path)
    with arm_of("full").open(folder_of(plan, "full", 0), 0) as memory:
        course = Course(plan, "full", 0, memory)
        assert isinstance(course.player, Agent)
        assert len(list(course.play())) == 3
        before = words_of(course.player.plans.lexicon)
        assert before["verbs"]
        assert before["nouns"]
    with arm_of("full").open(folder_of(plan, "full", 0), 0) as memory:
        again = Course(plan, "full", 0, memory).player
        assert isinstance(again, Agent)
        assert words_of(again.plans.lexicon) == before


def test_a_store_of_other_games_is_refused(tmp_path: Path) -> None:
    plan = small(protocol="stream", rounds=1, games_per_round=1, measured=0, store=tmp_path)
    assert len(list(play_arm(plan, "none", 0))) == 1
    with pytest.raises(InvalidInputError, match=r"another setup \(games differ\)"):
        next(play_arm(replace(plan, games_per_round=2), "none", 0))


def test_a_store_of_an_arm_that_was_something_else_then_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small(protocol="stream", rounds=1, games_per_round=1, measured=0, store=tmp_path)
    assert len(list(play_arm(plan, "nearest", 0))) == 1
    changed = replace(ARMS["nearest"], agent={"looked_at": 3})
    monkeypatch.setattr(arms, "ARMS", {**ARMS, "nearest": changed})
    with pytest.raises(InvalidInputError, match=r"another setup \(arm differ\)"):
        next(play_arm(plan, "nearest", 0))


@pytest.mark.parametrize("name", sorted(ARMS))
def test_what_an_arm_is_can_be_kept_as_json(name: str) -> None:
    plain = ARMS[name].plain()
    assert json.loads(json.dumps(plain)) == plain


@dataclass(frozen=True, slots=True)
class Crashing(Hats):
    """Hats, of which one game breaks in the middle."""

    @contextmanager
    def open(self, game: Path, setup: Setup) -> Iterator[HatGame]:
        """Open a game; the second of a seed raises at its fourth command."""
        with Hats.open(self, game, setup) as whole:
            if game.name == "1":
                step = whole.step

                def broken(command: str) -> tuple[Observation, float, bool]:
                    if whole.steps == 3:
                        raise OSError("the engine went away")
                    return step(command)

                whole.step = broken  # type: ignore[method-assign]
            yield whole


class _Script:
    """Answers like a model that tries every command once."""

    def act(
        self,
        observation: Observation,
        *,
        context: str,  # noqa: ARG002
        history: Sequence[tuple[str, str]],
    ) -> str:
        """Choose one."""
        commands = observation.admissible_commands
        return next((one for one in commands if one not in dict(history)), commands[0])

    def close(self) -> None:
        """Hold nothing open."""


class _Read(Hats):
    def policy(self, setup: Setup, seed: int) -> Policy:  # noqa: ARG002
        return _Script()


class _ReadUntilItBreaks(_Read):
    open = Crashing.open


def test_what_was_noted_of_a_game_that_broke_is_taken_back(tmp_path: Path) -> None:
    plan = small(protocol="stream", rounds=1, measured=0, llm="http://localhost", model="m")

    def noted(folder: str) -> list[Any]:
        lines = read_audit(tmp_path / folder / "full-0.jsonl")
        return [tuple(map(one.get, ("kind", "goal", "step", "steps", "command"))) for one in lines]

    whole = replace(plan, domain=_Read(), audit=tmp_path / "whole")
    list(play_arm(whole, "full", 0))
    broken = replace(plan, store=tmp_path / "store", audit=tmp_path / "broken")
    with pytest.raises(OSError, match="went away"):
        list(play_arm(replace(broken, domain=_ReadUntilItBreaks()), "full", 0))
    assert noted("broken")[-1][2] == 3
    list(play_arm(replace(broken, domain=_Read()), "full", 0))
    assert noted("broken") == noted("whole")
    other = replace(broken, domain=_Read(), llm="http://elsewhere")
    with pytest.raises(InvalidInputError, match=r"another setup \(llm differ\)"):
        next(play_arm(other, "full", 0))


def test_a_game_that_breaks_in_the_middle_leaves_nothing_and_can_be_played_again(
    tmp_path: Path,
) -> None:
    plan = small(protocol="stream", rounds=1, measured=0)
    expected, unbroken = play(plan, "full")
    kept = replace(plan, store=tmp_path)
    with pytest.raises(OSError, match="went away"):
        list(play_arm(replace(kept, domain=Crashing()), "full", 0))
    assert untimed(list(play_arm(kept, "full", 0))) == expected
    with arm_of("full").open(folder_of(kept, "full", 0), 0) as memory:
        assert memory.admin.check() == []
        assert learned(memory) == unbroken
