from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.recall.question import (
    NUMBER,
    PLACE,
    REASON,
    SPAN,
    TIME,
    answer_wanted,
    forms_of,
    read_question,
)
from cvx.recall.ranking_signals import (
    DEFAULT_WEIGHTS,
    SCALES,
    Neighbourhood,
    content_signals,
    form_signals,
    signals_of,
    speaker_signals,
)
from tests.recall.plain_view import PlainView, Said, candidates
from tests.recall.worlds import QUESTIONS, talks


def whole(view: PlainView, text: str) -> Neighbourhood:
    return Neighbourhood(read_question(text, view), candidates(np.arange(view.size)), view)


@given(talks(), st.sampled_from(("What about the lake?", "What about Ann?", "Ann's and Bob's?")))
def test_the_speaker_agrees_where_it_is_named_and_differs_where_another_is(
    view: PlainView, text: str
) -> None:
    named = {"What about the lake?": set[int](), "What about Ann?": {0}}.get(text, {0, 1})
    found = speaker_signals(whole(view, text))["speaker"]
    for said, value in zip(view.said, found.tolist(), strict=True):
        assert value == (0.0 if not named else 1.0 if said.entity in named else -1.0)


@given(talks(), QUESTIONS)
def test_a_session_is_as_good_as_its_best_and_its_three_best(view: PlainView, text: str) -> None:
    columns, content = content_signals(whole(view, text))
    dense = columns["dense"]
    stretched = (dense - dense.min()) / ((dense.max() - dense.min()) or 1.0)
    assert content == pytest.approx((stretched + columns["coverage"]) / 2, abs=1e-12)
    for row, said in enumerate(view.said):
        mine = sorted((s for s, o in zip(content, view.said, strict=True)
                       if o.session == said.session), reverse=True)  # fmt: skip
        assert columns["session_best"][row] == mine[0]
        assert columns["session_mean"][row] == pytest.approx(np.mean(mine[:3]))


def test_a_session_covers_what_its_candidates_hold_together() -> None:
    view = PlainView([Said("a horse"), Said("a lake"), Said("a lake", session=1)])
    covered = content_signals(whole(view, "horse lake"))[0]["session_coverage"]
    assert covered[0] == covered[1] == pytest.approx(1.0)
    assert 0 < covered[2] < 1


@pytest.mark.parametrize(
    ("question", "answer", "other", "form"),
    [
        ("When did she leave?", "I left last week.", "I left the house.", TIME),
        ("How long did it take?", "It took three months.", "It took a saw.", SPAN),
        ("How many horses are there?", "There are 7 of them.", "They are brown.", NUMBER),
        ("Why did he stop?", "I stopped because of my knee.", "I stopped there.", REASON),
        ("Where is the violin?", "We left it in Prague.", "It is old.", PLACE),
    ],
)
def test_a_text_of_the_form_asked_for_answers(
    question: str, answer: str, other: str, form: int
) -> None:
    view = PlainView([Said(answer), Said(other)])
    assert answer_wanted(question) == form
    assert form_signals(whole(view, question))["answers"].tolist() == [1.0, 0.0]


def test_a_question_of_no_form_wants_none() -> None:
    view = PlainView([Said("I left last week.")])
    assert form_signals(whole(view, "What did she paint?"))["answers"].tolist() == [0.0]


@given(st.text(max_size=200))
def test_any_text_has_its_forms(text: str) -> None:
    assert 0 <= forms_of(text) < 128
    assert bool(forms_of(text) & 1) == ("?" in text)


@given(talks(), QUESTIONS, st.data())
def test_every_weighed_column_is_made_finite_and_for_every_candidate(
    view: PlainView, text: str, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, view.size - 1), unique=True))
    pool = candidates(np.array(rows, dtype=np.int64))
    columns = signals_of(read_question(text, view), pool, view)
    assert set(DEFAULT_WEIGHTS) <= set(columns)
    assert set(SCALES) <= set(columns)
    for name, values in columns.items():
        assert values.shape == (len(rows),), name
        assert np.isfinite(values).all(), name
        if name not in SCALES:
            assert (np.abs(values) <= 1 + 1e-12).all(), name


def test_default_weights_have_one_digit() -> None:
    assert all(weight == int(weight) and abs(weight) < 10 for weight in DEFAULT_WEIGHTS.values())


def test_a_question_of_names_alone_is_embedded_as_asked() -> None:
    view = PlainView([Said("x")], names={"ann": frozenset({0})})
    assert read_question("Who is Ann?", view).bare == "Who is Ann?"
    assert read_question("Who is Ann's aunt?", view).bare == "Who is aunt?"


@pytest.mark.requirement("R13")
def test_of_equals_the_salient_comes_first_and_then_the_newest() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    events = [
        memory.add(
            "The gate squeaks.", timestamp=10 + n, salience=salience, metadata={"session": n}
        )
        for n, salience in enumerate([None, 0.5, 0.5, 0.0])
    ]
    hits = memory.recall("Which gate squeaks?")
    assert [hit.id for hit in hits] == [events[n].id for n in (2, 1, 3, 0)]
