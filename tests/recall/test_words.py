from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.recall.question import IRREGULAR, forms_of_word, holders_of, read_question, root_of_word
from cvx.recall.ranking_signals import Neighbourhood, content_signals
from tests.recall.plain_view import PlainView, Said, candidates


@given(st.sampled_from(sorted(IRREGULAR)))
def test_every_form_leads_to_itself_first_and_to_its_base(word: str) -> None:
    forms = forms_of_word(word)
    assert forms[0] == word
    assert len(set(forms)) == len(forms) > 1
    assert any(word in forms_of_word(other) for other in forms[1:])


@given(st.text(max_size=12))
def test_a_word_that_is_not_irregular_has_one_form(word: str) -> None:
    if len(forms_of_word(word)) > 1:
        assert set(forms_of_word(word)) & set(IRREGULAR)
    else:
        assert forms_of_word(word) == (word,)


@pytest.mark.parametrize(
    ("word", "form"), [("winning", "won"), ("writing", "wrote"), ("knives", "knife")]
)
def test_regular_endings_of_irregular_words_are_seen_through(word: str, form: str) -> None:
    assert form in forms_of_word(word)


def test_a_question_in_the_present_finds_its_answer_in_the_past() -> None:
    view = PlainView([Said("I bought a canoe."), Said("I like canoes.", session=1)])
    scene = Neighbourhood(
        read_question("When did you buy the canoe?", view), candidates(np.arange(2)), view
    )
    bought, like = content_signals(scene)[0]["coverage"]
    assert bought == pytest.approx(1.0)
    assert like < 0.7


@given(st.text(max_size=12))
def test_a_root_begins_its_word_and_is_not_short(word: str) -> None:
    root = root_of_word(word)
    assert root == "" or (word.startswith(root) and len(root) >= 5)


def test_a_relative_is_found_only_where_no_form_of_the_word_is() -> None:
    view = PlainView([Said("Ann is allergic."), Said("It is an allergen."), Said("Nuts.")])
    assert holders_of("allergies", view).tolist() == [0, 1]  # type: ignore[union-attr]
    both = PlainView([Said("Ann is allergic."), Said("Her allergy is back.")])
    assert holders_of("allergies", both).tolist() == [1]  # type: ignore[union-attr]
    assert holders_of("rating", PlainView([Said("They ratify it.")])).tolist() == []  # type: ignore[union-attr]
