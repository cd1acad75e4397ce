"""What was explored, whether it led on, and what advice makes of it: where to look next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cvx.embed import LexicalEmbedder
from cvx.learn.advisor.naming import naming
from cvx.memory import Memory
from experiments.harness.arms import arm_of
from experiments.harness.memories import PausableMemory
from experiments.plans import Choices, Observation, Search, moment
from experiments.plans.words import joined
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.textgames.agent import Agent

NEED, MOMENT = "grab hat", joined("last walk to x")


def _agent(arm: str = "full", memory: Memory | None = None) -> Agent:
    one = arm_of(arm)
    opened = one.open(None, 0) if memory is None else memory
    agent = one.player(one.loop_on(opened), 0)
    assert isinstance(agent, Agent)
    return agent


def _taught(arm: str = "full") -> Agent:
    agent = _agent(arm)
    agent.learn(demonstrations())
    return agent


def _begun(text: str = "A hall.") -> Search:
    return Search(Observation(text, "", ("walk to nook 1", "walk to nook 2", "walk to chest 1")))


def _explore(search: Search, need: str, command: str, possible: Sequence[str]) -> None:
    search.explored(need, command, MOMENT)
    search.saw(possible, explored=True)


def test_what_opened_the_last_command_led_on_with_it() -> None:
    search = _begun()
    _explore(search, NEED, "walk to nook 1", ["walk to nook 2", "walk to chest 1"])
    _explore(search, NEED, "walk to chest 1", ["walk to nook 1", "lift lid 1"])
    _explore(search, NEED, "lift lid 1", ["grab hat 1"])
    search.led()
    _explore(search, "hang hat peg", "walk to nook 2", ["walk to nook 1"])
    _explore(search, NEED, "walk to nook 1", ["walk to nook 2"])
    search.gave_up()
    assert search.told()["explored"] == [
        [NEED, "walk to nook 1", MOMENT, False],
        [NEED, "walk to chest 1", MOMENT, True],
        [NEED, "lift lid 1", MOMENT, True],
        ["hang hat peg", "walk to nook 2", MOMENT, False],
        [NEED, "walk to nook 1", MOMENT, False],
    ]
    assert search.told() == {"origin": search.origin, "explored": []}
    assert _begun("A hall!").origin != search.origin == _begun().origin
    assert _begun("\ud800").origin != search.origin


def test_a_moment_names_no_command() -> None:
    # Else what was done last speaks for doing it again, in all games (rfc 0105).
    seen = moment(["walk to peg 1", "grab hat 1 from nook 2"], [], "grab hat 1 from nook 2")
    for command in ("grab # from #", "walk to #"):
        assert naming("", seen, command, frozenset()) == (0.0, 0.0, 0.0)


def test_to_go_back_is_opened_by_nothing() -> None:
    search = _begun()
    _explore(search, NEED, "walk to nook 1", ["walk to nook 2"])
    _explore(search, NEED, "walk to nook 2", ["walk to nook 1"])
    _explore(search, NEED, "walk to nook 1", ["walk to nook 2", "grab hat 1"])
    search.led()
    assert [trial[-1] for trial in search.told()["explored"]] == [False, False, True]


def test_what_was_done_anew_in_between_opened_nothing_for_what_undid_it() -> None:
    search = _begun()
    _explore(search, NEED, "drop hat 1", ["grab hat 1"])
    search.saw(["lift lid 1"], explored=False)
    _explore(search, NEED, "lift lid 1", ["hang hat 1 on peg 1"])
    search.led()
    assert [trial[-1] for trial in search.told()["explored"]] == [False, True]


def test_without_a_plan_nothing_is_missing() -> None:
    search = _begun()
    _explore(search, "", "walk to nook 1", ["walk to nook 2"])
    search.gave_up()
    assert search.told()["explored"] == []


def _chances(agent: Agent, need: str = NEED, origin: str = "here") -> dict[str, float]:
    """Return how likely each of some commands leads to what is missing, as advised."""
    places = [*(f"walk to nook {n}" for n in range(1, 7)), "walk to peg 1", "walk to vat 1"]
    assert agent.plans.choices is not None
    found = dict(agent.plans._chances(agent.plans.choices, origin, need, places))
    agent.plans.choices.rest()
    return found


@pytest.mark.requirement("V16")
def test_a_look_in_vain_lowers_the_chance_most_where_the_game_began_the_same() -> None:
    agent = _taught()
    before, choices = _chances(agent)["walk to nook 1"], agent.plans.choices
    assert choices is not None
    for led, command in ((False, "walk to nook 1"), (True, "walk to nook 2")):
        choices.tell("find grab", "grab", "walk to nook", float(led))
        choices.tell("here find grab", f"here {NEED}", command, float(led))
    agent.plans._played.add("here")
    here, there = _chances(agent), _chances(agent, origin="there")
    assert here["walk to nook 1"] < there["walk to nook 1"]
    assert here["walk to nook 1"] < before
    assert here["walk to nook 2"] > there["walk to nook 2"]
    assert there["walk to nook 1"] == there["walk to nook 2"], "elsewhere a number says nothing"


def test_advice_goes_by_what_led_on_in_other_games_when_a_game_is_new() -> None:
    agent = _taught()
    assert agent.plans.choices is not None
    for turn in range(20):
        for task, state in (("find grab", "grab"), ("find grab things", NEED)):
            agent.plans.choices.tell(task, state, "walk to vat", float(turn % 10 == 0))
            agent.plans.choices.tell(task, state, "walk to nook", float(turn % 2))
    told = _chances(agent, origin="new")
    assert 0.05 < told["walk to vat 1"] < 0.3
    assert 0.45 < told["walk to nook 5"] < 0.75


@pytest.mark.requirement("V16")
def test_one_look_in_vain_does_not_rule_out_all_such_places() -> None:
    agent = _taught()
    assert agent.plans.choices is not None
    choices = Choices(Memory(embedder=LexicalEmbedder(512), seed=0))
    agent.plans.choices = choices
    choices.tell("find grab", "grab", "walk to nook", 1.0)
    choices.tell("find grab", "grab", "walk to vat", 0.0)
    told = _chances(agent)
    assert told["walk to nook 1"] / 4 < told["walk to vat 1"] < told["walk to nook 1"]


def test_what_is_asked_leaves_no_episode_open_and_teaches_nothing() -> None:
    memory = Memory(embedder=LexicalEmbedder(512), seed=0)
    choices = Choices(memory)
    choices.tell("find", "a hall", "left", 1.0)
    choices.tell("find", "a hall", "right", 0.0)
    first = choices.advise("find", "a hall", ["left", "right"])
    assert first["left"].value > first["right"].value
    choices.rest()
    again = choices.advise("find", "a hall", ["left", "right"])
    assert {name: one.value for name, one in again.items()} == {
        name: one.value for name, one in first.items()
    }
    choices.rest()
    kinds = {kind for (kind,) in memory.record.query("SELECT kind FROM episodes", ())}
    assert kinds == {"experience", "discarded experience"}


def _slow(agent: Agent, seed: int = 12) -> tuple[bool, set[str]]:
    """Play a game whose time is short; return whether it was won and where it looked in vain."""
    told = len(agent.memory.readable())
    won = agent.play(HatGame("hang a hat on the peg", seed=seed, max_steps=4)).won
    trials = [t for e in agent.memory.readable()[told:] for t in e.metadata["explored"]]
    return won, {command for _, command, _, led in trials if not led}


@pytest.mark.requirement("V16")
def test_a_game_lost_for_time_teaches_where_not_to_look() -> None:
    won: dict[str, list[bool]] = {}
    for arm in ("full", "wins"):
        agent = _taught(arm)
        rounds = [_slow(agent) for _ in range(6)]
        won[arm] = [ok for ok, _ in rounds]
        if arm == "full":
            first, second = rounds[0][1], rounds[1][1]
            assert first
            assert first.isdisjoint(second), "it looked again where nothing had been"
    assert won["full"][-3:] == [True] * 3
    assert sum(won["full"]) > sum(won["wins"])


def test_what_was_found_as_time_ran_out_was_not_in_vain() -> None:
    agent = _taught()
    ended = 0
    for seed in range(20):
        game = HatGame("hang a hat on the peg", seed=seed, max_steps=2)
        agent.play(game)
        for _, command, _, led in agent.memory.readable()[-1].metadata["explored"]:
            there = command.removeprefix("walk to ") in game.hats.values()
            assert led == there, (command, game.hats)
            ended += there
    assert ended > 3


def test_what_wins_by_chance_led_on_and_a_share_of_the_reward_does_not() -> None:
    class Lucky(HatGame):
        def step(self, command: str) -> tuple[Observation, float, bool]:
            seen, _, _ = super().step(command)
            return seen, *((1.0, True) if self.steps == 3 else (0.0, False))

    class Bonus(HatGame):
        def step(self, command: str) -> tuple[Observation, float, bool]:
            seen, _, over = super().step(command)
            return seen, 0.25 * (self.steps == 1), over

    for kind, expected in ((Lucky, [False, False, True]), (Bonus, [False, False, False])):
        agent = _taught()
        game = kind("hang a hat on the peg", seed=1, max_steps=3)
        game.hats = dict.fromkeys(game.hats, "nowhere")
        agent.play(game)
        told = agent.memory.readable()[-1].metadata["explored"]
        assert [trial[-1] for trial in told] == expected


def _needs(agent: Agent) -> list[str]:
    return sorted({t[0] for e in agent.memory.readable() for t in e.metadata.get("explored", ())})


def _known(agent: Agent, needs: Sequence[str] = ()) -> list[float]:
    origin = Search(HatGame("").reset()).origin
    return [x for n in needs or _needs(agent) for x in _chances(agent, n, origin).values()]


def test_what_was_explored_is_known_again_from_a_folder(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=LexicalEmbedder(512), seed=0) as memory:
        agent = _agent(memory=memory)
        agent.learn(demonstrations())
        for seed in range(4):
            agent.play(HatGame("hang a red hat on the peg", seed=seed, dyed=True, max_steps=9))
        needs, known = _needs(agent), _known(agent)
    with Memory.open(tmp_path, embedder=LexicalEmbedder(512), seed=0) as memory:
        assert _known(_agent(memory=memory), needs) == known
    assert len(set(known)) > 4


def test_measured_games_teach_no_search() -> None:
    agent = _taught()
    known = _known(agent)
    assert isinstance(agent.memory, PausableMemory)
    with agent.memory.paused():
        for seed in range(3):
            agent.play(HatGame("hang a hat on the peg", seed=seed, max_steps=4 + 8 * seed))
    assert _known(agent) == known


def test_an_agent_can_do_without() -> None:
    agent = _taught("no_search")
    agent.play(HatGame("hang a hat on the peg", seed=1))
    assert _known(agent) == []
    assert agent.memory.readable()[-1].metadata["explored"], (
        "what was explored is kept all the same"
    )
