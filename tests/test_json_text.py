"""Native JSON is that of the standard library, byte by byte; so are checksums of rows."""

import json
import math
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.index.json_text import compact_json
from cvx.store.rows import row_crc

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    # Halves of surrogate pairs, too, which no store holds but an export may.
    st.text(),
    st.text(st.characters(categories=["Cs"])),
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


@given(st.lists(st.one_of(SCALARS, st.binary())))
def test_a_row_has_the_checksum_of_its_bytes_and_its_json(values: list[object]) -> None:
    crc = 0
    for value in values:
        if isinstance(value, bytes):
            crc = zlib.crc32(value, crc)
    # SQLite stores -0.0 as 0.0.
    plain = [
        len(value) if isinstance(value, bytes) else value + 0.0 if type(value) is float else value
        for value in values
    ]
    assert row_crc(*values) == zlib.crc32(json.dumps(plain, separators=(",", ":")).encode(), crc)


def test_a_list_that_holds_itself_is_refused() -> None:
    deep: list[object] = []
    deep.append(deep)
    with pytest.raises(ValueError, match="more than 100 lists"):
        compact_json(deep)
    with pytest.raises(ValueError, match="more than 100 lists"):
        row_crc(deep)
