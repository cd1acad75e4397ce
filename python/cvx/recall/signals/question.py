"""A question, read once for all signals."""

from __future__ import annotations

from dataclasses import dataclass

from cvx.recall.signals.dates import DateNamed, read_dates
from cvx.recall.signals.forms import answer_wanted
from cvx.recall.signals.view import View
from cvx.recall.words import content_words, plain_words, without

_MOST_WORDS = 32


@dataclass(frozen=True)
class Question:
    """What a question asks, taken apart.

    Parameters
    ----------
    asked : str
        As it was asked.
    text : str
        What is looked for literally: its content words, or all of it where there are none.
    bare : str
        Without the names of entities: what is to be embedded, because a name pulls up what is
        said *to* its bearer. The question as asked, where nothing else is left.
    words : tuple of str
        Its content words without names and dates, each once, 32 at the most.
    entities : frozenset of int
        Who is named.
    dates : tuple of DateNamed
        When.
    wanted : int
        The form of the answer, see ``forms``.
    """

    asked: str
    text: str
    bare: str
    words: tuple[str, ...]
    entities: frozenset[int] = frozenset()
    dates: tuple[DateNamed, ...] = ()
    wanted: int = 0


def read_question(text: str, view: View) -> Question:
    """Take a question apart, with what a view knows of names and of the time.

    Parameters
    ----------
    text : str
        The question.
    view : View
        Where it is asked.
    """
    known = view.names
    names = frozenset(word for word in plain_words(text) if word in known)
    bare = without(text, names) if names else text
    if not content_words(bare):
        bare = text
    dates, undated = read_dates(bare, view.now)
    words = tuple(dict.fromkeys(content_words(undated)))[:_MOST_WORDS]
    return Question(
        asked=text,
        text=" ".join(words) or text,
        bare=bare,
        words=words,
        entities=frozenset().union(*(known[name] for name in names)),
        dates=tuple(dates),
        wanted=answer_wanted(text),
    )
