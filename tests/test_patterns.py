"""Every pattern of the library takes steps in proportion to the text, however hostile that is."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvx
from cvx.causal.judges import read_answer
from cvx.causal.reflection import LLMWriter
from cvx.dates import read_dates
from cvx.embed.chunks import chunk_text
from cvx.embed.http import without_secrets
from cvx.recall.corpus_indexes import title_key
from cvx.store.files import HALF_EXPORT
from cvx.store.prompt_injection import reads_like_an_order
from cvx.types import Event
from tests.pattern_twin import PatternTwin, TooManyStepsError, hostile

_FLAGS_AT = {
    "compile": 1,
    **dict.fromkeys(("search", "match", "fullmatch", "findall", "finditer"), 2),
    **dict.fromkeys(("sub", "subn"), 4),
    "split": 3,
}
"""Where the functions of ``re`` take their flags."""


def _patterns_of(name: str, path: Path) -> dict[str, re.Pattern[Any]]:
    source, found = path.read_text(encoding="utf-8"), {}
    for node in ast.walk(ast.parse(source)) if "re." in source else ():
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func).rpartition(".")
        if called[0] == "re" and called[2] in _FLAGS_AT:
            at = _FLAGS_AT[called[2]]
            named = [one.value for one in node.keywords if one.arg == "flags"]
            # As the module itself would: a pattern is written where its parts have names.
            parts = (
                eval(ast.unparse(part), vars(importlib.import_module(name)))
                for part in (node.args[0], *named, *node.args[at : at + 1])
            )
            found[f"{name}:{node.lineno}"] = re.compile(*parts)
    return found


PATTERNS = {
    place: pattern
    for info in pkgutil.walk_packages(cvx.__path__, "cvx.")
    if (spec := importlib.util.find_spec(info.name)) and str(spec.origin).endswith(".py")
    for place, pattern in _patterns_of(info.name, Path(str(spec.origin))).items()
}
twin_of = cache(PatternTwin)


def test_patterns_are_found() -> None:
    assert len(PATTERNS) > 70


@pytest.mark.parametrize("place", PATTERNS)
def test_a_pattern_takes_steps_in_proportion_to_hostile_text(place: str) -> None:
    twin = twin_of(PATTERNS[place])
    for small, large in zip(hostile(twin, 48), hostile(twin, 144), strict=True):
        steps = twin.find(small)[1]
        most = 500 + int(1.7 * steps * len(large) / len(small))
        try:
            twin.find(large, most)
        except TooManyStepsError:
            pytest.fail(
                f"{PATTERNS[place].pattern!r} takes {steps} steps for {len(small)} characters of "
                f"{small[:40]!r}..., and more than {most} for {len(large)}"
            )


@pytest.mark.parametrize(
    "pattern", [r"\s*\(x", r"a*a*b", r"(?:a|aa)+b", r".*?(?:b|$)c", r"<\s*/?\s*x", r"(?:a+)*b"]
)
def test_a_pattern_that_takes_back_too_much_is_noticed(pattern: str) -> None:
    twin = PatternTwin(re.compile(pattern))
    rates = []
    for n in (16, 64):
        try:
            rates.append(max(twin.find(text, 200_000)[1] / len(text) for text in hostile(twin, n)))
        except TooManyStepsError:
            rates.append(1e9)
    assert rates[1] > 2 * rates[0] or rates[0] == 1e9


@pytest.mark.parametrize("place", PATTERNS)
@settings(max_examples=20)
@given(data=st.data())
def test_the_twin_finds_what_the_pattern_finds(place: str, data: st.DataObject) -> None:
    pattern = PATTERNS[place]
    signs = st.text("ab1 \n.!'\"()<>[]:-_,\t/@é東A\\")
    pieces = st.sampled_from(list(hostile(twin_of(pattern), 1)))
    text = "".join(data.draw(st.lists(pieces | signs, max_size=6)))
    in_bytes = isinstance(pattern.pattern, bytes)
    said = text.encode("latin-1", "replace") if in_bytes else text
    found = [match.span() for match in pattern.finditer(said)]
    ours = said.decode("latin-1") if isinstance(said, bytes) else said
    assert twin_of(pattern).find(ours)[0] == found


# What each was before it was made to take no steps back.
_SENTENCE = re.compile(r".*?(?:[.!?]+[\"')\]]*(?=\s|$)|[。\uff01\uff1f]+|$)", re.DOTALL)
_BRACKETED = re.compile(r"\s*\([^)]*\)\s*$")
_ORDER = re.compile(
    r"<\s*/?\s*(?:system|assistant|user|tool|instructions?|recalled)\b|^\s*(?:system|assistant)\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_EXPORT = re.compile(r".+\.[0-9]+\.partial(\.wal|\.tmp)?")
_INSIGHT = re.compile(
    r"^\s*(?:[-*\u2022]|\d+[.)])?\s*(?P<text>.+?)\s*\(because of(?P<numbers>[^)]*)\)\s*\.?\s*$",
    re.IGNORECASE,
)


def _chunks(text: str, most: int, *, hard: bool) -> list[str]:
    chunks: list[str] = []
    for found in _SENTENCE.finditer(text):
        sentence = found[0].strip()
        parts = [sentence] if sentence else []
        while hard and parts and len(parts[-1]) > most:
            last = parts.pop()
            at = last.rfind(" ", 0, most + 1)
            at = at if at > 0 else most
            parts += [last[:at].rstrip(), last[at:].lstrip()]
        for part in parts:
            if chunks and len(chunks[-1]) + 1 + len(part) <= most:
                chunks[-1] = f"{chunks[-1]} {part}"
            else:
                chunks.append(part)
    return chunks


def _secretless(text: str) -> str:
    return re.sub(r"[?#]\S+", "?***", re.sub(r"(?<=//)\S*@|^(?!.*//)\S*@", "***@", text))


def _insights(line: str) -> list[tuple[str, tuple[int, ...]]]:
    found = _INSIGHT.match(line)
    if found is None or not _sensible(line):
        return []
    numbers = dict.fromkeys(map(int, re.findall(r"\d+", found["numbers"])))
    cited = tuple(n for n in numbers if 1 <= n <= 3)
    return [(found["text"], cited)] if cited else []


def _now_insights(line: str) -> list[tuple[str, tuple[int, ...]]]:
    known = [Event(timestamp=n, text="x", event_id=n) for n in (1, 2, 3)]
    none: Any = type("None", (), {"write": lambda *_: []})()
    found = LLMWriter(lambda _: line, fallback=none).write(known)
    return [(one.text, one.sources) for one in found if _sensible(line)]


def _sensible(line: str) -> bool:
    """Return whether there is something to be inferred, and no bracket within a bracket."""
    return "x" in line.lower().partition("(because")[0] and not re.search(r"\([^)]*\(", line)


_SAME: list[tuple[str, Callable[[str], object], Callable[[str], object], list[str]]] = [
    (
        "chunks",
        lambda text: [chunk_text(text, 4, hard_limit=hard) for hard in (False, True)],
        lambda text: [_chunks(text, 4, hard=hard) for hard in (False, True)],
        ["a", "b c", " ", "\n", ".", "!", "?", '"', ")", "。", "\u3000"],
    ),
    (
        "titles",
        title_key,
        lambda text: " ".join(re.findall(r"\w+", _BRACKETED.sub("", text) or text)),
        ["a", " b", " ", "(", ")", "\n", "c)"],
    ),
    (
        "orders",
        reads_like_an_order,
        lambda text: bool(_ORDER.search(text)),
        ["<", "/", " ", "\n", "\t", "system", "tool", "assistant", ":", "a", "\r"],
    ),
    (
        "exports",
        lambda text: bool(HALF_EXPORT.fullmatch(text)),
        lambda text: bool(_EXPORT.fullmatch(text)),
        ["a", ".", "1", "23", ".partial", ".wal", ".tmp", "\n"],
    ),
    (
        "addresses",
        without_secrets,
        _secretless,
        ["//", "/", "@", "a", ":", " ", "\n", "?", "#", "http:"],
    ),
    (
        "insights",
        _now_insights,
        _insights,
        ["(because of 1", "(Because of", "2, 3)", " 1", ")", "(", ".", " ", "x", "- ", "3) "],
    ),
]


@pytest.mark.parametrize(
    ("now", "before", "pieces"), [one[1:] for one in _SAME], ids=[one[0] for one in _SAME]
)
@settings(max_examples=1000)
@given(data=st.data())
def test_what_takes_no_steps_back_finds_what_it_did(
    now: Callable[[str], object],
    before: Callable[[str], object],
    pieces: list[str],
    data: st.DataObject,
) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=10)))
    assert now(text) == before(text)


def test_numbers_of_any_length_are_read_or_left_alone() -> None:
    many = "9" * 5000
    assert read_dates(f"What did Ann paint {many} days ago?", 1_700_000_000_000_000)[0] == []
    writer = LLMWriter(lambda _: f"It rains often (because of {many}, 1)")
    known = [Event(timestamp=1, text="rain", event_id=7)]
    assert [one.sources for one in writer.write(known)] == [(7,)]


def test_a_plain_statement_of_a_cause_is_found_as_before() -> None:
    said = "The drain was blocked, so the cellar flooded."
    assert read_answer(said).verdict == "yes"
    assert read_answer("upstream connect error, so the cellar").verdict == "unjudged"
