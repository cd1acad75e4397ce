"""The causal memory core: the blueprint's two flowcharts."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from cvx.causal.memory_core import NOTHING_FOUND
from cvx.errors import InvalidInputError
from tests.causal.cores import START, Model, core, no, rows, yes


class TestRecording:
    """Flowchart 3.A."""

    @pytest.mark.requirement("C5")
    def test_without_potential_causes_an_event_is_a_root(self) -> None:
        model = Model(yes)
        made = core(model)
        made.add_event("It rained.")
        assert rows(made) == [("It rained.", None, None)]
        assert model.asked == []

    @pytest.mark.requirement("C5", "C7")
    def test_a_confirmed_link_is_recorded_with_its_relationship(self) -> None:
        model = Model(yes)
        made = core(model)
        made.add_event("Rain in the cellar.")
        made.add_event("Rain flooded the cellar.")
        assert rows(made)[1] == ("Rain flooded the cellar.", 1, "Water came in.")
        assert model.asked == [
            "Based on the preceding event: 'Rain in the cellar.', did it directly lead to the "
            "following event: 'Rain flooded the cellar.'? If yes, briefly explain the "
            "relationship. If no, simply respond with 'No.'"
        ]

    @pytest.mark.requirement("C5")
    def test_where_every_candidate_is_denied_an_event_is_a_root(self) -> None:
        model = Model(no)
        made = core(model)
        for text in ("Rain.", "A cat.", "The mayor.", "Rain and flood."):
            made.add_event(text)
        assert rows(made)[3] == ("Rain and flood.", None, None)
        assert len(model.asked) == 0 + 1 + 2 + 3

    @pytest.mark.requirement("C5")
    def test_the_first_confirmed_cause_wins_and_nobody_else_is_asked(self) -> None:
        model = Model(
            lambda prompt: (
                "Yes: the mayor opened a gate." if "event: 'The mayor" in prompt else "No."
            )
        )
        made = core(model)
        for text in ("Rain.", "A cat.", "The mayor."):
            made.add_event(text)
        model.asked.clear()
        made.add_event("Rain and flood.")
        # Rain is the most similar and comes first, the mayor is the most recent and comes second.
        assert [("'Rain.'" in p, "'The mayor.'" in p) for p in model.asked] == [
            (True, False),
            (False, True),
        ]
        assert rows(made)[3][1:] == (3, "the mayor opened a gate.")

    @pytest.mark.requirement("C7")
    def test_notably_is_not_no(self) -> None:
        made = core(Model(lambda _: "Notably, the drain was blocked."))
        made.add_event("Rain.")
        made.add_event("Rain and flood.")
        assert rows(made)[1][1:] == (1, "Notably, the drain was blocked.")

    @pytest.mark.requirement("C5")
    @pytest.mark.parametrize("text", ["", "  \n", None, 7])
    def test_an_event_without_words_is_refused(self, text: str) -> None:
        made = core()
        with pytest.raises(ValueError, match="say what happened"):
            made.add_event(text)
        assert len(made) == 0


class TestScrying:
    """Flowchart 3.B."""

    @pytest.mark.requirement("C9")
    def test_without_any_event_there_is_no_context(self) -> None:
        assert core().get_context("Why?") == "No relevant context found in memory."

    @pytest.mark.requirement("C9")
    def test_a_root_alone_is_a_chain_of_one(self) -> None:
        made = core()
        made.add_event("It rained.")
        assert made.get_context("rain?") == "It rained."

    @pytest.mark.requirement("C9", "C11")
    def test_the_chain_is_walked_to_its_root_and_told(self) -> None:
        made = core(Model(yes))
        made.add_event("Rain fell all night")
        made.add_event("Rain caused a flood in the cellar")
        made.add_event("The flood left mould on the books")
        told = made.get_context("What happened to the mouldy books?")
        assert told == (
            "The flood left mould on the books. "
            "This was because rain caused a flood in the cellar (water came in). "
            "That was a result of this: rain fell all night (water came in)."
        )
        assert [event.event_id for event in made.chain(3)] == [1, 2, 3]
        # Another question enters the chain elsewhere.
        assert made.get_context("rain").startswith("Rain fell all night.")

    @pytest.mark.requirement("C9", "X19")
    def test_a_floor_turns_away_what_is_too_far(self) -> None:
        open_, strict = core(), core(floor=0.5)
        for made in (open_, strict):
            made.add_event("It rained.")
        assert open_.get_context("a cat") == "It rained."
        assert strict.get_context("a cat") == NOTHING_FOUND
        assert strict.get_context("rain") == "It rained."

    def test_an_empty_question_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="ask something"):
            core().get_context(" ")

    @pytest.mark.requirement("C9", "C10")
    def test_a_chain_a_thousand_deep_is_told(self, tmp_path: Path) -> None:
        path = str(tmp_path / "deep.db")
        core(path=path).close()
        db = duckdb.connect(path)
        db.execute("BEGIN")
        for number in range(1, 1001):
            cause = None if number == 1 else number - 1
            how = None if cause is None else "so it goes"
            db.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
                [number, START, f"step {number} happened", [1.0] * 8 + [number / 1000], cause, how],
            )
        db.execute("COMMIT")
        db.close()
        made = core(path=path)
        assert len(made.chain(1000)) == 1000
        told = made._format_chain_as_narrative(made.chain(1000))
        assert told.count("was because") == 998
        assert told.count("result of") == 1
