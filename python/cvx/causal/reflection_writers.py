"""Who makes insights of events: a count of what recurs, or a language model.

References
----------
Park et al. 2023, Generative Agents: Interactive Simulacra of Human Behavior, section 4.2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from cvx.arguments import check_fields, whole
from cvx.calls import Calls
from cvx.causal.judges.asking import DEFAULT_TIMEOUT_S, as_asker
from cvx.causal.judges.rules import content_words
from cvx.errors import InvalidParameterError
from cvx.escaping import quoted_line
from cvx.types import Event

PROMPT = (
    "Statements:\n{statements}\n\nWhat {count} high-level insights can be inferred from these "
    "statements? Write one a line, each followed by the statements it rests on, in the form: "
    "insight (because of 1, 5, 3)"
)
_BULLET = re.compile(r"\A\s*+(?:(?:[-*\u2022]|\d++[.)])\s*+)?")
_CITED = re.compile(r"\(because of([^()]*+)\)\s*+(?:\.\s*+)?\Z", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)\d{1,9}(?!\d)")


class Insight(NamedTuple):
    """What a reflection found.

    Attributes
    ----------
    text : str
    sources : tuple of int
        The ids of the events that it rests on; at least one.
    """

    text: str
    sources: tuple[int, ...]


@runtime_checkable
class ReflectionWriter(Protocol):
    """Anything that makes insights of events."""

    def write(self, events: Sequence[Event]) -> list[Insight]:
        """Return what is to be learned of them, the most telling first."""
        ...


@dataclass(frozen=True, slots=True)
class CountingWriter:
    """Says what happened again and again: by kind, by group and by word. Needs no model.

    Parameters
    ----------
    least : int, default 3
        How often something must have happened; at least 2.
    most : int, default 5
        How many insights; at least 1.
    group : callable, optional
        From an event to what it belongs to, such as an institution; by default the number of its
        entity, where they differ.

    Examples
    --------
    >>> seen = [Event(7, n, text, kind="crisis", event_id=n) for n, text in enumerate(
    ...         ["Plague in the east", "Plague in the west", "Plague in the harbour"])]
    >>> CountingWriter(group=lambda event: "health").write(seen)[0].text
    '3 memories of the kind crisis, of health, between 0 and 2, most often of plague (3 times)'
    """

    least: int = 3
    most: int = 5
    group: Callable[[Event], str] | None = None

    def __post_init__(self) -> None:
        check_fields(self, least=whole(2), most=whole(1))

    def write(self, events: Sequence[Event]) -> list[Insight]:
        """Return the largest groups, then the words that run through several of them."""
        groups: dict[tuple[str, str], list[Event]] = {}
        alone = len({one.entity_id for one in events}) < 2
        group_of = self.group or (lambda one: "" if alone else str(one.entity_id))
        for one in events:
            groups.setdefault((one.kind, group_of(one)), []).append(one)
        counted = [
            (found, _of_group(kind, group, found)) for (kind, group), found in groups.items()
        ]
        if len(groups) > 1:
            counted += [(found, _of_word(word, found)) for word, found in _by_word(events)]
        often: dict[tuple[int, ...], str] = {}
        for found, text in sorted(counted, key=lambda pair: -len(pair[0])):
            # What rests on the very same memories says the same again.
            if len(found) >= self.least:
                often.setdefault(_ids(found), text)
        return [Insight(text, sources) for sources, text in [*often.items()][: self.most]]


def _ids(found: Iterable[Event]) -> tuple[int, ...]:
    return tuple(one.event_id for one in found if one.event_id is not None)


def _span(found: Sequence[Event]) -> str:
    times = [one.timestamp for one in found]
    return f"between {min(times)} and {max(times)}"


def _of_group(kind: str, group: str, found: Sequence[Event]) -> str:
    of = f", of {group}" if group else ""
    themes = [(word, len(some)) for word, some in _by_word(found) if len(some) > 1]
    themes = sorted(themes, key=lambda pair: (-pair[1], pair[0]))[:3]
    about = ", ".join(f"{word} ({count} times)" for word, count in themes)
    said = f", most often of {about}" if about else ""
    return f"{len(found)} memories of the kind {kind}{of}, {_span(found)}{said}"


def _of_word(word: str, found: Sequence[Event]) -> str:
    kinds = Counter(one.kind for one in found).most_common()
    named = ", ".join(f"{count} of the kind {kind}" for kind, count in kinds)
    return f"{len(found)} memories speak of {word}, {_span(found)}: {named}"


def _by_word(events: Iterable[Event]) -> list[tuple[str, list[Event]]]:
    found: dict[str, list[Event]] = {}
    for one in events:
        for word in sorted(content_words(one.text)):
            found.setdefault(word, []).append(one)
    return list(found.items())


class LLMWriter:
    """Asks a language model for insights, and keeps those that cite what they rest on.

    Parameters
    ----------
    client : object
        A client of any shape, as for ``LLMJudge``.
    count : int, default 3
        How many insights are asked for.
    fallback : ReflectionWriter, optional
        Who writes where the model fails, or cites nothing; default ``CountingWriter()``.
    timeout_s : float or None, default 60
        Seconds after which an answer is not waited for any more.
    """

    def __init__(
        self,
        client: object,
        *,
        count: int = 3,
        fallback: ReflectionWriter | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
    ) -> None:
        if count < 1:
            raise InvalidParameterError(f"count is {count}: give at least 1")
        self._ask = as_asker(client)
        self._calls = Calls()
        self.count = count
        self.fallback = fallback or CountingWriter()
        self.timeout_s = timeout_s

    def write(self, events: Sequence[Event]) -> list[Insight]:
        """Return what the model infers."""
        listed = "\n".join(
            f"{number}. {quoted_line(one.text)}" for number, one in enumerate(events, start=1)
        )
        prompt = PROMPT.format(statements=listed, count=self.count)
        answer = self._calls.run(lambda: self._ask(prompt), self.timeout_s).value
        found = _read_insights(answer, events) if isinstance(answer, str) else []
        return found[: self.count] or self.fallback.write(events)


def _read_insights(answer: str, events: Sequence[Event]) -> list[Insight]:
    found = []
    for line in answer.splitlines():
        match, bullet = _CITED.search(line), _BULLET.match(line)
        text = line[bullet.end() : match.start()].rstrip() if match and bullet else ""
        if not match or not text:
            continue
        numbers = dict.fromkeys(map(int, _NUMBER.findall(match[1])))
        cited = [events[n - 1] for n in numbers if 1 <= n <= len(events)]
        if cited:
            found.append(Insight(text, _ids(cited)))
    return found
