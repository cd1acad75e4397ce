"""Splits long texts into chunks between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cvx.arguments import whole

# A sentence ends with its marks, and what closes a quotation or a bracket after them.
_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?!\S)|[。\uff01\uff1f]++")


def chunk_text(text: str, max_chars: int = 300, *, hard_limit: bool = False) -> list[str]:
    """Cut a text between sentences into chunks of a bounded length.

    Parameters
    ----------
    text : str
        Any text.
    max_chars : int, default 300
        A chunk ends before the sentence that would make it longer; at least 1.
    hard_limit : bool, default False
        Also cut a single sentence that is longer, between words where it has any; by default it
        stays whole.

    Returns
    -------
    list of str
        In order, without white space around them; empty for a text without any characters.

    Raises
    ------
    InvalidInputError
        max_chars below 1.

    Examples
    --------
    >>> chunk_text("It rained. The cellar flooded! Why? Nobody knew.", max_chars=30)
    ['It rained. The cellar flooded!', 'Why? Nobody knew.']
    """
    whole(1)("max_chars", max_chars)
    chunks: list[list[str]] = []
    room = 0
    for sentence in _sentences(text):
        for part in _cut(sentence, max_chars) if hard_limit else [sentence]:
            if chunks and len(part) < room:
                chunks[-1].append(part)
                room -= len(part) + 1
            else:
                chunks.append([part])
                room = max_chars - len(part)
    return [" ".join(parts) for parts in chunks]


def _sentences(text: str) -> Iterator[str]:
    begin = 0
    for end in (*(found.end() for found in _END.finditer(text)), len(text)):
        sentence = text[begin:end].strip()
        if sentence:
            yield sentence
        begin = end


def _cut(sentence: str, most: int) -> Iterator[str]:
    begin = 0
    while len(sentence) - begin > most:
        at = sentence.rfind(" ", begin, begin + most + 1)
        at = at if at > begin else begin + most
        yield sentence[begin:at].rstrip()
        begin = at
        while sentence[begin].isspace():
            begin += 1
    yield sentence[begin:]
