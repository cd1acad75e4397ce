"""The local web server of the inspection page: token, origin checks, security headers."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cvx.errors import (
    CvxError,
    InvalidInputError,
    LockTimeoutError,
    NamespaceError,
    ReadOnlyError,
    UnknownError,
)
from cvx.escaping import printable
from cvx.inspect.page_data import PageData
from cvx.validation import DEEPEST

HOST = "127.0.0.1"
_PORT_OF_HTTP = 80
"""Browsers leave it out of the names that they ask for."""
WHOLE = ("overview", "map", "linked")
ASKED = (
    "events", "timeline", "event", "chain", "recall", "decisions", "episodes", "episode",
    "learning",
)  # fmt: skip
"""The methods of a view that a page may ask: of the whole store, or for something."""

_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_MOST_BODY = 4 * 1024 * 1024
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (UnknownError, 404),
    (ReadOnlyError, 403),
    (NamespaceError, 403),
    (InvalidInputError, 400),
    (LockTimeoutError, 503),
    (CvxError, 500),
)
_log = logging.getLogger("cvx.inspect")


def static(name: str) -> str:
    """Return a file of the page."""
    return resources.files("cvx.inspect").joinpath("static", name).read_text(encoding="utf-8")


class Server(ThreadingHTTPServer):
    """Serves a page about a memory to whoever has its token, on this machine alone.

    Parameters
    ----------
    view : PageData
        Answers what the page asks.
    port : int, default 0
        Where to listen on 127.0.0.1; 0 takes a free one.
    token : str, optional
        What a page has to show; by default one that is made now.

    Raises
    ------
    InvalidInputError
        The port is taken, or may not be listened on.
    """

    daemon_threads = True

    def __init__(self, view: PageData, port: int = 0, token: str | None = None) -> None:
        self.view = view
        self.token = secrets.token_urlsafe(24) if token is None else token
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise InvalidInputError(
                f"port {port} cannot be listened on ({error.strerror}): give --port another, or 0"
            ) from error
        names = (HOST, "localhost")
        self.hosts = {f"{name}:{self.server_port}" for name in names}
        if self.server_port == _PORT_OF_HTTP:
            self.hosts |= {*names}

    @property
    def url(self) -> str:
        """Where the page is, with the token: what stands after # is never sent or logged."""
        return f"http://{HOST}:{self.server_port}/#token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Forget a browser that went away; log what else went wrong."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            _log.exception("a request failed")


class _Handler(BaseHTTPRequestHandler):
    """One connection of a browser."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "cvx", ""
    timeout = 60

    def do_GET(self) -> None:
        """Answer with a file of the page, or with what a view tells."""
        path, _, query = self.path.partition("?")
        if not self._may_ask():
            return
        if path == "/favicon.ico":
            self._answer(204, b"", "image/x-icon")
        elif path in _FILES:
            name, kind = _FILES[path]
            self._answer(200, static(name).encode(), kind)
        elif path.startswith("/api/") and path.removeprefix("/api/") in (*WHOLE, *ASKED):
            if self._knows_token():
                asked = dict(parse_qsl(query, keep_blank_values=True))
                self._tell(path.removeprefix("/api/"), asked)
        else:
            self._refuse(404, "there is no such page")

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        """Change an event."""
        try:
            size = int(self.headers.get("Content-Length", ""))
        except ValueError:
            size = -1
        if not 0 <= size <= _MOST_BODY:
            # What was sent is not read: the next request would begin in the middle of it.
            self.close_connection = True
            self._refuse(413 if size > 0 else 411, f"a change has at most {_MOST_BODY} bytes")
            return
        body = self.rfile.read(size)
        if not self._may_ask() or not self._knows_token():
            return
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            asked = None
        if self.path != "/api/change" or not self.server.view.can_edit:
            self._refuse(403, "this page only reads: start `cvx inspect` with --edit")
        elif self.headers.get_content_type() != "application/json":
            self._refuse(415, "a change is application/json")
        elif not isinstance(asked, dict):
            self._refuse(400, f"a change is a JSON object, nested at most {DEEPEST} deep")
        else:
            self._tell("change", asked)

    def _may_ask(self) -> bool:
        """Refuse what another site's page sends, by a name that leads here or by a link."""
        origin = self.headers.get("Origin")
        known = self.headers.get("Host") in self.server.hosts
        if known and (origin is None or urlsplit(origin).netloc in self.server.hosts):
            return True
        self._refuse(403, f"this page is at http://{HOST}:{self.server.server_port}/")
        return False

    def _knows_token(self) -> bool:
        given = self.headers.get("X-Cvx-Token", "")
        if hmac.compare_digest(given.encode(), self.server.token.encode()):
            return True
        self._refuse(
            401, "the token is missing or wrong: open the address that the command printed"
        )
        return False

    def _tell(self, what: str, asked: Mapping[str, Any]) -> None:
        try:
            ask = getattr(self.server.view, what)
            told = ask() if what in WHOLE else ask(asked)
            body = json.dumps(told, ensure_ascii=False, allow_nan=False).encode()
        except CvxError as error:
            code = next(code for kind, code in _CODES if isinstance(error, kind))
            self._refuse(code, printable(str(error)))
        except Exception as error:
            _log.exception("%s failed", what)
            self._refuse(500, f"a fault of cvx ({type(error).__name__}): please report it")
        else:
            self._answer(200, body, "application/json")

    def _refuse(self, code: int, why: str) -> None:
        self._answer(code, json.dumps({"error": why}).encode(), "application/json")

    def _answer(self, code: int, body: bytes, kind: str) -> None:
        self.send_response(code)
        for name, value in {**_HEADERS, "Content-Type": kind}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing on the terminal: what was asked may quote memories."""
