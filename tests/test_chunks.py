"""Chunks: between sentences, bounded, nothing lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cvx
from cvx.errors import InvalidInputError

PROSE = st.text(st.sampled_from('abc .!?\n"()。'), max_size=120)


def letters(text: str) -> str:
    return "".join(text.split())


@pytest.mark.requirement("W14")
@given(text=PROSE, most=st.integers(1, 40))
def test_nothing_is_lost_and_only_single_sentences_are_longer(text: str, most: int) -> None:
    chunks = cvx.chunk_text(text, most)
    assert letters("".join(chunks)) == letters(text)
    for chunk in chunks:
        assert chunk == chunk.strip() != ""
        assert len(chunk) <= most or cvx.chunk_text(chunk, 1) == [chunk]
    for one, two in pairwise(chunks):
        # Greedy: the first sentence of the next chunk would not have fitted.
        assert len(one) + 1 + len(cvx.chunk_text(two, 1)[0]) > most


@pytest.mark.requirement("W14")
@given(text=PROSE, most=st.integers(1, 40))
def test_a_hard_limit_holds_for_every_chunk(text: str, most: int) -> None:
    chunks = cvx.chunk_text(text, most, hard_limit=True)
    assert all(0 < len(chunk) <= most for chunk in chunks)
    assert letters("".join(chunks)) == letters(text)


@pytest.mark.requirement("W14")
def test_sentences_end_with_their_marks_and_not_inside_numbers() -> None:
    text = 'He paid 3.50 for it. "Why?" she asked... No answer!'
    assert cvx.chunk_text(text, 1) == [
        "He paid 3.50 for it.", '"Why?"', "she asked...", "No answer!"
    ]  # fmt: skip
    assert cvx.chunk_text("今日は雨。明日は晴れ\uff01", 1) == ["今日は雨。", "明日は晴れ\uff01"]
    assert cvx.chunk_text("no mark at all " * 40) == [("no mark at all " * 40).strip()]
    assert [len(c) <= 300 for c in cvx.chunk_text("A plain sentence. " * 60)] == [True] * 4
    assert cvx.chunk_text("") == cvx.chunk_text("  \n ") == []
    with pytest.raises(InvalidInputError, match="max_chars"):
        cvx.chunk_text("text", 0)
