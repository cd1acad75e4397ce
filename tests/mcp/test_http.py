"""The server over HTTP, on loopback: tokens and their namespaces, hosts, origins, large bodies."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import FileError, InvalidInputError
from cvx.mcp import server as serving
from cvx.mcp.client_sessions import Clients, digest, tokens_of
from cvx.mcp.server import http_app, serve_http
from cvx.memory import Memory
from tests.cli.command import environment, process
from tests.mcp.sessions import ask, over_http, refused

ANA, BOB = "token-of-ana-0123456789", "token-of-bob-0123456789"


@contextmanager
def served(memory: Memory, **options: object) -> Iterator[str]:
    """Serve Ana and Bob in a thread; yield HOST:PORT."""
    import socket

    import uvicorn

    tokens = {digest(ANA): "ana", digest(BOB): "bob"}
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listening.getsockname()[1]}"
    app = http_app(memory, tokens, address, **options)  # type: ignore[arg-type]
    running = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield address
    finally:
        running.should_exit = True
        thread.join()
        listening.close()


def posted(address: str, body: str = "{}", method: str = "POST", **headers: str) -> tuple[int, str]:
    """Send one request without the SDK, and return the status and the body of the answer."""
    connection = http.client.HTTPConnection(address, timeout=300)
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    connection.request(method, "/mcp", body, sent)
    answer = connection.getresponse()
    told = answer.read().decode()
    connection.close()
    return answer.status, told


HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
)


def test_who_brings_no_token_or_a_wrong_host_or_origin_is_refused() -> None:
    with served(Memory(embedder=LexicalEmbedder()), hosts=["memory.example:*"]) as address:
        own = f"Bearer {ANA}"
        assert posted(address, HELLO, Authorization=own)[0] == 200
        assert posted(address, HELLO, Authorization=own, Host="memory.example:80")[0] == 200
        assert posted(address, HELLO, Authorization=own, Origin="http://localhost:3000")[0] == 200
        assert posted(address, HELLO)[0] == 401
        assert {posted(address, method=one)[0] for one in ("GET", "DELETE", "PUT")} <= {401, 405}
        for wrong in (f"Bearer {ANA}x", "Bearer ", f"Basic {ANA}", f"Bearer {digest(ANA)}"):
            assert posted(address, HELLO, Authorization=wrong)[0] == 401
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example:80"):
            assert posted(address, HELLO, Authorization=own, Host=host)[0] == 421
        for origin in ("http://evil.example", "https://localhost.evil.example", "null"):
            assert posted(address, HELLO, Authorization=own, Origin=origin)[0] == 403
        assert posted(address, "{", Authorization=own)[0] == 400
        large = '{"x": "' + "y" * 10_000_000 + '"}'
        assert posted(address, large, Authorization=own)[0] == 413


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_each_token_reads_and_writes_its_own_namespace_and_no_other(mode: str) -> None:
    memory = Memory(embedder=LexicalEmbedder())

    async def session(url: str) -> None:
        async with over_http(url, ANA, mode=mode) as ana, over_http(url, BOB, mode=mode) as bob:
            kept = await ask(ana, "memory_add_event", effect="Ana is allergic to peanuts")
            begun = await ask(ana, "episode_begin", goal="a walk")
            await asyncio.gather(
                *(ask(bob, "memory_add_event", effect=f"Bob saw {n} gulls") for n in range(5)),
                *(ask(ana, "memory_add_event", effect=f"Ana saw {n} gulls") for n in range(5)),
            )
            assert (await ask(bob, "recall", cue="Ana peanuts allergic"))["memories"] == []
            assert "no event" in await refused(bob, "why", event=kept["event"])
            assert "no episode" in await refused(bob, "episode_end", episode=begun["episode"])
            assert "namespace" in await refused(bob, "recall", cue="peanuts", namespace="ana")
            gulls = (await ask(bob, "recall", cue="gulls", k=20))["memories"]
            assert {one["content"][:3] for one in gulls} == {"Bob"}
            assert len(gulls) == 5

    with served(memory) as address:
        asyncio.run(session(f"http://{address}/mcp"))
    assert {event.namespace for event in memory.events(namespace="ana")} == {"ana"}
    assert len(memory.events(namespace="ana")) == 6


def test_a_session_serves_only_the_token_that_opened_it() -> None:
    with served(Memory(embedder=LexicalEmbedder())) as address:
        connection = http.client.HTTPConnection(address, timeout=300)
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {ANA}",
        }
        connection.request("POST", "/mcp", HELLO, sent)
        answer = connection.getresponse()
        answer.read()
        opened = answer.headers["mcp-session-id"]
        connection.close()
        listing = '{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}'
        for token, wanted in ((ANA, 200), (BOB, 404)):
            status, _ = posted(
                address, listing, Authorization=f"Bearer {token}", mcp_session_id=opened
            )
            assert status == wanted


def test_an_episode_of_a_client_that_does_not_come_back_is_broken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    clients = Clients(memory, {"": "ana"})
    left = clients[""].begin("a walk", None)
    clients.leave(idle_s=3600)
    assert not left.ended
    monkeypatch.setattr(serving, "IDLE_S", 0.0)
    monkeypatch.setattr(serving, "_CHECK_S", 0.001)

    async def session(url: str) -> None:
        async with over_http(url, ANA) as client:
            begun = await ask(client, "episode_begin", goal="a walk")
            said = ""
            while "was discarded" not in said:
                answer = await client.call_tool(
                    "episode_advise", {"episode": begun["episode"], "observation": "a gate"}
                )
                said = str(answer.content)

    with served(memory) as address:
        asyncio.run(session(f"http://{address}/mcp"))
    clients.leave()
    assert left.ended


def test_episodes_of_clients_are_broken_off_when_the_server_stops() -> None:
    memory = Memory(embedder=LexicalEmbedder())

    async def session(url: str) -> int:
        async with over_http(url, ANA) as client:
            return int((await ask(client, "episode_begin", goal="a walk"))["episode"])

    with served(memory) as address:
        number = asyncio.run(session(f"http://{address}/mcp"))
    found = memory.record.unfinished(number)
    assert found is not None
    assert "discarded" in found.kind


def test_tokens_come_from_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# of the office\n{ANA} ana\n\n{BOB}\n")
    path.chmod(0o600)
    assert tokens_of(path) == {digest(ANA): "ana", digest(BOB): ""}
    if os.name == "posix":
        path.chmod(0o640)
        with pytest.raises(InvalidInputError, match="chmod 600"):
            tokens_of(path)
        path.chmod(0o600)
    for text, said in (
        ("short ana\n", "at least 16"),
        (f"{ANA} ana\n{ANA} bob\n", "twice"),
        ("# nothing\n", "no token"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=said) as raised:
            tokens_of(path)
        assert ANA not in str(raised.value)
    with pytest.raises(FileError, match="cannot be read"):
        tokens_of(tmp_path / "missing")


def test_listening_to_other_machines_needs_the_name_they_use(tmp_path: Path) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    with pytest.raises(InvalidInputError, match="--allow-host"):
        serve_http(memory, {digest(ANA): ""}, "0.0.0.0", 0, ready=print)
    for http_option in ("8765", "127.0.0.1:", "127.0.0.1:70000"):
        done = process(tmp_path / "store", "mcp", "--http", http_option)
        assert (done.code, "HOST:PORT" in done.err) == (2, True)


def test_the_command_serves_with_a_token_made_for_the_run(tmp_path: Path) -> None:
    store = tmp_path / "store"
    serving_process = subprocess.Popen(
        [sys.executable, "-m", "cvx", "mcp", "--store", str(store), "--http", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(store),
    )
    assert serving_process.stderr is not None
    token = url = ""
    for line in serving_process.stderr:
        if "the token of this run" in line:
            token = line.rpartition(": ")[2].strip()
        if "serving http" in line:
            url = line.split("serving ")[1].strip()
            break

    async def session() -> None:
        async with over_http(url, token) as client:
            await ask(client, "memory_add_event", effect="it rained")
            found = await ask(client, "recall", cue="did it rain?")
            assert found["memories"][0]["content"] == "it rained"

    asyncio.run(session())
    serving_process.send_signal(signal.SIGTERM)
    serving_process.stderr.read()
    serving_process.stderr.close()
    serving_process.wait()
    with Memory.open(store, embedder=LexicalEmbedder()) as memory:
        assert [event.text for event in memory.events()] == ["it rained"]
