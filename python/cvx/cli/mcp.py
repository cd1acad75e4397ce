"""The command mcp: a server for assistants, settings for their hosts, a look at its tools."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvx.cli.console import (
    EmbedderSpec,
    Json,
    Namespace,
    Store,
    emit,
    folder_of,
    line,
    note,
    opened,
)
from cvx.errors import InvalidInputError
from cvx.extras import needs

if TYPE_CHECKING:
    from mcp.types import CallToolResult, Tool

Tools = Annotated[
    str,
    typer.Option(
        "--tools",
        help="Which, with commas between: memory, episodes, experience, character=NAME, or names "
        "of tools; -NAME takes one away. Default all.",
    ),
]
Dotted = Annotated[
    bool,
    typer.Option("--dotted-names", help="memory.add_event and memory.query, with their dots."),
]
app = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    help="Serve a memory to an assistant over the Model Context Protocol.",
)


@app.callback()
def mcp(
    context: typer.Context,
    store: Store = None,
    namespace: Namespace = "",
    tools: Tools = "",
    dotted_names: Dotted = False,
    http: Annotated[
        str | None, typer.Option(help="Serve http://HOST:PORT/mcp; without it, stdio.")
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(help="With --http: a file, TOKEN NAMESPACE a line. Or CVX_MCP_TOKEN: one."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="With --http: a host that clients may name.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="With --http: an origin that pages may come from.")
    ] = None,
    embedder: EmbedderSpec = None,
) -> None:
    """Serve a memory to an assistant: over stdio to the host that starts it, or over HTTP.

    For example:
      cvx mcp --store ~/memory
      cvx mcp --store ~/memory --tools memory,episodes
      cvx mcp --store ~/memory --http 127.0.0.1:8765
      cvx mcp install claude-desktop --store ~/memory
      cvx mcp inspect --store ~/memory

    A client reads and writes one namespace, that of --namespace or of its token, and cannot name
    another. The memory may be open elsewhere at the same time, in other servers too.
    """
    if context.invoked_subcommand is not None:
        return
    from cvx.mcp.server import serve_http, serve_stdio

    namespace = _whose(namespace, tools)
    asked: dict[str, Any] = {
        "tools": tools,
        "dotted": dotted_names,
        "erase_command": f"cvx forget --store {quote(str(folder_of(store)))} --erase",
    }
    if http is None:
        if tokens or allow_host or allow_origin:
            raise typer.BadParameter("--tokens, --allow-host and --allow-origin go with --http")
        with opened(store, embedder, create=True) as memory:
            serve_stdio(memory, namespace, **asked)
        return
    host, port = _address(http)
    known = _known_tokens(tokens, namespace)
    with opened(store, embedder, create=True) as memory:
        asked |= {"hosts": allow_host or (), "origins": allow_origin or ()}
        told = "serving http://{}/mcp".format
        serve_http(memory, known, host, port, ready=lambda at: note(told(at)), **asked)


@app.command()
def install(
    host: Annotated[str, typer.Argument(help="Which; without it, all are printed.")] = "",
    name: Annotated[str, typer.Option(help="What the host calls it.")] = "cvx",
    write: Annotated[
        bool, typer.Option("--write", help="Write it, with a copy of what was there.")
    ] = False,
    store: Store = None,
    namespace: Namespace = "",
    tools: Tools = "",
) -> None:
    """Print what goes into a host's settings, or write it there.

    For example:
      cvx mcp install claude-code --store ~/memory
      cvx mcp install claude-desktop --store ~/memory --write
    """
    from cvx.mcp.host_settings import HOSTS, entry, snippet
    from cvx.mcp.host_settings import write as write_settings

    if host and host not in HOSTS:
        raise InvalidInputError(f"host is {host!r}: give one of {', '.join(HOSTS)}")
    if write and not host:
        raise typer.BadParameter(f"--write needs a host: one of {', '.join(HOSTS)}")
    server = entry(folder_of(store), namespace, tools)
    if write:
        written = write_settings(HOSTS[host], name, server)
        if not written:
            line(f"{HOSTS[host].path()} has it already")
            return
        path, *copies = written
        line(f"wrote {path}" + "".join(f"; what was there is in {copy}" for copy in copies))
        return
    for one in [host] if host else HOSTS:
        line(f"{one}: {HOSTS[one].path()}", dim=True)
        typer.echo(snippet(HOSTS[one], name, server))


@app.command()
def inspect(
    tool: Annotated[str, typer.Argument(help="The tool to call; without it, all are listed.")] = "",
    arguments: Annotated[str, typer.Argument(help="Its arguments, a JSON object.")] = "{}",
    store: Store = None,
    namespace: Namespace = "",
    tools: Tools = "",
    dotted_names: Dotted = False,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """List the tools of a server with their arguments, or call one, as a client would.

    For example:
      cvx mcp inspect --store ~/memory
      cvx mcp inspect --store ~/memory recall '{"cue": "where is the key?"}'
    """
    import asyncio
    from json import loads

    from cvx.mcp.client_sessions import Clients
    from cvx.mcp.server import server

    with needs("mcp"):
        from mcp import Client
    namespace = _whose(namespace, tools)
    try:
        given = loads(arguments)
    except ValueError as error:
        raise InvalidInputError(f"the arguments are no JSON ({error}): give an object") from error
    if not isinstance(given, dict):
        raise InvalidInputError(f"the arguments are {arguments!r:.60}: give a JSON object")

    async def ask() -> tuple[list[Tool], CallToolResult | None]:
        clients = Clients(memory, {"": namespace})
        built = server(clients, tools=tools, dotted=dotted_names)
        async with Client(built) as client:
            if tool:
                return [], await client.call_tool(tool, given)
            return (await client.list_tools()).tools, None

    folder = folder_of(store)
    # A look never fills a folder that holds something else.
    fresh = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    with opened(store, embedder, create=bool(tool) and fresh) as memory:
        listed, answer = asyncio.run(ask())
    if answer is None:
        if json:
            known = [
                {
                    "name": one.name,
                    "description": one.description or "",
                    "arguments": one.input_schema,
                }
                for one in listed
            ]
            emit({"tools": known})
            return
        for one in listed:
            told = " ".join((one.description or "").split())
            line(f"{one.name}: {told.rstrip('.')}. {_arguments(one)}")
        return
    if json:
        emit({"error": bool(answer.is_error), "answer": answer.structured_content})
    else:
        for part in answer.content:
            for row in getattr(part, "text", "").split("\n"):
                line(row)
    if answer.is_error:
        raise typer.Exit(1)


def _arguments(tool: Tool) -> str:
    """Return the arguments of a tool in words: those it needs, then the others."""
    needed = tool.input_schema.get("required", [])
    others = [name for name in tool.input_schema.get("properties", {}) if name not in needed]
    told = ", or also ".join(", ".join(names) for names in (needed, others) if names)
    return f"Arguments: {told or 'none'}."


def _whose(namespace: str, tools: str) -> str:
    """Return the namespace that is served: a character's own, where one is named."""
    from cvx.mcp.tools import chosen

    character = chosen(tools)[1]
    if character is None:
        return namespace
    if namespace not in ("", character):
        raise InvalidInputError(
            f"--namespace is {namespace!r}, and the memory of {character!r} is in its own: leave "
            "--namespace out"
        )
    return character


def _address(http: str) -> tuple[str, int]:
    host, _, port = http.rpartition(":")
    if not host or not port.isdigit() or not int(port) < 65536:
        raise InvalidInputError(f"--http is {http!r}: give HOST:PORT, such as 127.0.0.1:8765")
    return host.strip("[]"), int(port)


def _known_tokens(path: Path | None, namespace: str) -> dict[str, str]:
    """Return the namespace of each token: of a file, of the environment, or of one made now."""
    from secrets import token_urlsafe

    from cvx.mcp.client_sessions import check_token, digest, tokens_of

    if path is not None:
        if namespace:
            raise typer.BadParameter(
                "--tokens names the namespaces: leave out --namespace and character=NAME"
            )
        return tokens_of(path)
    token = os.environ.get("CVX_MCP_TOKEN", "")
    if token:
        check_token("CVX_MCP_TOKEN", token)
    else:
        token = token_urlsafe(32)
        note(f"the token of this run (set CVX_MCP_TOKEN for one that stays): {token}")
    return {digest(token): namespace}
