"""An agenda goes through the clauses of a goal, and comes back to those that are not over."""

from __future__ import annotations

from experiments.plans.attempt import OpenClauses


def _order(agenda: OpenClauses, overs: list[bool]) -> list[str]:
    seen = []
    for over in overs:
        seen.append(agenda.current.clause)
        agenda.turn(over=over)
    return [*seen, agenda.current.clause]


def test_clauses_are_gone_through_in_order() -> None:
    agenda = OpenClauses("See the note. Be glad!")
    assert _order(agenda, [True]) == ["See the note", "Be glad"]
    assert agenda.last


def test_a_goal_of_one_clause_is_begun_again() -> None:
    agenda = OpenClauses("hang a hat on the peg")
    assert agenda.last
    assert _order(agenda, [True, False]) == ["hang a hat on the peg"] * 3


def test_what_is_stuck_is_come_back_to_as_soon_as_something_is_done() -> None:
    agenda = OpenClauses("a. b. c. d")
    assert _order(agenda, [False, True, True, True]) == ["a", "b", "a", "c", "d"]


def test_when_all_is_over_what_was_rewarded_is_not_begun_again() -> None:
    agenda = OpenClauses("a. b. c")
    agenda.items[1].earned = True
    assert _order(agenda, [True, True, True, True]) == ["a", "b", "c", "a", "c"]


def test_instructions_come_where_they_were_read_and_once() -> None:
    agenda = OpenClauses("See the note. Be glad")
    agenda.read("fold hat\ndye hat")
    agenda.read("fold hat\ndye hat")
    said = [item.clause for item in agenda.items]
    assert said == ["See the note", "fold hat", "dye hat", "Be glad"]


def test_a_goal_without_a_word_is_a_clause() -> None:
    assert [item.clause for item in OpenClauses("").items] == [""]
