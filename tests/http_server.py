"""What the tests' HTTP servers share: a thread, a free port, and an end that nobody can hold up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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
