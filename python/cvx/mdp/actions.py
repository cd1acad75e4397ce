"""Kinds of action and phases of an episode: the default reading of commands."""

from __future__ import annotations

from collections.abc import Sequence

_FIRST_WORD = {
    "go": "go_to",
    "take": "take",
    "pick": "take",
    "put": "put",
    "move": "put",
    "clean": "clean",
    "heat": "heat",
    "cool": "cool",
    "use": "use",
    "toggle": "use",
    "open": "open",
    "close": "close",
    "examine": "examine",
}


def classify_action(action: str) -> str:
    """Return the kind of a household command by its first word.

    Any function from a command to a word may take its place wherever the library asks for one.

    Parameters
    ----------
    action : str
        Such as "go to fridge 1".

    Returns
    -------
    str
        "go_to", "take", "put", "clean", "heat", "cool", "use", "open", "close", "examine" or
        "other".

    Examples
    --------
    >>> [classify_action(a) for a in ("go to fridge 1", "put mug 1 in sink 1", "sing")]
    ['go_to', 'put', 'other']
    """
    words = action.split(None, 1)
    return _FIRST_WORD.get(words[0].lower(), "other") if words else "other"


def last_kind(done: Sequence[str]) -> str:
    """Return the phase of an episode: the kind of action that was done last, at first "start".

    Any function from the kinds of action done so far to a word may take its place wherever the
    library asks for one.

    Examples
    --------
    >>> last_kind([]), last_kind(["go_to", "take"])
    ('start', 'take')
    """
    return done[-1] if done else "start"
