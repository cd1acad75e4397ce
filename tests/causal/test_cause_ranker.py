"""Ranking the events of a passage as causes of one of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.causal.antecedents import NAMES, PLAIN, candidates_of, compared, evidence
from benches.causal.cause_ranker import CauseRanker
from benches.causal.passages import KnownLinks, Passage, head
from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError

VERBS = ("rained", "flooded", "broke", "burning", "voted", "struck", "shouted", "slept")


def drawn(seed: int, count: int = 7, topic: str = "") -> Passage:
    rng = np.random.default_rng(seed)
    words = tuple(str(word) for word in rng.choice(VERBS, count))
    links = {tuple(rng.choice(count, 2, replace=False).tolist()) for _ in range(3)}
    return Passage(
        words=words,
        positions=np.sort(rng.integers(0, 40, count)),
        sections=np.sort(rng.integers(0, 4, count)),
        vectors=LexicalEmbedder(32).embed(words),
        links=tuple(sorted((int(a), int(b)) for a, b in links)),
        topic=topic,
    )


def twin(passage: Passage, others: list[Passage], cause: int, effect: int) -> dict[str, float]:
    """Gather the evidence for one pair, with loops."""
    gap = int(passage.positions[cause] - passage.positions[effect])
    section = int(passage.sections[cause] - passage.sections[effect])
    v = passage.vectors
    forward, backward, pairs, reverse = [], [], 0, 0
    near: list[tuple[float, int, bool, bool]] = []
    for other in others:
        w = other.vectors
        for a, b in other.links:
            forward.append(max(0, v[cause] @ w[a]) * max(0, v[effect] @ w[b]))
            backward.append(max(0, v[effect] @ w[a]) * max(0, v[cause] @ w[b]))
            heads = (head(other.words[a]), head(other.words[b]))
            pairs += heads == (head(passage.words[cause]), head(passage.words[effect]))
            reverse += heads == (head(passage.words[effect]), head(passage.words[cause]))
        for at in range(len(other)):
            sides = [any(link[side] == at for link in other.links) for side in (0, 1)]
            near.append((-float(v[cause] @ w[at]), len(near), sides[0], sides[1]))
    near = sorted(near)[:10]
    top, back = sorted(forward)[-3:], sorted(backward)[-3:]
    far = math.log1p(abs(gap))
    return {
        "log_distance": far,
        "signed_log_distance": math.copysign(far, gap) if gap else 0.0,
        "same_section": float(section == 0),
        "section_offset": min(abs(section), 6),
        "log_order": math.log1p(abs(cause - effect)),
        "next_event": float(abs(cause - effect) == 1),
        "transfer_best": max(top),
        "transfer_mean": float(np.mean(top)),
        "reverse_best": max(back),
        "reverse_mean": float(np.mean(back)),
        "stem_pairs": math.log1p(pairs),
        "reverse_stem_pairs": math.log1p(reverse),
        "same_stem": float(head(passage.words[cause]) == head(passage.words[effect])),
        "cause_share": float(np.mean([one[2] for one in near])),
        "effect_share": float(np.mean([one[3] for one in near])),
        "likeness": float(v[cause] @ v[effect]),
    }


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_evidence_is_its_twin(seed: int) -> None:
    passage, others = drawn(seed), [drawn(seed + 1), drawn(seed + 2)]
    rows = evidence(passage, KnownLinks(others))
    for cause, effect in ((0, 3), (5, 2), (6, 0)):
        told = twin(passage, others, cause, effect)
        # Near events with equal cosines may come in either order.
        for name in set(PLAIN) - {"cause_share", "effect_share"}:
            assert rows[cause, effect, PLAIN.index(name)] == pytest.approx(told[name], abs=1e-6)


def test_shares_count_the_nearest_known_events() -> None:
    # Nine known events, all of them among the ten nearest: the shares are plain counts.
    passage, others = drawn(5), [drawn(6, count=9)]
    told = twin(passage, others, 0, 0)
    rows = evidence(passage, KnownLinks(others))[0, 0]
    assert rows[PLAIN.index("cause_share")] == pytest.approx(told["cause_share"])
    assert rows[PLAIN.index("effect_share")] == pytest.approx(told["effect_share"])


def test_a_passages_own_links_are_not_read() -> None:
    passage = drawn(1)
    bare = Passage(
        words=passage.words,
        positions=passage.positions,
        sections=passage.sections,
        vectors=passage.vectors,
    )
    known = KnownLinks([drawn(2)])
    assert np.array_equal(evidence(passage, known), evidence(bare, known))


def planted(seed: int, topic: str) -> Passage:
    """Tell a passage in which rain, wherever it stands, led to every flood."""
    rng = np.random.default_rng(seed)
    words = ["rained", "flooded", "voted", "shouted", "slept", "struck"]
    rng.shuffle(words)
    return Passage(
        words=tuple(words),
        positions=np.sort(rng.integers(0, 60, 6)),
        sections=np.sort(rng.integers(0, 5, 6)),
        vectors=LexicalEmbedder(64).embed(words),
        links=((words.index("rained"), words.index("flooded")),),
        topic=topic,
    )


def test_the_ranker_learns_a_planted_pattern() -> None:
    ranker = CauseRanker.fit([planted(seed, "news") for seed in range(12)])
    known = KnownLinks([planted(seed, "later") for seed in range(100, 103)])
    for seed in range(200, 220):
        passage = planted(seed, "later")
        effect = passage.words.index("flooded")
        ranked = ranker.rank(passage, effect, known)
        assert passage.words[ranked[0].event] == "rained"
        for one in ranked:
            assert sum(part for _, part in one.factors) == pytest.approx(one.score)


def test_candidates_may_be_kept_to_other_sections() -> None:
    passage = planted(3, "news")
    ranker = CauseRanker.fit([planted(seed, "news") for seed in range(6)])
    for effect in range(len(passage)):
        ranked = ranker.rank(passage, effect, KnownLinks([]), other_sections_only=True)
        assert sorted(one.event for one in ranked) == candidates_of(
            passage, effect, other_sections_only=True
        )
        assert all(passage.sections[one.event] != passage.sections[effect] for one in ranked)


def test_a_ranker_is_kept_as_plain_floats() -> None:
    ranker = CauseRanker.fit([planted(seed, "news") for seed in range(6)])
    kept = json.loads(json.dumps(ranker.to_dict()))
    assert CauseRanker.from_dict(kept) == ranker
    with pytest.raises(InvalidInputError, match="extra"):
        CauseRanker.from_dict({**kept, "extra": {}})


def test_comparing_adds_deviations_and_a_single_candidate_stays_finite() -> None:
    rows = np.arange(3 * len(PLAIN), dtype=np.float64).reshape(3, -1)
    wide = compared(rows)
    assert wide.shape == (3, len(NAMES))
    assert wide[:, len(PLAIN) :].mean(axis=0) == pytest.approx(np.zeros(len(NAMES) - len(PLAIN)))
    assert np.isfinite(compared(rows[:1])).all()


def test_what_cannot_teach_or_be_asked_is_refused() -> None:
    passage = planted(1, "news")
    with pytest.raises(InvalidInputError, match="cause"):
        CauseRanker.fit([])
    with pytest.raises(InvalidInputError, match="strength"):
        CauseRanker.fit([passage], strength=0.0)
    ranker = CauseRanker.fit([planted(seed, "news") for seed in range(3)])
    with pytest.raises(InvalidInputError, match=r"0\.\.5"):
        ranker.rank(passage, 6, KnownLinks([]))
    columns = {
        "words": passage.words,
        "positions": passage.positions,
        "sections": passage.sections,
        "vectors": passage.vectors,
    }
    with pytest.raises(InvalidInputError, match="link"):
        Passage(**columns, links=((0, 9),))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="positions"):
        Passage(**{**columns, "positions": passage.positions[::-1]})  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="vectors"):
        Passage(**{**columns, "vectors": passage.vectors[:2]})  # type: ignore[arg-type]
