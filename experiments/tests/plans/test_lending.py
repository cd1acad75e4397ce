"""What was learned for one kind of goal lends its parts to others."""

from __future__ import annotations

from cvx.types import Hit, Step
from experiments.plans.lexicon import Lexicon
from experiments.plans.plan_choice import Parts, choose, offers, parts_of
from experiments.tests.textgames.hats import HatGame, demonstrations
from experiments.tests.textgames.test_agent import agent_of
from experiments.textgames.agent import Agent


def _hit(*plan: str) -> Hit:
    steps = tuple(Step(place, 1, place, action, None) for place, action in enumerate(plan))
    return Hit(0, 0.5, 0.5, 0.5, entity_id=1, timestamp=0, successors=steps)


def test_a_plan_is_changed_by_one_step_or_done_twice() -> None:
    plan = ("grab {0.0}", "dye {0.0}", "hang {0.0} on {1.0}")
    made = dict(Parts(["fold {0.0}", "dye {0.0}"], [], 2).lent(plan))
    assert (*plan[:1], "fold {0.0}", *plan[1:]) in made
    assert ("grab {0.0}", "fold {0.0}", plan[2]) in made
    assert (*plan, "grab {0.1}", "dye {0.1}", "hang {0.1} on {1.0}") in made
    assert len(made) == 4, "nothing is done twice in a row, and the first step stays"


def test_a_step_that_the_goal_names_comes_first_and_a_plan_without_it_is_worth_less() -> None:
    parts = Parts(["fold {0.0}", "dye {0.0}"], ["dye", "hang"], 1)
    plan = ("grab {0.0}", "hang {0.0}")
    made = sorted(parts.lent(plan), key=lambda one: -one[1])
    assert all("dye {0.0}" in one for one, _ in made[:2])
    assert parts.share(plan) < parts.share(("grab {0.0}", "dye {0.0}", "hang {0.0}")) == 1.0


def test_a_plan_that_names_a_thing_where_it_never_stood_comes_after_one_that_does_not() -> None:
    hang, light = ("grab {0.0}", "hang {0.0} on {1.0}"), ("grab {0.0}", "light {1.0}")
    unfit = {(("hang # on #", 1), 1)}
    parts = Parts([], ["see"], 2, unfit=unfit)
    assert parts.share(hang) < parts.share(light) == 1.0
    assert Parts([], ["see"], 2).share(hang) == 1.0


def test_where_names_stood_is_known_again_from_the_episodes() -> None:
    agent = agent_of()
    agent.play(HatGame("hang a hat on the peg", seed=60))
    met = agent.plans.lexicon.met
    assert (("hang # on #", 1), "peg") in met
    assert Agent(agent.memory).plans.lexicon.met == met


def test_what_is_done_with_many_things_is_done_with_the_one_that_the_goal_names() -> None:
    slots = ["hat", "peg"]
    can = ["hang hat 1 on peg 2", "hang hat 2 on nook 1", "dye hat 1 with vat 1", "walk to nook 1"]
    steps = set(parts_of(offers(can, slots), Lexicon()))
    assert steps == {"hang {0.0} on {1.0}", "dye {0.0} with vat"}


def test_one_demonstration_is_enough_for_goals_that_need_a_step_more() -> None:
    agent = agent_of(taught=False)
    agent.learn(demonstrations()[:1])
    red = [HatGame("hang a red hat on the peg", seed=s, dyed=True) for s in range(40, 52)]
    won = [agent.play(game).won for game in red]
    assert sum(won[4:]) >= 7, "the first games find what is missing"
    assert agent.play(HatGame("hang a hat on the peg", seed=60)).won


def test_without_a_demonstration_the_first_win_is_one() -> None:
    agent = agent_of(taught=False)
    games = [HatGame("hang a hat on the peg", seed=s) for s in range(70, 90)]
    won = [agent.play(game).won for game in games]
    assert all(won[10:])


def test_an_own_win_that_is_not_kept_shows_nothing() -> None:
    agent = agent_of("frozen", taught=False)
    agent.plans.advised = True
    for seed in range(70, 90):
        agent.play(HatGame("hang a hat on the peg", seed=seed))
    assert not agent.plans.lexicon.verbs
    assert not agent.memory.readable()


def test_a_plan_with_a_step_that_could_not_be_done_comes_last() -> None:
    hits = [_hit("grab {0.0}", "dye {0.0}"), _hit("grab {0.0}", "fold {0.0}")]
    rejected = {"grab {0.0}, dye {0.0}, hang {0.0}": frozenset(["dye {0.0}"])}
    _, plan = choose(hits, Lexicon(), rejected)
    assert plan == ("grab {0.0}", "fold {0.0}")


def test_to_do_it_all_twice_is_more_than_was_in_vain() -> None:
    twice = _hit("grab {0.0}", "hang {0.0}", "grab {0.1}", "hang {0.1}")
    once = _hit("hang {0.0}", "grab {0.0}")
    rejected = {"grab {0.0}, hang {0.0}": frozenset(["grab", "hang"])}
    _, plan = choose([once, twice], Lexicon(), rejected)
    assert len(plan) == 4
