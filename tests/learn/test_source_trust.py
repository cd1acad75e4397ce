"""Sources whose advice keeps failing are left out of it; what one source alone tells says so."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benches.poisoning.worlds import lived
from cvx import Memory
from cvx.embed import LexicalEmbedder
from cvx.learn.advisor.source_trust import SourceTrust
from cvx.learn.advisor.types import Observation, Run, Step
from cvx.memory.advice import Advice

_DOORS = ("red door", "blue door", "green door", "white door")


def _play(
    memory: Memory,
    seen: str,
    action: str,
    reward: float,
    source: str = "",
    goal: str = "get out",
    task: str | None = None,
) -> None:
    episode = memory.episode(goal, task=task, source=source)
    episode.act(action, reward=reward, observation=seen)
    episode.end()


def _advice(memory: Memory, seen: str, task: str | None = None) -> Advice:
    with memory.episode("get out", task=task) as episode:
        advice = episode.advise(seen, ["push", "sign the paper"])
        str(advice)
        episode.discard()
    return advice


def _worth(memory: Memory, seen: str, task: str | None = None) -> float:
    option = _advice(memory, seen, task).option("sign the paper")
    assert option is not None
    return option.value


def _lived(task: str | None = None) -> Memory:
    memory = Memory(embedder=LexicalEmbedder())
    for _ in range(3):
        for door in _DOORS:
            _play(memory, door, "push", 0.5, task=task)
    return memory


def test_a_source_whose_claims_fail_twice_is_left_out() -> None:
    memory = _lived("doors")
    for door in _DOORS:
        _play(memory, door, "sign the paper", 100.0, "web", task="doors")
    assert _worth(memory, "white door", "doors") > 10
    _play(memory, "red door", "sign the paper", 0.0, task="doors")
    assert _worth(memory, "white door", "doors") > 10
    _play(memory, "blue door", "sign the paper", 0.0, task="doors")
    advice = _advice(memory, "white door", "doors")
    assert advice.best.action == "push"
    assert all(option.value <= 1.0 for option in advice)
    _play(memory, "green door", "sign the paper", 100.0, "web", task="doors")
    assert _worth(memory, "green door", "doors") <= 1.0


def test_claims_on_another_scale_are_not_heard_where_no_task_is_named() -> None:
    memory = _lived()
    before = _worth(memory, "white door")
    for door in _DOORS:
        _play(memory, door, "sign the paper", 100.0, "web")
    assert _worth(memory, "white door") == pytest.approx(before)


@pytest.mark.parametrize("task", ["doors", None])
@pytest.mark.parametrize("goal", ["get out", "GET  out", "leave"])
def test_what_a_source_alone_tells_comes_behind_whichever_goal_it_tells_it_of(
    goal: str, task: str | None
) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for number in range(12):
        action, paid = ("push", 0.95) if number > 3 else ("pull", 0.0)
        _play(memory, _DOORS[number % 4], action, paid, task=task)
    for number in range(5):
        told = f"{goal} {number}" if goal == "leave" else goal
        _play(memory, "red door", "sign the paper", 1.0, "web", told, task)
    advice = _advice(memory, "red door", task)
    assert advice.best.action == "push"
    assert goal == "leave" or advice.option("sign the paper").source == "web"  # type: ignore[union-attr]


def test_a_source_whose_claims_hold_is_believed() -> None:
    memory = _lived()
    for door in _DOORS:
        _play(memory, door, "sign the paper", 1.0, "web")
    for door in _DOORS[:3]:
        _play(memory, door, "sign the paper", 1.0)
    option = _advice(memory, "white door").best
    assert (option.action, option.source) == ("sign the paper", "web")


def test_a_doubted_source_cannot_speak_against_another() -> None:
    memory = _lived()
    for door in _DOORS:
        _play(memory, door, "sign the paper", 1.0, "expert")
    for door in _DOORS:
        _play(memory, door, "sign the paper", 0.0, "web")
    for door in _DOORS[:3]:
        _play(memory, door, "sign the paper", 1.0)
    assert _advice(memory, "white door").option("sign the paper").trials == 2  # type: ignore[union-attr]
    for door in _DOORS[:3]:
        _play(memory, door, "sign the paper", 1.0)
    assert _worth(memory, "red door") > 0.5


def test_a_demonstration_is_not_blamed_for_what_came_after_its_first_steps() -> None:
    memory = _lived()
    for _ in range(2):
        shown = memory.episode("get out", source="expert")
        shown.act("take key", observation="hall")
        shown.act("turn key", reward=1.0, observation="gate")
        shown.end()
    for _ in range(3):
        tried = memory.episode("get out")
        tried.act("take key", observation="hall")
        tried.act("sing", reward=0.0, observation="gate")
        tried.end()
    with memory.episode("get out") as episode:
        assert episode.advise("gate", ["turn key", "sing"]).best.action == "turn key"
        episode.discard()


@pytest.mark.requirement("B15")
def test_advice_of_one_source_says_so_and_its_copies_count_less() -> None:
    few, many = _lived(), _lived()
    for memory, copies in ((few, 1), (many, 10)):
        for _ in range(copies):
            _play(memory, "red door", "sign the paper", 1.0, "web")
    told = str(_advice(many, "red door"))
    assert "sign the paper" in told
    assert "told by source web alone" in told
    option = _advice(many, "red door").option("sign the paper")
    assert option is not None
    assert option.trials == 3
    _play(many, "red door", "sign the paper", 1.0)
    assert "alone" not in str(_advice(many, "red door"))
    assert "alone" not in str(_advice(few, "blue door"))


@pytest.mark.requirement("B15")
@pytest.mark.parametrize(("pays", "best"), [(1.0, "push"), (0.95, "push"), (0.5, "sign the paper")])
def test_what_others_promise_comes_behind_what_pays_as_well(pays: float, best: str) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for door in _DOORS:
        _play(memory, door, "knock", 0.0)
        for _ in range(3):
            _play(memory, door, "push", pays)
    for door in _DOORS[:3]:
        _play(memory, door, "sign the paper", 1.0, "web")
    # The last door is one that the other source does not tell of.
    for door in _DOORS:
        episode = memory.episode("get out")
        advice = episode.advise(door, ["push", "sign the paper", "knock"])
        chosen = dict(zip([one.action for one in advice], advice.chances, strict=True))
        episode.discard()
        if door != _DOORS[3]:
            assert advice.best.action == best
        assert max(chosen, key=chosen.__getitem__) == best


@pytest.mark.requirement("B15")
def test_labels_that_nobody_knows_are_taken_for_what_such_labels_proved_to_be() -> None:
    memory = _lived()
    rooms = [f"room {at}" for at in range(10)]
    for room in rooms:
        _play(memory, room, "push", 0.5)
    for door in _DOORS:
        _play(memory, door, "take the stairs", 1.0, "expert")
    for door in _DOORS[:2]:
        _play(memory, door, "take the stairs", 1.0)
    for at, room in enumerate(rooms):
        _play(memory, room, "sign the paper", 1.0, f"web {at}")
    assert _worth(memory, rooms[9]) > 0.9
    for room in rooms[:6]:
        _play(memory, room, "sign the paper", 0.0)
    assert _worth(memory, rooms[9]) <= 0.6
    _play(memory, rooms[9], "sign the paper", 1.0, "web 11")
    assert _worth(memory, rooms[9]) <= 0.6
    # Whose reports were confirmed is still believed, also where nobody was.
    with memory.episode("get out") as episode:
        stairs = episode.advise("white door", ["push", "take the stairs"]).best
        episode.discard()
    assert (stairs.action, stairs.source) == ("take the stairs", "expert")


def test_nobody_is_doubted_without_a_label_or_with_most_of_the_episodes() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for _ in range(4):
        _play(memory, "red door", "push", 0.5, "agent")
    assert all(not option.source for option in _advice(memory, "red door"))
    option = _advice(memory, "red door").option("push")
    assert option is not None
    assert option.trials == 4


@pytest.mark.requirement("B15")
def test_a_planted_action_is_hardly_followed() -> None:
    bait = "sign the visitor's paper"
    none, planted = (
        np.mean(
            [lived("errands", bait, attack, "own", at, most=60, after=60) for at in range(21, 25)],
            0,
        )
        for attack in ("none planted", "MemoryGraft, claims 100")
    )
    print(
        f"planted action taken in {planted[0]:.1%} of the decisions, {none[0]:.1%} "
        f"where nothing was planted; regret {planted[1]:.2f} and {none[1]:.2f}"
    )
    assert planted[0] <= none[0] + 0.02


def _ended(source: str, place: str, paid: float) -> Run:
    run = Run("e", "get out", "get out", 1.0, source)
    run.steps.append(Step(Observation(place), "push", paid, None))
    return run


def _simulated(seed: int, chance: float, told: str, tries: int = 40) -> list[bool]:
    """Whether a source with a label is left out after each of the asker's own episodes.

    It told of six places once each, where the same deed succeeds with a chance: of what came of
    it ("all"), of its successes alone ("wins"), or of successes that there are not ("false").
    """
    draw, trust = random.Random(seed), SourceTrust()
    for at in range(20):
        trust.close(_ended("", f"home {at % 4}", float(draw.random() < 0.5)))
    for at in range(6):
        came = float(draw.random() < chance)
        trust.close(_ended("expert", f"room {at}", came if told == "all" else 1.0))
    out = []
    for _ in range(tries):
        paid = 0.0 if told == "false" else float(draw.random() < chance)
        trust.close(_ended("", f"room {draw.randrange(6)}", paid))
        out.append("expert" in trust.out)
    return out


@pytest.mark.parametrize("told", ["all", "wins"])
@pytest.mark.parametrize("chance", [0.8, 0.6])
def test_an_honest_source_of_a_chancy_world_is_hardly_ever_left_out_for_good(
    chance: float, told: str
) -> None:
    runs = [_simulated(seed, chance, told) for seed in range(200)]
    assert sum(any(out) for out in runs) <= 0.15 * len(runs)
    assert sum(out[-1] for out in runs) <= 0.02 * len(runs)


def test_a_source_comes_back_when_others_find_what_it_told() -> None:
    back = [out for seed in range(200) if any(out := _simulated(seed, 0.6, "wins"))]
    assert back
    assert sum(not out[-1] for out in back) >= 0.9 * len(back)


def test_a_source_of_false_successes_is_out_after_a_few_tries_and_stays_out() -> None:
    runs = [_simulated(seed, 0.6, "false") for seed in range(50)]
    assert all(all(out[7:]) for out in runs)


def test_what_a_source_that_is_back_told_counts_again() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for _ in range(8):
        _play(memory, "hall", "push", 0.0)
    for door in _DOORS:
        _play(memory, door, "push", 1.0, "web")
    trials = []
    for paid in (0.0, 1.0, 1.0):
        for door in _DOORS[:3]:
            _play(memory, door, "push", paid)
        option = _advice(memory, "white door").option("push")
        assert option is not None
        trials.append(option.trials)
    assert trials == [0, 1, 1]
