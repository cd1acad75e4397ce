from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cvx.recall.question import QUESTION_WORDS, content_words, plain_words, without

ANY_TEXT = st.text(max_size=200)


@given(ANY_TEXT)
def test_content_words_are_folded_words_of_the_text(text: str) -> None:
    folded = text.replace("\u2019", "'").casefold()
    for word in content_words(text):
        assert word in folded
        assert word == word.casefold()


@given(ANY_TEXT)
def test_content_words_of_content_words_are_themselves(text: str) -> None:
    spaced = [word for word in content_words(text) if word.isascii()]
    assert content_words(" ".join(spaced)) == spaced


def test_question_words_and_scaffolding_carry_no_content() -> None:
    assert content_words("What did she do, and when did they?") == []
    assert not QUESTION_WORDS & set(content_words("why and how: the lake"))


def test_an_apostrophe_of_either_kind_ends_a_word() -> None:
    assert content_words("Ann's book") == content_words("Ann\u2019s book") == ["ann", "book"]


@given(st.lists(st.sampled_from(["Ann", "Bob", "lake", "paint", "new"]), max_size=12))
def test_a_text_without_some_words_holds_all_others_in_order(words: list[str]) -> None:
    left = plain_words(without(" ".join(words), frozenset({"ann", "bob"})))
    assert left == [word for word in words if word not in ("Ann", "Bob")]


def test_a_name_goes_with_its_genitive_and_not_within_a_longer_word() -> None:
    assert without("Did Ann's sister see Annabel?", frozenset({"ann"})) == "Did sister see Annabel?"
