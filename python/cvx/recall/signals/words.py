"""The words of a text that say what it is about.

A word is a run of letters and digits, folded in case; stems are the business of the full-text
index. Scripts written without spaces are cut into overlapping pairs, as that index does. Words that
carry no content (articles, pronouns, auxiliaries, question words, greetings) are left out.
"""

from __future__ import annotations

import re

from cvx.store.fulltext import pairs

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")

QUESTION_WORDS = frozenset("what when where which who whom whose why how".split())  # noqa: SIM905
"""Words that ask and do not describe what is asked for."""

_CONTENTLESS = QUESTION_WORDS | frozenset(
    """
    a an the this that these those there here it its he him his she her hers they them their theirs
    we us our ours you your yours i me my mine myself yourself himself herself itself themselves
    ourselves one ones someone somebody anyone anybody everyone everybody something anything nothing
    everything am is are was were be been being do does did doing done have has had having will
    would shall should can could may might must ought let lets and or but nor so if then than as at
    by for from in into of off on onto out over to up with without about after before during until
    while because since between through under above below again against both each few more most
    other others some any such no not only own same too very just also ever never yet still already
    even though although however when whether yes yeah yep nope ok okay oh ah hey hi hello wow well
    really quite much many lot lots kind kinds sort sorts type types example examples item
    items bit thing things way ways mention mentioned mentions s t d m ll re ve don didn doesn
    isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain cannot
    """.split()  # noqa: SIM905
)


def content_words(text: str) -> list[str]:
    """Return the words that carry content, in order, with repetitions.

    Parameters
    ----------
    text : str
        Anything.

    Returns
    -------
    list of str

    Examples
    --------
    >>> content_words("When did Ann's sisters go painting?")
    ['ann', 'sisters', 'go', 'painting']
    >>> content_words("東京都 2023")
    ['2023', '東京', '京都']
    """
    out: list[str] = []
    unspaced = False
    for match in _WORD.findall(text):
        word = _stripped(match)
        if word in _CONTENTLESS:
            continue
        if pairs(word):
            unspaced = True
            continue
        out.append(word)
    if unspaced:
        found = pairs(text)
        out += [gram for gram in found if len(gram) == 2] or found
    return out


def plain_words(text: str, *, fold: bool = True) -> list[str]:
    """Return every word without the ending of a genitive, in order.

    Parameters
    ----------
    text : str
        Anything.
    fold : bool, default True
        Fold the case.

    Examples
    --------
    >>> plain_words("Ann's sister")
    ['ann', 'sister']
    """
    return [_stripped(word, fold=fold) for word in _WORD.findall(text)]


def without(text: str, words: frozenset[str]) -> str:
    """Return a text without some words, and without the genitives of them.

    Parameters
    ----------
    text : str
        Anything.
    words : frozenset of str
        Folded in case.

    Examples
    --------
    >>> without("When did Ann's sister call Bob?", frozenset({"ann", "bob"}))
    'When did sister call ?'
    """

    def kept(match: re.Match[str]) -> str:
        return "" if _stripped(match.group()) in words else match.group()

    return " ".join(_WORD.sub(kept, text).split())


def _stripped(word: str, *, fold: bool = True) -> str:
    """Drop what follows an apostrophe."""
    bare = word.replace("\u2019", "'").partition("'")[0]
    return bare.casefold() if fold else bare
