"""A real HTTP server that speaks Ollama's and OpenAI's embedding protocols, well or badly."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import quote

import numpy as np

from cvx.types import Vector
from tests.http_server import Arrivals, listening

OLLAMA = frozenset({"/api/embed", "/api/embeddings", "/api/tags"})
OLD_OLLAMA = frozenset({"/api/embeddings", "/api/tags"})
OPENAI = frozenset({"/v1/embeddings", "/v1/models"})


def vector_of(text: str, dim: int) -> Vector:
    """What the server makes of a text: seeded by it, of some length other than 1."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(dim).astype(np.float32)


def unit_of(text: str, dim: int) -> Vector:
    row = vector_of(text, dim).astype(np.float64)
    return np.asarray(row / np.linalg.norm(row), dtype=np.float32)


@dataclass
class Server:
    """A server and what was asked of it.

    ``modes`` is taken one a request, the last one for ever: "good", "silent" (no answer until the
    test is over), "drip" (a byte now and then), a number (that status), "nan", "zeros", "count"
    (one row too few), "ragged", "garbage", "truncated", "text", "shuffled".
    """

    endpoints: frozenset[str] = OLLAMA
    models: tuple[str, ...] = ("toy",)
    dim: int = 8
    modes: list[Any] = field(default_factory=lambda: ["good"])
    longest: int = 1000
    key: str | None = None
    said: str = "out of order"
    location: str = ""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    arrivals: Arrivals = field(default_factory=Arrivals)
    arrived: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def posts(self) -> list[Any]:
        return [body for path, body in self.requests if body is not None]

    def mode(self) -> Any:
        return self.modes.pop(0) if len(self.modes) > 1 else self.modes[0]

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        if path not in self.endpoints:
            if self.endpoints & OPENAI:
                return 200, {"error": f"Unexpected endpoint or method. (POST {path})"}
            return 404, b"404 page not found"
        if path == "/api/tags":
            return 200, {"models": [{"name": f"{name}:latest"} for name in self.models]}
        if path == "/v1/models":
            return 200, {"object": "list", "data": [{"id": name} for name in self.models]}
        if body["model"].removesuffix(":latest") not in self.models:
            if path.startswith("/api/"):
                said: Any = f'model "{body["model"]}" not found, try pulling it first'
            else:
                said = {"message": f"The model `{body['model']}` does not exist.", "code": 404}
            return 404, {"error": said}
        texts = [body["prompt"]] if "prompt" in body else body["input"]
        if max(map(len, texts)) > self.longest:
            return 400, {"error": "the input length exceeds the context length"}
        return self._embedded(path, texts, body.get("dimensions", self.dim), self.mode())

    def _embedded(self, path: str, texts: list[str], dim: int, mode: Any) -> tuple[int, Any]:
        if isinstance(mode, int):
            return mode, {"error": self.said}
        # Ollama scales the rows of this endpoint to norm 1, and not those of the older one.
        make = unit_of if path == "/api/embed" else vector_of
        rows: list[list[Any]] = [make(text, dim).tolist() for text in texts]
        if mode == "silent":
            self.arrived.set()
            self.over.wait()
        elif mode == "nan":
            rows[-1][0] = float("nan")
        elif mode == "zeros":
            rows[-1] = [0.0] * dim
        elif mode == "count":
            rows.pop()
        elif mode == "ragged":
            rows[-1] = rows[-1][:-1]
        elif mode == "text":
            rows[-1][0] = "1.5"
        elif mode == "garbage":
            return 200, b"<html>welcome</html>"
        if path == "/api/embeddings":
            return 200, {"embedding": rows[0]}
        if path == "/api/embed":
            return 200, {"model": "toy", "embeddings": rows}
        data = [{"object": "embedding", "index": i, "embedding": r} for i, r in enumerate(rows)]
        return 200, {"object": "list", "data": data[::-1] if mode == "shuffled" else data}


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, body: Any) -> None:
            server.requests.append((self.path, body))
            server.headers.append(dict(self.headers))
            server.arrivals.add()
            mode = server.modes[0]
            if server.key is not None and server.key not in self.headers.values():
                given = self.headers.get("Authorization", "").removeprefix("Bearer ")
                forms = [given, quote(given, safe="")]
                status, content = 401, {"error": f"wrong key {forms}, not {server.key}"}
            else:
                status, content = server.answer(self.path, body)
            if server.over.is_set():
                self.close_connection = True
                return
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if server.location:
                self.send_header("Location", server.location)
            self.end_headers()
            if mode == "truncated":
                data = data[: len(data) // 2]
                self.close_connection = True
            if mode == "drip":
                self._drip(data)
            else:
                self.wfile.write(data)

        def _drip(self, data: bytes) -> None:
            try:
                for at in range(len(data)):
                    self.wfile.write(data[at : at + 1])
                    if server.over.wait(0.02):
                        break
            except OSError:
                # The client had enough, which is what the test is about.
                pass
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    return Handler


@contextmanager
def running(server: Server) -> Iterator[Server]:
    with listening(_handler(server), server.over) as server.url:
        yield server
