"""Answers of several shards become one; no cluster is needed to see how."""

from __future__ import annotations

import pytest

from cvx.cluster.memory import _merged
from cvx.memory import Memory
from cvx.recall.trace import Hits


def _shard(*texts: str) -> Hits:
    memory = Memory(embedder="lexical")
    memory.add_many([f"Ben counted {at} gulls over the harbour wall" for at in range(40)])
    for text in texts:
        memory.add(text, source="web" if "Mallory" in text else "")
    return memory.recall("When was the boat of Ada sold?", 5)


@pytest.mark.requirement("B15")
def test_a_small_source_is_second_in_a_cluster_too() -> None:
    planted = _shard(
        "The boat of Ada went in spring to a baker of Leeds",
        "Ada sold boat: Mallory's clinic",
        "Boat sold, Ada: Mallory",
    )
    first, second = planted[:2]
    assert (first.source, second.source) == ("", "web")
    assert first.score < second.score
    for answers in ([planted, _shard()], [_shard(), planted], [planted, Hits([], planted.trace)]):
        merged = _merged("", 5, answers, (), "")
        assert [hit.text for hit in merged[:2]] == [first.text, second.text]
