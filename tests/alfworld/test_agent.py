"""The agent reads shapes and slots, names nothing, and plays by what memory returns."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from cvx.alfworld import agent as agent_module
from cvx.alfworld import explore as explore_module
from cvx.alfworld import language as language_module
from cvx.alfworld import sight as sight_module
from cvx.alfworld.agent import Agent
from cvx.alfworld.arms import ARMS, arm_of
from cvx.alfworld.controls import FrozenMemory, ShuffledMemory
from cvx.alfworld.demonstrations import demonstrate
from cvx.alfworld.engine import AlfworldGame
from cvx.alfworld.floorplans import tables
from cvx.alfworld.language import Binding, Lexicon, arguments, shape, signature, template
from cvx.alfworld.sight import use_key
from cvx.errors import InvalidParameterError
from cvx.types import Cue, Filter
from tests.alfworld.hats import HatGame, demonstrations

VERBS = {
    "go", "take", "put", "move", "open", "close", "toggle", "heat", "cool", "clean", "slice",
    "examine", "look", "inventory", "help", "use", "pick",
}  # fmt: skip


def _agent(arm: str = "full", seed: int = 0, *, taught: bool = True) -> Agent:
    player = arm_of(arm).player(arm_of(arm).open(None, seed), seed)
    assert isinstance(player, Agent)
    if taught:
        player.learn(demonstrations())
    return player


def _strings(source: str) -> list[str]:
    tree = ast.parse(source)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def test_the_agent_names_no_object_no_receptacle_and_no_verb_of_the_game() -> None:
    nouns = {kind.lower() for kind in (*tables().objects, *tables().receptacles)}
    assert {"mug", "fridge", "desklamp"} <= nouns
    for module in (agent_module, language_module, sight_module, explore_module):
        source = inspect.getsource(module)
        said = set(re.findall(r"[a-z]+", source.lower()))
        assert not said & nouns, f"{module.__name__} names {said & nouns}"
        spoken = {w for text in _strings(source) for w in re.findall(r"[a-z]+", text.lower())}
        assert not spoken & VERBS, f"{module.__name__} speaks of {spoken & VERBS}"


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("grab hat 1 from nook 12", "grab # from #"),
        ("wait", "wait"),
        ("grab # from #", "grab # from #"),
        ("dye {0.0} with vat", "dye # with #"),
    ],
)
def test_a_shape_keeps_the_first_word_and_function_words(command: str, form: str) -> None:
    assert shape(command) == form


def test_arguments_are_words_with_their_instances_and_positions() -> None:
    found = arguments("grab hat 1 from nook 12")
    assert [(a.word, a.instance) for a in found] == [("hat", "hat 1"), ("nook", "nook 12")]
    assert [a.position for a in found] == [("grab # from #", 0), ("grab # from #", 1)]


def test_slots_are_the_nouns_that_commands_name_and_memory_did_not_use_otherwise() -> None:
    lexicon = Lexicon()
    lexicon.learn("hang a red hat on the peg", ["hat", "peg"], ["hang hat 1 on peg 1"])
    assert lexicon.slots("hang a red scarf on the hook", heard={"hook"}) == ("scarf", "hook")
    # More unknown words than slots: what no command was heard to name goes first.
    assert lexicon.slots("put crimson scarf on the hook", heard={"hook"}) == ("scarf", "hook")
    assert template("hang a scarf on the hook", ("scarf", "hook")) == "hang a {0} on the {1}"


def test_variables_tell_a_fresh_instance_from_the_same_again() -> None:
    lexicon = Lexicon()
    commands = ["grab hat 1 from nook 3", "hang hat 1 on peg 1", "grab hat 2 from nook 4"]
    lexicon.learn("hang two hat on peg", ["hat", "peg"], commands)
    binding = Binding(["hat", "peg"], lexicon)
    plan = [binding.abstract(c) for c in commands]
    assert plan == ["grab {0.0} from nook", "hang {0.0} on {1.0}", "grab {0.1} from nook"]
    assert signature(plan) == "grab {0.0}, hang {0.0} {1.0}, grab {0.1}"

    other = Binding(["scarf", "hook"], lexicon)
    assert other.abstract("grab scarf 7 from box 1") == "grab {0.0} from box"
    assert not other.fits("grab scarf 7 from box 1", plan[2]), "a fresh one is wanted"
    assert other.fits("grab scarf 8 from box 1", plan[2])
    assert other.fits("hang scarf 7 on hook 1", plan[1])
    assert not other.fits("hang scarf 8 on hook 1", plan[1]), "the one already bound is wanted"


def test_a_thing_that_played_two_parts_can_be_read_in_two_ways() -> None:
    lexicon = Lexicon()
    lexicon.learn("dye a hat and hang it on the vat", ["hat", "vat"], ["dye hat 1 with vat 1"])
    plan = ["dye {0.0} with {1.0}"]
    readings = dict(lexicon.readings(plan, {0: "hat", 1: "vat"}))
    assert readings[("dye {0.0} with {1.0}",)] == 1.0
    assert 0 < readings[("dye {0.0} with vat",)] < 1


def test_without_memory_commands_are_drawn_at_random() -> None:
    games = [HatGame("hang a red hat on the peg", seed=s, dyed=True) for s in range(20)]
    agent = _agent("none", taught=False)
    assert sum(agent.play(game).won for game in games) <= 2
    assert len(agent.memory.episodes) == 0


@pytest.mark.requirement("V16")
def test_two_demonstrations_teach_a_world_of_other_words() -> None:
    agent = _agent()
    plain = [agent.play(HatGame("hang a hat on the peg", seed=s)) for s in range(10, 18)]
    dyed = [
        agent.play(HatGame("hang a red hat on the peg", seed=s, dyed=True)) for s in range(20, 28)
    ]
    assert all(result.won for result in (*plain, *dyed))
    assert max(result.steps for result in plain) <= 14


@pytest.mark.requirement("V16", "V17")
def test_a_failed_plan_is_not_tried_first_again() -> None:
    agent = _agent()
    game = "hang a crimson hat on the peg"
    results = [agent.play(HatGame(game, seed=s, dyed=True)) for s in range(30, 34)]
    assert all(result.won for result in results)
    assert results[0].attempts == 2, "an unknown word: the shorter plan is tried, in vain"
    assert [result.attempts for result in results[1:]] == [1, 1, 1]
    failed = [e for e in agent.memory.episodes if e.reward == 0.0]
    assert len(failed) == 1
    nodes = {step.node for step in failed[0].steps}
    advice = agent.memory.recall(Cue(goal=game), Filter(tags=["goal"]), 100).hits
    assert advice
    assert nodes.isdisjoint(hit.node for hit in advice)
    asked = agent.memory.recall(Cue(goal=game), Filter(tags=["goal"]), outcome="failure").hits
    assert nodes >= {hit.node for hit in asked} > set()


def test_a_frozen_memory_repeats_its_mistake() -> None:
    agent = _agent("frozen")
    game = "hang a crimson hat on the peg"
    results = [agent.play(HatGame(game, seed=s, dyed=True)) for s in range(30, 34)]
    assert [result.attempts for result in results] == [2, 2, 2, 2]
    assert isinstance(agent.memory, FrozenMemory)
    assert len(agent.memory.episodes) == 2


def test_the_same_seed_plays_the_same_games_the_same_way() -> None:
    def play() -> list[tuple[object, ...]]:
        agent = _agent(seed=5)
        return [agent.play(HatGame("hang a hat on the peg", seed=s))[:4] for s in range(6)]

    assert play() == play()


def test_shuffled_memory_hangs_every_plan_on_a_wrong_goal() -> None:
    right, wrong = _agent("full"), _agent("shuffled")
    assert isinstance(wrong.memory, ShuffledMemory)
    for a, b in zip(right.memory.episodes, wrong.memory.episodes, strict=True):
        assert a.actions == b.actions
        assert a.goal != b.goal
        assert a.task_type != b.task_type
    result = wrong.play(HatGame("hang a red hat on the peg", seed=3, dyed=True))
    assert result.steps > 0
    assert wrong.memory.episodes[-1].goal == "hang a hat on the peg"


def test_use_is_counted_by_goal_and_plan() -> None:
    agent = _agent()
    agent.play(HatGame("hang a hat on the peg", seed=3))
    assert agent.memory.usage is not None
    key = ("plan", "hang a {0} on the {1}", "grab {0.0}, hang {0.0} {1.0}")
    assert agent.memory.usage.count(key).helped == 1
    hits = agent.memory.recall(Cue(goal="hang a hat on the peg"), Filter(tags=["goal"])).hits
    assert key in {use_key(hit, "hang a {0} on the {1}") for hit in hits}


def test_an_unknown_arm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidParameterError, match="full"):
        arm_of("best")
    assert set(ARMS) >= {"none", "shuffled", "frequency", "nearest", "wins_blind", "full"}


@pytest.mark.slow
@pytest.mark.requirement("V16")
def test_demonstrated_games_of_alfworld_are_won_and_not_without_memory(
    games: list[Path], cache: Path
) -> None:
    shown = [demonstrate(game, by=("expert",), cache=cache) for game in games[:6]]
    agent = _agent("full", taught=False)
    agent.learn([(steps[0].observation.goal, steps) for steps in shown])
    without = _agent("none", taught=False)
    won = lost = 0
    for path in games[6:]:
        with AlfworldGame(path, max_steps=50, cache=cache) as game:
            won += agent.play(game).won
            lost += not without.play(game).won
    assert won >= 4
    assert lost >= 5
