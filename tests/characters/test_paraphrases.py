"""The paraphrases that the bench asks: twenty for each question, half of them held out."""

from __future__ import annotations

import re
import tomllib

import pytest

from benches.characters import PARAPHRASES
from cvx.characters.definition import ABOUT_QUERIES, OTHER_WORDS, QUERIES, SCENE_QUERIES
from tests.characters.dinner import dinner

ASKED = tomllib.loads(PARAPHRASES.read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """Return a question without signs, and with its verb in full."""
    return re.sub(r"[^a-z{} ]", "", text.lower().replace("what's", "what is")).strip()


@pytest.mark.requirement("W28")
def test_each_canonical_question_has_twenty_and_the_held_out_half_is_not_among_the_known() -> None:
    canonical = [*ABOUT_QUERIES]
    for questions in (QUERIES, SCENE_QUERIES):
        canonical += [one for name, some in questions.items() if name != "goals" for one in some]
    assert {*ASKED} == {*canonical}
    assert all(len({*one["asked"]}) == 20 for one in ASKED.values())
    held_out = {plain(text) for one in ASKED.values() for text in one["asked"][1::2]}
    known = {plain(text) for some in OTHER_WORDS.values() for text in some}
    assert not known & held_out


@pytest.mark.requirement("W28")
@pytest.mark.parametrize("question", ASKED)
def test_each_canonical_question_finds_its_memory_whatever_the_embedder(question: str) -> None:
    cast = dinner()
    asked = question.format(name="Jordan")
    hit = cast["Alex"].query_canonical(asked, 1).hits[0]
    if ASKED[question]["category"] == "about":
        assert hit.metadata["about"] == "Jordan"
    else:
        assert hit.metadata["category"] == ASKED[question]["category"]
    assert hit.similarity == pytest.approx(1.0, abs=1e-5)
