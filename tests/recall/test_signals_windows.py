from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.recall.question import content_words, read_question
from cvx.recall.ranking_signals import Neighbourhood, content_signals
from tests.recall.plain_view import PlainView, Said, candidates
from tests.recall.worlds import QUESTIONS, talks


def scene_of(view: PlainView, text: str, data: st.DataObject) -> Neighbourhood:
    rows = data.draw(st.lists(st.integers(0, view.size - 1), min_size=1, unique=True))
    return Neighbourhood(read_question(text, view), candidates(np.array(rows)), view)


def around(view: PlainView, row: int, reach: int) -> list[int]:
    return [near for near in view.window(np.array([row]), reach)[0].tolist() if near >= 0]


@given(talks(), QUESTIONS, st.data())
def test_dense_windows_are_means_of_what_there_is(
    view: PlainView, text: str, data: st.DataObject
) -> None:
    scene = scene_of(view, text, data)
    columns, _ = content_signals(scene)
    near = np.nan_to_num(view.similarity(np.arange(view.size)))
    for place, row in enumerate(scene.rows.tolist()):
        before, _, after = view.window(np.array([row]), 1)[0].tolist()
        if before >= 0 and view.corpus.asks[before]:
            pair = (near[row] + near[before]) / 2
        elif after >= 0 and view.corpus.asks[row]:
            pair = (near[row] + near[after]) / 2
        else:
            pair = near[row]
        neighbours = [near[n] if n >= 0 else 0.0 for n in (before, after)]
        assert columns["dense"][place] == near[row]
        assert columns["dense_window"][place] == pytest.approx(near[around(view, row, 1)].mean())
        assert columns["dense_wide"][place] == pytest.approx(near[around(view, row, 2)].mean())
        assert columns["dense_pair"][place] == pytest.approx(pair)
        assert columns["dense_neighbour"][place] == pytest.approx(max(neighbours))


@given(talks(), QUESTIONS, st.data())
def test_coverage_is_the_share_of_idf_that_is_held(
    view: PlainView, text: str, data: st.DataObject
) -> None:
    scene = scene_of(view, text, data)
    columns, _ = content_signals(scene)
    words = list(dict.fromkeys(content_words(text)))
    holding = {w: [w in content_words(said.text) for said in view.said] for w in words}
    idf = {
        w: math.log(1 + (view.size - sum(holding[w]) + 0.5) / (sum(holding[w]) + 0.5))
        for w in words
    }
    total = sum(idf.values())

    def share(rows: list[int]) -> float:
        held = sum(idf[w] for w in words if any(holding[w][row] for row in rows))
        return held / total if total else 0.0

    for place, row in enumerate(scene.rows.tolist()):
        before = int(view.window(np.array([row]), 1)[0][0])
        question = [before] if before >= 0 and view.corpus.asks[before] else []
        assert columns["coverage"][place] == pytest.approx(share([row]))
        assert columns["coverage_window"][place] == pytest.approx(share(around(view, row, 1)))
        assert columns["coverage_pair"][place] == pytest.approx(share([row, *question]))
        assert columns["asked_before"][place] == pytest.approx(share(question))
        assert columns["coverage_store"][place] == pytest.approx(share(list(range(view.size))))


@given(talks(), QUESTIONS, st.data())
def test_word_signals_are_shares_and_grow_with_the_window(
    view: PlainView, text: str, data: st.DataObject
) -> None:
    columns, _ = content_signals(scene_of(view, text, data))
    for name, values in columns.items():
        if name.startswith("dense"):
            continue
        assert (values >= 0).all(), name
        assert (values <= 1 + 1e-12).all(), name
    assert (columns["coverage"] <= columns["coverage_window"] + 1e-12).all()
    assert (columns["coverage_window"] <= columns["coverage_store"] + 1e-12).all()


@given(talks(), QUESTIONS, st.data())
def test_the_order_of_the_candidates_changes_nothing(
    view: PlainView, text: str, data: st.DataObject
) -> None:
    scene = scene_of(view, text, data)
    turned = Neighbourhood(scene.question, candidates(scene.rows[::-1]), view)
    there, back = content_signals(scene)[0], content_signals(turned)[0]
    for name, values in there.items():
        assert values == pytest.approx(back[name][::-1]), name


def test_of_two_texts_with_a_word_the_shorter_has_the_higher_bm25() -> None:
    view = PlainView([Said("a horse"), Said("a horse and bread and a garden", session=1)])
    scene = Neighbourhood(read_question("Which horse?", view), candidates(np.arange(2)), view)
    short, long = content_signals(scene)[0]["bm25"]
    assert short > long > 0
