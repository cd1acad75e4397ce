"""A quotation is what a text says and nothing that is left does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cvx.store.erase import Quotations, strings_of

WORDS = st.lists(
    st.sampled_from(["red", "door", "of", "4711", "x", "safes", "Öl", "47"]), max_size=8
)
TEXTS = st.lists(WORDS.map(" ".join), max_size=4)


def runs(text: str) -> set[tuple[str, ...]]:
    words = text.casefold().split()
    return {tuple(words[at : at + n]) for n in range(1, 5) for at in range(len(words) - n + 1)}


def twin(erased: list[str], left: list[str], text: str) -> bool:
    """The rule in its own words, for texts of words that are no parts of each other."""
    said = set().union(*map(runs, left)) if left else set()
    gone = set().union(*map(runs, erased)) - said if erased else set()
    long = {run for run in gone if len(run) == 4}
    single = {run for run in gone if len(run) == 1 and (len(run[0]) > 2 or run[0] == "47")}
    short = {
        run
        for one in erased
        if len(run := tuple(one.casefold().split())) in (2, 3) and len(" ".join(run)) > 4
    } & gone
    return bool(runs(text) & (long | single | short))


@given(TEXTS, TEXTS, WORDS.map(" ".join))
def test_a_text_is_quoted_by_its_words_and_runs_that_nothing_left_says(
    erased: list[str], left: list[str], text: str
) -> None:
    found = Quotations(erased)
    found.keep_said_in([text, *left])
    found.drop_said_in(left)
    assert found.quoted_by(text) == twin(erased, left, text)
    assert not any(map(found.quoted_by, left))


def test_case_punctuation_and_endings_do_not_hide_a_quotation() -> None:
    found = Quotations(["Das Passwort: Xylophon-4711!"])
    assert found.quoted_by("XYLOPHON?")
    assert found.quoted_by("bei den Xylophonen")
    assert found.quoted_by("die 4711er") is False
    assert found.quoted_by("um 14711 Uhr") is False
    assert found.quoted_by("ein Wort") is False


def test_scripts_without_spaces_are_read_by_pairs() -> None:
    found = Quotations(["暗証番号は東京"])
    found.drop_said_in(["番号"])
    assert found.quoted_by("東京に行く")
    assert not found.quoted_by("番号")
    assert not found.quoted_by("京")


def test_json_within_json_is_read() -> None:
    row = {"body": '["row",[["usage",["[\\"did\\",\\"turn 4711\\"]"],null]]]', "seq": 4711}
    assert "turn 4711" in set(strings_of(row))
    assert "4711" not in set(strings_of(row))
    assert "4711" in set(strings_of(row, numbers=True))
    deep = "[" * 100_000
    assert list(strings_of([deep])) == [deep]
