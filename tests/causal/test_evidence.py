"""Evidence on a link: what raises its weight, what lowers it, and how it is kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from cvx.causal import CausalGraph, Evidence
from cvx.causal.evidence import (
    binned,
    following,
    granger,
)
from cvx.errors import InvalidInputError
from cvx.validation import EVIDENCE_KINDS

amounts = st.floats(0, 100)
additions = st.lists(st.tuples(st.sampled_from(EVIDENCE_KINDS), amounts, amounts), max_size=8)


@pytest.mark.requirement("B10")
@given(additions, st.floats(0, 1), st.floats(0.01, 50))
def test_the_weight_is_the_mean_of_a_beta_posterior(
    added: list[tuple[str, float, float]], mean: float, strength: float
) -> None:
    evidence = Evidence(prior_mean=mean, prior_strength=strength)
    for kind, supports, counters in added:
        evidence = evidence.add(kind, supports=supports, counters=counters)
    a = strength * mean + sum(supports for _, supports, _ in added)
    b = strength * (1 - mean) + sum(counters for _, _, counters in added)
    expected = stats.beta(a, b).mean() if a > 0 and b > 0 else a / (a + b)
    assert evidence.weight == pytest.approx(expected)


@pytest.mark.requirement("B10")
@given(additions, st.sampled_from(EVIDENCE_KINDS), st.floats(0.01, 10))
def test_support_raises_and_a_counterexample_lowers_a_weight(
    added: list[tuple[str, float, float]], kind: str, amount: float
) -> None:
    evidence = Evidence()
    for one, supports, counters in added:
        evidence = evidence.add(one, supports=supports, counters=counters)
    assert evidence.add(kind, supports=amount).weight >= evidence.weight
    assert evidence.add(kind, counters=amount).weight <= evidence.weight
    assert Evidence().add(kind, supports=amount).weight > 0.5
    assert Evidence().add(kind, counters=amount).weight < 0.5


@pytest.mark.requirement("B10")
@given(additions, st.text())
def test_evidence_is_kept_by_an_edge_and_read_back(
    added: list[tuple[str, float, float]], note: str
) -> None:
    evidence = Evidence(prior_mean=0.25, prior_strength=3.0)
    for kind, supports, counters in added:
        evidence = evidence.add(kind, supports=supports, counters=counters, note=note)
    assert Evidence.from_text(evidence.to_text()) == evidence
    assert Evidence.of(0.9, evidence.to_text()) == evidence


def test_words_of_a_person_are_kept_as_what_was_stated() -> None:
    evidence = Evidence.from_text("the plumber said so")
    assert str(evidence) == "stated 0 (the plumber said so)"
    assert Evidence.of(0.8, "the plumber said so").weight == 0.8
    assert Evidence.of(0.8, "").weight == 0.8
    assert Evidence.from_text("") == Evidence()
    assert str(Evidence()) == "nothing is known"
    told = str(Evidence().add("repetition", supports=2, counters=0.5))
    assert told == "repetition 2 for, 0.5 against"


def test_evidence_that_cannot_be_is_refused() -> None:
    calls: list[Callable[[], object]] = [
        lambda: Evidence(prior_mean=1.5),
        lambda: Evidence(prior_strength=0.0),
        lambda: Evidence().add("hearsay", supports=1),
        lambda: Evidence().add("judged", supports=-1),
        lambda: Evidence().add("judged", counters=float("inf")),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError):
            call()
    with pytest.raises(InvalidInputError, match="later cvx"):
        Evidence.from_text('{"prior": [0.5, 2.0], "observations": [["dreamt", 1, 0, ""]]}')


times = st.lists(st.integers(0, 60), max_size=12)


@given(times, times, st.integers(1, 10))
def test_following_is_counted_as_a_loop_over_all_moments_would(
    causes: list[int], effects: list[int], window: int
) -> None:
    found = following(causes, effects, window)

    def followed(moment: int) -> bool:
        return any(moment < effect <= moment + window for effect in effects)

    assert found.causes == len(causes)
    assert found.followed == sum(map(followed, causes))
    if causes:
        moments = range(min(causes), max(causes) + 1)
        share = sum(map(followed, moments)) / len(moments)
        assert found.expected == pytest.approx(len(causes) * share)


@pytest.mark.requirement("B10")
def test_what_happens_all_the_time_supports_nothing() -> None:
    causes = list(range(0, 1000, 50))
    always = following(causes, list(range(1000)), window=5)
    assert always.followed == pytest.approx(always.expected, abs=1e-9)
    really = following(causes, [cause + 3 for cause in causes], window=5)
    beyond = Evidence().add("repetition", supports=really.followed - really.expected)
    assert beyond.weight > 0.85
    seldom = following(causes, [3, 53], window=5)
    evidence = Evidence().add("repetition", supports=seldom.followed - seldom.expected)
    evidence = evidence.add("counterexample", counters=seldom.causes - seldom.followed)
    assert evidence.weight < 0.2
    assert [one.kind for one in evidence.observations] == ["repetition", "counterexample"]
    with pytest.raises(InvalidInputError, match="window"):
        following([1], [2], 0)


@pytest.mark.requirement("B10")
def test_what_mostly_comes_first_is_no_effect() -> None:
    smoke = list(range(0, 1000, 50))
    fire = [moment + 3 for moment in smoke]
    there, back = following(smoke, fire, window=5), following(fire, smoke, window=5)
    assert (there.followed, back.followed) == (20, 0)
    assert there.expected < 3
    evidence = Evidence().add("precedence", counters=there.followed - back.followed)
    assert evidence.weight < 0.1


@given(times, st.integers(1, 7))
def test_bins_count_everything_inside_once(when: list[int], width: int) -> None:
    counts = binned(when, 10, 50, width)
    assert len(counts) == -(-40 // width)
    assert counts.sum() == sum(10 <= t < 50 for t in when)
    with pytest.raises(InvalidInputError):
        binned(when, 5, 5, width)


def series() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    cause = rng.normal(size=300)
    effect = 0.8 * np.roll(cause, 2) + 0.3 * rng.normal(size=300)
    return cause, effect


@pytest.mark.requirement("V20", "B10")
def test_granger_finds_the_direction_and_the_lag() -> None:
    cause, effect = series()
    there, back = granger(cause, effect), granger(effect, cause)
    assert there.p < 1e-6
    assert there.lag == 2
    assert back.p > 0.05


@pytest.mark.requirement("V20")
def test_what_granger_finds_becomes_an_edge_of_its_own_kind() -> None:
    found = granger(*series())
    note = f"p = {found.p:.2g} at lag {found.lag}"
    evidence = Evidence().add("granger", supports=5.0 * (1.0 - found.p), note=note)
    graph = CausalGraph()
    graph.add_event("rain", "rain", 0)
    graph.add_event("river", "the river", 2)
    graph.link("rain", "river", evidence.weight, kind="granger_causal", evidence=evidence.to_text())
    (link,) = graph.causes("river")
    assert link.kind == "granger_causal"
    assert "at lag 2" in str(Evidence.from_text(link.evidence))


def test_series_that_cannot_be_tested_are_refused() -> None:
    cause, effect = series()
    with pytest.raises(InvalidInputError):
        granger(cause, effect[:-1])
    calls: list[Callable[[], object]] = [
        lambda: granger(np.zeros(300), effect),
        lambda: granger(cause, np.full(300, np.nan)),
        lambda: granger(cause, effect, max_lag=0),
        lambda: granger(cause[:10], effect[:10]),
        lambda: granger(cause, np.arange(300.0)),
    ]
    for bad in calls:
        with pytest.raises(InvalidInputError):
            bad()
