"""A memory of statements that stand alone is ranked by what they mean, then by their words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from cvx.recall.ranking_signals import DEFAULT_WEIGHTS, STATEMENT_WEIGHTS
from cvx.types import Vector

FACTS = (
    "Jonas lives in Graz", "Jonas teaches chemistry", "Amelie met Jonas in the city of Linz",
    "Jonas cannot digest milk", "Jonas plays chess on Fridays", "The bicycle is in the cellar",
)  # fmt: skip
MEANING = {
    "home": "live", "lives": "live", "based": "live", "city": "town", "graz": "live",
    "profession": "job", "teaches": "job", "chemistry": "job",
}  # fmt: skip


class Meaning:
    """Words that mean the same have one vector; an embedder of one's own."""

    def info(self) -> Mapping[str, Any]:
        return {"id": "meaning", "dim": 64, "semantic": True}

    def embed(self, texts: Sequence[str]) -> Vector:
        rows = [np.full(64, 1e-3)]
        for text in texts:
            words = [MEANING.get(word, word) for word in re.findall(r"\w+", text.lower())]
            drawn = [np.random.default_rng(crc32(word.encode())).normal(size=64) for word in words]
            rows.append(np.sum([rows[0], *drawn], axis=0))
        return np.array(rows[1:], dtype=np.float32)


def remembered(embedder: Any = None, **told: Any) -> Memory:
    memory = Memory(embedder=embedder or Meaning())
    memory.add_many({"text": text, **told} for text in FACTS)
    return memory


def weighed(memory: Memory) -> set[str]:
    hits = memory.recall("Which city is he based in?", floor=False)
    return {factor.name for hit in hits for factor in hit.factors}


def test_what_a_statement_means_comes_before_a_word_that_it_shares() -> None:
    memory = remembered()
    assert not weighed(memory) & (set(DEFAULT_WEIGHTS) - set(STATEMENT_WEIGHTS))
    # "city" stands in another statement; the words decide where nothing is alike in meaning.
    assert memory.recall("Where is he based, in what city?", floor=False)[0].text == FACTS[0]
    assert memory.recall("bicycle", floor=False)[0].text == FACTS[5]


@pytest.mark.parametrize(
    "told",
    [{"metadata": {"speaker": "Ann"}}, {"embedder": LexicalEmbedder()}],
    ids=["somebody said it", "an embedder of spelling"],
)
def test_what_was_said_and_what_is_compared_by_spelling_is_not(told: dict[str, Any]) -> None:
    assert "session_best" in weighed(remembered(**told))


def test_texts_that_ask_are_turns_of_a_conversation() -> None:
    memory = remembered()
    memory.add("The plan is at https://wiki.example/?page=3")
    assert "session_best" not in weighed(memory)
    memory.add("Where is the bicycle?")
    assert "session_best" in weighed(memory)
    memory.add_many(f"The part {number} is in the cellar." for number in range(40))
    assert "session_best" not in weighed(memory)


def test_steps_of_episodes_are_no_statements() -> None:
    memory = remembered()
    for number in range(7):
        with memory.episode("tidy up") as episode:
            episode.act("walk", observation=f"Room {number} of the house.")
            episode.end(1.0)
    assert "session_best" in weighed(memory)
