"""A request ends in time, whatever the server drips: its deadline is around all of it."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

pytest.importorskip("httpcore")
pytest.importorskip("stamina")

from cvx.embed import HttpOptions, OllamaEmbedder
from cvx.errors import EmbedderAnswerError, EmbedderTimeoutError

Bytes = Iterator[bytes]
_HEAD = b"HTTP/1.1 200 OK\r\n"
_GZIP = _HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"


def dripped_header() -> Bytes:
    yield _HEAD + b"X-Slow: "
    yield from itertools.repeat(b"a")


def endless_informational_answers() -> Bytes:
    yield from itertools.repeat(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")


def endless_gzip_name() -> Bytes:
    # A gzip header whose file name never ends: nothing of it is ever data.
    yield _GZIP + b"a\r\n\x1f\x8b\x08\x08\0\0\0\0\0\x03\r\n"
    yield from itertools.repeat(b"1\r\na\r\n")


def dripped_handshake() -> Bytes:
    yield b"\x16\x03\x03\x40\x00\x02"
    yield from itertools.repeat(b"\0")


def dripped_body() -> Bytes:
    yield _HEAD + b"Content-Length: 100000000\r\n\r\n"
    yield from itertools.repeat(b" ")


@contextmanager
def dripping(answer: Callable[[], Bytes]) -> Iterator[int]:
    """Serve an answer piece by piece, on a free port, until the client has had enough."""
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            for piece in answer():
                connection.sendall(piece)
                if over.wait(0.005):
                    return

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=serve, args=(connection,)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads = [threading.Thread(target=accept)]
        threads[0].start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def embedder(url: str) -> OllamaEmbedder:
    return OllamaEmbedder("toy", url, http=HttpOptions(timeout_s=0.2, retries=1, backoff_s=0.0))


@pytest.mark.parametrize(
    ("scheme", "answer"),
    [
        ("http", dripped_header),
        ("http", endless_informational_answers),
        ("http", dripped_body),
        ("https", dripped_handshake),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_whatever_a_server_drips_runs_into_the_deadline(
    scheme: str, answer: Callable[[], Bytes]
) -> None:
    with (
        dripping(answer) as port,
        embedder(f"{scheme}://127.0.0.1:{port}") as slow,
        pytest.raises(EmbedderTimeoutError, match=r"within 0\.2 s, 2 times: raise timeout_s"),
    ):
        slow.embed(["a mug"])


def test_a_server_that_reads_slowly_runs_into_the_deadline() -> None:
    over = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    while connection.recv(512) and not over.wait(0.005):
                        pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with (
                embedder(f"http://127.0.0.1:{listener.getsockname()[1]}") as slow,
                pytest.raises(EmbedderTimeoutError, match=r"0\.2 s"),
            ):
                slow.embed(["a" * 20_000_000])
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_name_that_is_never_resolved_runs_into_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait() and [])
    try:
        with (
            embedder("http://nowhere.invalid") as lost,
            pytest.raises(EmbedderTimeoutError, match=r"0\.2 s"),
        ):
            lost.embed(["a mug"])
    finally:
        over.set()


def packed() -> Bytes:
    yield _GZIP + b"2\r\n{}\r\n0\r\n\r\n"


@pytest.mark.parametrize("answer", [packed, endless_gzip_name])
def test_an_answer_that_is_packed_unasked_is_refused_not_unpacked(
    answer: Callable[[], Bytes],
) -> None:
    with (
        dripping(answer) as port,
        embedder(f"http://127.0.0.1:{port}") as odd,
        pytest.raises(EmbedderAnswerError, match=r"packed its answer \(b'gzip'\) unasked"),
    ):
        odd.embed(["a mug"])
