"""What is remembered of all attempts at a goal does what they did, without what was undone."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from experiments.plans import Lexicon
from experiments.plans.binding import PastCommand, lasting
from experiments.plans.words import words

SLOTS = ["hat", "peg"]


def _explored(command: str, opened: frozenset[str], spent: bool) -> PastCommand:
    return PastCommand(command, 1, None, opened, spent)


def _lexicon() -> Lexicon:
    lexicon = Lexicon()
    lexicon.did(
        ["grab hat 1 from nook 1", "dye hat 1 with vat 1", "hang hat 1 on peg 1"], {"hat", "peg"}
    )
    return lexicon


class Room:
    """Two hats that can be grabbed, dyed and hung; going about is free."""

    def __init__(self) -> None:
        self.at = {"hat 1": "nook 1", "hat 2": "nook 2"}
        self.red: set[str] = set()
        self.held = ""

    def can(self) -> list[str]:
        if not self.held:
            return [f"grab {hat} from {place}" for hat, place in self.at.items()]
        hangs = [f"hang {self.held} on {place}" for place in ("peg 1", "peg 2")]
        return [*hangs, f"dye {self.held} with vat 1"]

    def do(self, command: str) -> None:
        verb, hat = words(command)[0], " ".join(words(command)[1:3])
        if verb == "grab":
            self.held = hat
            del self.at[hat]
        elif verb == "hang":
            self.at[hat], self.held = " ".join(words(command)[-2:]), ""
        else:
            self.red.add(hat)


def _played(seed: int, steps: int) -> tuple[Room, list[PastCommand]]:
    rng, room, deeds = random.Random(seed), Room(), []
    for number in range(steps):
        before = room.can()
        command = rng.choice(before)
        room.do(command)
        opened = frozenset(room.can()) - set(before)
        deeds.append(PastCommand(command, number // 4, None, opened, command not in room.can()))
    return room, deeds


def _done_by(actions: list[str]) -> tuple[set[str], set[str], str]:
    """Do what a plan says: a variable is bound to a hat when it is first grabbed."""
    room = Room()
    bound: dict[str, str] = {}
    for action in actions:
        hat = words(action)[1]
        verb = words(action)[0]
        if hat not in bound:
            bound[hat] = f"hat {len(bound) + 1}"
        ready = [c for c in room.can() if c.startswith(f"{verb} {bound[hat]} ")]
        assert ready, (action, room.can())
        room.do(ready[0])
    return set(room.at), {hat for hat in bound.values() if hat in room.red}, room.held


@given(st.integers(0, 10_000), st.integers(0, 14))
def test_what_lasted_leads_to_the_same_state(seed: int, steps: int) -> None:
    room, deeds = _played(seed, steps)
    order = dict.fromkeys(" ".join(words(d.command)[1:3]) for d in deeds)
    called = {hat: f"hat {number}" for number, hat in enumerate(order, 1)}
    kept = lasting(deeds, SLOTS, _lexicon())
    hung, red, held = _done_by([action for _, action in kept])
    touched = set(called.values())
    assert hung & touched == {called[hat] for hat in room.at if hat in called}
    assert red == {called[hat] for hat in room.red}
    assert held == called.get(room.held, "")
    assert len(kept) <= len(deeds)


def test_what_was_put_down_and_taken_again_is_left_out() -> None:
    deeds = [
        _explored("grab hat 1 from nook 1", frozenset({"dye hat 1 with vat 1"}), True),
        _explored("walk to vat 1", frozenset(), True),
        _explored("dye hat 1 with vat 1", frozenset(), False),
        _explored("hang hat 1 on peg 2", frozenset({"grab hat 1 from peg 2"}), True),
        _explored("grab hat 1 from peg 2", frozenset({"hang hat 1 on peg 1"}), True),
        _explored("hang hat 1 on peg 1", frozenset(), True),
    ]
    assert lasting(deeds, SLOTS, _lexicon()) == [
        ("grab hat 1 from nook 1", "grab {0.0} from nook"),
        ("dye hat 1 with vat 1", "dye {0.0} with vat"),
        ("hang hat 1 on peg 1", "hang {0.0} on {1.0}"),
    ]


def test_another_thing_of_the_kind_is_not_the_same_again() -> None:
    deeds = [
        _explored("grab hat 1 from nook 1", frozenset(), True),
        _explored(
            "hang hat 1 on peg 1",
            frozenset({"grab hat 1 from peg 1", "grab hat 2 from peg 1"}),
            True,
        ),
        _explored("grab hat 2 from peg 1", frozenset(), True),
    ]
    assert [action for _, action in lasting(deeds, SLOTS, _lexicon())] == [
        "grab {0.0} from nook",
        "hang {0.0} on {1.0}",
        "grab {0.1} from peg",
    ]


def test_what_one_plan_says_is_kept_whole() -> None:
    def deed(command: str, attempt: int, aim: str, opened: str) -> PastCommand:
        return PastCommand(command, attempt, aim, frozenset({opened}), spent=True)

    grab, hang, anew = (
        deed("grab hat 1 from nook 1", 1, "grab {0.0} from nook", "hang hat 1 on peg 1"),
        deed("hang hat 1 on peg 1", 1, "hang {0.0} on {1.0}", "grab hat 1 from peg 1"),
        deed("grab hat 1 from peg 1", 1, "grab {0.0} from peg", "hang hat 1 on peg 1"),
    )
    whole = lasting([grab, hang, anew], SLOTS, _lexicon())
    assert [words(action)[0] for _, action in whole] == ["grab", "hang", "grab"]
    later = lasting([grab, hang, anew._replace(attempt=2)], SLOTS, _lexicon())
    assert [words(action)[0] for _, action in later] == ["grab"]


def test_a_step_that_was_done_in_another_way_is_kept() -> None:
    deeds = [
        PastCommand("grab hat 1 from nook 1", 1, "grab {0.0} from nook", frozenset(), True),
        PastCommand("hang hat 1 in peg 1", 1, "hang {0.0} on {1.0}", frozenset(), True),
    ]
    assert lasting(deeds, SLOTS, _lexicon())[1] == ("hang hat 1 in peg 1", "hang {0.0} in {1.0}")


def test_what_is_taken_and_put_back_cancels_out() -> None:
    took = PastCommand("grab hat 1 from nook 1", 1, None, frozenset({"hang hat 1 on nook 1"}), True)
    back = PastCommand("hang hat 1 on nook 1", 2, None, frozenset({"grab hat 1 from nook 1"}), True)
    hung = PastCommand("hang hat 1 on peg 1", 4, None, frozenset(), True)
    again = took._replace(attempt=3, opened=frozenset({"hang hat 1 on peg 1"}))
    done = [action for _, action in lasting([took, back, again, hung], SLOTS, _lexicon())]
    assert done == ["grab {0.0} from nook", "hang {0.0} on {1.0}"]
