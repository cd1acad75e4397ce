"""Take the pictures of docs/inspect.md: ``python tools/screenshots.py MEMORY`` needs chromium.

MEMORY is the folder that ``make run`` names in its last line. Views of causes and of the map show
a small made-up store, the same in every run.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from cvx.embed import LexicalEmbedder
from cvx.inspect import PageData, Server
from cvx.memory import Memory

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
DAY = 86_400_000_000
START = 1_790_000_000_000_000
STORY = (
    "a storm brought 40 mm of rain in one night",
    "the drain behind the mill was blocked by leaves",
    "the cellar of the mill flooded",
    "the control box of the pump stood in water",
    "the fuse of the pump blew",
    "the pump stopped for six hours",
    "the tank ran empty",
    "the east field was not watered for two days",
    "the seedlings in the east field dried out",
    "the box was moved one metre up the wall",
)
LINKS = ((0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (4, 9))
WHO = ("ana", "bob", "carla", "dan")
DID = ("checked", "cleaned", "opened", "closed", "painted", "repaired", "moved", "measured")
WHAT = ("the east pump", "the drain", "the tank", "the south gate", "the greenhouse", "the mill")


def incidents(folder: Path) -> None:
    """Make a log of a farm with one chain of causes in it."""
    draw = random.Random(0)
    with Memory.open(folder, embedder=LexicalEmbedder()) as memory:
        log = []
        for day in range(240):
            who = draw.choice(WHO)
            text = f"{who} {draw.choice(DID)} {draw.choice(WHAT)}"
            reward = draw.choice([None, None, 1.0, 1.0, 0.0])
            log.append(
                {"text": f"{text}, day {day}", "entity": who, "reward": reward}
                | {"timestamp": START + (day + draw.randrange(5)) * DAY, "source": "log"}
                | {"tags": [draw.choice(("field", "house"))]}
            )
        memory.add_many(log)
        told = [
            memory.add(text, timestamp=START + (245 + at) * DAY, entity="log", tags=["storm"])
            for at, text in enumerate(STORY)
        ]
        for cause, effect in LINKS:
            memory.link(
                told[cause], told[effect], why="it is below the drain" if effect == 2 else ""
            )
        memory.feedback(memory.context("why did the pump stop?"), helped=True, outcome=1.0)


def take(browser: Browser, memory: Memory, name: str, route: str, **how: Any) -> None:
    """Show a view and write it down."""
    with Server(PageData(memory)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        size = how.pop("size", (1120, 760))
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **how)
        page = context.new_page()
        page.goto(server.url)
        page.wait_for_selector(".list li")
        page.evaluate("route => { location.hash = route }", route)
        page.wait_for_function(
            "title => document.title.startsWith('cvx: ' + title)",
            arg=route[2:].partition("?")[0].title() if "episode?" not in route else "episode",
        )
        page.wait_for_timeout(500)
        path = IMAGES / f"inspect-{name}.webp"
        page.screenshot(path=path.with_suffix(".png"))
        Image.open(path.with_suffix(".png")).convert("RGB").save(path, quality=70)
        path.with_suffix(".png").unlink()
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} KB")
        context.close()
        server.shutdown()


def main(experiment: str) -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("there is no chromium: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        incidents(Path(folder) / "farm")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with Memory.open(Path(folder) / "farm", read_only=True) as farm:
            flood = farm.recall("the fuse of the pump blew", 1)[0].id
            take(browser, farm, "memories", "#/memories")
            take(browser, farm, "causes", f"#/causes?of={flood}", size=(1120, 520))
            take(browser, farm, "recall", "#/recall?cue=why did the pump stop?")
            phone = {"size": (390, 760), "color_scheme": "dark"}
            take(browser, farm, "map-phone-dark", "#/map", **phone)
        with Memory.open(experiment, read_only=True) as games:
            own = PageData(games).episodes({"outcome": "won"})["rows"]
            number = next(row["id"] for row in own if row["kind"] == "experience")
            dark: dict[str, Any] = {"color_scheme": "dark"}
            take(browser, games, "episode-dark", f"#/episode?id={number}", **dark)
            take(browser, games, "learning", "#/learning", size=(1120, 900))
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
