"""What was explored, and whether it led on: where to look next, and where not again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.embed import LexicalEmbedder
from cvx.learn.loop import ActiveMemory
from cvx.memory import Memory
from experiments.harness.arms import arm_of
from experiments.plans import Observation, Search, Searches, Trial
from experiments.plans.words import shape, unnumbered
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.textgames.agent import Agent

NEED = "grab hat"
Noted = Sequence[tuple[str, Trial]]


def _trial(command: str, led: bool) -> Trial:
    return Trial(NEED, command, led, first=True)


def _mean(found: Sequence[bool], prior: float, strength: float) -> float:
    return (sum(found) + strength * prior) / (len(found) + strength) if found else prior


def _naive(noted: Noted, origin: str, need: str, command: str) -> float:
    """The chance by its definition, each level counted anew from all trials."""
    verb = need.split(" ")[0]
    name = unnumbered(command)
    every = [t for _, t in noted]
    rate = _mean([t.led for t in every], 0.5, 1.0)
    rate = _mean([t.led for t in every if shape(t.command) == shape(command)], rate, 2.0)
    such = [t for t in every if unnumbered(t.command) == name]
    rate = _mean([t.led for t in such if t.need.split(" ")[0] == verb], rate, 2.0)
    rate = _mean([t.led for t in such if t.need == need], rate, 2.0)
    here = [t.led for o, t in noted if (o, t.need, t.command) == (origin, need, command)]
    again = [
        (t.need.split(" ")[0], t.led)
        for i, (o, t) in enumerate(noted)
        if t.first
        and any((p, u.need, u.command, u.led) == (o, t.need, t.command, True) for p, u in noted[:i])
    ]
    trust = _mean([led for _, led in again], 0.5, 1.0)
    trust = _mean([led for v, led in again if v == verb], trust, 1.0)
    return trust * _mean(here, rate, 0.1) + (1 - trust) * rate


_NEEDS = st.sampled_from(["grab hat", "grab cap", "hang hat peg", ""])
_COMMANDS = st.sampled_from(["walk to nook 1", "walk to nook 2", "walk to peg 1", "lift box 1"])
_TRIALS = st.builds(Trial, _NEEDS, _COMMANDS, st.booleans(), st.booleans())


@pytest.mark.requirement("V16")
@given(st.lists(st.tuples(st.sampled_from("ab"), _TRIALS), max_size=25), _NEEDS, _COMMANDS)
def test_the_chance_is_what_counting_all_trials_anew_gives(
    noted: Noted, need: str, command: str
) -> None:
    searches = Searches()
    for origin, trial in noted:
        searches.note(origin, [trial])
    for origin in "abc":
        told = searches.chance(origin, need, command)
        assert told == pytest.approx(_naive(noted, origin, need, command))
        assert 0 < told < 1
        assert searches.chance(origin, need, command) == told, "asking changes nothing"


def _begun(text: str = "A hall.") -> Search:
    return Search(Observation(text, "", ("walk to nook 1", "walk to nook 2", "walk to chest 1")))


def _explore(search: Search, need: str, command: str, possible: Sequence[str]) -> None:
    search.explored(need, command)
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
        [NEED, "walk to nook 1", False, True],
        [NEED, "walk to chest 1", True, True],
        [NEED, "lift lid 1", True, True],
        ["hang hat peg", "walk to nook 2", False, True],
        [NEED, "walk to nook 1", False, False],
    ]
    assert search.told() == {"origin": search.origin, "explored": []}
    assert _begun("A hall!").origin != search.origin == _begun().origin
    assert _begun("\ud800").origin != search.origin


def test_to_go_back_is_opened_by_nothing() -> None:
    search = _begun()
    _explore(search, NEED, "walk to nook 1", ["walk to nook 2"])
    _explore(search, NEED, "walk to nook 2", ["walk to nook 1"])
    _explore(search, NEED, "walk to nook 1", ["walk to nook 2", "grab hat 1"])
    search.led()
    assert [trial[2] for trial in search.told()["explored"]] == [False, False, True]


def test_what_was_done_anew_in_between_opened_nothing_for_what_undid_it() -> None:
    search = _begun()
    _explore(search, NEED, "drop hat 1", ["grab hat 1"])
    search.saw(["lift lid 1"], explored=False)
    _explore(search, NEED, "lift lid 1", ["hang hat 1 on peg 1"])
    search.led()
    assert [trial[2] for trial in search.told()["explored"]] == [False, True]


def test_without_a_plan_nothing_is_missing() -> None:
    search = _begun()
    _explore(search, "", "walk to nook 1", ["walk to nook 2"])
    search.gave_up()
    assert search.told()["explored"] == []


def test_only_other_games_tell_whether_things_stay() -> None:
    search = _begun()
    for _ in range(5):
        _explore(search, "hang hat peg", "walk to peg 1", ["walk to nook 1"])
        search.led()
    searches = Searches()
    searches.note(search.origin, [Trial(*trial) for trial in search.told()["explored"]])
    assert searches.trust("hang") == Searches().trust("hang")


def test_a_look_in_vain_lowers_the_chance_most_where_the_game_began_the_same() -> None:
    searches = Searches()
    searches.note("here", [_trial("walk to nook 1", False), _trial("wait", False)])
    here, there = (searches.chance(o, NEED, "walk to nook 1") for o in ("here", "there"))
    assert here < there < Searches().chance("there", NEED, "walk to nook 1")
    searches.note("here", [_trial("walk to nook 2", True)])
    assert searches.chance("here", NEED, "walk to nook 2") > 0.5
    assert searches.chance("there", NEED, "walk to nook 2") == pytest.approx(
        searches.chance("there", NEED, "walk to nook 1")
    )


def test_where_things_do_not_stay_the_past_of_a_place_counts_less() -> None:
    stay, stray = Searches(), Searches()
    for turn in range(20):
        stay.note("here", [_trial("walk to nook 1", True)])
        stray.note("here", [_trial(f"walk to nook {1 + i}", i == turn % 4) for i in range(4)])
    assert stay.trust("grab") > 0.9
    assert stray.trust("grab") < 0.4
    assert stray.trust("hang") < 0.5, "verbs not seen share what was seen of the others"


def _slow(agent: Agent, seed: int = 12) -> tuple[bool, set[str]]:
    """Play a game whose time is short; return whether it was won and where it looked in vain."""
    told = len(agent.memory.episodes)
    won = agent.play(HatGame("hang a hat on the peg", seed=seed, max_steps=4)).won
    trials = [t for e in agent.memory.episodes[told:] for t in e.metadata["explored"]]
    return won, {command for _, command, led, _ in trials if not led}


@pytest.mark.requirement("V16")
def test_a_game_lost_for_time_teaches_where_not_to_look() -> None:
    won: dict[str, list[bool]] = {}
    for arm in ("full", "wins"):
        one = arm_of(arm)
        agent = Agent(one.loop_on(one.open(None, 0)) or pytest.fail("no loop"), seed=0)
        agent.learn(demonstrations())
        rounds = [_slow(agent) for _ in range(6)]
        won[arm] = [ok for ok, _ in rounds]
        if arm == "full":
            first, second = rounds[0][1], rounds[1][1]
            assert first
            assert first.isdisjoint(second), "it looked again where nothing had been"
    assert won["full"][-3:] == [True] * 3
    assert sum(won["full"]) > sum(won["wins"])


def test_what_was_found_as_time_ran_out_was_not_in_vain() -> None:
    one = arm_of("full")
    agent = Agent(one.loop_on(one.open(None, 0)) or pytest.fail("no loop"), seed=0)
    agent.learn(demonstrations())
    ended = 0
    for seed in range(20):
        game = HatGame("hang a hat on the peg", seed=seed, max_steps=2)
        agent.play(game)
        for _, command, led, _ in agent.memory.episodes[-1].metadata["explored"]:
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
        one = arm_of("full")
        agent = Agent(one.loop_on(one.open(None, 0)) or pytest.fail("no loop"), seed=0)
        agent.learn(demonstrations())
        game = kind("hang a hat on the peg", seed=1, max_steps=3)
        game.hats = dict.fromkeys(game.hats, "nowhere")
        agent.play(game)
        told = agent.memory.episodes[-1].metadata["explored"]
        assert [trial[2] for trial in told] == expected


def test_searches_are_counted_again_from_a_folder(tmp_path: Path) -> None:
    arm = arm_of("full")
    with Memory.open(tmp_path, embedder=LexicalEmbedder(512), seed=0) as memory:
        loop = arm.loop_on(memory)
        assert loop is not None
        agent = Agent(loop, seed=0)
        agent.learn(demonstrations())
        for seed in range(4):
            agent.play(HatGame("hang a red hat on the peg", seed=seed, dyed=True, max_steps=9))
        known = _known(agent)
    with Memory.open(tmp_path, embedder=LexicalEmbedder(512), seed=0) as memory:
        loop = arm.loop_on(memory)
        assert loop is not None
        assert _known(Agent(loop, seed=0)) == known
    assert len(set(known)) > 4


def _known(agent: Agent) -> list[float]:
    origin, searches = Search(HatGame("").reset()).origin, agent.plans.searches
    needs = {t[0] for e in agent.memory.episodes for t in e.metadata["explored"]}
    places = [*(f"walk to nook {n}" for n in range(1, 7)), "walk to peg 1", "walk to vat 1"]
    return [searches.chance(origin, need, p) for need in sorted(needs) for p in places]


def test_measured_games_teach_no_search() -> None:
    one = arm_of("full")
    loop = one.loop_on(one.open(None, 0))
    assert loop is not None
    agent = Agent(loop, seed=0)
    agent.learn(demonstrations())
    known = _known(agent)
    with loop.paused():
        for seed in range(3):
            agent.play(HatGame("hang a hat on the peg", seed=seed, max_steps=4 + 8 * seed))
    assert _known(agent) == known


def test_an_agent_can_do_without() -> None:
    one = arm_of("no_search")
    loop = one.loop_on(one.open(None, 0))
    assert loop is not None
    agent = Agent(loop, **one.agent)
    agent.learn(demonstrations())
    agent.play(HatGame("hang a hat on the peg", seed=1))
    assert set(_known(agent)) == {0.5}
    assert isinstance(agent.memory, ActiveMemory)
    assert set(_known(Agent(loop))) != {0.5}, "what was explored is kept all the same"
