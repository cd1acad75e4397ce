"""Writes the inspection page as one static file that opens without a server."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from cvx.errors import CvxError
from cvx.inspect.json_values import Asked, Told
from cvx.inspect.page_data import PageData
from cvx.inspect.server import static
from cvx.memory import Memory

EVENTS = 1_000
_DETAILS = 200
_RECALLS = 40
_LONGEST = 20_000


def report(memory: Memory) -> str:
    """Return a page that shows a memory without a server, and fetches nothing.

    It holds the latest 1,000 memories, 200 episodes and 200 decisions, of 200 memories and 40
    decisions all that is known, the picture of the regions, and what was learned; texts are cut
    after 20,000 characters.

    Parameters
    ----------
    memory : Memory
        Not bound to a namespace.

    Returns
    -------
    str
        HTML. Its script and style are named by their hashes in its content security policy, so
        that nothing else runs in it.

    Examples
    --------
    >>> from cvx.embed import LexicalEmbedder
    >>> from cvx.memory import Memory
    >>> memory = Memory(embedder=LexicalEmbedder())
    >>> rain = memory.add("<b>rain</b>")
    >>> page = report(memory)
    >>> "<b>rain" in page, "rain" in page
    (False, True)
    """
    script, style = static("charts.js") + static("page.js"), static("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    told = json.dumps(_held(PageData(memory)), ensure_ascii=False, allow_nan=False)
    # Within a script, < could begin an end of it.
    told = told.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    head, body = static("page.html").split("</head>")
    head = "\n".join(row for row in head.splitlines() if "page.css" not in row and ".js" not in row)
    head = head.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
    )
    end = (
        f'<script type="application/json" id="data">{told}</script>\n<script>{script}</script>\n'
        "</body>"
    )
    return f"{head}\n<style>{style}</style>\n</head>{body.replace('</body>', end)}"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _held(view: PageData) -> Told:
    """Return the answers of a view that a report holds, by what is asked."""
    events = _all(view.events, EVENTS)
    episodes, decisions = _all(view.episodes, _DETAILS), _all(view.decisions, _DETAILS)
    linked, placed = view.linked(), view.map()
    wanted = [*(row["id"] for row in linked["rows"]), *(row["id"] for row in events["rows"])]
    details = dict.fromkeys(wanted[:_DETAILS])
    held = {row["id"] for row in events["rows"]}
    asked = [row["decision"] for row in decisions["rows"]]
    chains = {number: view.chain({"of": str(number)}) for number in details}
    return {
        "overview": view.overview() | {"can_edit": False},
        "events": events,
        "timeline": view.timeline({"state": "active"}),
        "event": _each(view.event, "id", details),
        "map": placed,
        "members": {
            region: [one for one in members if one in held]
            for region, members in view.members().items()
        },
        "linked": linked,
        "chain": {number: chain for number, chain in chains.items() if chain["edges"]},
        "decisions": decisions,
        "recall": _each(view.recall, "decision", asked[:_RECALLS]),
        "episodes": episodes,
        "episode": _each(view.episode, "id", (row["id"] for row in episodes["rows"])),
        "learning": view.learning({}),
    }


def _all(ask: Callable[[Asked], Told], most: int) -> Told:
    """Return the pages of an answer as one."""
    told = ask({})
    for page in range(1, told["pages"] or 1):
        if len(told["rows"]) >= most:
            break
        told["rows"] += ask({"page": str(page)})["rows"]
    return told | {"rows": told["rows"][:most]}


def _each(ask: Callable[[Asked], Told], name: str, numbers: Iterable[int]) -> dict[int, Told]:
    found = {}
    for number in numbers:
        # Of a decision without words there is nothing to recall; one may have been dropped since.
        with suppress(CvxError):
            found[number] = _cut(ask({name: str(number)}))
    return found


def _cut(told: Any) -> Any:
    if isinstance(told, str):
        rest = len(told) - _LONGEST
        return told if rest <= 0 else f"{told[:_LONGEST]}… ({rest:,} more characters)"
    if isinstance(told, dict):
        return {name: _cut(one) for name, one in told.items()}
    return [_cut(one) for one in told] if isinstance(told, list) else told
