"""The judge that needs no language model: what it says, how sure it is, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.causal.fitting import Example, as_pairs, fit_judge, groups_by_text, probabilities
from benches.causal.training import Training
from cvx.causal.judges.protocol import Judge, Pair
from cvx.causal.judges.statistical import PairScorer, StatisticalJudge, WordPairs
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError

CAUSES = {
    "rain": "flood", "spark": "fire", "virus": "fever", "strike": "delay",
    "storm": "outage", "drought": "famine", "frost": "pipes", "fraud": "trial",
}  # fmt: skip


def examples(seed: int, count: int) -> list[Example]:
    """Make pairs whose subject decides, in sentences that are never the same."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        subject, other = rng.choice(list(CAUSES), 2, replace=False)
        tag = f"case{seed}n{number}"
        true = f"there was {CAUSES[subject]} {tag}b"
        wrong_cause = bool(rng.random() < 0.5)
        wrong = (
            f"some {other} was seen {tag}c" if wrong_cause else f"there was {CAUSES[other]} {tag}c"
        )
        # A fifth of the labels are wrong, so that there is something to be unsure of.
        if rng.random() < 0.2 and not wrong_cause:
            true, wrong = wrong, true
        made.append(Example(f"some {subject} was seen {tag}a", true, wrong, wrong_cause))
    return made


@pytest.fixture(scope="module")
def judge() -> StatisticalJudge:
    return fit_judge(examples(0, 500))


def test_it_tells_causes_from_look_alikes(judge: StatisticalJudge) -> None:
    asked = examples(1, 300)
    true = probabilities(judge, as_pairs([one.true for one in asked], None))
    false = probabilities(judge, as_pairs([one.false for one in asked], None))
    assert np.mean(true > false) > 0.75


def test_its_probabilities_are_frequencies(judge: StatisticalJudge) -> None:
    asked = examples(2, 600)
    texts = [*(one.true for one in asked), *(one.false for one in asked)]
    said = probabilities(judge, as_pairs(texts, None))
    held = np.repeat([1.0, 0.0], len(asked))
    # The judge was told that a quarter of all pairs are effects of other causes: those it also
    # turns away, so that look-alikes alone come out a little too likely.
    for low, high in ((0.0, 0.3), (0.7, 1.01)):
        inside = (said >= low) & (said < high)
        assert inside.sum() > 100
        assert said[inside].mean() == pytest.approx(held[inside].mean(), abs=0.12)


def test_it_is_a_judge_and_says_why(judge: StatisticalJudge) -> None:
    assert isinstance(judge, Judge)
    (said,) = judge.judge([Pair("so much rain", "a great flood")])
    assert said.verdict == "yes"
    assert said.why == '"rain" is known to lead to "flood"'
    assert said.probability is not None
    odds = sum(value for _, value in said.factors)
    assert 1 / (1 + np.exp(-odds)) == pytest.approx(said.probability)


def test_an_effect_before_its_cause_is_a_no(judge: StatisticalJudge) -> None:
    pair = Pair("so much rain", "a great flood")
    before, same, after = judge.judge([pair._replace(lag=lag) for lag in (-1, 0, 5)])
    assert (before.verdict, before.probability) == ("no", 0.0)
    assert same == after
    assert same.verdict == "yes"


def test_texts_without_words_are_left_unjudged(judge: StatisticalJudge) -> None:
    empty, full = judge.judge([Pair("  ", "a flood"), Pair("rain", "a flood")])
    assert empty.verdict == "unjudged"
    assert full.verdict == "yes"
    assert judge.judge([]) == []


@settings(max_examples=25, deadline=None)
@given(prior=st.floats(0.01, 0.99), bound=st.floats(0, 1))
def test_a_rarer_truth_makes_every_yes_less_likely(prior: float, bound: float) -> None:
    scorer = PairScorer(WordPairs({("rain", "flood"): 2.0}))
    weights = (0.5, 0.0, 1.0, 0.0)
    pair = Pair("rain", "flood")
    even = StatisticalJudge(scorer, weights, -0.4).judge([pair])[0].probability
    shifted = StatisticalJudge(scorer, weights, -0.4, bound=bound, prior=prior).judge([pair])[0]
    assert even is not None
    assert shifted.probability is not None
    odds = even / (1 - even) * prior / (1 - prior)
    assert shifted.probability == pytest.approx(odds / (1 + odds))
    assert (shifted.verdict == "yes") == (shifted.probability >= bound)


def test_a_judge_with_heads_needs_vectors_and_survives_being_kept(tmp_path: Path) -> None:
    embed = LexicalEmbedder(32).embed
    made = fit_judge(examples(3, 80), embed, training=Training(hidden=8, epochs=2, batch=32))
    made.save(tmp_path / "judge.npz")
    kept = StatisticalJudge.load(tmp_path / "judge.npz")
    pairs = as_pairs([("some rain was seen", "there was flood")], embed)
    assert kept.scorer.heads is not None
    assert kept.judge(pairs)[0].probability == pytest.approx(
        made.judge(pairs)[0].probability, abs=0.02
    )
    bare = kept.judge([Pair("some rain was seen", "there was flood")])[0]
    assert bare.verdict == "unjudged"
    assert "vector" in bare.why


def test_the_shipped_judge_knows_something_of_the_world() -> None:
    judge = StatisticalJudge.shipped()
    known = [
        ("It rained heavily all week.", "The streets were flooded."),
        ("He ate too much candy.", "His teeth decayed."),
        ("She studied hard.", "She passed the exam."),
        ("The soil has no water.", "The plants died."),
        ("He smoked for years.", "He got lung cancer."),
        ("The company was losing money.", "The company went bankrupt."),
        ("The driver was drunk.", "The car crashed."),
        ("She caught a virus.", "She had a fever."),
        ("The factory dumped waste in the river.", "The fish in the river died."),
        ("He lost his job.", "He could not pay the rent."),
    ]
    first = []
    for at, (cause, _) in enumerate(known):
        chances = probabilities(judge, [Pair(cause, effect) for _, effect in known])
        first.append(int(chances.argmax()) == at)
    # By chance one of ten.
    assert sum(first) >= 6
    (smoker,) = judge.judge([Pair(*known[4])])
    assert smoker.verdict == "yes"
    assert smoker.why == '"smoked" is known to lead to "lung"'


def test_groups_share_no_text() -> None:
    made = [
        Example("a", "b", "c", False),
        Example("d", "e", "b", True),
        Example("f", "g", "h", False),
        Example("i", "a", "j", True),
    ]
    assert groups_by_text(made) == ["a", "a", "f", "a"]


def test_what_cannot_be_fitted_or_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="40"):
        fit_judge(examples(4, 10))
    with pytest.raises(InvalidInputError, match="apart"):
        fit_judge([Example("a", f"b{n}", f"c{n}", False) for n in range(60)])
    (tmp_path / "bad.npz").write_bytes(b"no judge")
    with pytest.raises(InvalidInputError, match="no judge"):
        StatisticalJudge.load(tmp_path / "bad.npz")
    scorer = PairScorer(WordPairs({}))
    for bad in ({"bound": 2.0}, {"prior": 0.0}, {"prior": 1.0}):
        with pytest.raises(InvalidInputError):
            StatisticalJudge(scorer, (0.0,) * 4, 0.0, **bad)
    with pytest.raises(InvalidInputError, match="weights"):
        StatisticalJudge(scorer, (0.0,), 0.0)
