"""A real HTTP server that speaks OpenAI's chat protocol, well or badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.http_server import Arrivals, listening

Reply = tuple[int, Any]
SILENCE, HANG_UP = 0, -1


@dataclass
class Server:
    """A chat server that answers the i-th request with the i-th reply, the last one for ever.

    A reply is (status, body); a string body becomes a well-formed completion. The status `SILENCE`
    stands for no answer until the test is over, `HANG_UP` for a connection that is closed instead.
    """

    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    arrivals: Arrivals = field(default_factory=Arrivals)
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Reply:
        if path != "/v1/chat/completions":
            return 404, {"error": f"no such path {path}"}
        self.requests.append(json.loads(body))
        self.headers.append(headers)
        self.arrivals.add()
        status, content = self.replies[min(len(self.requests), len(self.replies)) - 1]
        if status == SILENCE:
            self.over.wait()
        if isinstance(content, str):
            content = {
                "object": "chat.completion",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": content}}],
                "usage": {"prompt_tokens": 50, "completion_tokens": 4},
            }
        return status, content


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, content = server.answer(self.path, dict(self.headers), body)
            if status == HANG_UP or server.over.is_set():
                self.close_connection = True
                return
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    return Handler


@contextmanager
def serving() -> Iterator[Callable[..., Server]]:
    """Give a function that starts servers, each with its replies; all end with the context."""
    with ExitStack() as started:

        def start(*replies: Reply) -> Server:
            server = Server(list(replies))
            address = started.enter_context(listening(_handler(server), server.over))
            server.url = f"{address}/v1"
            return server

        yield start
