"""What the tests' HTTP servers share: a thread, a free port, a count of what came, an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Arrivals:
    """Counts requests. A client that gave up has not waited until they were read: a test does."""

    def __init__(self) -> None:
        self._count = 0
        self._more = threading.Condition()

    def add(self) -> None:
        with self._more:
            self._count += 1
            self._more.notify_all()

    def at_least(self, number: int) -> int:
        """Wait until so many have come, and give their number."""
        with self._more:
            self._more.wait_for(lambda: self._count >= number, timeout=300)
            return self._count


class _Http(ThreadingHTTPServer):
    """Hangs up on its clients at the end: one that keeps its connection must not hold it up."""

    daemon_threads = False

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._open: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.append(request)
        super().process_request(request, client_address)

    def hang_up(self) -> None:
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler], over: threading.Event) -> Iterator[str]:
    """Serve on a free port and give the address; ``over`` is set for what still waits."""
    http = _Http(handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        over.set()
        http.shutdown()
        thread.join()
        http.hang_up()
        http.server_close()


@contextmanager
def nobody() -> Iterator[str]:
    """Give an address that refuses: its port is taken, by one that does not listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
