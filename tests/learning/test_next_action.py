"""Predicting the next action: rankers whose columns and weights never saw what they predict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benches.learning.acts import Acts
from benches.learning.choice_counts import Choice, Shares
from benches.learning.neighbours import Neighbours
from benches.learning.next_action import as_learned, by_features, by_text, load, main, score
from benches.learning.next_places import Places, place_of, role
from benches.learning.ranking import Columns, ranked
from benches.learning.states import State

HATS, PEGS = ("cap", "hat", "hood"), ("peg", "hook", "stand")


def played(number: int) -> dict[str, object]:
    """An episode: to the box, take the hat out of it, and hang it where the goal says."""
    hat, peg = HATS[number % 3], PEGS[number // 3 % 3]
    box = "chest" if hat == "hood" else "box"
    room = "You see a box 1, a chest 1, a hook 1, a peg 1, a stand 1."
    steps = [
        (room, f"go to {box} 1"),
        (f"In the {box} 1 you see a {hat} 2.", f"take {hat} 2 from {box} 1"),
        (f"You take the {hat} 2.", f"go to {peg} 1"),
        (f"You are at {peg} 1.", f"put {hat} 2 on {peg} 1"),
    ]
    pairs = [{"state": seen, "action": action} for seen, action in steps]
    return {"task_description": f"hang a {hat} on the {peg}", "state_action_pairs": pairs}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[State]:
    folder = tmp_path_factory.mktemp("data")
    (folder / "alfworld").mkdir()
    text = json.dumps({"trajectories": [played(number) for number in range(18)]})
    (folder / "alfworld" / "agentinstruct_dev.json").write_text(text)
    return load(folder)[0]


APART = {episode: [episode] for episode in range(18)}


def near(rows: Sequence[State]) -> tuple[Neighbours, Neighbours]:
    return Neighbours(rows, by_features(rows), APART), Neighbours(rows, by_text(rows), APART)


def test_the_rankers_learn_acts_and_where_things_are_found(rows: list[State]) -> None:
    said = as_learned(rows, *near(rows), APART)
    assert score(rows, said).type == 1.0
    assert score(rows, said).exact > 0.9


def test_nothing_of_an_episode_reaches_its_own_prediction(rows: list[State]) -> None:
    features, texts = near(rows)
    episode_of = [row.episode for row in rows]
    for make in (
        lambda some: Acts(some, features, texts, APART),
        lambda some: Places(some, features, APART),
    ):
        before = ranked(make(rows), episode_of, APART)
        # The last episode did something else at each step; what it knew before stays the same.
        other = [
            replace(row, action="go to stand 1", abstract="sing") if row.episode == 17 else row
            for row in rows
        ]
        after = ranked(make(other), episode_of, APART)
        own = [at for at, episode in enumerate(episode_of) if episode == 17]
        assert [after[at] for at in own] == [before[at] for at in own]


def test_what_is_set_apart_is_in_one_fold_and_is_not_known() -> None:
    seen: list[tuple[set[int], int]] = []

    class Toy:
        names = ("one",)

        def __init__(self, hidden: Sequence[int] = ()) -> None:
            self.hidden = set(hidden)

        def chosen(self, at: int) -> str:
            return "yes" if at % 2 else "no"

        def known_without(self, episodes: Sequence[int]) -> Toy:
            return Toy(episodes)

        def columns(self, at: int) -> tuple[list[str], Columns]:
            if self.hidden:
                seen.append((self.hidden, at))
            return ["no", "yes"], [[1.0 - at % 2], [float(at % 2)]]

    apart = {episode: [episode - episode % 2, episode - episode % 2 + 1] for episode in range(8)}
    assert ranked(Toy(), range(8), apart) == ["no", "yes"] * 4  # type: ignore[arg-type]
    assert seen
    for hidden, at in seen:
        assert not hidden & set(apart[at]), "learned from what shares its room"


def test_shares_lean_on_all_where_a_context_is_rare() -> None:
    apart = {0: [0], 1: [1]}
    choices = [Choice(0, "a", {"x": "p"})] * 9 + [Choice(1, "b", {"x": "q"})]
    shares = Shares(choices, apart)
    known = shares.known(shares.within([0, 1]), 1)
    assert np.exp(known.log_share("x", "p", "a")) == pytest.approx((9 + 9.1 / 10) / 10)
    assert np.exp(known.log_share("x", "q", "b")) == pytest.approx(0.1 / 10)
    assert known.log_share("", "", "a") > known.log_share("", "", "b")


def test_a_place_is_known_by_its_part_and_not_by_its_name(rows: list[State]) -> None:
    first = rows[0]
    assert place_of(first) == "box"
    assert "box" not in role(first, "box")
    assert role(first, "box") == role(first, "chest") == "fresh"
    assert role(first, "peg") == "goal 1|fresh"


def test_without_the_data_it_says_what_it_skips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(tmp_path)]) == 0
    assert "skipped" in capsys.readouterr().out
