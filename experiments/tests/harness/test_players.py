"""The players of the arms that are no agent: frequencies, and whoever reads."""

from __future__ import annotations

import pytest

pytest.importorskip("statsmodels")

from experiments.harness.arms import ARMS, arm_of
from experiments.plans import Observation
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.textgames.controls import FrequencyPlayer
from experiments.textgames.reader import Reader


def test_the_frequency_player_draws_what_was_shown_most() -> None:
    arm = arm_of("frequency")
    player = arm.player(arm.loop_on(arm.open(None, 0)), 0)
    assert isinstance(player, FrequencyPlayer)
    player.learn(demonstrations())
    assert player.counts["walk to #"] == 7
    game = HatGame("hang a hat on the peg", seed=1, max_steps=60)
    given: list[str] = []
    step = game.step

    def noted(command: str) -> tuple[Observation, float, bool]:
        given.append(command)
        return step(command)

    game.step = noted  # type: ignore[method-assign]
    player.play(game)
    assert given
    assert "wait" not in given, "no demonstration waits"


def test_ten_lines_learn_and_a_measured_game_leaves_nothing() -> None:
    arm = arm_of("ten_lines")
    with arm.open(None, 0) as memory:
        loop = arm.loop_on(memory)
        assert loop is not None
        player = arm.player(loop, 0, max_steps=30)
        games = [HatGame("hang a hat on the peg", seed=seed) for seed in range(100, 110)]
        with loop.paused():
            before = sum(player.play(game).won for game in games)
        assert len(memory.record.episodes()) == 0
        player.learn(demonstrations())
        shown = len(memory.record.episodes())
        assert shown == len(demonstrations())
        for seed in range(10):
            player.play(HatGame("hang a hat on the peg", seed=seed))
        with loop.paused():
            after = [player.play(game) for game in games]
        assert len(memory.record.episodes()) == shown + 10
    assert sum(result.won for result in after) >= before + 5


class _Script:
    """Answers like a model that copies the actions of the first recalled episode."""

    def __init__(self) -> None:
        self.contexts: list[str] = []

    def act(self, observation, *, context="", history=()):  # type: ignore[no-untyped-def]
        self.contexts.append(context)
        unheard = [c for c in observation.admissible_commands if c not in dict(history)]
        return (unheard or observation.admissible_commands)[0]

    def close(self) -> None:
        """Hold nothing open."""


@pytest.mark.requirement("V18")
def test_a_reading_player_is_shown_evidence_and_its_games_are_remembered() -> None:
    policy = _Script()
    arm = ARMS["full"]
    reader = arm.player(arm.loop_on(arm.open(None, 0)), 0, policy)
    assert isinstance(reader, Reader)
    reader.learn(demonstrations())
    result = reader.play(HatGame("hang a hat on the peg", seed=1))
    assert result.steps == len(policy.contexts)
    assert "evidence from earlier episodes" in policy.contexts[0]
    assert len(reader.memory.episodes) == 3
