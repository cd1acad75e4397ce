"""Time of the page of `cvx inspect` in Chromium, on a store of many events.

A store of short events (seeded words, the default embedder) is made, and `cvx inspect` started on
it as a person does. First view: from opening the address to the list on the page, at once after the
start and when all has been read. A filter: from a key in the search field to the list that passes.
Both are by the clock: on a busy machine, run it again when that is quiet.

    python -m benches.inspect_page [--events 100000] [--store DIR]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benches.figures import RUNS, Figure, leave
from benches.mcp import WORDS, filled

MUST_VIEW_S, MUST_FILTER_MS, FILTERS = 1.0, 100.0, 20
TYPED = """async (words) => {
  const field = document.querySelector('input[name=q]');
  const count = document.querySelector('main > p[role=status]');
  const changed = new Promise((done) => {
    const watch = new MutationObserver(() => { watch.disconnect(); done(); });
    // Written anew with every answer, also where the list stays empty.
    watch.observe(count, { childList: true });
  });
  const start = performance.now();
  field.value = words;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  await changed;
  return performance.now() - start;
}"""


def first_view(browser: Browser, url: str) -> tuple[float, float, Page]:
    """Return seconds until the list is there, and until the time line is."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    start = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(".list li")
    listed = time.perf_counter() - start
    page.wait_for_selector(".chart svg", timeout=120_000)
    return listed, time.perf_counter() - start, page


def measured(folder: Path) -> dict[str, float]:
    """Return the times of the page of a store."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("there is no chromium: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        browser.new_page().close()
        words = ["-m", "cvx", "inspect", "--no-browser", "--json", "--store", str(folder)]
        running = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
        try:
            assert running.stdout is not None
            url = json.loads(running.stdout.readline())["url"]
            cold, drawn, page = first_view(browser, url)
            page.close()
            warm = [first_view(browser, url) for _ in range(5)]
            page = warm[-1][2]
            took = [float(page.evaluate(TYPED, WORDS[40 * at])) for at in range(FILTERS)]
        finally:
            running.terminate()
            running.communicate()
        browser.close()
    return {
        "cold_s": cold,
        "cold_drawn_s": drawn,
        "warm_s": statistics.median(one[0] for one in warm),
        "filter_ms": statistics.median(took),
        "filter_worst_ms": max(took),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--store", type=Path, help="one that is there, in place of a new one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.store or Path(scratch) / "store"
        if given.store is None:
            filled(folder, given.events, "lexical")
        found = measured(folder)
    figures = [
        Figure("first view, at once after the start", f"{found['cold_s']:.2f} s",
               f"{MUST_VIEW_S:g} s", found["cold_s"] < MUST_VIEW_S),
        Figure("the same, with the time line of all events", f"{found['cold_drawn_s']:.2f} s"),
        Figure("first view, all events read", f"{found['warm_s']:.2f} s",
               f"{MUST_VIEW_S:g} s", found["warm_s"] < MUST_VIEW_S),
        Figure("a filter, from the key to the list",
               f"{found['filter_ms']:.0f} ms, at worst {found['filter_worst_ms']:.0f} ms",
               f"{MUST_FILTER_MS:g} ms", found["filter_ms"] < MUST_FILTER_MS),
    ]  # fmt: skip
    for one in figures:
        print(f"{one.what}: {one.value}" + (f" (must: {one.bound})" if one.bound else ""))
    leave(RUNS / "inspect_page.json", "The page", "python -m benches.inspect_page", figures,
          events=given.events, **found)  # fmt: skip
    return int(any(one.met is False for one in figures))


if __name__ == "__main__":
    sys.exit(main())
