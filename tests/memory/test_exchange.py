"""Frames and stories go on to Arrow and networkx, and Arrow comes back."""

from __future__ import annotations

import networkx as nx  # type: ignore[import-untyped]
import polars as pl

from cvx.memory import Memory


class Arrow:
    """A table of some other library, of which only the stream of Arrow is known."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def test_events_go_to_arrow_and_come_back() -> None:
    memory = Memory(embedder="lexical")
    memory.add_many([{"text": "It rained.", "kind": "note"}, {"text": "It snowed."}])
    table = Arrow(memory.frames.events().select("text", "kind", "timestamp"))
    other = Memory(embedder="lexical")
    assert other.add_many(table).tolist() == [1, 2]
    assert other.frames.events()["timestamp"].equals(memory.frames.events()["timestamp"])
    assert [one.kind for one in other.events()] == ["note", "event"]


def test_a_story_goes_to_networkx() -> None:
    memory = Memory(embedder="lexical")
    rain, flood, mould = (memory.add(text) for text in ("Rain fell", "A flood", "Mould grew"))
    memory.link(rain, flood, why="the drain is small")
    memory.link(flood, mould, weight=0.8)
    graph = memory.why(mould).to_networkx()
    assert nx.shortest_path(graph, rain.id, mould.id) == [1, 2, 3]
    assert graph.nodes[flood.id]["text"] == "A flood"
    assert graph.edges[rain.id, flood.id]["why"] == "the drain is small"
    assert graph.edges[flood.id, mould.id]["weight"] == 0.8
    assert nx.is_isomorphic(memory.consequences(rain).to_networkx(), graph)
