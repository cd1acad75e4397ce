"""Arguments of another type are refused by name, before anything happens."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from cvx.errors import EdgeWeightError, InvalidInputError, InvalidKError, InvalidParameterError
from cvx.memory import Memory
from tests.store.facade import memory

__all__ = ["memory"]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m: m.recall("rain", k="3"), InvalidKError, "k is '3': give an int"),
        (lambda m: m.context("rain", k=2.5), InvalidKError, "k is 2.5: give an int"),
        (lambda m: m.keep_within(events="5"), InvalidParameterError, "events is '5': give an int"),
        (lambda m: m.keep_within(bytes=0.5), InvalidParameterError, "bytes is 0.5: give an int"),
        (lambda m: m.as_of("x"), InvalidParameterError, "recorded is 'x': give an int"),
        (lambda m: m.as_of(2**70), InvalidParameterError, f"recorded is {2**70}: give one of 64"),
        (lambda m: m.add_many("abc"), InvalidInputError, "event 0 of those given: 'a' is no Event"),
        (lambda m: m.add_many(7), InvalidInputError, "events are 7: give Events"),
        (lambda m: m.link(1, 2, weight="x"), EdgeWeightError, "weight is 'x': give a number"),
        (lambda m: m.add_aliases(1, "abc"), InvalidInputError, "aliases is the string 'abc'"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name_and_changes_nothing(
    memory: Memory, call: Callable[[Memory], object], error: type[Exception], said: str
) -> None:
    memory.add("it rained all night")
    memory.add("the cellar is under water")
    before = memory.record.tail()
    with pytest.raises(error, match=f"^{re.escape(said)}"):
        call(memory)
    assert memory.record.tail() == before


def test_numbers_of_numpy_are_numbers(memory: Memory) -> None:
    memory.add("it rained all night")
    memory.add("the cellar is under water")
    memory.link(1, 2, weight=np.float32(0.5))  # type: ignore[arg-type]
    assert [step.edge.weight for step in memory.why(2)] == [0.5]
    assert len(memory.recall("rain", k=np.int64(1))) == 1  # type: ignore[arg-type]
    assert memory.keep_within(events=np.int64(1)).events_left == 1  # type: ignore[arg-type]
