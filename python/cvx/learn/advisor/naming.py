"""How far a goal and a text name an action, whichever action it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np

from cvx.learn.transition_counts import Floats

NAMED = 3
"""How many numbers tell how far an action is named."""

_NARROW = 8.0
"""How quickly pairs become unlike whose actions are named more or less."""


_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@lru_cache(maxsize=1 << 14)
def _parts(text: str) -> tuple[tuple[str, str], ...]:
    """Return the words of a text, each with what it is a part of: read_mail, readMail are two."""
    return tuple(
        (part, whole.casefold())
        for whole in re.findall(r"\w+", text)
        for part in re.findall(r"[^\W_]+", _CAMEL.sub(" ", whole).casefold())
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(part for part, _ in _parts(text))


@lru_cache(maxsize=1 << 12)
def _line(text: str) -> tuple[frozenset[str], str]:
    words = _words(text)
    # Texts come in small letters: "readmail" is readMail.
    return frozenset(words).union(whole for _, whole in _parts(text)), _spaced(words)


def _spaced(words: Iterable[str]) -> str:
    # Two spaces, so that what is said twice in a row is found twice.
    return f" {'  '.join(words)} "


@lru_cache(maxsize=1 << 10)
def usual_words(actions: tuple[str, ...]) -> frozenset[str]:
    """Return the words that more than half of several actions hold: they tell none apart.

    Examples
    --------
    >>> sorted(usual_words(("buy the red lamp", "buy the red mug", "buy the blue mug")))
    ['buy', 'mug', 'red', 'the']
    """
    each = [{*_words(action)} for action in dict.fromkeys(actions)]
    often = Counter(word for words in each for word in words)
    return frozenset(word for word, n in often.items() if 2 * n > len(each) > 1)


def naming(goal: str, text: str, action: str, usual: frozenset[str]) -> tuple[float, float, float]:
    """Return how far an action is named: by the goal, by the text, and there more than once.

    Parameters
    ----------
    goal, text, action : str
    usual : frozenset of str
        Words that do not count.

    Returns
    -------
    tuple of three floats in [0, 1]
        Of the action's other words, the share that the goal holds; the share that the text holds;
        and 1 if the text holds all of them, side by side, more than once, as a text does that
        lists what there is and says what is wanted.

    Examples
    --------
    >>> text = "On the shelf: a red mug, a blue mug. The customer wants the red mug."
    >>> naming("sell a mug", text, "hand over the red mug", frozenset({"hand", "over", "the"}))
    (0.5, 1.0, 1.0)
    """
    own = [(part, whole) for part, whole in _parts(action) if part not in usual]
    if not own:
        return 0.0, 0.0, 0.0
    (asked, _), (seen, line) = _line(goal), _line(text)
    again = line.count(_spaced(part for part, _ in own)) > 1
    by_goal, by_text = (
        sum(part in held or whole in held for part, whole in own) for held in (asked, seen)
    )
    return by_goal / len(own), by_text / len(own), float(again)


@lru_cache(maxsize=1 << 12)
def _places(text: str) -> tuple[tuple[str, ...], Mapping[str, list[int]]]:
    """Return the words of a text, and where each stands."""
    found: dict[str, list[int]] = {}
    words = _words(text)
    for at, (part, whole) in enumerate(_parts(text)):
        for word in {part, whole}:
            found.setdefault(word, []).append(at)
    return words, found


def beside(goal: str, text: str, action: str, usual: frozenset[str]) -> list[tuple[int, str]]:
    """Return the words that stand beside an action's own, where the goal or the text names it.

    Parameters
    ----------
    goal, text, action : str
    usual : frozenset of str
        Words that do not count as the action's own.

    Returns
    -------
    list of (int, str)
        Each once: 0 for one of the two words before, 1 for one of the two after.

    Examples
    --------
    >>> beside("book it", "Ana owes Bob five euros.", "charge Bob", frozenset({"charge"}))
    [(0, 'owes'), (0, 'ana'), (1, 'five'), (1, 'euros')]
    """
    own = {word for part, whole in _parts(action) if part not in usual for word in (part, whole)}
    out: dict[tuple[int, str], None] = {}
    for words, places in map(_places, (goal, text)):
        for at in sorted({at for word in own for at in places.get(word, ())}):
            for side, near in enumerate((words[max(0, at - 2) : at][::-1], words[at + 1 : at + 3])):
                out.update(((side, word), None) for word in near if word not in own)
    return [*out]


def alike(a: Floats, b: Floats) -> Floats:
    """Return how alike actions are in how far they are named: 0 where one of two is not named.

    Parameters
    ----------
    a, b : ndarray of shape (n, 3) and (m, 3)
        As ``naming`` returns them.

    Returns
    -------
    ndarray of shape (n, m)
        In [0, 1], a covariance: the cosine of two rows times exp(-8 d**2) of their distance d.
    """
    dot, size, other = a @ b.T, np.square(a).sum(1), np.square(b).sum(1)
    away = np.maximum(size[:, None] + other[None, :] - 2.0 * dot, 0.0)
    lengths = np.sqrt(size[:, None] * other[None, :])
    cosine = np.divide(dot, lengths, out=np.zeros_like(dot), where=lengths > 0.0)
    return np.asarray(cosine * np.exp(-_NARROW * away))
