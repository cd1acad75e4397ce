"""Reflections: importance of events, insights from many of them, and when one is due.

References
----------
Park et al. 2023, Generative Agents: Interactive Simulacra of Human Behavior, sections 4.1 and 4.2.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

from cvx.arguments import above_zero, check_fields, whole
from cvx.causal.judges.language_model import DEFAULT_TIMEOUT_S, asker
from cvx.causal.judges.offline import content_words
from cvx.errors import InvalidInputError
from cvx.escaping import between_quotes, quoted_line
from cvx.types import Event, Vector

LEAST, MOST = 1.0, 10.0

RATING = (
    "On a scale of 1 to 10, where 1 is purely mundane (sweeping the floor) and 10 is extremely "
    "momentous (a war, a plague, a death), rate how much the following matters: '{text}'. "
    "Answer with one number."
)
_RATED = re.compile(r"\d+(?:\.\d+)?")
_SCALE = re.compile(r"(?:/|\bout of)\s*10\b")
_WEIGHTY = (
    (
        3.0,
        re.compile(
            r"\b(?:death|dead|died|dies|kill|war|plague|famine|massacre|catastroph|collaps)",
            re.IGNORECASE,
        ),
    ),
    (
        2.0,
        re.compile(
            r"\b(?:crisis|outbreak|emergenc|riot|fire|flood|disaster|bankrupt|attack|injur|arrest"
            r"|betray)",
            re.IGNORECASE,
        ),
    ),
    (
        1.0,
        re.compile(
            r"\b(?:refus|reject|resign|vote|law|budget|shortage|strike|protest|broke|fail|lost"
            r"|promis)",
            re.IGNORECASE,
        ),
    ),
)
"""What a class of words adds, and how such words begin; the gravest first."""
_BY_KIND = MappingProxyType(
    {"observation": 3.0, "conversation": 4.0, "event": 5.0, "reflection": 6.0, "crisis": 7.0}
)


@runtime_checkable
class Importance(Protocol):
    """Anything that says how much something matters."""

    def rate(self, text: str, kind: str) -> float:
        """Return a number from 1 to 10."""


class RuleImportance:
    """Goes by the kind and by words of weight; needs no model.

    A kind has its own number, to which the gravest class of words in the text adds 1 to 3, and an
    exclamation mark or a number of three digits and more another half.

    Parameters
    ----------
    kinds : mapping of str to float, optional
        In place of, or beside, those of observation (3), conversation (4), event (5), reflection
        (6) and crisis (7); a kind that is not known counts as an observation.

    Examples
    --------
    >>> rules = RuleImportance()
    >>> rules.rate("Swept the floor", "observation"), rules.rate("300 died of plague", "event")
    (3.0, 8.5)
    """

    def __init__(self, kinds: Mapping[str, float] | None = None) -> None:
        self.kinds = {**_BY_KIND, **(kinds or {})}
        for kind, value in self.kinds.items():
            if not LEAST <= value <= MOST:
                raise InvalidInputError(f"{kind} counts {value}: give a number from 1 to 10")

    def rate(self, text: str, kind: str) -> float:
        """Return a number from 1 to 10."""
        gain = next((gain for gain, words in _WEIGHTY if words.search(text)), 0.0)
        loud = 0.5 if "!" in text or re.search(r"\d{3}", text) else 0.0
        return min(MOST, self.kinds.get(kind, self.kinds["observation"]) + gain + loud)


class LLMImportance:
    """Asks a language model; where it fails, somebody else is asked.

    Parameters
    ----------
    client : object
        A client of any shape, as for ``LLMJudge``.
    fallback : Importance, optional
        Default ``RuleImportance()``.
    timeout_s : float or None, default 60
        Seconds after which an answer is not waited for any more.

    Examples
    --------
    >>> LLMImportance(lambda prompt: "8/10").rate("The well is dry", "observation")
    8.0
    """

    def __init__(
        self,
        client: object,
        *,
        fallback: Importance | None = None,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
    ) -> None:
        self._ask = asker(client, timeout_s)
        self.fallback = fallback or RuleImportance()

    def rate(self, text: str, kind: str) -> float:
        """Return a number from 1 to 10."""
        answer = self._ask(RATING.format(text=between_quotes(text))).value
        numbers = _RATED.findall(_SCALE.sub("", answer)) if isinstance(answer, str) else []
        found = {float(number) for number in numbers}
        # Two different numbers are no answer: nobody knows which of them is meant.
        rated = found.pop() if len(found) == 1 else 0.0
        return rated if LEAST <= rated <= MOST else self.fallback.rate(text, kind)


KINDS = ("observation", "conversation", "reflection", "event")
"""How a memory came about, in the words of the generative agents."""
_USUAL = 5.0


def importance_of(salience: float | None) -> float:
    """Return how much something mattered from 1 to 10; 5 where nobody said."""
    return _USUAL if salience is None else LEAST + (MOST - LEAST) * salience


def salience_of(importance: float) -> float:
    """Return an importance from 1 to 10 as a salience in [0, 1]."""
    return (importance - LEAST) / (MOST - LEAST)


INSIGHTS = (
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
    >>> seen = [Event(text, timestamp=n, kind="crisis", event_id=n) for n, text in enumerate(
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
        whole(1)("count", count)
        self._ask = asker(client, timeout_s)
        self.count = count
        self.fallback = fallback or CountingWriter()

    def write(self, events: Sequence[Event]) -> list[Insight]:
        """Return what the model infers."""
        listed = "\n".join(
            f"{number}. {quoted_line(one.text)}" for number, one in enumerate(events, start=1)
        )
        answer = self._ask(INSIGHTS.format(statements=listed, count=self.count)).value
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


@dataclass(frozen=True, slots=True)
class Reflector:
    """Reflects when enough has happened since the last time.

    Parameters
    ----------
    threshold : float, default 100.0
        The importances of what no reflection cites yet must add up to this; above 0. Where nobody
        said how much an event mattered, it is 5.
    writer : ReflectionWriter, optional
        Default ``CountingWriter()``.
    importance : Importance, optional
        Rates the reflections; default ``RuleImportance()``.
    embed : callable, optional
        From a text to its vector.
    latest : int, default 100
        How many of those events are looked at, the latest ones; at least 1.
    """

    threshold: float = 100.0
    writer: ReflectionWriter = field(default_factory=CountingWriter)
    importance: Importance = field(default_factory=RuleImportance)
    embed: Callable[[str], Vector] | None = None
    latest: int = 100

    def __post_init__(self) -> None:
        check_fields(self, threshold=above_zero, latest=whole(1))

    def pending(self, events: Sequence[Event]) -> list[Event]:
        """Return the events that no reflection rests on yet, in their order."""
        told = [event for event in events if event.kind == "reflection"]
        cited = {source for event in told for source in event.metadata.get("sources", ())}
        return [
            event
            for event in events
            if event.kind != "reflection" and not {event.event_id, event.key} & cited
        ]

    def due(self, events: Sequence[Event]) -> bool:
        """Tell whether enough has happened."""
        weight = sum(importance_of(event.salience) for event in self.pending(events))
        return weight >= self.threshold

    def reflect(self, events: Sequence[Event], timestamp: int) -> list[Event]:
        """Return what is to be learned of events, if it is due.

        Parameters
        ----------
        events : sequence of Event
            All that happened, earlier reflections among it, oldest first.
        timestamp : int
            Now.

        Returns
        -------
        list of Event
            Of the kind "reflection", to be stored; the ids of the events that each rests on are
            its ``metadata["sources"]``. [] where it is not due, or where nothing stands out.
        """
        if not self.due(events):
            return []
        return [
            Event(
                entity_id=0,
                timestamp=timestamp,
                text=insight.text,
                vector=None if self.embed is None else self.embed(insight.text),
                kind="reflection",
                namespace=events[0].namespace,
                metadata={"sources": list(insight.sources)},
                salience=salience_of(self.importance.rate(insight.text, "reflection")),
            )
            for insight in self.writer.write(self.pending(events)[-self.latest :])
        ]
