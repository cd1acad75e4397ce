"""Titles, compared by their words."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")


def title_key(title: str) -> str:
    """Return what two spellings of a title share: its words, in lower case, without brackets.

    Examples
    --------
    >>> title_key("The Thaw (film)"), title_key("Ann's  horse")
    ('the thaw', 'ann horse')
    """
    words = _WORD.findall(_without_brackets(title) or title)
    return " ".join(word.replace("\u2019", "'").partition("'")[0].casefold() for word in words)


def _without_brackets(title: str) -> str:
    """Return a title without what stands in brackets at its end."""
    bare = title.rstrip()
    opening = bare.find("(", bare.rfind(")", 0, -1) + 1) if bare.endswith(")") else -1
    return title if opening < 0 else bare[:opening].rstrip()
