"""What fades, how fast, and that looking changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.causal import Vitality
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.memory import Memory

RULE = Vitality(half_life=10.0)


def left(
    strength: float, unused_for: float, uses: int = 0, consequences: int = 0, rule: Vitality = RULE
) -> float:
    columns = np.array([strength]), np.array([unused_for]), np.array([uses])
    return float(rule(*columns, np.array([consequences]))[0])


@pytest.mark.requirement("C14")
def test_half_is_left_after_the_half_life_and_more_of_what_was_used_or_explains() -> None:
    assert left(0.8, 10.0) == pytest.approx(0.4)
    assert left(0.8, 20.0) == pytest.approx(0.2)
    # One use makes the half-life 1.5 times as long, three make it twice as long.
    assert left(0.8, 15.0, uses=1) == pytest.approx(0.4)
    assert left(0.8, 20.0, uses=3) == pytest.approx(0.4)
    assert left(0.8, 1e9, consequences=2) == pytest.approx(0.2)
    assert left(0.8, 1e9, consequences=50) == pytest.approx(0.5)
    assert left(0.8, -5.0) == pytest.approx(0.8)


@given(
    st.floats(0, 1), st.floats(0, 1e6), st.integers(0, 1000), st.integers(0, 100), st.floats(0, 1e6)
)
def test_vitality_falls_with_time_and_rises_with_use(
    strength: float, unused_for: float, uses: int, consequences: int, more: float
) -> None:
    now = left(strength, unused_for, uses, consequences)
    assert 0.0 <= now <= 1.0
    assert left(strength, unused_for + more, uses, consequences) <= now
    assert left(strength, unused_for, uses + 1, consequences) >= now - 1e-12
    assert left(strength, unused_for, uses, consequences + 1) >= now


def faded() -> tuple[Memory, list[int]]:
    ticks = iter(range(1000, 100_000))
    memory = Memory._opened(None, LexicalEmbedder(dim=64), now=ticks.__next__)
    events = [
        memory.add("a trifle", timestamp=0, salience=0.1).id,
        memory.add("a drought", timestamp=0, salience=0.1).id,
        memory.add("a famine", timestamp=0, salience=0.9).id,
        memory.add("yesterday", timestamp=95, salience=0.1).id,
    ]
    memory.link(events[1], events[2])
    return memory, events


@pytest.mark.requirement("C14")
def test_what_has_faded_is_put_away_and_can_be_brought_back() -> None:
    memory, (trifle, drought, famine, yesterday) = faded()
    rule = Vitality(half_life=40.0)
    dry = memory.admin.fade(0.05, rule=rule, now=100)
    assert dry.events == (trifle,)
    assert list(dry.vitality) == [pytest.approx(0.1 * 2**-2.5)]
    assert len(memory) == 4
    assert memory.admin.fade(0.05, rule=rule, now=100, dry_run=False).events == (trifle,)
    assert memory.get(trifle).state == "archived"
    assert len(memory) == 3
    memory.update(trifle, state="active")
    assert len(memory) == 4
    assert {drought, famine, yesterday}.isdisjoint(dry.events)


@pytest.mark.requirement("C14")
def test_looking_often_fades_nothing_faster() -> None:
    memory, _ = faded()
    rule = Vitality(half_life=40.0)
    once = memory.admin.fade(1.0, rule=rule, now=100)
    for now in range(0, 100, 5):
        memory.admin.fade(0.0, rule=rule, now=now, dry_run=False)
    assert memory.admin.fade(1.0, rule=rule, now=100) == once


@pytest.mark.requirement("C14")
def test_what_was_used_lately_stays() -> None:
    memory, (trifle, *_) = faded()
    rule = Vitality(half_life=40.0)
    with memory.record.transaction() as write:
        write.touch({trifle: 99})
    assert memory.admin.fade(0.05, rule=rule, now=100).events == ()


def test_bounds_that_cannot_be_are_refused() -> None:
    memory, _ = faded()
    with pytest.raises(InvalidInputError, match="below is 2"):
        memory.admin.fade(2.0)
    for options in ({"half_life": 0.0}, {"per_use": -1.0}, {"per_consequence": -1.0}):
        with pytest.raises(InvalidInputError):
            Vitality(**options)
    assert Memory(embedder=LexicalEmbedder(dim=8)).admin.fade() == ((), ())
