"""The generator of crisis scenarios makes what it says, whatever rule is measured on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.causal.generated_crises import GOLD, Recipe, Role, drawn
from benches.causal.scenarios import Encoder, Geometry, Scenario, Told, scenario
from benches.causal.stories import Stories
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError

ENCODERS: list[Encoder] = [
    Geometry(64),
    Geometry(384, common=0.3),
    Told("lexical", LexicalEmbedder().embed, Stories()),
]


def similarity(one: Scenario, role: Role) -> np.ndarray:
    rows = one.memories[[r is role for r in one.plot.memory_roles]]
    return rows @ one.question


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: one.name)
def test_causal_evidence_does_not_resemble_the_crisis_and_distractors_do(encoder: Encoder) -> None:
    for seed in range(10):
        one = scenario(Recipe(), encoder, seed)
        witnesses = [at for at, role in enumerate(one.plot.memory_roles) if role is Role.CAUSE]
        loud = similarity(one, Role.DISTRACTOR)
        assert (one.memories[witnesses] @ one.question).mean() < loud.mean()
        assert similarity(one, Role.SEMANTIC).mean() > loud.mean()


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: one.name)
def test_a_witness_is_nearer_to_its_event_than_other_memories_are(encoder: Encoder) -> None:
    # Words alone miss many paraphrases; chance is one in eighty.
    least = 0.4 if encoder.name == "lexical" else 0.8
    best = []
    for seed in range(10):
        one = scenario(Recipe(), encoder, seed)
        for at, (role, event) in enumerate(zip(one.plot.memory_roles, one.plot.about, strict=True)):
            if role is Role.CAUSE:
                best.append(int(np.argmax(one.memories @ one.events[event])) == at)
    assert np.mean(best) > least


@settings(max_examples=60, deadline=None)
@given(
    causes=st.integers(1, 4),
    semantic=st.integers(0, 6),
    decoys=st.integers(0, 6),
    seed=st.integers(0, 2**32),
)
def test_a_plot_holds_what_its_recipe_asks_for(
    causes: int, semantic: int, decoys: int, seed: int
) -> None:
    recipe = Recipe(causes=causes, semantic=semantic, decoys=decoys, echo=1.0, stranger=1.0)
    plot = drawn(recipe, np.random.default_rng(seed))
    count = {role: plot.memory_roles.count(role) for role in Role}
    assert count[Role.CAUSE] == causes
    assert count[Role.SEMANTIC] == semantic
    assert count[Role.DECOY] == decoys
    assert count[Role.DISTRACTOR] == 20
    assert count[Role.NOISE] == 55
    assert len(plot.gold) == causes + semantic
    assert all(plot.memory_roles[at] in GOLD for at in plot.gold)
    assert plot.about[plot.root] == 0
    assert all(plot.event_times[a] < plot.event_times[b] for a, b in plot.edges)
    assert {(at, at + 1) for at in range(causes)} < set(plot.edges)
    assert plot.event_times.max() == plot.event_times[plot.crisis]
    loud = [plot.importance[at] for at, r in enumerate(plot.memory_roles) if r is Role.DISTRACTOR]
    assert min(loud) > max(plot.importance[at] for at in plot.gold)


def test_edges_are_missing_as_often_as_asked() -> None:
    recipe = Recipe(missing=0.5)
    left = [len(drawn(recipe, np.random.default_rng(seed)).edges) for seed in range(400)]
    assert np.mean(left) == pytest.approx(1.5, abs=0.15)


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: one.name)
def test_the_same_seed_gives_the_same_scenario(encoder: Encoder) -> None:
    a, b, c = (scenario(Recipe(decoys=2), encoder, seed) for seed in (3, 3, 4))
    assert np.array_equal(a.memories, b.memories)
    assert a.plot.edges == b.plot.edges
    assert not np.array_equal(a.memories, c.memories)


def test_two_encoders_see_the_same_plot() -> None:
    a, b = (scenario(Recipe(missing=0.5), encoder, 7) for encoder in ENCODERS[:2])
    assert a.plot.memory_roles == b.plot.memory_roles
    assert a.plot.edges == b.plot.edges


@pytest.mark.parametrize("bad", [{"causes": 0}, {"causes": 6}, {"semantic": -1}, {"missing": 1.5}])
def test_an_impossible_recipe_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        Recipe(**bad)  # type: ignore[arg-type]
