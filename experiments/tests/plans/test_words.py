"""Commands are read by their shapes, their names and the numbers behind them."""

from __future__ import annotations

import pytest

from experiments.plans import arguments, shape


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("grab hat 1 from nook 12", "grab # from #"),
        ("wait", "wait"),
        ("grab # from #", "grab # from #"),
        ("dye {0.0} with vat", "dye # with #"),
    ],
)
def test_a_shape_keeps_the_first_word_and_function_words(command: str, form: str) -> None:
    assert shape(command) == form


def test_arguments_are_words_with_their_instances_and_positions() -> None:
    found = arguments("grab hat 1 from nook 12")
    assert [(a.word, a.instance) for a in found] == [("hat", "hat 1"), ("nook", "nook 12")]
    assert [a.position for a in found] == [("grab # from #", 0), ("grab # from #", 1)]
