"""Async verbs: nothing blocks the event loop, everything is durable."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cvx.embed import LexicalEmbedder
from cvx.embed.chunks import chunk_text
from cvx.errors import InvalidInputError
from cvx.memory import Memory
from cvx.types import Event, Vector
from tests.store.processes import embedder


class Gated(LexicalEmbedder):
    """Embeds only after the event loop has gone on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: asyncio.Event) -> None:
        super().__init__(dim=16)
        self._loop, self._turns = loop, turns

    def embed(self, texts: Sequence[str]) -> Vector:
        """Wait for the loop, which would never come if it were blocked."""
        asyncio.run_coroutine_threadsafe(self._turns.wait(), self._loop).result(timeout=300)
        return super().embed(texts)


@pytest.mark.requirement("W24")
def test_the_event_loop_goes_on_while_something_is_stored() -> None:
    async def main() -> list[Event]:
        turns = asyncio.Event()
        memory = Memory(embedder=Gated(asyncio.get_running_loop(), turns))
        waiting = [asyncio.ensure_future(memory.aio.add(f"note {n}")) for n in range(3)]
        await asyncio.sleep(0)
        turns.set()
        found = await asyncio.gather(*waiting)
        assert [hit.event.text for hit in await memory.aio.recall("note 1", 1) if hit.event]
        return found

    assert sorted(event.id for event in asyncio.run(main())) == [1, 2, 3]


@pytest.mark.requirement("W24")
def test_what_was_awaited_is_durable_and_batches_are_whole_or_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        memory = Memory.open(tmp_path / "m", embedder=embedder())
        batches = [
            memory.aio.add_many([Event(timestamp=n, text=f"batch {b} note {n}") for n in range(5)])
            for b in range(4)
        ]
        ids = [event for batch in await asyncio.gather(*batches) for event in batch]
        assert sorted(ids) == list(range(1, 21))
        with pytest.raises(InvalidInputError, match="event 1"):
            await memory.aio.add_many(
                [
                    Event(timestamp=0, text="good"),
                    Event(timestamp=0, text="bad", reward=7.0),
                ]
            )
        assert (
            len(
                await memory.aio.add_many(
                    Event(timestamp=0, text=one) for one in ("One.", "Two.", "Three.")
                )
            )
            == 3
        )
        # Not closed: what was acknowledged must be there all the same.

    asyncio.run(main())
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        assert len(memory) == 23
        assert memory.admin.check() == []


@pytest.mark.requirement("W14", "W24")
def test_every_piece_of_a_long_text_is_found_alone_and_has_all_the_metadata() -> None:
    with Memory(embedder=embedder()) as memory:
        pieces = chunk_text(
            "She grew up by the sea. Her father built boats. She never learned to swim!", 30
        )
        about = {"category": "background"}
        ids = memory.add_many(
            Event(
                entity_id=0, timestamp=0, text=one, namespace="ana", metadata=about, tags=("self",)
            )
            for one in pieces
        )
        assert len(ids) == 3
        for event in map(memory.get, ids):
            assert (event.metadata, event.tags) == ({"category": "background"}, ("self",))
        hits = memory.recall("built boats", k=1, namespace="ana")
        assert [hit.event.text for hit in hits if hit.event] == ["Her father built boats."]
        assert chunk_text("   ") == []


@pytest.mark.requirement("W24")
def test_an_episode_whose_beginning_is_cancelled_is_discarded() -> None:
    memory = Memory(embedder=LexicalEmbedder())
    open_one = memory.episode("find the hat")

    async def begin(**options: Any) -> None:
        async with memory.aio.episode(**options):
            raise AssertionError("it was cancelled before")

    async def main(**options: Any) -> None:
        workers = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(workers)
        # Whoever writes waits for the end of this block.
        with memory.admin.transaction():
            task = asyncio.ensure_future(begin(**options))
            await asyncio.sleep(0)
            while not workers._work_queue.empty():
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main(goal="find the key"))
    asyncio.run(main(id=open_one.id))
    kinds = {row["goal"]: row["kind"] for row in memory.frames.episodes().to_dicts()}
    assert kinds == {"find the hat": "open experience", "find the key": "discarded experience"}
