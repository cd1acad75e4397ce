"""Use: retrieved, followed and helped are counted apart, and kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.scoring import UsageCount, UsageTracker, beta_mean, censored_failure
from cvx.store import Record

contexts = st.recursive(
    st.none() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.tuples(inner, inner),
    max_leaves=4,
)


@pytest.mark.requirement("V23")
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans())))
def test_counts_are_those_of_a_loop(uses: list[tuple[int, bool, bool]]) -> None:
    usage = UsageTracker()
    for context, followed, helped in uses:
        usage.add(context, followed=followed, helped=helped)
    for context in range(4):
        mine = [(f, h) for c, f, h in uses if c == context]
        expected = UsageCount(len(mine), sum(f for f, _ in mine), sum(f and h for f, h in mine))
        assert usage.count(context) == expected


@pytest.mark.requirement("V23")
def test_what_was_ignored_is_not_held_against_it() -> None:
    usage = UsageTracker()
    before = usage[1]
    for _ in range(50):
        usage.add(1, followed=False, helped=False)
    assert usage[1] == before == 0.5


@pytest.mark.requirement("V23")
def test_one_failure_speaks_loudly_against_a_weak_prior_only() -> None:
    weak, strong = UsageTracker(strength=0.3), UsageTracker(strength=20)
    for usage in (weak, strong):
        usage.add("plan", followed=True, helped=False)
    assert weak["plan"] == pytest.approx(0.3 * 0.5 / 1.3)
    assert weak["plan"] < 0.12 < 0.45 < strong["plan"]


@pytest.mark.requirement("V11", "V23")
def test_the_seed_mode_is_wins_over_wins_plus_uses() -> None:
    usage = UsageTracker(mode="ratio")
    assert usage[3] == 0.0
    usage.add(3, followed=True, helped=True)
    usage.add(3, followed=True, helped=False)
    assert usage[3] == 1 / 3


@pytest.mark.requirement("V23")
@given(
    st.dictionaries(
        contexts,
        st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0, 1)), min_size=1),
        max_size=5,
    )
)
def test_counts_survive_the_record(uses: dict[object, list[tuple[bool, bool, float]]]) -> None:
    usage, record = UsageTracker(), Record()
    for context, each in uses.items():
        for followed, helped, exposure in each:
            usage.add(context, followed=followed, helped=helped, exposure=exposure)
    with record.transaction() as write:
        usage.save(write)
    back = UsageTracker()
    back.load(record)
    assert {c: back.count(c) for c in back} == {c: usage.count(c) for c in usage}
    record.close()


@pytest.mark.requirement("V23")
@given(st.integers(0, 6), st.integers(0, 6), st.floats(0, 1), st.sampled_from([0.25, 0.5, 0.75]))
def test_an_episode_that_was_cut_off_moves_the_mean_as_its_likelihood_does(
    wins: int, failures: int, exposure: float, mean: float
) -> None:
    usage = UsageTracker(strength=4.0, mean=0.5)
    for place in range(wins + failures):
        usage.add("plan", followed=True, helped=place < wins)
    usage.add("plan", followed=True, helped=False, exposure=exposure, mean=mean)
    p = np.linspace(0, 1, 20_001)
    density = p ** (wins + 4 * mean - 1) * (1 - p) ** (failures + 3 - 4 * mean) * (1 - p * exposure)
    count = usage.count("plan")
    found = beta_mean(count.helped, count.followed, strength=4.0, mean=mean)
    assert found == pytest.approx((p * density).sum() / density.sum(), abs=1e-3)


@pytest.mark.requirement("V23")
@given(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_to_be_cut_off_never_speaks_for_anything(mean: float, exposures: list[float]) -> None:
    usage, expected = UsageTracker(), mean
    for exposure in exposures:
        usage.add("plan", followed=True, helped=False, exposure=exposure, mean=mean)
        count = usage.count("plan")
        found = beta_mean(count.helped, count.followed, usage.strength, mean)
        assert found <= expected + 1e-12
        expected = found


@pytest.mark.requirement("V23")
def test_time_that_ran_out_lies_between_nothing_and_a_failure() -> None:
    after = []
    for exposure in (0.0, 0.3, 0.9, 1.0):
        usage = UsageTracker()
        usage.add("plan", followed=True, helped=False, exposure=exposure)
        after.append(usage["plan"])
    assert after == sorted(after, reverse=True)
    failed = UsageTracker()
    failed.add("plan", followed=True, helped=False)
    assert (after[0], after[-1]) == (0.5, failed["plan"])


@pytest.mark.requirement("V23")
def test_time_that_ran_out_blames_what_never_worked_not_what_works() -> None:
    known, vain = UsageTracker(), UsageTracker()
    for _ in range(5):
        known.add("plan", followed=True, helped=True)
    for usage in (known, vain):
        for _ in range(4):
            usage.add("plan", followed=True, helped=False, exposure=0.8)
    assert known["plan"] > 0.85
    assert vain["plan"] < 0.2


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_chance_of_a_failure_is_one(success: float, exposure: float) -> None:
    chance = censored_failure(success, exposure)
    assert 1 - success - 1e-12 <= chance <= 1


@pytest.mark.parametrize("exposure", [-0.1, 1.1, float("nan")])
def test_an_exposure_that_is_no_chance_is_refused_and_nothing_is_counted(exposure: float) -> None:
    usage = UsageTracker()
    with pytest.raises(InvalidInputError, match="exposure"):
        usage.add("plan", followed=True, helped=False, exposure=exposure)
    assert not len(usage)


@pytest.mark.parametrize("kw", [{"mode": "mean"}, {"strength": 0.0}, {"mean": 1.5}])
def test_a_parameter_out_of_bounds_is_a_typed_error(kw: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        UsageTracker(**kw)  # type: ignore[arg-type]


@pytest.mark.parametrize("mean", [-0.1, 1.5, float("nan"), "likeness", None])
def test_a_prior_that_expects_no_chance_is_refused(mean: Any) -> None:
    with pytest.raises(InvalidInputError, match="mean"):
        UsageTracker(mean=mean)
    usage = UsageTracker()
    if mean is not None:
        with pytest.raises(InvalidInputError, match="mean"):
            usage.add("plan", followed=True, helped=False, exposure=0.5, mean=mean)
    assert usage.count("plan") == UsageCount()


def test_similarity_is_a_prior_where_it_is_known() -> None:
    usage = UsageTracker(mean="similarity")
    assert (usage.by_similarity, usage["plan"]) == (True, 0.5)
    assert not UsageTracker(mean=0.3).by_similarity
