"""Commands are chosen by their returns where a demonstrator was rewarded by the way."""

from __future__ import annotations

from experiments.harness.arms import arm_of
from experiments.harness.memories import PausableMemory
from experiments.plans import Observation, Played, Returns, Walk
from experiments.plans.lessons import rewarded_by_the_way
from experiments.plans.returns import gaps
from experiments.tests.textgames.hats import demonstrations
from experiments.textgames.agent import Agent

ROOMS = {"cellar": ("old nail", "round stone"), "garden": ("ripe plum", "grey stone", "ripe pear")}


class Pantry:
    """Show something that can be eaten, then bring it: showing anything else ends the game."""

    def __init__(self, box: str, food: str = "ripe plum") -> None:
        self.goal, self.food = f"Find food. First, show it. Then, put it into the {box}.", food
        self.box = box

    def reset(self) -> Observation:
        self.place, self.steps, self.score = "cellar", 0, 0.0
        return self._see("A cellar.")

    def _see(self, text: str) -> Observation:
        here = [thing for thing in ROOMS[self.place] if "ripe" not in thing or thing == self.food]
        can = [f"{verb} {thing}" for thing in here for verb in ("look at", "show")]
        can += [f"put {thing} into {self.box}" for thing in here]
        return Observation(text, self.goal, tuple(sorted([*can, *(f"go to {r}" for r in ROOMS)])))

    def step(self, command: str) -> tuple[Observation, float, bool]:
        self.steps, reward, over = self.steps + 1, 0.0, self.steps > 11
        if command.startswith("go to"):
            self.place = command.removeprefix("go to ")
        elif command.startswith("show"):
            over = command != f"show {self.food}"
            reward = 0.6 * (not over and not self.score)
        elif command.startswith("put"):
            reward = 0.4 * (self.score > 0 and self.food in command)
        self.score += reward
        return self._see("You do it."), reward, over or self.score > 0.99


def _shown(box: str, commands: tuple[str, ...]) -> tuple[str, list[Played]]:
    game = Pantry(box)
    seen, steps = game.reset(), []
    for command in commands:
        before = seen
        seen, reward, _ = game.step(command)
        steps.append(Played(before, command, reward))
    return game.goal, steps


DEMONSTRATION = _shown("red box", ("go to garden", "show ripe plum", "put ripe plum into red box"))


def _agent(*, returning: bool = True) -> tuple[Agent, PausableMemory]:
    one = arm_of("full" if returning else "no_returns")
    loop = one.loop_on(one.open(None, 0))
    assert loop is not None
    agent = one.player(loop, 0)
    assert isinstance(agent, Agent)
    return agent, loop


def test_a_demonstration_is_followed_with_another_box() -> None:
    agent, _ = _agent()
    agent.learn([DEMONSTRATION])
    result = agent.play(Pantry("blue box"))
    assert (result.won, result.steps) == (True, 3)


def test_what_ends_a_game_is_learned_and_words_tell_of_other_things() -> None:
    agent, _ = _agent()
    agent.learn([DEMONSTRATION])
    scores = [agent.play(Pantry("green box", "ripe pear")).score for _ in range(12)]
    assert sum(scores[-4:]) > 3.9, "nobody was shown a pear"


def test_a_measured_game_leaves_nothing() -> None:
    agent, loop = _agent()
    agent.learn([DEMONSTRATION])
    known = {form: set(names) for form, names in agent.plans.returns.known.items()}  # type: ignore[union-attr]
    assert loop.choices is not None
    before = len(loop.readable()), len(loop.choices.memory)
    with loop.paused():
        agent.play(Pantry("green box", "ripe pear"))
    assert (len(loop.readable()), len(loop.choices.memory)) == before
    assert agent.plans.returns is not None
    assert agent.plans.returns.known == known


def test_a_reopened_memory_knows_what_was_done() -> None:
    agent, loop = _agent()
    agent.learn([*demonstrations(), DEMONSTRATION])
    agent.play(Pantry("green box", "ripe pear"))
    returns = agent.plans.returns
    assert returns is not None
    assert loop.choices is not None
    again = Returns(loop, loop.choices)
    assert (again.known, again.named) == (returns.known, returns.named)


def test_goals_go_by_plans_where_a_plan_has_all_that_was_rewarded() -> None:
    agent, _ = _agent()
    hats = demonstrations()
    paid = [(goal, [*steps[:-1], steps[-1]._replace(reward=1.0)]) for goal, steps in hats]
    assert rewarded_by_the_way([*paid, DEMONSTRATION]) == [2]
    agent.learn([*paid, DEMONSTRATION])
    assert agent.plans.walk("hang a cap on the peg") is None
    walk = agent.plans.walk(Pantry("blue box").goal)
    assert isinstance(walk, Walk)
    walk.discard()
    assert _agent(returning=False)[0].plans.walk(DEMONSTRATION[0]) is None


def test_gaps_are_filled_by_what_stands_there() -> None:
    form = "put the {0} on the {1}"
    assert gaps(form, "Put the felt hat on the peg.") == {"felt hat": "{0}", "peg": "{1}"}
