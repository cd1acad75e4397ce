"""Which texts speak of what other texts are about: found when a text is written.

A title, or a name, stands for the text that is about it. Every text in which a title occurs, word
for word, mentions it; the link leads from the text that mentions to the text that is about, and
never back: what speaks of Paris does not answer what Paris is, but what Paris is may complete it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cvx.recall.titles import title_key
from cvx.recall.words import content_words, plain_words

_LONGEST = 12


class Mention(NamedTuple):
    """One title within one text.

    Attributes
    ----------
    about : int
        What the title belongs to.
    title : str
        The words that were found, folded in case.
    """

    about: int
    title: str


def title_words(title: str) -> tuple[str, ...]:
    """Return the words of a title, folded in case, without what distinguishes it in brackets.

    Examples
    --------
    >>> title_words("Lilu (mythology)")
    ('lilu',)
    """
    return tuple(title_key(title).split())


class Titles:
    """Titles by their words.

    Only titles that hold a content word count, of at most 12 words; a title of a single word has to
    begin with a capital in the text, since "Heat" is a film and heat is not.

    Examples
    --------
    >>> titles = Titles()
    >>> titles.add(1, "Lilu (mythology)")
    >>> titles.add(2, "Demon Dice")
    >>> titles.mentioned("Lilu is no demon; Demon Dice has many.")
    [Mention(about=1, title='lilu'), Mention(about=2, title='demon dice')]
    """

    def __init__(self) -> None:
        self._about: dict[tuple[str, ...], list[int]] = {}
        self._longest: dict[str, int] = {}

    def add(self, about: int, title: str) -> None:
        """Say what a title belongs to; several may share one."""
        words = title_words(title)
        if not 0 < len(words) <= _LONGEST or not content_words(" ".join(words)):
            return
        self._about.setdefault(words, []).append(about)
        self._longest[words[0]] = max(len(words), self._longest.get(words[0], 0))

    def mentioned(self, text: str) -> list[Mention]:
        """Return what a text mentions, each once, in the order of the text.

        Where one title contains another ("New York City", "New York"), the longest counts.
        """
        out: dict[int, Mention] = {}
        for words in self._found(text):
            for about in self._about[words]:
                out.setdefault(about, Mention(about, " ".join(words)))
        return list(out.values())

    def _found(self, text: str) -> Iterator[tuple[str, ...]]:
        # Both lists hold the same words, the one as written and the other folded.
        folded = plain_words(text)
        written = plain_words(text, fold=False)
        at = 0
        while at < len(folded):
            for length in range(self._longest.get(folded[at], 0), 0, -1):
                words = tuple(folded[at : at + length])
                if words in self._about and (length > 1 or written[at][:1].isupper()):
                    yield words
                    at += length - 1
                    break
            at += 1
