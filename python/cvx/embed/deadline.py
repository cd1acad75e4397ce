"""HTTP connections with one deadline for all that a request does.

A limit for each read alone lets a server that drips go on for ever. Here every step (resolving the
name, connecting, the handshake, each piece sent or received) has what is left until the deadline.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from cvx.extras import needs
from cvx.time_limits import Calls

with needs("http"):
    import httpcore

_calls = Calls()


class Deadline(threading.local):
    """When the request that this thread sends must be over, in seconds of the monotonic clock."""

    _at = 0.0

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Let everything in the block be over after so many seconds."""
        self._at = time.monotonic() + seconds
        yield

    def left(self) -> float:
        """Return the seconds that are left, or raise ``httpcore.TimeoutException``."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise httpcore.TimeoutException("the deadline has passed")
        return left


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._inner.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        sock: socket.socket = self._inner.get_extra_info("socket")
        rest = memoryview(buffer)
        try:
            while rest:
                sock.settimeout(self._deadline.left())
                rest = rest[sock.send(rest) :]
        except TimeoutError as error:
            raise httpcore.WriteTimeout(error) from error
        except OSError as error:
            raise httpcore.WriteError(error) from error

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        secured = self._inner.start_tls(ssl_context, server_hostname, self._deadline.left())
        return _Stream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class Network(httpcore.NetworkBackend):
    """Opens connections that keep to a deadline.

    Parameters
    ----------
    deadline : Deadline
        Of whoever sends.
    """

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that answers."""
        addresses = self._addresses(host, port)
        while True:
            # Each has its share of the time: an address that swallows everything leaves the others
            # theirs.
            address, share = addresses.pop(0), self._deadline.left() / (len(addresses) + 1)
            try:
                stream = self._inner.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if not addresses:
                    raise
            else:
                return _Stream(stream, self._deadline)

    def _addresses(self, host: str, port: int) -> list[str]:
        # The system's resolver takes no deadline: it is asked in a thread that can be left behind.
        found = _calls.run(
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM),
            self._deadline.left(),
            host,
        )
        if found.value:
            return list(dict.fromkeys(str(address[0]) for *_, address in found.value))
        self._deadline.left()
        raise httpcore.ConnectError(found.problem or f"{host} has no address")
