"""Packs memories into a token budget: decides how many fit, cuts those too long."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cvx.errors import InvalidInputError
from cvx.escaping import quoted
from cvx.render.block import Entry, Renderer
from cvx.store.prompt_injection import tags_with_mark
from cvx.tokens import CountTokens, estimate_tokens
from cvx.types import Event

Summarise: TypeAlias = Callable[[Sequence[str], int], str]
"""From texts and a number of tokens to one text about them, such as a language model's."""

_SENTENCE = re.compile(r"[^.!?\n\u3002]+[.!?\u3002]*")
_WORD = re.compile(r"\w+")
_SHORTEST = 24
CHARACTERS_A_TOKEN = 8
"""So many at the most, whatever counts the tokens."""
_MISSES = 8
"""So many memories in a row that have no room end the search for one that has."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The token budget of a context.

    Parameters
    ----------
    tokens : int, default 500
        At least 0, of which nothing fits.
    count : callable, default estimate_tokens
        From a text to tokens.
    summarise : callable, optional
        Makes one text of all memories where they do not fit; by default the best are shown whole.

    Raises
    ------
    InvalidInputError
        A negative budget, or NaN.
    """

    tokens: int = 500
    count: CountTokens = estimate_tokens
    summarise: Summarise | None = None

    def __post_init__(self) -> None:
        if not self.tokens >= 0:
            raise InvalidInputError(f"budget_tokens is {self.tokens}: give 0 or more")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A block that fits its budget.

    Parameters
    ----------
    text : str
        The block; empty where nothing fits.
    tokens : int
        Its size, never above the budget.
    shown : tuple of int
        Which memories it shows, as places in what was given.
    tried : int
        How many of those given were looked at: what comes later has no room.
    compacted : int
        How many of those shown are shortened or summarised.
    problem : str
        Why a summary was not used.
    """

    text: str
    tokens: int
    shown: tuple[int, ...]
    tried: int
    compacted: int = 0
    problem: str = ""


def first_within(
    texts: Iterable[str], tokens: int | None, count: CountTokens = estimate_tokens
) -> str:
    """Return the first of ever shorter texts that a budget has room for.

    Parameters
    ----------
    texts : iterable of str
        The longest first; made one by one.
    tokens : int or None
        The budget; None for one without bounds.
    count : callable, default estimate_tokens
        From a text to tokens.

    Returns
    -------
    str
        Empty if none fits.

    Examples
    --------
    >>> first_within(["the key is under the pot", "the key"], 3)
    'the key'
    """
    return next((text for text in texts if tokens is None or count(text) <= tokens), "")


def fit(
    events: Sequence[Event],
    cue: str,
    budget: Budget,
    renderer: Renderer,
    spanned: tuple[int, ...] = (),
) -> Fitted:
    """Render as many memories as there is room for, the best first, each whole.

    Where the next one has no room, a later one that has may be shown. One that the budget alone is
    too small for is shortened to the sentences that share most with the cue, at least 24
    characters, and takes half of the budget where there are others.

    Parameters
    ----------
    events : sequence of Event
        Best first.
    cue : str
        What they were recalled for.
    budget : Budget
        The room there is.
    renderer : Renderer
        How they are shown.
    spanned : tuple of int
        Places of two memories: where both are shown, so is the time between them.
    """
    problem = ""
    if budget.summarise is not None and events:
        whole = [renderer.entry(event, event.text) for event in events]
        if budget.count(renderer.block(whole)) > budget.tokens:
            summed = _summarised(events, budget, renderer)
            if isinstance(summed, Fitted):
                return summed
            problem = summed
    packer = _Packer(events, cue, budget, renderer, spanned)
    block, shown, tried = packer.packed()
    cut = sum(place in packer.shortened for place in shown)
    return Fitted(block, budget.count(block) if block else 0, shown, tried, cut, problem)


class _Packer:
    """The memories of one block, each rendered once however many blocks are tried."""

    def __init__(
        self,
        events: Sequence[Event],
        cue: str,
        budget: Budget,
        renderer: Renderer,
        spanned: tuple[int, ...],
    ) -> None:
        self._events, self._budget, self._renderer = events, budget, renderer
        self._spanned = spanned
        self._sought = {word.casefold() for word in _WORD.findall(cue)}
        self._entries: dict[int, Entry | None] = {}
        self.shortened: set[int] = set()

    def packed(self) -> tuple[str, tuple[int, ...], int]:
        """Return the block, what it shows, and how many were looked at."""
        best, shown = "", list[int]()
        low, high = 0, len(self._events)
        # As many of the best as fit together, by halving; then single ones that still fit.
        step = 1
        while low < high:
            middle = min(low + step, high)
            places = [place for place in range(middle) if self._entry(place) is not None]
            block = self._fitting(places)
            if block is None:
                high = middle - 1
                step = max((high - low + 1) // 2, 1)
            else:
                best, shown, low = block, places, middle
                step = min(2 * step, max((high - low + 1) // 2, 1))
        misses, at = 0, low
        room = self._budget.tokens - self._budget.count(best)
        while at < len(self._events) and misses < _MISSES:
            entry, block = self._entry(at), None
            if entry is not None and self._budget.count(entry.text) <= room:
                block = self._fitting([*shown, at])
            if block is None:
                misses += 1
            else:
                best, misses = block, 0
                room = self._budget.tokens - self._budget.count(best)
                shown.append(at)
            at += 1
        return best, tuple(shown), at

    def _fitting(self, places: Sequence[int]) -> str | None:
        entries = [entry for place in places if (entry := self._entry(place)) is not None]
        both = self._spanned if {*self._spanned} <= {*places} else ()
        block = self._renderer.block(entries, [self._events[place] for place in both])
        return block if self._budget.count(block) <= self._budget.tokens else None

    def _entry(self, place: int) -> Entry | None:
        """Return a memory as it may be shown by itself, None where there is no room for it."""
        if place not in self._entries:
            event = self._events[place]
            entry: Entry | None = self._renderer.entry(event, event.text)
            if not self._fits(entry, self._budget.tokens):
                entry = self._excerpt(event)
                self.shortened.add(place)
            self._entries[place] = entry
        return self._entries[place]

    def _fits(self, entry: Entry | None, tokens: int) -> bool:
        if entry is None or self._budget.count(entry.text) > tokens:
            return False
        return self._budget.count(self._renderer.block([entry])) <= tokens

    def _excerpt(self, event: Event) -> Entry | None:
        """Find the greatest length to which a text may be cut; None where the least is too much."""
        tokens = self._budget.tokens
        ranked = RankedSentences(event.text, self._sought)
        lengths = range(
            _SHORTEST, max(_SHORTEST, min(len(event.text), CHARACTERS_A_TOKEN * tokens))
        )
        for room in (tokens // 2, tokens) if len(self._events) > 1 else (tokens,):

            def too_long(length: int, room: int = room) -> bool:
                return not self._fits(self._renderer.entry(event, ranked.excerpt(length)), room)

            # The least first: where that does not fit, nothing longer does.
            if not too_long(_SHORTEST):
                fitting = bisect_left(lengths, x=True, lo=1, key=too_long)
                return self._renderer.entry(event, ranked.excerpt(_SHORTEST + fitting - 1))
        return None


class RankedSentences:
    """The sentences of a text, cut and ranked once however many lengths are tried.

    Parameters
    ----------
    text : str
        Anything.
    sought : set of str
        Words in lower case: sentences that hold most of them come first.

    Examples
    --------
    >>> said = RankedSentences("We met in May. The key is under the pot. It rained.", {"key"})
    >>> said.excerpt(30)
    'The key is under the pot. …'
    """

    def __init__(self, text: str, sought: set[str]) -> None:
        self.text = text
        found = (match.group().strip() for match in _SENTENCE.finditer(text))
        self._sentences = [sentence for sentence in found if sentence]
        worth = [
            sum(word.casefold() in sought for word in _WORD.findall(sentence))
            for sentence in self._sentences
        ]
        self._ranks = sorted(range(len(worth)), key=lambda at: (-worth[at], at))

    def excerpt(self, length: int) -> str:
        """Return the best sentences, in their order, within so many characters, at least 2."""
        if len(self.text) <= length:
            return self.text
        room, chosen = length - 2, list[int]()
        for place in self._ranks:
            if len(self._sentences[place]) + 1 <= room:
                chosen.append(place)
                room -= len(self._sentences[place]) + 1
        if chosen:
            return " ".join(self._sentences[place] for place in sorted(chosen)) + " …"
        best = self._sentences[self._ranks[0]] if self._ranks else self.text.strip()
        cut = best[: length - 1]
        # At a space where there is one not far back: scripts without spaces are cut anywhere.
        space = cut.rfind(" ")
        return (cut[:space] if space > length // 2 else cut).rstrip() + "…"


def _summarised(events: Sequence[Event], budget: Budget, renderer: Renderer) -> Fitted | str:
    """One memory made of all, labelled as an inference; or why there is none."""
    assert budget.summarise is not None
    frame = replace(
        max(events, key=lambda event: event.timestamp),
        text="",
        kind="summary",
        tags=(),
        metadata={},
        trust=min(event.trust for event in events),
        source=f"summary of {len(events)} memories",
    )
    room = budget.tokens - budget.count(renderer.block([renderer.entry(frame, "")]))
    if room <= 0:
        return "summary: the budget has no room for one"
    try:
        text = budget.summarise([event.text for event in events], room)
    except Exception as error:
        return f"summary: {type(error).__name__}: {error}"
    # What hides, or is half a character, is a space in the block.
    if not isinstance(text, str) or not quoted(text).strip():
        return f"summary: {text!r:.40} is no text: give one that says something"
    block = renderer.block([renderer.entry(replace(frame, tags=tags_with_mark((), text)), text)])
    size = budget.count(block)
    if size > budget.tokens:
        return f"summary: {size} tokens for {budget.tokens}"
    return Fitted(block, size, tuple(range(len(events))), len(events), len(events))
