"""Sessions with the server: in this process, with one of its own over stdio, over HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult

from cvx.mcp.client_sessions import Clients
from cvx.mcp.server import server
from cvx.memory import Memory
from tests.cli.command import environment

T = TypeVar("T")
Session = Callable[[Client], Awaitable[T]]


def command(store: Path, *options: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-W", "error", "-m", "cvx", "mcp", "--store", str(store), *options],
        env=environment(store),
    )


def over_stdio(store: Path, session: Session[T], *options: str, **details: Any) -> T:
    """Run a session with a server that is a process of its own."""

    async def run() -> T:
        async with Client(command(store, *options), **details) as client:
            return await session(client)

    return asyncio.run(run())


def in_process(
    memory: Memory, session: Session[T], *, namespace: str = "", options: Any = None, **details: Any
) -> T:
    """Run a session with a server in this process."""

    async def run() -> T:
        built = server(Clients(memory, {"": namespace}), **(options or {}))
        async with Client(built, **details) as client:
            return await session(client)

    return asyncio.run(run())


@asynccontextmanager
async def over_http(url: str, token: str, **details: Any) -> AsyncIterator[Client]:
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, **details) as client:
            yield client


async def ask(client: Client, name: str, /, **arguments: Any) -> Any:
    """Call a tool and return what it answers, in structure."""
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, text_of(answer)
    return answer.structured_content


async def refused(client: Client, name: str, /, **arguments: Any) -> str:
    """Call a tool and return why it refuses."""
    answer = await client.call_tool(name, arguments)
    assert answer.is_error, answer.structured_content
    return text_of(answer)


def text_of(answer: CallToolResult) -> str:
    return "\n".join(part.text for part in answer.content if part.type == "text")


class User:
    """Who is asked by the host, and says the same each time."""

    def __init__(self, action: str, erase: bool = True) -> None:
        self.action, self.erase = action, erase
        self.asked: list[str] = []

    async def __call__(self, _: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        content = {"erase": self.erase} if self.action == "accept" else None
        return ElicitResult(action=self.action, content=content)  # type: ignore[arg-type]
