"""Logging and spans say what a memory did, and nothing of what it holds unless asked for."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from cvx import LexicalEmbedder, Memory, tracing
from cvx.errors import CvxError, InvalidInputError

SECRET = "the spare key is under the green pot"


def number(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What is traced, in the order of the ends."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.start(provider)
    yield exporter
    tracing.stop()
    provider.shutdown()


def a_round(memory: Memory) -> None:
    """Every verb that is traced."""
    memory.add(SECRET)
    memory.add_many(["a mug", "a cup"])
    memory.recall(SECRET, 2)
    memory.context(SECRET)
    with memory.episode("find the key") as episode:
        episode.advise(SECRET, ["look", "wait"])
        episode.act("look")
        episode.end(1.0)


def told(span: ReadableSpan) -> str:
    """All that a span carries beside ids and times."""
    return repr((span.name, dict(span.attributes or {}), span.events, span.status.description))


def test_each_verb_makes_a_span_with_counts_and_no_text(spans: InMemorySpanExporter) -> None:
    a_round(Memory(embedder=LexicalEmbedder(64)))
    found = spans.get_finished_spans()
    assert {span.name for span in found} == {f"cvx.{verb}" for verb in tracing.VERBS}
    assert not [one for one in map(told, found) if "key" in one or "look" in one]
    of = {span.name: dict(span.attributes or {}) for span in found}
    assert of["cvx.add"] == {"cvx.event": 1}
    assert of["cvx.add_many"] == {"cvx.count": 2}
    assert of["cvx.recall"].keys() == {"cvx.count", "cvx.decision"}
    assert of["cvx.context"].keys() == {"cvx.count", "cvx.decision", "cvx.used_tokens"}
    assert of["cvx.advise"]["cvx.count"] == 2
    assert of["cvx.end"] == {}


def test_what_one_call_does_hangs_together(spans: InMemorySpanExporter) -> None:
    memory = Memory(embedder=LexicalEmbedder(64))
    for verb in ("add", "recall"):
        getattr(memory, verb)(SECRET)
        child, parent = spans.get_finished_spans()
        assert (child.name, parent.name) == ("cvx.embed", f"cvx.{verb}")
        assert child.parent is not None
        assert child.parent.span_id == number(parent)
        spans.clear()


def test_an_awaited_call_is_the_child_of_the_span_that_awaits_it(
    spans: InMemorySpanExporter,
) -> None:
    memory = Memory(embedder=LexicalEmbedder(64))
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))

    async def asked() -> None:
        with provider.get_tracer("agent").start_as_current_span("turn"):
            await memory.aio.recall("anything")

    asyncio.run(asked())
    *_, recall, turn = spans.get_finished_spans()
    assert recall.parent is not None
    assert recall.parent.span_id == number(turn)


def test_texts_are_told_where_asked_for_and_no_longer_than_a_bound() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.start(provider, texts=True)
    memory = Memory(embedder=LexicalEmbedder(64))
    memory.add(text=SECRET)
    memory.recall("pot " * 1000)
    with pytest.raises(TypeError, match="colour"):
        memory.add("a mug", colour="red")  # type: ignore[call-arg]
    tracing.stop()
    memory.recall("unseen")
    by_name = {span.name: dict(span.attributes or {}) for span in exporter.get_finished_spans()}
    texts = [dict(span.attributes or {}).get("cvx.text") for span in exporter.get_finished_spans()]
    assert SECRET in texts
    assert by_name["cvx.add"]["error.type"] == "TypeError"
    assert by_name["cvx.recall"]["cvx.text"] == ("pot " * 1000)[:1000]


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no words")


def test_an_argument_that_cannot_be_written_out_hides_no_error() -> None:
    tracing.start(TracerProvider(), texts=True)
    try:
        with pytest.raises(InvalidInputError, match="text"):
            Memory(embedder=LexicalEmbedder(64)).add(text=Unspeakable())  # type: ignore[arg-type]
    finally:
        tracing.stop()


def test_a_call_that_fails_is_marked_and_its_message_kept_out(spans: InMemorySpanExporter) -> None:
    memory = Memory(embedder=LexicalEmbedder(64))
    with pytest.raises(CvxError, match="secret"):
        memory.recall(np.array(["secret"]))
    (span,) = spans.get_finished_spans()
    assert span.status.status_code == StatusCode.ERROR
    assert (span.attributes or {})["error.type"]
    assert "secret" not in told(span)


def test_the_logger_says_how_long_and_how_much_and_no_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = Memory(embedder=LexicalEmbedder(64))
    a_round(memory)
    assert caplog.records == []
    with caplog.at_level(logging.DEBUG, logger="cvx"):
        a_round(memory)
        with pytest.raises(CvxError):
            memory.recall(SECRET, 0)
    said = [record.getMessage() for record in caplog.records]
    assert {one.split(":")[0] for one in said} == {*tracing.VERBS}
    assert "InvalidInputError" in said[-1]
    assert not [one for one in said if "key" in one or "look" in one]


def test_what_is_no_provider_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"provider is 'x': give an opentelemetry"):
        tracing.start("x")  # type: ignore[arg-type]


def test_nothing_is_imported_for_it_where_it_is_not_used() -> None:
    code = """
import sys, cvx
memory = cvx.Memory(embedder="lexical")
memory.add("a mug")
memory.recall("mug")
print([name for name in sys.modules if name.partition(".")[0] in ("logging", "opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
