"""Native JSON is that of the standard library, byte by byte."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.index.json_text import compact_json

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"])),
)
VALUES = st.recursive(
    SCALARS,
    lambda some: st.lists(some) | st.tuples(some, some) | st.dictionaries(st.text("aé\n"), some),
)


@given(VALUES)
def test_it_writes_what_the_standard_library_writes(value: object) -> None:
    assert compact_json(value) == json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize(
    "number",
    [0.0, -0.0, 1e-4, math.nextafter(1e-4, 0), 1e16, math.nextafter(1e16, 0), 5e-324, -1.5e300,
     1e22, 123456789.0, 0.1 + 0.2, math.inf, -math.inf, math.nan],
)  # fmt: skip
def test_floats_have_the_digits_and_the_form_of_repr(number: float) -> None:
    assert compact_json([number, -number]) == json.dumps([number, -number], separators=(",", ":"))


@pytest.mark.parametrize("value", [b"a", {1}, [object()], {1: 2}])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        compact_json(value)


def test_half_a_surrogate_pair_and_a_list_that_holds_itself_are_refused() -> None:
    deep: list[object] = []
    deep.append(deep)
    for value, why in (("\ud800", "surrogates"), (deep, "more than 100 lists")):
        with pytest.raises(ValueError, match=why):
            compact_json(value)
