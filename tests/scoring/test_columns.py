"""Scores of many candidates: they are what a loop over single ones would give."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError, UnknownError
from cvx.recall import Candidates, Weighting, by_rank
from cvx.scoring.scorer import scale, score_columns
from tests.recall.plain_view import fused_by_rank

VALUES = st.floats(-5, 5) | st.just(math.nan)
TABLES = st.integers(1, 6).flatmap(
    lambda n: st.dictionaries(
        st.sampled_from("abcd"), st.lists(VALUES, min_size=n, max_size=n), min_size=1
    )
)


@given(TABLES, st.floats(-3, 3), st.sampled_from(("sum", "log-product")))
def test_a_score_is_what_a_loop_gives(
    table: dict[str, list[float]], bias: float, mode: str
) -> None:
    weights = {name: place - 1.0 for place, name in enumerate(table)}
    columns = {name: np.array(values) for name, values in table.items()}
    scored = score_columns(columns, weights, mode=mode, bias=bias)  # type: ignore[arg-type]
    for row in range(len(next(iter(table.values())))):
        expected = bias
        for name, weight in weights.items():
            value = table[name][row]
            if not math.isnan(value):
                value = math.log(max(value, 1e-6)) if mode == "log-product" else value
                expected += weight * value
        assert scored.total[row] == pytest.approx(expected, abs=1e-9)
        factors = scored.factors(np.array([row]))[0]
        assert sum(factor.share for factor in factors) == pytest.approx(expected, abs=1e-9)


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_scaling_keeps_the_order_and_ends_in_the_unit_interval(values: list[float]) -> None:
    scaled = scale(np.array(values))
    known = [(a, b) for a, b in zip(values, scaled, strict=True) if not math.isnan(a)]
    assert all(0.0 <= b <= 1.0 for _, b in known)
    assert all(b == 0.0 for a, b in zip(values, scaled, strict=True) if math.isnan(a))
    ordered = sorted(known)
    assert [b for _, b in ordered] == sorted(b for _, b in known)


@given(
    st.dictionaries(
        st.sampled_from(("dense", "lexical")), st.lists(st.integers(0, 9), unique=True), min_size=1
    )
)
def test_fusing_columns_by_rank_is_reciprocal_rank_fusion(rankings: dict[str, list[int]]) -> None:
    rows = np.array(sorted({row for ranking in rankings.values() for row in ranking}), dtype=int)
    table = Candidates(rows, rows)
    for name, ranking in rankings.items():
        places = {row: place for place, row in enumerate(ranking, start=1)}
        table.add(f"{name}.rank", [places.get(row, math.nan) for row in rows.tolist()])
    table.add("trust", np.ones(len(rows)))
    weighting = Weighting(dict.fromkeys(rankings, 1.0))
    scores = weighting.score(by_rank()(table, weighting.names), table).total
    expected = fused_by_rank(rankings.values())
    assert dict(zip(rows.tolist(), scores, strict=True)) == pytest.approx(expected)


@pytest.mark.requirement("B3")
@given(st.floats(-3, 3), st.floats(0, 1), st.floats(0, 1))
def test_more_trust_never_lowers_a_score(value: float, a: float, b: float) -> None:
    table = Candidates(np.arange(2), np.arange(2))
    table.update({"v": [value, value], "trust": sorted((a, b))})
    weighting = Weighting({"v": 1.0})
    less, more = weighting.score({"v": table["v"]}, table).total
    assert more >= less
    assert weighting.score({"v": table["v"]}, table).total.tolist() == [less, more]


def test_what_cannot_be_weighed_is_refused() -> None:
    columns = {"a": np.zeros(2)}
    with pytest.raises(UnknownError, match="no column 'b'"):
        score_columns(columns, {"b": 1.0})
    with pytest.raises(InvalidInputError, match="the weight of 'a' is inf"):
        score_columns(columns, {"a": math.inf})
    with pytest.raises(InvalidInputError, match="mode is 'max'"):
        score_columns(columns, {"a": 1.0}, mode="max")  # type: ignore[arg-type]
    with pytest.raises(UnknownError, match="no column 'b'"):
        Candidates(np.zeros(1, dtype=int), np.zeros(1, dtype=int))["b"]


def test_several_columns_are_held_to_what_one_is() -> None:
    table = Candidates(np.arange(2), np.arange(2))
    table.update({"a": np.array([0.5, 1.0]), "b": [1, 2], "c": np.array([3, 4])})
    assert [table[name].tolist() for name in table] == [[0.5, 1.0], [1.0, 2.0], [3.0, 4.0]]
    assert {table[name].dtype for name in table} == {np.dtype(np.float64)}
    for wrong in (np.zeros(3), np.zeros((2, 1)), [1.0]):
        with pytest.raises(InvalidInputError, match="column 'd' has shape"):
            table.update({"d": wrong})
