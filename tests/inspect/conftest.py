"""A store with something of everything, a server of its page, and a browser."""

from __future__ import annotations

import json
import os
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cvx.embed import LexicalEmbedder
from cvx.inspect import PageData, Server
from cvx.memory import Memory

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
ESCAPES = "\x1b[31mred\x1b[0m \u202egnp.exe"
ARABIC = "المفتاح تحت الأصيص الأخضر"
EMOJI = "👩‍🚀🪴 the fern thrives"
START = 1_795_000_000_000_000
DAY = 86_400_000_000


def fill(folder: Path) -> None:
    """Write memories, links, recalls and episodes that tell something in every view."""
    with Memory.open(folder, embedder=LexicalEmbedder(64)) as memory:
        drain = memory.add("the drain was full", entity="ana", timestamp=START, tags=["house"])
        flood = memory.add("the cellar flooded", entity="ana", timestamp=START + DAY, source="log")
        pump = memory.add("ana bought a pump", entity="ana", timestamp=START + 2 * DAY)
        memory.link(drain, flood, why="more rain than it takes")
        memory.link(flood, pump, why="the cellar was wet")
        for at, text in enumerate((HOSTILE, ESCAPES, ARABIC, EMOJI)):
            memory.add(text, timestamp=START + (3 + at) * DAY, kind="note", tags=[f"t{at}"])
        memory.add("bob's own", namespace="bob", timestamp=START)
        memory.update(drain, text="the drain was blocked")
        shown = memory.context("the cellar flooded")
        memory.feedback(shown, helped=True, outcome=1.0)
        for way in ("left", "right", "right", "right"):
            with memory.episode("find the hat", task="hats") as episode:
                episode.advise("a hall", ["left", "right"])
                episode.act(way)
                episode.advise("a room", ["take", "leave"])
                episode.act("take")
                episode.end(1.0 if way == "right" else 0.0)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only to be read: whoever writes makes a copy."""
    folder = tmp_path_factory.mktemp("inspect") / "house"
    fill(folder)
    return folder


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    code: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Site:
    """A page that is served, and how to ask its server without a browser."""

    server: Server
    memory: Memory

    def __call__(
        self, path: str, told: object = None, *, token: str | None = None, **headers: str
    ) -> Answer:
        known = self.server.token if token is None else token
        body = told if told is None or isinstance(told, bytes) else json.dumps(told).encode()
        sent = {"X-Cvx-Token": known, "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, body, sent)
        try:
            with urllib.request.urlopen(request, timeout=60) as got:
                return Answer(got.status, dict(got.headers), got.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read().decode())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def served(folder: Path, *, edit: bool = False) -> Iterator[Site]:
    """Serve a store while a test runs."""
    with (
        Memory.open(folder, read_only=not edit) as memory,
        Server(PageData(memory, can_edit=edit)) as server,
    ):
        running = threading.Thread(target=server.serve_forever, daemon=True)
        running.start()
        try:
            yield Site(server, memory)
        finally:
            server.shutdown()
            running.join()


@pytest.fixture
def site(store: Path) -> Iterator[Site]:
    with served(store) as found:
        yield found


@pytest.fixture
def editable(store: Path, tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "copy"
    shutil.copytree(store, folder)
    with served(folder, edit=True) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's browser, driven by playwright; what it shows is tested over HTTP without it too.

    No longer than a module: while the driver lives, its event loop runs in this thread, and no
    other test could start one.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # As root, it only starts without its sandbox.
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox"] if root else []
        )
        yield browser
        browser.close()


def context_of(browser: Browser, **options: Any) -> BrowserContext:
    """Return a fresh context, which waits as long as a busy machine may take."""
    made = browser.new_context(**options)
    made.set_default_timeout(180_000)
    return made


class Reader:
    """Somebody who looks at a page, and whatever goes wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page, self.wrong = page, list[str]()
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", self._listen)
        page.on("request", lambda asked: self.asked.append(asked.url))
        self.asked: list[str] = []

    def _listen(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.wrong.append(said.text)

    def at(self, route: str, awaited: str = "h1") -> Page:
        """Go to another view, and wait until something of it is there."""
        self.page.evaluate("document.querySelector('main').replaceChildren()")
        self.page.evaluate("route => { location.hash = route }", route)
        self.page.wait_for_selector(awaited)
        return self.page


@pytest.fixture
def reader(chromium: Browser, site: Site) -> Iterator[Reader]:
    """A browser with the page open; it must not have complained in the end."""
    context = context_of(chromium, viewport={"width": 1200, "height": 900})
    found = Reader(context.new_page())
    found.page.goto(site.server.url)
    found.page.wait_for_selector(".list li")
    yield found
    context.close()
    assert found.wrong == []
    assert all(url.startswith(site.url) for url in found.asked)
