"""Parses goals and commands: function words, names, instances, shapes; no domain words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

FUNCTION_WORDS = frozenset(
    re.split(r"\W+", "a an the some it its them and or in on to from with at under into is you")
)
_KEPT = 65536  # of how many commands the parts are kept: the same ones are read again at each step
_WORD = re.compile(r"#|[a-z][a-z'-]*|\d+|\{\d+(?:\.\d+)?\}")


def joined(text: str) -> str:
    """Return a text as one word, of which advice takes no part for the name of an action.

    What is between its words becomes a letter: an underscore would be taken for the end of one
    (rfc 0102).

    Examples
    --------
    >>> joined("last walk to x")
    'last\ua78fwalk\ua78fto\ua78fx'
    """
    return re.sub(r"\W+", "\ua78f", text)


class Argument(NamedTuple):
    """What a command names: the words between its first word, function words and numbers.

    Attributes
    ----------
    position : (str, int)
        The shape of the command, and the place among its arguments.
    word : str
        The name; several words are joined by blanks.
    instance : str
        The name with the number that follows it, if there is one.
    """

    position: tuple[str, int]
    word: str
    instance: str


def words(text: str) -> list[str]:
    """Return words, numbers and variables, in lower case."""
    return _WORD.findall(text.lower())


@lru_cache(_KEPT)
def shape(command: str) -> str:
    """Return a command's first word and its function words, with # for everything else.

    Examples
    --------
    >>> shape("hang felt hat 1 on peg 12")
    'hang # on #'
    """
    out: list[str] = []
    for place, word in enumerate(words(command)):
        part = word if place == 0 or word in FUNCTION_WORDS else "#"
        if part != "#" or out[-1] != "#":
            out.append(part)
    return " ".join(out)


@lru_cache(_KEPT)
def unnumbered(command: str) -> str:
    """Return a command without the numbers of instances."""
    return " ".join(w for w in words(command) if not w.isdigit())


def kind(instance: str) -> str:
    """Return the name of an instance without its number.

    Examples
    --------
    >>> kind("felt hat 3"), kind("felt hat")
    ('felt hat', 'felt hat')
    """
    return instance.rstrip("0123456789").rstrip()


@lru_cache(_KEPT)
def arguments(command: str) -> Sequence[Argument]:
    """Return the arguments of a command.

    Examples
    --------
    >>> [a.instance for a in arguments("hang felt hat 1 on peg 12")]
    ['felt hat 1', 'peg 12']
    """
    form = shape(command)
    named = [run for run in _runs(words(command)) if run.name]
    return tuple(
        Argument((form, place), run.name, f"{run.name} {run.number}".rstrip())
        for place, run in enumerate(named)
    )


def renamed(command: str, names: dict[str, str]) -> str:
    """Return a command without numbers, with other names for some of what it names.

    Examples
    --------
    >>> renamed("hang felt hat 1 on peg 12", {"felt hat": "{0.0}"})
    'hang {0.0} on peg'
    """
    runs = _runs(words(command))
    return " ".join(names.get(r.name, r.name) if r.name else r.other for r in runs).strip()


def spans(text: str, names: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield a text in pieces: names, each as long as can be, and the single words between them.

    Examples
    --------
    >>> list(spans("hang a felt hat", ["hat", "felt hat"]))
    [('hang', False), ('a', False), ('felt hat', True)]
    """
    said, known = words(text), {tuple(words(name)) for name in names}
    sizes = sorted({len(name) for name in known if name}, reverse=True)
    place = 0
    while place < len(said):
        size = next((n for n in sizes if tuple(said[place : place + n]) in known), 0)
        yield " ".join(said[place : place + (size or 1)]), bool(size)
        place += size or 1


def template(goal: str, slots: Sequence[str]) -> str:
    """Return a goal with numbered gaps in the place of its names.

    Examples
    --------
    >>> template("hang a felt hat on the peg", ("felt hat", "peg"))
    'hang a {0} on the {1}'
    """
    return " ".join(f"{{{slots.index(w)}}}" if named else w for w, named in spans(goal, slots))


def rest(goal: str, slots: Iterable[str]) -> list[str]:
    """Return the words of a goal that are no part of these names, each once.

    Examples
    --------
    >>> rest("hang two felt hats on the peg", ["felt hats", "peg"])
    ['hang', 'two']
    """
    kept = (w for w, named in spans(goal, slots) if not named)
    return list(dict.fromkeys(w for w in kept if w not in FUNCTION_WORDS and not w.isdigit()))


def mentions(text: str, names: Iterable[str]) -> list[str]:
    """Return the instances that a text mentions of things with these names.

    Examples
    --------
    >>> mentions("You see a felt hat 2, and a peg.", ["felt hat", "peg", "scarf"])
    ['felt hat 2', 'peg']
    """
    said = f" {' '.join(words(text))} "
    return [
        found[0].strip()
        for name in names
        for found in re.finditer(rf"(?<= ){re.escape(name)}(?: \d+)?(?= )", said)
    ]


def variables_of(subgoal: str) -> list[str]:
    """Return the variables of an abstract command, in order."""
    return [w for w in words(subgoal) if w.startswith("{")]


def slot_of(variable: str) -> int:
    """Return the number of the goal's name that a variable is an instance of.

    Examples
    --------
    >>> slot_of("{1.0}")
    1
    """
    return int(variable[1:-1].partition(".")[0])


class _Run(NamedTuple):
    name: str
    number: str = ""
    other: str = ""


def _runs(said: Sequence[str]) -> Iterator[_Run]:
    """Split a command into names with their numbers, and single other words."""
    name: list[str] = []
    for place, word in enumerate(said):
        free = place and word not in FUNCTION_WORDS and not word.isdigit()
        if name and not (free and word[0] != "{" and name[-1][0] != "{"):
            yield _Run(" ".join(name), word if word.isdigit() else "")
            name = []
        if free:
            name.append(word)
        elif not word.isdigit():
            yield _Run("", other=word)
    if name:
        yield _Run(" ".join(name))
