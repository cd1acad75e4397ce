"""Sentences from texts that somebody else wrote: clauses ("it rained") and names ("a flood")."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cvx.escaping import quoted_line

_STARTERS = """
a an the this that these those it he she they we there my our your his her its their some all both
every each no nobody nothing everyone after before during when while first second third last new
several many few most two three four five
"""
# Finite verbs that carry no ending of their own; enough to tell a clause from a name.
_VERBS = """
am is are was were be been has have had does do did will would can could may might must shall
should isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't can't became
began broke brought bought came caught chose cut drew drove ate fell felt fought found flew forgot
froze gave got grew heard held hid hit hurt kept knew laid led left lent let lost made meant met
paid put quit ran rang read rose said sang sat saw sent set shook shot shut slept sold spent spoke
spread stole stood struck swam took taught thought threw told tore went withdrew woke won wore wrote
"""
_STARTS = frozenset(_STARTERS.split())
_FINITE = frozenset(_VERBS.split())
_WORD = re.compile(r"[A-Za-z']+")


def middle(text: str) -> str:
    """Return a text for the middle of a sentence: one line, no full stop, no capital "The".

    Examples
    --------
    >>> middle("The cellar flooded. "), middle("Adisa resigned!")
    ('the cellar flooded', 'Adisa resigned!')
    """
    line = quoted_line(text).rstrip(". ")
    first = line.split(" ", 1)[0]
    return line[:1].lower() + line[1:] if first.lower() in _STARTS else line


def sentence(text: str) -> str:
    """Return a text as a sentence: a capital first, a stop last.

    Examples
    --------
    >>> sentence("the cellar flooded"), sentence("Why?")
    ('The cellar flooded.', 'Why?')
    """
    line = quoted_line(text)
    if not line:
        return "Something happened that left no words."
    return line[:1].upper() + line[1:] + ("" if line[-1] in ".!?\u2026" else ".")


def is_clause(text: str) -> bool:
    """Tell whether a text says that something happened, or only names it.

    Examples
    --------
    >>> is_clause("the dam broke"), is_clause("Merchants reported it"), is_clause("a dry winter")
    (True, True, False)
    """
    words = [word.lower() for word in _WORD.findall(text)]
    return any(word in _FINITE for word in words) or any(
        word.endswith("ed") and len(word) > 3 for word in words[1:]
    )


def because(text: str, how: str = "") -> str:
    """Return a text as a reason.

    Examples
    --------
    >>> because("It rained", "the drain is small"), because("a dry winter")
    ('because it rained (the drain is small)', 'because of a dry winter')
    """
    word = "because" if is_clause(text) else "because of"
    return f"{word} {named(text)}{bracketed(how)}"


def result_of(text: str, how: str = "") -> str:
    """Return a text as what something was the result of.

    Examples
    --------
    >>> result_of("A dry winter."), result_of("It rained.")
    ('a result of a dry winter', 'a result of something earlier: it rained')
    """
    earlier = "something earlier: " if is_clause(text) else ""
    return f"a result of {earlier}{named(text)}{bracketed(how)}"


def named(text: str) -> str:
    """Return a text for the middle of a sentence, also where it is empty."""
    return middle(text) or "something that left no words"


def bracketed(how: str) -> str:
    """Return how one thing led to another, in brackets; nothing for nothing."""
    return f" ({middle(how)})" if how.strip() else ""


def joined(parts: Sequence[str]) -> str:
    """Return parts as one list in words.

    Examples
    --------
    >>> joined(["a", "b", "c"]), joined(["a"])
    ('a, b, and c', 'a')
    """
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
