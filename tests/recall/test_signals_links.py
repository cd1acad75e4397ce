from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.recall.question import read_question
from cvx.recall.ranking_signals import Neighbourhood, Titles, link_signals, title_signals
from tests.recall.plain_view import PlainView, Said, candidates

WORDS = st.lists(st.sampled_from(("Red", "River", "New", "York", "Port")), min_size=1, max_size=3)


def scene_of(view: PlainView, text: str) -> Neighbourhood:
    return Neighbourhood(read_question(text, view), candidates(np.arange(view.size)), view)


@given(st.lists(WORDS, max_size=5), st.lists(WORDS, max_size=4))
def test_a_mention_is_a_title_that_stands_in_the_text(
    titles: list[list[str]], text: list[list[str]]
) -> None:
    known = Titles()
    for about, words in enumerate(titles):
        known.add(about, " ".join(words))
    words = [word for part in text for word in part]
    said = f" {' '.join(words)} "
    found = known.mentioned(said)
    for mention in found:
        assert f" {' '.join(titles[mention.about])} " in said
    if len(words) == 1:
        assert {m.about for m in found} == {a for a, t in enumerate(titles) if t == words}


def test_the_longest_title_counts_and_brackets_do_not() -> None:
    titles = Titles()
    titles.add(1, "New York")
    titles.add(2, "New York City (film)")
    assert [m.about for m in titles.mentioned("He left New York City for New York.")] == [2, 1]


def test_a_title_of_one_word_needs_a_capital() -> None:
    titles = Titles()
    titles.add(1, "Heat")
    titles.add(2, "The")
    assert titles.mentioned("the heat of the day") == []
    assert [m.about for m in titles.mentioned("The film Heat")] == [1]


def test_a_title_is_named_whole_or_not_at_all() -> None:
    view = PlainView([Said("a", title="Red River"), Said("b", title="River Port"), Said("c")])
    named = title_signals(scene_of(view, "Who crossed the Red River?"))["title"]
    assert named.tolist() == [1.0, 0.0, 0.0]


def test_a_link_lends_the_score_of_what_mentions_and_never_back() -> None:
    links = [(0, 1, "mentions", 0.5), (2, 1, "mentions", 1.0), (0, 2, "caused", 1.0)]
    view = PlainView([Said("a"), Said("b", session=1), Said("c", session=2)], links=links)
    linked = link_signals(scene_of(view, "Who?"), np.array([0.8, 0.9, 0.1]))["linked"]
    assert linked.tolist() == [0.0, pytest.approx(0.4), 0.0]


def test_what_the_mentioned_text_adds_is_residual() -> None:
    view = PlainView(
        [Said("horse"), Said("violin", session=1), Said("horse", session=2)],
        links=[(0, 1, "mentions", 1.0), (0, 2, "mentions", 1.0)],
    )
    residual = link_signals(scene_of(view, "horse violin"), np.ones(3))["residual"]
    assert residual[1] > 0.5
    assert residual[0] == residual[2] == 0.0


def test_links_out_of_the_candidates_are_not_followed() -> None:
    view = PlainView([Said("a"), Said("b")], links=[(0, 1, "mentions", 1.0)])
    scene = Neighbourhood(read_question("Who?", view), candidates(np.array([0])), view)
    assert link_signals(scene, np.array([1.0]))["linked"].tolist() == [0.0]
