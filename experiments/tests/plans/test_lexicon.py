"""What words mean is learned from the commands that they share episodes with."""

from __future__ import annotations

from experiments.plans import Binding, Lexicon, signature, template


def test_slots_are_the_nouns_that_commands_name_and_memory_did_not_use_otherwise() -> None:
    lexicon = Lexicon()
    lexicon.said("hang a red hat on the peg", ["hat", "peg"])
    lexicon.did(["hang hat 1 on peg 1"], ["hat", "peg"])
    assert lexicon.slots("hang a red scarf on the hook", heard={"hook"}) == ("scarf", "hook")
    # More unknown words than slots: what no command was heard to name goes first.
    assert lexicon.slots("put crimson scarf on the hook", heard={"hook"}) == ("scarf", "hook")
    assert template("hang a scarf on the hook", ("scarf", "hook")) == "hang a {0} on the {1}"


def test_variables_tell_a_fresh_instance_from_the_same_again() -> None:
    lexicon = Lexicon()
    commands = ["grab hat 1 from nook 3", "hang hat 1 on peg 1", "grab hat 2 from nook 4"]
    lexicon.did(commands, ["hat", "peg"])
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


def test_looking_into_what_the_goal_names_too_is_still_looking_around() -> None:
    lexicon = Lexicon()
    lexicon.did([f"open box {n}" for n in range(1, 7)], ["hat", "shelf"])
    lexicon.did([f"open drawer {n}" for n in range(1, 10)], ["sock", "drawer"])
    lexicon.did(["fold sock 1"], ["sock", "drawer"])
    assert not lexicon.aimed("open #"), "nine of fifteen is not nearly always"
    assert lexicon.aimed("fold #"), "one use is enough where none speaks against it"


def test_a_tool_picked_up_along_with_things_leaves_picking_up_a_step_of_plans() -> None:
    lexicon = Lexicon()
    for _ in range(5):
        lexicon.did(
            ["grab hat 1 from nook 1", "grab sock 1 from box 1", "grab iron"], ["hat", "sock"]
        )
        lexicon.did(["grab iron 1 from shelf 1"], ["hat", "sock"])
    lexicon.did(["grab hat 1 from nook 1"], ["hat"])
    assert lexicon.aimed("grab # from #"), "eleven of sixteen is"


def test_a_place_where_a_thing_was_found_a_few_times_is_not_the_only_one() -> None:
    lexicon = Lexicon()
    lexicon.did(["grab hat 1 from nook 3"], ["hat"])
    other = "grab scarf 7 from box 1"
    for _ in range(6):
        lexicon.reached("wash a {0}", ["grab {0.0} from nook"])
        assert Binding(["scarf"], lexicon).fits(other, "grab {0.0} from nook")
    lexicon.reached("wash a {0}", ["grab {0.0} from nook"])
    assert not Binding(["scarf"], lexicon).fits(other, "grab {0.0} from nook")


def test_plans_for_other_goals_say_nothing_of_what_those_for_one_agree_on() -> None:
    lexicon = Lexicon()
    for tool in ("oven", "stove") * 4:
        lexicon.reached(f"{tool} the {{0}}", [f"cook {{0.0}} with {tool}"])
    assert lexicon.fixed(("cook # with #", 1)), "three agree of each goal's four"
    lexicon.reached("oven the {0}", ["cook {0.0} with stove"])
    assert not lexicon.fixed(("cook # with #", 1)), "six of seven are not surely more than .6"


def test_what_was_done_to_eight_things_on_the_way_to_one_goal_was_shown_once() -> None:
    lexicon = Lexicon()
    lexicon.did([f"lift box {n}" for n in range(8)] + ["hang hat 1 on box 3"], ["hat", "box"])
    lexicon.did(["lift lid 1", "hang hat 1 on peg 1"], ["hat", "peg"])
    assert not lexicon.aimed("lift #"), "one of two demonstrations is no rule"
    assert lexicon.aimed("hang # on #")


def test_any_step_but_the_last_may_have_been_needless() -> None:
    plan = ("grab {0.0}", "wave {0.0}", "hang {0.0}")
    readings = dict(Lexicon().readings(plan))
    assert readings[plan] == 1.0
    assert 0 < readings["grab {0.0}", "hang {0.0}"] < 1.0
    assert plan[:2] not in readings, "the last one brought the reward"


def test_a_name_is_unfit_where_it_never_stood_if_something_else_is_done_with_it() -> None:
    lexicon = Lexicon()
    lexicon.did(["grab hat 1", "hang hat 1 on peg 1"], ["hat", "peg"])
    lexicon.did(["grab hat 1", "light torch 1"], ["hat", "torch"])
    known = ["hang hat 1 on peg 2", "light torch 3", "walk to hook 1"]
    place = ("hang # on #", 1)
    assert lexicon.unfit(["hat", "torch"], known) == {(place, 0), (place, 1)}
    assert lexicon.unfit(["hat", "hook"], known) == {(place, 0)}, "a hook was seen from afar only"
    assert lexicon.unfit(["hat", "lamp"], known) == {(place, 0)}, "a lamp was never seen at all"
    lexicon.met.add((place, "torch"))
    assert lexicon.unfit(["hat", "torch"], known) == {(place, 0)}, "it stood there before"
