"""Making memories fit a budget: everything is shortened before anything is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cvx.errors import InvalidInputError
from cvx.recall.render import Renderer
from cvx.recall.tokens import CountTokens, estimate_tokens
from cvx.store.suspicion import tags_with_mark
from cvx.types import Event

Summarise: TypeAlias = Callable[[Sequence[str], int], str]
"""From texts and a number of tokens to one text about them, such as a language model's."""

_SENTENCE = re.compile(r"[^.!?\n\u3002]+[.!?\u3002]*")
_WORD = re.compile(r"\w+")
_SHORTEST = 24
_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Budget:
    """How much room memories have in a prompt.

    Parameters
    ----------
    tokens : int, default 512
        At least 0, of which nothing fits.
    count : callable, default estimate_tokens
        From a text to tokens.
    summarise : callable, optional
        Compacts what does not fit; by default the sentences nearest to the cue are kept.

    Raises
    ------
    InvalidInputError
        A negative budget, or NaN.
    """

    tokens: int = 512
    count: CountTokens = estimate_tokens
    summarise: Summarise | None = None

    def __post_init__(self) -> None:
        if not self.tokens >= 0:
            raise InvalidInputError(f"budget_tokens is {self.tokens}: give 0 or more")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A block that fits.

    Parameters
    ----------
    text : str
        The block; empty where nothing fits.
    tokens : int
        Its size, never above the budget.
    shown : tuple of int
        Which memories it shows, as places in what was given.
    compacted : int
        How many of them are shown shortened or summarised.
    problem : str
        Why a summary was not used.
    """

    text: str
    tokens: int
    shown: tuple[int, ...]
    compacted: int
    problem: str = ""


def fit(events: Sequence[Event], cue: str, budget: Budget, renderer: Renderer) -> Fitted:
    """Render memories within a budget.

    As they are, if they fit. Else all of them shortened alike, to the sentences that share most
    with the cue, as long as each keeps at least 24 characters. Only what does not fit even so is
    left out, last first, and the block says how many.

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
    """
    texts = [event.text for event in events]
    whole = _render(events, texts, 0, renderer)
    size = budget.count(whole)
    if size <= budget.tokens:
        return Fitted(whole, size, tuple(range(len(events))) if whole else (), 0)
    problem = ""
    if budget.summarise is not None:
        summed = _summarised(events, texts, budget, renderer)
        if isinstance(summed, Fitted):
            return summed
        problem = summed
    sought = {word.casefold() for word in _WORD.findall(cue)}
    ranked = [RankedSentences(text, sought) for text in texts]
    for kept in range(len(events), 0, -1):
        fitted = _shortened(events[:kept], ranked, budget, renderer)
        if fitted is not None:
            return replace(fitted, problem=problem)
    return Fitted("", budget.count("") if budget.tokens else 0, (), 0, problem)


def _render(
    events: Sequence[Event], texts: Sequence[str], left_out: int, renderer: Renderer
) -> str:
    note = f"({left_out} more did not fit)" if left_out else ""
    return renderer.block(list(zip(events, texts, strict=True)), note)


def _shortened(
    events: Sequence[Event],
    ranked: Sequence[RankedSentences],
    budget: Budget,
    renderer: Renderer,
) -> Fitted | None:
    """Find the greatest length to which each text may be cut; None where the least is too much."""
    best: Fitted | None = None
    low, high = _SHORTEST, max(_SHORTEST, *(len(event.text) for event in events))
    # The least first: where that does not fit, nothing longer does.
    length = low
    for _ in range(_ROUNDS):
        texts = [one.excerpt(length) for one in ranked[: len(events)]]
        block = _render(events, texts, len(ranked) - len(events), renderer)
        size = budget.count(block)
        if size <= budget.tokens:
            cut = sum(text != event.text for text, event in zip(texts, events, strict=True))
            best = Fitted(block, size, tuple(range(len(events))), cut)
            low = length
        elif best is None:
            return None
        else:
            high = length
        if high - low <= 1:
            break
        length = (low + high + 1) // 2
    return best


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


def _summarised(
    events: Sequence[Event], texts: Sequence[str], budget: Budget, renderer: Renderer
) -> Fitted | str:
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
    room = budget.tokens - budget.count(renderer.block([(frame, "")]))
    if room <= 0:
        return "summary: the budget has no room for one"
    try:
        text = budget.summarise(texts, room)
    except Exception as error:
        return f"summary: {type(error).__name__}: {error}"
    if not isinstance(text, str) or not text.strip():
        return f"summary: {text!r:.40} is no text: give one that says something"
    block = renderer.block([(replace(frame, tags=tags_with_mark((), text)), text)])
    size = budget.count(block)
    if size > budget.tokens:
        return f"summary: {size} tokens for {budget.tokens}"
    return Fitted(block, size, tuple(range(len(events))), len(events))
