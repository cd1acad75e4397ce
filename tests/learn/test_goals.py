"""Goals that name no task: which learn from each other, and what carries over."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cvx import LexicalEmbedder, Memory
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.learn.advisor import Advisor, Observation
from cvx.learn.advisor.task_model import GAMMA, Task
from cvx.learn.advisor.types import Run

_EMBEDDER = LexicalEmbedder(64)
THINGS = [f"{colour} {thing}" for colour in ("red", "blue", "green") for thing in ("mug", "lamp")]


def seen(text: str) -> Observation:
    return Observation(text, _EMBEDDER.embed([text])[0])


def hand_over(memory: Memory, rng: random.Random, task: str | None = None) -> bool:
    wanted = rng.choice(THINGS)
    actions = [f"hand over the {one}" for one in THINGS]
    with memory.episode(f"The customer wants a {wanted}.", task=task) as episode:
        action = str(episode.advise("You are behind the counter.", actions).choose().action)
        episode.act(action)
        episode.end(action.endswith(wanted))
    return action.endswith(wanted)


def played(
    advisor: Advisor,
    number: int,
    goal: str,
    action: str,
    *,
    reward: float = 0.0,
    outcome: float | None = None,
) -> None:
    advisor.begin(str(number), goal=goal)
    advisor.step(str(number), seen("A box."), action, reward)
    advisor.end(str(number), outcome)


@pytest.mark.requirement("B11")
def test_what_one_goal_taught_is_tried_for_the_next() -> None:
    memory, rng = Memory(embedder=LexicalEmbedder()), random.Random(1)
    won = [hand_over(memory, rng) for _ in range(60)]
    assert sum(won[30:]) >= 27


def test_an_outcome_and_rewards_do_not_mix() -> None:
    advisor = Advisor(seed=1)
    played(advisor, 1, "open the box", "lift", outcome=1.0)
    for number in (2, 3):
        played(advisor, number, "collect coins", "pull", reward=0.5)
    # What is new is taken for what is told more often.
    advisor.begin("new", goal="open the chest")
    assert (advisor.unit("new"), advisor.settled_unit("new")) == ("return", None)
    for goal, unit in (("open the box", "P(success)"), ("collect coins", "return")):
        advisor.begin(goal, goal=goal)
        assert advisor.settled_unit(goal) == unit


def test_a_goal_on_another_scale_learns_alone() -> None:
    advisor = Advisor(seed=1)
    for number in range(3):
        played(advisor, number, "small", "lift", reward=1.0)
        played(advisor, 10 + number, "large", "push", reward=0.0)
    played(advisor, 20, "large", "pull", reward=500.0)
    for goal, best, pays in (("small", "lift", 1.0), ("large", "pull", 500.0)):
        advisor.begin(goal, goal=goal)
        options = advisor.options(goal, seen("A box."), ["push", "pull", "lift"])
        assert options[0].action == best
        assert options[0].value == pytest.approx(pays, rel=0.2)
    # Also what pays nothing from then on.
    played(advisor, 21, "large", "lift", reward=0.0)
    advisor.begin("again", goal="large")
    lift = advisor.options("again", seen("A box."), ["lift"])[0]
    assert lift.trials == 1


def test_numbers_are_learned_by_each_goal_alone() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for goal, state, action in (("left", [0.5, 1.5], "a"), ("Right", [0.5, 1.5, 2.5], "b")):
        with memory.episode(goal) as episode:
            episode.advise(state, ["a", "b"])
            episode.act(action)
            episode.end(1.0)
    for goal, state, action in (("Left", [0.5, 1.5], "a"), ("right", [0.5, 1.5, 2.5], "b")):
        with memory.episode(goal) as episode:
            assert episode.advise(state, ["a", "b"]).best.action == action
            with pytest.raises(InvalidVectorError, match="numbers"):
                episode.advise([0.5], ["a", "b"])
            episode.discard()


def test_one_episode_of_another_kind_cuts_nobody_off() -> None:
    memory, rng = Memory(embedder=LexicalEmbedder()), random.Random(1)
    won = []
    for number in range(60):
        if number >= 30:
            with memory.episode(f"balance pole {number}") as episode:
                episode.act("left", observation=[0.1, 0.2])
                episode.end(1.0)
            with memory.episode(f"collect coins {number // 10}") as episode:
                episode.act("dig", observation="A beach.", reward=0.3)
                episode.end()
        won.append(hand_over(memory, rng))
    assert sum(won[30:]) >= 27


def test_a_task_of_the_name_of_a_goal_is_another_one() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    with memory.episode("x", task="drive") as episode:
        episode.act("go", observation="A road.")
        episode.end(1.0)
    for _ in range(2):
        with memory.episode("drive") as episode:
            episode.act("go", observation=[0.1, 0.2], reward=3.0)
            episode.end()
    with memory.episode("x", task="drive") as episode:
        assert episode.advise("A road.", ["go"]).unit == "P(success)"
        with pytest.raises(InvalidInputError, match="task 'drive' counts by"):
            episode.end()
        episode.discard()
    with memory.episode("Drive") as episode:
        with pytest.raises(InvalidInputError, match="goal 'Drive' counts by return"):
            episode.end(1.0)
        episode.discard()


def test_a_source_moves_no_goal_and_makes_no_time_short() -> None:
    def told(*, by_source: bool) -> list[tuple[str, float]]:
        memory = Memory(embedder=LexicalEmbedder())
        for _ in range(30):
            with memory.episode("leave the house") as episode:
                for seen_there, action in (("hall", "walk"), ("porch", "push")):
                    episode.act(action, observation=seen_there)
                episode.end(1.0)
        if by_source:
            for number in range(5):
                for cut in (True, False):
                    with memory.episode("leave the house", source="web") as episode:
                        episode.act("walk", observation=[0.1, number])
                        episode.end(1.0, truncated=cut)
                for acts in (True, False):
                    with memory.episode(f"stay {number}", source="web") as episode:
                        if acts:
                            episode.act("sit", observation="hall")
                        episode.end(0.0, truncated=True)
        with memory.episode("leave the house", learn=False) as episode:
            advice = episode.advise("hall", ["walk"])
        return [(str(option.action), round(option.value, 2)) for option in advice]

    assert told(by_source=True) == told(by_source=False)


def test_without_actions_those_of_the_goal_are_weighed() -> None:
    advisor = Advisor(seed=1)
    played(advisor, 1, "open the box", "lift", outcome=1.0)
    played(advisor, 2, "ring the bell", "pull", outcome=1.0)
    for goal, action in (("open the box", "lift"), ("ring the bell", "pull")):
        advisor.begin(goal, goal=goal)
        options = advisor.options(goal, seen("Something new."))
        assert [option.action for option in options] == [action]


@pytest.mark.parametrize("history", [0, 2])
def test_goals_are_told_apart_later_as_from_the_start(history: int) -> None:
    def task(*, by_goal: bool) -> Task:
        advisor = Advisor(seed=1, history=history)
        advisor._task("t").by_goal = by_goal
        for number in range(6):
            name = str(number)
            advisor.begin(name, goal="Open the box", task="t")
            for text, action in (("A box.", "lift"), ("A lid.", "pull"), ("A lock.", "push")):
                advisor.options(name, seen(text), ["lift", "pull", "push"])
                advisor.step(name, seen(text), action)
            advisor.end(name, outcome=float(number % 2), observation=seen("It is open."))
        return advisor._tasks["t"]

    first, later = task(by_goal=True), task(by_goal=False)
    assert first.names != later.names
    later.tell_goals_apart()
    assert (first.names, first.tokens, first.words) == (later.names, later.tokens, later.words)


def test_a_kept_memory_knows_which_goals_learn_together(tmp_path: Path) -> None:
    """More than what is learned anew at every opening."""
    rng = random.Random(2)
    with Memory.open(tmp_path, embedder=LexicalEmbedder()) as memory:
        for _ in range(1100):
            hand_over(memory, rng)

        def values(memory: Memory) -> list[tuple[str, float]]:
            with memory.episode("The customer wants a red lamp.") as episode:
                advice = episode.advise("You are behind the counter.", ["push", *THINGS])
                episode.discard()
            return [(str(option.action), round(option.value, 6)) for option in advice]

        before = values(memory)
    assert list(tmp_path.rglob("learned*"))
    with Memory.open(tmp_path, embedder=LexicalEmbedder()) as memory:
        assert values(memory) == before


def test_what_was_kept_is_what_was_lived_through() -> None:
    """Also after a goal went its own way, and whoever told of it first was doubted later."""
    rng = random.Random(3)

    def tell(advisors: list[Advisor], number: int) -> None:
        goal = rng.choice(["a pot", "a pan", "A  Pot", "a lid"])
        task, source = rng.choice([None, None, "t"]), rng.choice(["", "web", "web"])
        rewards = [rng.choice([0.0, 0.5, 7.0 * (number > 20)]) for _ in range(rng.randrange(3))]
        texts, actions = rng.choice(["hall", "porch"]), rng.choice(["walk", "sit"])
        cut = rng.random() < 0.3
        for advisor in advisors:
            advisor.begin(str(number), goal=goal, task=task, source=source)
            for reward in rewards:
                advisor.step(str(number), seen(texts), actions, reward)
            advisor.end(str(number), truncated=cut)

    def values(advisor: Advisor) -> list[tuple[object, float, int]]:
        found = list[tuple[object, float, int]]()
        for goal in ("a pot", "a pan", "a lid", "new"):
            advisor.begin("asked", goal=goal)
            options = advisor.options("asked", seen("hall"), ["walk", "sit"])
            found += [(one.action, round(one.value, 9), one.trials) for one in options]
            advisor.discard("asked")
        return found

    lived, runs = Advisor(seed=1), list[Run]()
    for number in range(60):
        tell([lived], number)
        if number % 10 == 0:
            values(lived)
    runs = list(lived._past)
    kept = Advisor(seed=1, read=lambda keys: [run for run in runs if run.episode in keys])
    kept.restore(lived.saved())
    assert values(kept) == values(lived)
    for number in range(60, 90):
        tell([lived, kept], number)
        assert values(kept) == values(lived)


@pytest.mark.parametrize("first", [0, 3])
def test_whoever_told_first_settles_nothing_for_the_asker(first: int) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for _ in range(first):
        with memory.episode("ring the bell", source="web") as episode:
            episode.act("pull", observation="A tower.", reward=9.0)
            episode.end()
    for _ in range(6):
        with memory.episode("sweep the floor") as episode:
            episode.act("sweep", observation="A floor.")
            episode.end(1.0)
    with memory.episode("ring the bell") as episode:
        assert episode.advise("A tower.", ["pull", "push"]).unit == "P(success)"
        episode.act("pull")
        episode.end(1.0)


def test_agents_that_tell_as_much_each_learn_as_one_does() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for number in range(9):
        with memory.episode("dig", source=f"agent {number % 3}") as episode:
            episode.act("wait" if number % 2 else "dig", observation="A beach.", reward=5.0)
            episode.end()
    with memory.episode("dig") as episode:
        advice = episode.advise("A beach.", ["dig", "wait"])
        # Copies of one report count less.
        assert all(option.trials >= 4 for option in advice)
        episode.discard()


def test_time_that_runs_out_makes_what_is_later_worth_less() -> None:
    advisor = Advisor(seed=1)
    for number in range(4):
        advisor.begin(str(number), goal="leave", task="leave")
        for _ in range(5):
            advisor.step(str(number), seen("A hall."), "walk")
        advisor.end(str(number), truncated=True)
    task = advisor._tasks["leave"]
    assert task.gamma == pytest.approx(GAMMA * 0.8)
    # Nothing was done, and so nothing said of time.
    advisor.begin("nothing", goal="leave", task="leave")
    advisor.end("nothing", truncated=True)
    # Whoever gained something was only stopped.
    advisor.begin("gained", goal="leave", task="leave")
    advisor.step("gained", seen("A hall."), "walk", 1.0)
    advisor.end("gained", truncated=True)
    assert task.cut_off == 4
