"""The page in a real browser: every view, by keyboard, on a phone, in the dark, with an enemy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cvx.embed import LexicalEmbedder
from cvx.inspect import report
from cvx.memory import Memory
from tests.inspect.conftest import ARABIC, EMOJI, HOSTILE, Reader, Site, context_of, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VIEWS = {
    "memories": "#/memories",
    "event": "#/event?id=2",
    "map": "#/map",
    "causes": "#/causes?of=2",
    "recall": "#/recall?cue=the cellar flooded",
    "episodes": "#/episodes",
    "episode": "#/episode?id=3",
    "learning": "#/learning",
}
PICTURES = {"memories", "map", "causes", "episodes", "learning"}


def opened(page: Page, route: str) -> None:
    """Show a view: its heading and, where it has one, its picture are there."""
    page.evaluate("document.querySelector('main').replaceChildren()")
    page.evaluate("route => { location.hash = '#/none'; location.hash = route }", route)
    name = next(name for name, one in VIEWS.items() if one == route)
    page.wait_for_selector(f"main h1:has-text('{name.title()}')")
    if name in PICTURES:
        page.wait_for_selector("main .chart svg")


@pytest.mark.requirement("B21")
def test_every_view_is_drawn_without_a_complaint(reader: Reader) -> None:
    expected = {
        "memories": "the drain was blocked",
        "event": "more rain than it takes",
        "map": "Regions",
        "causes": "ana bought a pump",
        "recall": "Then, 20",
        "episodes": "find the hat",
        "episode": "chance of success",
        "learning": "hats",
    }
    for name, route in VIEWS.items():
        opened(reader.page, route)
        assert expected[name] in reader.page.inner_text("body"), name
        assert reader.page.inner_text("#problem") == "", name


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 320])
@pytest.mark.requirement("B21")
def test_an_automatic_checker_finds_nothing_in_the_way_of_anybody(
    chromium: Browser, editable: Site, width: int, scheme: Any
) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    context = context_of(
        chromium, viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(editable.server.url)
    page.wait_for_selector(".list li")
    for name, route in VIEWS.items():
        opened(page, route)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        found = Axe().run(page).response["violations"]
        told = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found]
        assert told == [], (name, width, scheme)
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, (name, width)
    context.close()


def test_a_cue_may_end_in_a_question_mark(reader: Reader) -> None:
    for cue in ("why did it flood?", "100% & more? yes", "a+b#c"):
        reader.at("#/recall")
        reader.page.fill("#cue", cue)
        reader.page.click("button.main")
        reader.page.wait_for_function(
            "cue => document.querySelector('#cue')?.value === cue && document.querySelector('pre')",
            arg=cue,
        )
        reader.page.reload()
        reader.page.wait_for_selector("main pre", state="attached")
        assert reader.page.input_value("#cue") == cue
    reader.at("#/recall?cue=why did it flood?", "#cue")
    reader.page.wait_for_function("() => document.querySelector('#cue').value.endsWith('flood?')")


def test_a_recall_says_who_asked(reader: Reader) -> None:
    asking = "select[name=namespace]"
    reader.at("#/recall", asking)
    assert reader.page.locator(f"{asking} option:checked").inner_text() == "(the largest)"
    reader.at("#/recall?cue=why did it flood?", "main details")
    assert "(unnamed)" in reader.page.locator(f"{asking} option:checked").inner_text()


def test_a_hostile_memory_stays_text_in_every_view(reader: Reader) -> None:
    for route in ("#/event?id=4", f"#/recall?cue={HOSTILE}", "#/causes?of=4", "#/map"):
        reader.at(route)
        # A picture and a list of causes name other events; the text of this one is in the others.
        if "causes" not in route and "map" not in route:
            reader.page.wait_for_function("() => document.body.innerText.includes('onerror')")
        assert reader.page.title().startswith("cvx: ")
        assert reader.page.locator("main img").count() == 0
        assert reader.page.locator("main script").count() == 0
    reader.at("#/event?id=5", "h1:has-text('Event 5')")
    assert "\\u001b[31mred" in reader.page.inner_text("pre")


def test_nothing_but_its_own_script_would_run(reader: Reader) -> None:
    page = reader.page
    for way in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.createElement('img').setAttribute('onerror', 'owned = 1')",
        "document.createElement('script').textContent = 'owned = 1'",
    ):
        assert page.evaluate(f"() => {{ try {{ {way}; return 0 }} catch {{ return 1 }} }}"), way
    assert page.evaluate("window.owned") is None
    assert reader.wrong
    reader.wrong.clear()


def test_text_that_is_written_from_the_right_is_read_from_the_right(reader: Reader) -> None:
    page = reader.page
    for text, direction in ((ARABIC, "rtl"), (EMOJI, "ltr")):
        item = page.locator(".list .text", has_text=text).first
        assert item.evaluate("one => getComputedStyle(one).direction") == direction


def test_typing_a_filter_narrows_list_timeline_and_address(reader: Reader) -> None:
    page = reader.page
    page.fill("input[name=q]", "cellar")
    page.wait_for_function("() => document.querySelectorAll('.list > li').length === 1")
    assert "q=cellar" in page.url
    assert "1 event" in page.inner_text("main")
    page.fill("input[name=q]", "no such words")
    page.wait_for_function("() => document.body.innerText.includes('no event passes')")
    page.fill("input[name=q]", "")
    page.select_option("select[name=entity]", "ana")
    page.wait_for_function("() => document.querySelectorAll('.list > li').length === 3")
    page.reload()
    page.wait_for_function("() => document.querySelectorAll('.list > li').length === 3")


def test_the_keyboard_alone_reaches_and_uses_every_part(reader: Reader) -> None:
    page = reader.page
    page.reload()
    page.wait_for_selector(".chart svg [role=button]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Memories"
    page.focus(".chart svg [role=button]")
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert first != second
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == first
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.includes('since=')")
    opened(page, "#/causes?of=2")
    page.focus(".chart svg [role=button]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    page.wait_for_function("() => location.hash === '#/causes?of=1'")
    # What was opened is where a screen reader goes on.
    page.click("#views a[data-view=map]")
    page.wait_for_function("() => document.activeElement.id === 'main'")


def test_a_lost_connection_is_told_and_the_page_goes_on_when_it_is_back(
    chromium: Browser, store: Path
) -> None:
    context = context_of(chromium)
    page = context.new_page()
    with served(store) as site:
        page.goto(site.server.url)
        page.wait_for_selector(".list li")
        context.set_offline(True)
        page.click("#views a[data-view=map]")
        page.wait_for_selector("#problem p")
        assert "no connection" in page.inner_text("#problem")
        assert page.locator(".list li").count() > 0
        context.set_offline(False)
        page.click("text=Try again")
        page.wait_for_selector(".chart svg circle")
        assert page.inner_text("#problem") == ""
    context.close()


def test_without_the_token_the_page_asks_for_it(chromium: Browser, site: Site) -> None:
    page = context_of(chromium).new_page()
    page.goto(site.url)
    page.wait_for_selector("#token")
    page.fill("#token", site.server.token)
    page.click("text=Use it")
    page.wait_for_selector(".list li")
    assert site.server.token not in page.url
    page.close()


@pytest.mark.requirement("B21")
def test_an_event_is_edited_forgotten_and_brought_back_in_the_page(
    chromium: Browser, editable: Site
) -> None:
    page = context_of(chromium).new_page()
    page.goto(editable.server.url)
    page.wait_for_selector(".list li")
    page.evaluate("location.hash = '#/event?id=2'")
    page.fill("#e-text", "the cellar was wet")
    page.fill("#e-tags", "wet, house")
    page.click("text=Save")
    page.wait_for_function("() => document.querySelector('pre').textContent.includes('was wet')")
    page.click("text=Forget it")
    page.wait_for_selector("text=Bring it back")
    assert (editable.memory.get(2).state, editable.memory.get(2).tags) == (
        "archived",
        ("wet", "house"),
    )
    page.click("text=Bring it back")
    page.wait_for_selector("text=Forget it")
    assert editable.memory.get(2).state == "active"
    page.close()


@pytest.fixture
def file(store: Path, tmp_path: Path) -> Path:
    with Memory.open(store, read_only=True) as memory:
        (tmp_path / "report.html").write_text(report(memory), encoding="utf-8")
    return tmp_path / "report.html"


@pytest.mark.requirement("B21")
def test_a_report_shows_the_same_from_a_file_and_fetches_nothing(
    chromium: Browser, file: Path
) -> None:
    context = context_of(chromium, offline=True)
    reader = Reader(context.new_page())
    page = reader.page
    page.goto(file.as_uri())
    page.wait_for_selector(".list li")
    for name, route in VIEWS.items():
        if name != "recall":
            opened(page, route)
            assert page.inner_text("#problem") == "", name
    page.evaluate("location.hash = '#/memories'")
    page.wait_for_selector("input[name=q]")
    page.fill("input[name=q]", "cellar")
    page.wait_for_function("() => document.querySelectorAll('.list > li').length === 1")
    page.evaluate("location.hash = '#/recall'")
    page.click(".list a >> nth=0")
    page.wait_for_selector("text=Now")
    assert page.locator("text=Factor by factor").count() > 0
    page.evaluate("location.hash = '#/event?id=4'")
    page.wait_for_function("() => document.querySelector('pre')?.textContent.includes('onerror')")
    assert page.title().startswith("cvx: ")
    assert reader.wrong == []
    assert all(url.startswith("file:") for url in reader.asked)
    context.close()


def test_a_page_of_an_empty_store_says_so_in_every_view(chromium: Browser, tmp_path: Path) -> None:
    Memory.open(tmp_path / "new", embedder=LexicalEmbedder(32)).close()
    context = context_of(chromium)
    with served(tmp_path / "new") as site:
        reader = Reader(context.new_page())
        page = reader.page
        page.goto(site.server.url)
        for view, said in {
            "memories": "no event passes",
            "map": "Nothing is remembered yet",
            "causes": "Nothing is linked yet",
            "recall": "No recall, context or advice",
            "episodes": "0 episodes",
            "learning": "No episode has ended yet",
        }.items():
            page.evaluate("view => { location.hash = `#/${view}` }", view)
            page.wait_for_function("said => document.body.innerText.includes(said)", arg=said)
        assert reader.wrong == []
    context.close()
