"""The server as a process of its own: what a host gets by the settings of the README."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client

from cvx.characters import Cast
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory
from tests.cli.command import environment
from tests.mcp.sessions import ask, command, in_process, over_stdio, refused, text_of

LONG = bool(os.environ.get("CVX_NIGHTLY"))


@pytest.mark.requirement("C12")
def test_a_host_stores_recalls_explains_and_learns_from_an_outcome(tmp_path: Path) -> None:
    async def first(client: Client) -> None:
        rain = await ask(client, "memory_add_event", effect="it rained all night")
        flood = await ask(
            client,
            "memory_add_event",
            effect="the cellar flooded because it rained all night",
        )
        assert [one["id"] for one in flood["related"]] == [rain["event"]]
        found = await ask(client, "recall", cue="where is water in the cellar?")
        assert found["memories"][0]["id"] == flood["event"]
        why = await client.call_tool("memory_query", {"query": "why did the cellar flood?"})
        assert text_of(why).startswith("It rained all night; that is probably (")
        for way, outcome in (("push", 0.0), ("turn the key", 1.0), ("push", 0.0)):
            begun = await ask(client, "episode_begin", goal="open the cellar door", task="doors")
            number = begun["episode"]
            await ask(
                client,
                "episode_advise",
                episode=number,
                observation="a locked door",
                actions=["push", "turn the key"],
            )
            await ask(client, "episode_act", episode=number, action=way)
            await ask(client, "episode_end", episode=number, outcome=outcome)

    async def second(client: Client) -> None:
        begun = await ask(client, "episode_begin", goal="open the cellar door", task="doors")
        answer = await client.call_tool(
            "episode_advise", {"episode": begun["episode"], "observation": "a locked door"}
        )
        assert answer.structured_content is not None
        assert [one["action"] for one in answer.structured_content["options"]] == [
            "turn the key",
            "push",
        ]
        assert answer.structured_content["known"]
        assert "Episodes that failed after it was done here: push (2 of 2)" in text_of(answer)
        alike = await ask(client, "check_similar_situations", context="a locked door")
        assert {(one["action"], one["outcome"]) for one in alike["memories"]} == {
            ("push", "failure (0.00)"),
            ("turn the key", "success (1.00)"),
        }

    over_stdio(tmp_path / "store", first)
    over_stdio(tmp_path / "store", second)
    with Memory.open(tmp_path / "store", embedder=LexicalEmbedder()) as memory:
        left = memory.record.unfinished(3)
        assert left is not None
        assert left.kind.startswith("discarded")


def test_four_servers_write_to_one_store_at_once(tmp_path: Path) -> None:
    each = 250 if LONG else 25

    async def writer(number: int) -> list[int]:
        async with Client(command(tmp_path / "store", "--tools", "memory")) as client:
            return [
                (await ask(client, "memory_add_event", effect=f"server {number} wrote {place}"))[
                    "event"
                ]
                for place in range(each)
            ]

    async def all_of_them() -> list[list[int]]:
        return await asyncio.gather(*(writer(number) for number in range(4)))

    with Memory.open(tmp_path / "store", embedder=LexicalEmbedder()):
        pass
    ids = [one for some in asyncio.run(all_of_them()) for one in some]
    assert len({*ids}) == 4 * each
    with Memory.open(tmp_path / "store", embedder=LexicalEmbedder()) as memory:
        texts = {event.id: event.text for event in memory.events()}
        assert len(texts) == 4 * each
        assert {*texts.values()} == {
            f"server {number} wrote {place}" for number in range(4) for place in range(each)
        }
        assert memory.admin.check() == []


def test_two_hundred_calls_at_once_are_all_answered(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        await ask(client, "memory_add_event", effect="the key is under the pot")
        for _ in range(60 if LONG else 1):
            answers = await asyncio.gather(
                *(ask(client, "recall", cue="where is the key?", k=1) for _ in range(200))
            )
            assert {one["memories"][0]["content"] for one in answers} == {
                "the key is under the pot"
            }

    over_stdio(tmp_path / "store", session)


def test_ten_megabytes_are_refused_and_the_next_call_is_served(tmp_path: Path) -> None:
    large = "the ledger of the harbour " * 400_000

    async def session(client: Client) -> None:
        for name, argument in (("memory_add_event", "effect"), ("recall", "cue"), ("why", "event")):
            said = await refused(client, name, **{argument: large})
            assert "at most 100000 characters" in said
            assert len(said) < 2_000
        assert (await ask(client, "memory_add_event", effect="a short one"))["event"] == 1

    over_stdio(tmp_path / "store", session, read_timeout_seconds=300)


def spoken(*messages: dict[str, object]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages)


HELLO: tuple[dict[str, object], ...] = (
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
)


def call(number: int, name: str, **arguments: object) -> dict[str, object]:
    params = {"name": name, "arguments": arguments}
    return {"id": number, "method": "tools/call", "params": params}


def serving_process(store: Path) -> subprocess.Popen[str]:
    """Start a server over stdio."""
    return subprocess.Popen(
        [sys.executable, "-m", "cvx", "mcp", "--store", str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(store),
    )


def test_a_client_that_vanishes_in_the_middle_of_a_write_leaves_a_sound_store(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store"
    writes = [call(n, "memory_add_event", effect=f"line {n}") for n in range(1, 30)]
    begun = call(99, "episode_begin", goal="stay", task="stays")
    serving = serving_process(store)
    assert serving.stdin is not None
    assert serving.stdout is not None
    assert serving.stderr is not None
    serving.stdin.write(spoken(*HELLO, begun, *writes))
    serving.stdin.flush()
    acknowledged: set[int] = set()
    while not acknowledged:
        told = json.loads(serving.stdout.readline())
        if 0 < told["id"] < 99:
            acknowledged.add(told["result"]["structuredContent"]["event"])
    serving.stdout.close()
    serving.stdin.close()
    said = serving.stderr.read()
    serving.stderr.close()
    assert serving.wait() == 0, said
    with Memory.open(store, embedder=LexicalEmbedder()) as memory:
        assert memory.admin.check() == []
        assert acknowledged <= {event.id for event in memory.events()}


def test_what_is_not_the_protocol_is_answered_by_an_error_or_not_at_all(tmp_path: Path) -> None:
    store = tmp_path / "store"
    rubbish = "rubbish\n[1, 2\n" + spoken(*HELLO, {"id": 7, "method": "no/such"}) + "\x00\n"
    good = spoken(call(8, "memory_add_event", effect="after the rubbish"))
    with serving_process(store) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        serving.stdin.write(rubbish + good)
        serving.stdin.flush()
        # It need not answer what was asked just before it is left: wait for both answers.
        answers: dict[int | None, dict[str, object]] = {}
        while not answers.keys() >= {7, 8}:
            told = json.loads(serving.stdout.readline())
            answers[told.get("id")] = told
        _, said = serving.communicate()
    assert serving.returncode == 0, said
    assert "error" in answers[7]
    assert "error" not in answers[8]
    assert "Traceback" not in said


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_episode_that_nobody_ends_is_broken_off_when_the_client_leaves(
    tmp_path: Path, mode: str
) -> None:
    async def leaves(client: Client) -> int:
        begun = await ask(client, "episode_begin", goal="cross the bridge")
        await ask(
            client, "episode_act", episode=begun["episode"], action="go", observation="a bridge"
        )
        return int(begun["episode"])

    async def returns(client: Client) -> str:
        return await refused(client, "episode_end", episode=number, outcome=1.0)

    number = over_stdio(tmp_path / "store", leaves, mode=mode)
    assert "was discarded: begin another one" in over_stdio(tmp_path / "store", returns, mode=mode)


def test_an_episode_of_a_server_that_was_killed_is_taken_up_by_its_number(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "store", embedder=LexicalEmbedder()) as memory:
        killed = memory.episode("cross the bridge")
        killed.act("go", observation="a bridge")

    async def session(client: Client) -> object:
        await ask(client, "episode_act", episode=killed.id, action="jump", observation="a gap")
        return await ask(client, "episode_end", episode=killed.id, outcome=1.0)

    assert over_stdio(tmp_path / "store", session) == {
        "episode": killed.id,
        "steps": 2,
        "ended": True,
    }


def test_a_namespace_is_that_of_the_process(tmp_path: Path) -> None:
    async def store(client: Client) -> None:
        await ask(client, "memory_add_event", effect="Ana is allergic to peanuts")

    async def look(client: Client) -> object:
        assert "no event 1" in await refused(client, "why", event=1)
        assert "no event 1" in await refused(client, "update", event=1, text="nothing")
        assert "no event 1" in await refused(client, "forget", events=[1])
        for name in ("recall", "context", "memory_query"):
            argument = {"query" if name == "memory_query" else "cue": "peanuts"}
            assert "namespace" in await refused(client, name, **argument, namespace="ana")
        return await ask(client, "recall", cue="Which allergies does Ana have?")

    over_stdio(tmp_path / "store", store, "--namespace", "ana")
    for own in ("bob", ""):
        with Memory.open(tmp_path / "store", embedder=LexicalEmbedder()) as memory:
            found = in_process(memory, look, namespace=own)
        assert found["memories"] == []  # type: ignore[index]
        assert found["nearest"] == []  # type: ignore[index]


@pytest.mark.requirement("W9", "W16")
def test_a_character_is_served_while_the_simulation_writes_its_lines(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with Memory.open(store, embedder=LexicalEmbedder(), clock="turns") as memory:
        cast = Cast(memory)
        for name, drink in (("Anna", "tea"), ("Bob", "coffee")):
            cast.seed(
                name,
                description=f"You drink {drink}.",
                archetype="The painter",
                background="You grew up by the sea.",
                communication="Short sentences.",
                decision_style="By the list.",
                traits=["tidy"],
                skills=["painting"],
                values=["punctuality"],
            )

        async def session(client: Client) -> None:
            mine = await ask(client, "query_self")
            assert "You drink tea." in mine["memories"][0]["content"]
            for turn, dish in enumerate(("pasta", "risotto", "gnocchi"), 1):
                cast.on_turn("Bob", f"Let us eat {dish}.", turn)
                told = await ask(client, "query_memory", query=f"who wants to eat {dish}?")
                first = told["memories"][0]
                assert (first["content"], first["turn"]) == (
                    f"Bob said: Let us eat {dish}.",
                    str(turn),
                )
                await ask(client, "form_memory", content=f"Bob likes {dish}")
                assert f"Bob likes {dish}" in {
                    one["content"] for one in cast["Anna"].recall_facts(dish)["memories"]
                }

        over_stdio(store, session, "--tools", "character=Anna,experience")
