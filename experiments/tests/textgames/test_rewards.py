"""Shares of a reward that come along the way: what earned them is learned."""

from __future__ import annotations

from experiments.harness.arms import arm_of
from experiments.plans import Observation, Played
from experiments.textgames.agent import Agent

GOAL = "Show the oldest beast"
BEASTS = ("bear", "crow", "fly", "mole", "newt")


class Zoo:
    """Go to the yard, then point at the beast that is oldest: the first try ends it.

    The goal names nothing that any command does, so that no plan can be read from a win.
    """

    def __init__(self, oldest: str = "bear") -> None:
        self.oldest = oldest

    def reset(self) -> Observation:
        self.place, self.asked, self.last = "hall", 0, ""
        return self._see("A hall.")

    def _see(self, text: str) -> Observation:
        self.asked += 1
        here = BEASTS if self.place == "yard" else ("lamp", "rug", "stove")
        can = [*(f"point at {one}" for one in here), "walk to hall", "walk to yard", "walk to den"]
        return Observation(text, GOAL, tuple(sorted(can)))

    def step(self, command: str) -> tuple[Observation, float, bool]:
        self.last = command
        verb, _, rest = command.partition(" ")
        if verb == "point":
            return self._see("You point."), 0.5 * (rest == f"at {self.oldest}"), True
        fresh = rest == "to yard" and self.place != "yard"
        self.place = rest.removeprefix("to ")
        return self._see(f"The {self.place}."), 0.5 * fresh, self.asked > 12


class Mist(Zoo):
    """A zoo in which no command does anything."""

    def step(self, command: str) -> tuple[Observation, float, bool]:  # noqa: ARG002
        return self._see("Mist."), 0.0, self.asked > 8


def _played(oldest: str) -> tuple[str, list[Played]]:
    game = Zoo(oldest)
    steps, seen = [], game.reset()
    for command in ("walk to yard", f"point at {oldest}"):
        before = seen
        seen, reward, _ = game.step(command)
        steps.append(Played(before, command, reward))
    return GOAL, steps


def _taught(oldest: str = "bear") -> Agent:
    one = arm_of("full")
    agent = one.player(one.loop_on(one.open(None, 0)), 0)
    assert isinstance(agent, Agent)
    agent.learn([_played(oldest)])
    return agent


def test_what_earned_a_demonstrator_a_reward_is_done_where_the_goal_names_no_thing() -> None:
    agent = _taught()
    results = [agent.play(Zoo()) for _ in range(3)]
    assert [(result.won, result.steps) for result in results] == [(True, 2)] * 3


def test_what_ends_a_game_in_vain_is_not_done_for_ever() -> None:
    agent = _taught("newt")
    games = [Zoo("mole") for _ in range(8)]
    for game in games:
        agent.play(game)
    assert games[0].last == "point at newt", "as it was shown"
    assert any(game.last != "point at newt" for game in games), "but not for ever"


def test_a_plan_is_not_looked_for_again_while_nothing_new_is_heard() -> None:
    agent = _taught()
    result = agent.play(Mist())
    assert result.decisions <= result.steps + 2, "an advice a step, and a plan at the start"
