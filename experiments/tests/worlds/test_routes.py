"""Parts of RFC-013 as routes of advice: what they know, an advisor says where it knows nothing."""

from __future__ import annotations

import numpy as np
import pytest

from cvx.learn.advisor import Advisor, Basis, Moment, Observation, Parts
from cvx.learn.loop import ActiveMemory
from cvx.scoring import UsageTracker
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue
from experiments.worlds.routes import near_route, region_route

ACTIONS = ["dig", "swim"]
RIGHT = {"sand": "dig", "sea": "swim"}


def around(place: str, rng: np.random.Generator) -> np.ndarray:
    """Return a vector of a place: each has a corner of its own."""
    row = 0.2 * rng.normal(size=8)
    row[list(RIGHT).index(place)] += 2.0
    return row.astype(np.float32)


def played(**parts: object) -> tuple[ActiveMemory, np.random.Generator]:
    """Return a loop that did both in both places, often."""
    rng = np.random.default_rng(1)
    loop = ActiveMemory(TemporalIndex(8, seed=1), action_type=str, **parts)  # type: ignore[arg-type]
    for number in range(80):
        place, action = list(RIGHT)[number % 2], ACTIONS[number // 2 % 2]
        run = loop.begin("get on", "beach")
        decision = loop.recall(Cue(vector=around(place, rng)), episode=run)
        loop.act(decision, action)
        loop.close(run, float(action == RIGHT[place]))
    assert loop.mdp is not None
    loop.mdp.relearn()
    return loop, rng


@pytest.mark.requirement("V6", "B11", "V11", "V18")
@pytest.mark.parametrize("kind", ["region", "near"])
def test_a_route_says_what_is_good_where_the_advisor_knows_nothing(kind: Basis) -> None:
    loop, rng = played()
    assert loop.mdp is not None
    route = region_route(loop.mdp) if kind == "region" else near_route(loop)
    for seed, (place, right) in enumerate(RIGHT.items()):
        advisor = Advisor(seed=seed, routes={kind: route})
        # Something is known of the task, and nothing of this place.
        advisor.begin("before", task="beach")
        advisor.step("before", Observation("a road"), "walk", actions=["walk", "wait"])
        advisor.end("before", 1.0)
        for name, told in (("asked", advisor), ("alone", Advisor(seed=seed))):
            told.begin(name, goal="get on", task="beach")
            view = Observation(f"at the {place}", around(place, rng))
            options = told.options(name, view, [*ACTIONS, "sing"])
            if told is not advisor:
                assert {one.basis for one in options} == {"everywhere"}
                continue
            assert (options[0].action, options[0].basis) == (right, kind)
            worth = {one.action: one.value for one in options}
            assert worth[right] - worth[ACTIONS[1 - ACTIONS.index(right)]] > 0.2
            assert worth[right] - worth["sing"] > 0.1


@pytest.mark.requirement("B11")
def test_what_was_done_here_outweighs_what_a_route_says() -> None:
    loop, rng = played()
    assert loop.mdp is not None
    advisor = Advisor(seed=1, routes={"region": region_route(loop.mdp), "near": near_route(loop)})
    view = Observation("at the sand", around("sand", rng))
    for number in range(6):
        advisor.begin(str(number), task="beach")
        action = ACTIONS[number % 2]
        advisor.step(str(number), view, action, actions=ACTIONS)
        advisor.end(str(number), float(action == "swim"))
    advisor.begin("asked", task="beach")
    options = advisor.options("asked", view, ACTIONS)
    assert (options[0].action, options[0].basis, options[0].trials) == ("swim", "state", 3)


@pytest.mark.requirement("V23", "B11")
def test_near_memories_speak_by_the_loops_whole_score() -> None:
    """Use is one of its features: what helped when it was followed speaks louder."""
    beliefs = []
    for usage in (None, UsageTracker()):
        loop, _ = played(usage=usage)
        advisor = Advisor(
            seed=1, parts=Parts(process=False), routes={"near": near_route(loop, k=4)}
        )
        advisor.begin("asked", goal="get on", task="beach")
        view = Observation("somewhere", around("sand", np.random.default_rng(9)))
        beliefs.append([one.value for one in advisor.options("asked", view, ACTIONS)])
    assert beliefs[0] != beliefs[1]


def test_actions_of_the_same_words_share_what_near_memories_tell_and_keep_their_places() -> None:
    loop = ActiveMemory(TemporalIndex(8, seed=1), action_type=str)
    rng = np.random.default_rng(1)
    for number in range(12):
        run = loop.begin("get on", "beach")
        decision = loop.recall(Cue(vector=around("sand", rng)), episode=run)
        loop.act(decision, ["1", "2"][number % 2])
        loop.close(run, float(number % 2 == 0))
    moment = Moment("beach", "get on", "sand", Observation("sand", around("sand", rng)))
    told = near_route(loop)(moment, [1, "2", "1", "3"])
    assert len(told) == 4
    one, two, one_in_words, three = told
    assert one is not None
    assert two is not None
    assert one == one_in_words
    assert one.mean > 0.5 > two.mean
    assert three is None
