"""Stories: tells causes and consequences in sentences, as a table or as a picture."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cvx.causal.cause_probability import without_cause
from cvx.causal.graph_data import CausalEvent
from cvx.causal.walk import Reached, Walk
from cvx.dates import calendar_time
from cvx.errors import FileError
from cvx.escaping import quoted_line
from cvx.extras import needs
from cvx.store.prompt_injection import REMARK, reads_like_an_order
from cvx.types import Edge, EventId

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

_STARTERS = """
a an the this that these those it he she they we there my our your his her its their some all both
every each no nobody nothing everyone after before during when while first second third last new
several many few most two three four five six seven eight nine ten twenty thirty forty fifty
hundreds thousands
"""
# Finite verbs that carry no ending of their own; enough to tell a clause from a name.
_VERBS = """
am is are was were be been has have had does do did will would can could may might must shall
should isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't can't became
began broke brought bought came caught chose cut drew drove ate fell felt fought found flew forgot
froze gave got grew heard held hid hit hurt kept knew laid led left lent let lost made meant met
paid put quit ran rang read rose said sang sat saw sent set shook shot shut slept sold spent spoke
spread stole stood struck swam took taught thought threw told tore went withdrew woke won wore
wrote arose bent bit bled blew burnt burst clung crept dealt dug fled hung lay lit overflowed rode
sank shrank slid spilt spun sprang stank stung swept swore swung wept
"""
# Nouns that logs and news begin with; what is in neither list keeps its capital, as a name does.
_NOUNS = """
accounting alarm backup beer bread browsers budget burglars certificate checkout children city
clients company council customers database delivery disk doctors drivers engineers everybody fans
farmers fire floods freight frost guests half heat heavy hikers houses infrastructure jobs ice
lack leaves lessons lightning logs machines mail memory merchants mould music news nurses oil
orders parents people pipes police power prices production pubs quarantine rain regular reports
requests residents rust sales savers seabirds servers services shops shoppers smoke snow soil
somebody someone something strangers students supermarkets supplies tea termites thieves tiles
tourists traffic trains trees volunteers voters water weddings wells wind wolves work workers
"""
_OF_NOUNS = (
    "tion",
    "tions",
    "ment",
    "ments",
    "ness",
    "ing",
    "ings",
    "age",
    "ages",
    "ance",
    "ence",
    "ure",
)
_STARTS = frozenset((_STARTERS + _NOUNS).split())
_FINITE = frozenset(_VERBS.split())
_WORD = re.compile(r"[A-Za-z']+")
_FULL_STOPS = ".\u3002\uff0e\u0964"
_STOPS = _FULL_STOPS + "!?\u2026\uff01\uff1f\u061f"
"""Of English, Chinese and Japanese, Hindi and Arabic."""


def middle(text: str) -> str:
    """Return a text fit for the middle of a sentence: one line, no full stop, no capital.

    Examples
    --------
    >>> middle("The cellar flooded. "), middle("Adisa resigned!")
    ('the cellar flooded', 'Adisa resigned!')
    """
    line = quoted_line(text).rstrip(_FULL_STOPS + " ")
    first = line.split(" ", 1)[0]
    common = first.lower() in _STARTS or (first.isalpha() and first.endswith(_OF_NOUNS))
    # Names that programs give (ImportMessage, ALL) stay as they are.
    common = common and not any(sign.isupper() for sign in first[1:])
    return line[:1].lower() + line[1:] if common else line


def sentence(text: str) -> str:
    """Return a text as a sentence: a capital first, a stop last.

    Examples
    --------
    >>> sentence("the cellar flooded"), sentence("Why?")
    ('The cellar flooded.', 'Why?')
    """
    return _stopped(quoted_line(text)) or "Something happened that left no words."


def _stopped(line: str) -> str:
    """Return what is quoted already as a sentence."""
    return upper(line) + ("" if not line or line[-1] in _STOPS else ".")


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
    ('a result of a dry winter', 'a result of this: it rained')
    """
    this = "this: " if is_clause(text) else ""
    return f"a result of {this}{named(text)}{bracketed(how)}"


def named(text: str) -> str:
    """Return a text for the middle of a sentence, also where it is empty."""
    return middle(text) or "something that left no words"


def bracketed(how: str) -> str:
    """Return the explanation of a link in brackets, or an empty string."""
    return f" ({middle(how)})" if how.strip() else ""


def upper(text: str) -> str:
    """Return a text with a capital first, unless it begins with a name such as run_tests or db-3.

    Examples
    --------
    >>> upper("the cellar flooded"), upper("run_tests failed"), upper("orders-db is full")
    ('The cellar flooded', 'run_tests failed', 'orders-db is full')
    """
    first = text.partition(" ")[0].rstrip(_STOPS + ",;:")
    word = first.replace("'", "").replace("\u2019", "")
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text


def chance(link: Edge) -> str:
    """Return a probability in words.

    Examples
    --------
    >>> chance(Edge("rain", "flood", weight=0.62, state="judged"))
    'probably (62%)'
    """
    return f"probably ({min(link.weight, 0.99):.0%})"


_SO = ("Because of that,", "That is why", "So")
_DAY = 86_400_000_000
_MICROSECONDS = 10**14


class _Days:
    """Names the day of an event where it is another than that of the event told before.

    Times below 10**14 are no microseconds since 1970, but ticks, which nobody reads aloud.
    """

    def __init__(self, ticks: Iterable[int]) -> None:
        days = {tick // _DAY for tick in ticks if _MICROSECONDS <= tick < _LAST}
        self._name = len(days) > 1
        self._said: int | None = None
        self._year: int | None = None
        self._told: set[EventId] = set()

    def dated(self, event: CausalEvent, text: str) -> str:
        """Return what happened, with its day where that must be said."""
        text = named(text)
        day = event.tick // _DAY
        when = calendar_time(event.tick)
        if not self._name or event.id in self._told or event.tick < _MICROSECONDS or when is None:
            return text
        self._told.add(event.id)
        if day == self._said:
            return text
        self._said = day
        year = "" if when.year == self._year else f" {when.year}"
        self._year = when.year
        day_name = f"on {when.day} {when:%B}{year}"
        return f"{day_name} {text}" if is_clause(text) else f"{text} {day_name}"


_LAST = 253_402_300_800_000_000  # the year 10000


NOTHING_BEFORE = "Nothing is known of what led to it."
MORE_BEFORE = "There is more before that."
MORE_AFTER = "There is more after that."
UNKNOWN_CAUSE = "something that is no longer known"


def tell_chain(texts: Sequence[str], hows: Sequence[str]) -> str:
    """Tell a chain in which each event has one cause, from its end back to its root.

    Parameters
    ----------
    texts : sequence of str
        The events, root first.
    hows : sequence of str
        How each led to the next one: one fewer than there are events.

    Examples
    --------
    >>> tell_chain(["a dry winter", "the well ran dry", "the herd was sold"], ["", "no water"])
    'The herd was sold. This was because the well ran dry (no water). That was a result of a dry \
winter.'
    """
    if not texts:
        return ""
    earlier = [*zip(texts[:-1], hows, strict=True)][::-1]
    told = [sentence(texts[-1])]
    told += [f"This was {because(*one)}." for one in earlier[:1]]
    told += [f"That was {result_of(*one)}." for one in earlier[1:2]]
    told += [f"And that was {because(*one)}." for one in earlier[2:]]
    return " ".join(told)


@dataclass(frozen=True, slots=True)
class Story:
    """An event with what led to it and what came of it.

    Parameters
    ----------
    subject : CausalEvent
        What happened.
    events : mapping of str or int to CausalEvent
        Every event that is known of it, by id, the subject among them.
    causes, effects : tuple of Edge
        What is told: links on the way back, and those on the way forward. An end that is in no
        event any more is told as unknown.
    back, forward : Walk or None
        How far each event is, and how surely it belongs; ``None`` where nobody looked.
    """

    subject: CausalEvent
    events: Mapping[EventId, CausalEvent]
    causes: tuple[Edge, ...]
    effects: tuple[Edge, ...]
    back: Walk | None
    forward: Walk | None

    @property
    def truncated(self) -> bool:
        """Whether the budget of events cut a walk off: there is more than is told."""
        return any(walked.truncated for walked in (self.back, self.forward) if walked)

    @property
    def deeper(self) -> bool:
        """Whether links lead on from where the depth ended a walk: its last events are no roots."""
        return any(walked.deeper for walked in (self.back, self.forward) if walked)

    @property
    def before(self) -> tuple[Reached, ...]:
        """The causes, nearest first."""
        return self.back.found if self.back else ()

    @property
    def after(self) -> tuple[Reached, ...]:
        """The consequences, nearest first."""
        return self.forward.found if self.forward else ()

    def __str__(self) -> str:
        return self.narrative()

    def narrative(self) -> str:
        """Tell it from the root on: one paragraph for what led here, one for what followed.

        What was judged is told as probable, with its chance; days are named where there are several
        (of times in microseconds). What reads like an instruction is labelled so.

        Examples
        --------
        >>> from cvx.causal import CausalGraph
        >>> graph = CausalGraph()
        >>> for name, text in (("rain", "It rained all night."), ("flood", "The cellar flooded."),
        ...                    ("mould", "The books are mouldy.")):
        ...     _ = graph.add_event(name, text, 0)
        >>> graph.link("rain", "flood", why="The drain is too small.")
        >>> graph.link("flood", "mould")
        >>> print(graph.story("flood").narrative())
        It rained all night, so the cellar flooded (the drain is too small).
        Because of that, the books are mouldy.
        """
        days = _Days(event.tick for event in self.events.values())
        before = self._told(self.causes, self.before, days, last=None)
        if not any(link.effect == self.subject.id for link in self.causes):
            before.append(_stopped(self._text(self.subject.id, days)))
            if self.back is not None:
                before.append(NOTHING_BEFORE)
        elif self.back and self.back.deeper:
            before.append(MORE_BEFORE)
        after = self._told(self.effects, self.after, days, last=self.subject.id)
        if self.forward and self.forward.deeper:
            after.append(MORE_AFTER)
        more = ["There is more than is told here."] if self.truncated else []
        return "\n".join(" ".join(told) for told in (before, after, more) if told)

    def _told(
        self, links: Iterable[Edge], reached: Sequence[Reached], days: _Days, last: EventId | None
    ) -> list[str]:
        """Tell every event that links lead to, each after its causes where that can be."""
        into = _grouped((link.effect, link) for link in links)
        backward = last is None
        depth = {one.id: -one.depth if backward else one.depth for one in reached}
        order = sorted(into, key=lambda at: (self.events[at].tick, depth.get(at, 0)))
        told = {last} if last is not None else set()
        sentences: list[str] = []
        for event in _causes_first(order, into):
            if event == self.subject.id and not backward:
                continue
            sentences.append(self._sentence(event, into[event], told, last, days, len(sentences)))
            told |= {event, *(link.cause for link in into[event])}
            last = event
        return sentences

    def _sentence(
        self,
        event: EventId,
        links: Sequence[Edge],
        told: set[EventId],
        last: EventId | None,
        days: _Days,
        place: int,
    ) -> str:
        if len(links) > 1:
            return self._many(event, links, days)
        (link,) = links
        how, sure = bracketed(link.why), link.state != "judged"
        perhaps = "" if sure else f" {chance(link)}"
        if link.cause == last:
            effect = self._text(event, days, links)
            if not is_clause(effect):
                return f"That{perhaps} led to {effect}{how}."
            if not sure:
                return f"That is {chance(link)} why {effect}{how}."
            return f"{_SO[place % len(_SO)]} {effect}{how}."
        cause = self._text(link.cause, days)
        effect = self._text(event, days, links)
        says = link.cause in self.events and is_clause(cause)
        if not is_clause(effect):
            which = ", which" if says else ""
            return f"{upper(cause)}{which}{perhaps} led to {effect}{how}."
        if not says:
            return upper(f"{f'{chance(link)} ' * (not sure)}because of {cause}, {effect}{how}.")
        if link.cause in told:
            return upper(f"{f'{chance(link)} ' * (not sure)}because {cause}, {effect}{how}.")
        if not sure:
            return f"{upper(cause)}; that is {chance(link)} why {effect}{how}."
        return f"{upper(cause)}, so {effect}{how}."

    def _many(
        self,
        event: EventId,
        links: Sequence[Edge],
        days: _Days,
    ) -> str:
        effect = self._text(event, days, links)
        parts = []
        for link in sorted(links, key=lambda link: self._tick(link.cause)):
            perhaps = "" if link.state != "judged" else f"{chance(link)} "
            cause = self._text(link.cause, days)
            if is_clause(effect):
                cause = f"because {'' if is_clause(cause) else 'of '}{cause}"
            parts.append(f"{perhaps}{cause}{bracketed(link.why)}")
        if is_clause(effect):
            pause = "," if parts[0].startswith("probably") else ""
            return f"{upper(effect)}{pause} {', '.join(parts[:-1])} and {parts[-1]}."
        return f"{upper(effect)} had {len(links)} causes: {'; '.join(parts)}."

    def _tick(self, event: EventId) -> int:
        """When it happened; before all others if that is not known."""
        return self.events[event].tick if event in self.events else -(2**63)

    def _text(self, event: EventId, days: _Days, causes: Sequence[Edge] = ()) -> str:
        """What happened; what a text itself says of causes told with it is not said twice."""
        found = self.events.get(event)
        if found is None:
            return UNKNOWN_CAUSE
        text = found.text
        for cause in (self.events.get(link.cause) for link in causes):
            text = text if cause is None else without_cause(text, cause.text)
        told = days.dated(found, text)
        return f"{told} ({REMARK})" if reads_like_an_order(found.text) else told

    def frame(self) -> pl.DataFrame:
        """Return it as a table: deepest cause first, then the event, then what followed.

        Returns
        -------
        polars.DataFrame
            ``role`` (cause, event, consequence), ``depth``, ``event`` (as text), ``tick``,
            ``text``, ``path_weight`` and, of the link to the next one towards the subject,
            ``next``, ``kind``, ``weight``, ``why``, ``evidence``; null for the subject.
        """
        with needs("frames"):
            import polars as pl

        rows = [
            *(self._row("cause", one.id, one.depth, one.weight, one.path[-1]) for one in
              reversed(self.before)),
            self._row("event", self.subject.id, 0, None, None),
            *(self._row("consequence", one.id, one.depth, one.weight, one.path[-1]) for one in
              self.after),
        ]  # fmt: skip
        return pl.DataFrame(
            rows,
            schema={
                "role": pl.String,
                "depth": pl.Int64,
                "event": pl.String,
                "tick": pl.Int64,
                "text": pl.String,
                "path_weight": pl.Float64,
                "next": pl.String,
                "kind": pl.String,
                "weight": pl.Float64,
                "why": pl.String,
                "evidence": pl.String,
            },
            orient="row",
        )

    def _row(
        self, role: str, event: EventId, depth: int, path_weight: float | None, link: Edge | None
    ) -> tuple[object, ...]:
        found = self.events[event]
        own = (role, depth, str(event), found.tick, found.text, path_weight)
        if link is None:
            return (*own, None, None, None, None, None)
        onward = link.effect if role == "cause" else link.cause
        return (*own, str(onward), link.kind, link.weight, link.why, link.evidence)

    def draw(self, path: str | Path) -> None:
        """Write it as a picture: time from left to right, surer links drawn thicker.

        Parameters
        ----------
        path : str or Path
            Its suffix says the format, such as ``.png`` or ``.svg``.

        Raises
        ------
        MissingExtraError
            matplotlib is not installed (extra ``plot``).
        """
        with needs("plot"):
            from matplotlib.figure import Figure
        columns = _columns(self)
        width = min(_WIDEST, 2.6 * len(columns) + 0.6)
        height = min(_TALLEST, 1.3 * max(map(len, columns.values())) + 0.8)
        figure = Figure(figsize=(width, height), layout="constrained")
        draw_story(self, figure.add_subplot())
        try:
            figure.savefig(Path(path), dpi=110)
        except (OSError, ValueError) as error:
            raise FileError(
                f"{path} cannot be written ({error}): give a .png, .svg or .pdf"
            ) from error


def _causes_first(
    order: Iterable[EventId], into: Mapping[EventId, Sequence[Edge]]
) -> Iterator[EventId]:
    """Yield events in an order, but each after its causes, unless they run in a circle."""
    left = dict.fromkeys(order)
    while left:
        ready = (at for at in left if not any(one.cause in left for one in into[at]))
        event = next(ready, next(iter(left)))
        del left[event]
        yield event


def _grouped(pairs: Iterable[tuple[EventId, Edge]]) -> dict[EventId, list[Edge]]:
    out: dict[EventId, list[Edge]] = {}
    for key, link in sorted(pairs, key=lambda pair: -pair[1].weight):
        out.setdefault(key, []).append(link)
    return out


_COLOURS = {"cause": "#fde2c8", "event": "#f6b3a8", "consequence": "#cfe3f5"}
_WIDEST, _TALLEST = 60.0, 40.0
_TEXT_WIDTH, _TEXT_LENGTH = 22, 88


def draw_story(story: Story, axes: Axes) -> None:
    """Draw causes to the left of an event, consequences to its right; surer links thicker."""
    columns = _columns(story)
    tallest = max(map(len, columns.values()))
    axes.axis("off")
    places, boxes = {}, {}
    for column, events in columns.items():
        role = "event" if column == 0 else "cause" if column < 0 else "consequence"
        box = {"boxstyle": "round,pad=0.4", "facecolor": _COLOURS[role], "edgecolor": "#888"}
        for row, event in enumerate(events):
            places[event] = column, (len(events) - 1) / 2.0 - row
            text = axes.text(
                *places[event],
                _wrapped(story.events[event].text),
                ha="center",
                va="center",
                fontsize=8,
                parse_math=False,
                bbox=box,
            )
            boxes[event] = text.get_bbox_patch()
    for link in (*story.causes, *story.effects):
        if link.cause in places and link.effect in places:
            arrow = {
                "arrowstyle": "-|>",
                "linewidth": 0.6 + 2.0 * link.weight,
                "color": "#666666",
                "patchA": boxes[link.cause],
                "patchB": boxes[link.effect],
                "shrinkA": 2,
                "shrinkB": 2,
            }
            axes.annotate("", xy=places[link.effect], xytext=places[link.cause], arrowprops=arrow)
    axes.set_xlim(min(columns) - 0.6, max(columns) + 0.6)
    axes.set_ylim(-tallest / 2 - 0.2, tallest / 2 + 0.2)


def _columns(story: Story) -> dict[int, list[EventId]]:
    columns: dict[int, list[EventId]] = {}
    for reached in reversed(story.before):
        columns.setdefault(-reached.depth, []).append(reached.id)
    columns[0] = [story.subject.id]
    seen = {reached.id for reached in story.before}
    for reached in story.after:
        # In a cycle a cause is a consequence too: it is drawn once.
        if reached.id not in seen:
            columns.setdefault(reached.depth, []).append(reached.id)
    return columns


def _wrapped(text: str) -> str:
    short = textwrap.shorten(text, _TEXT_LENGTH, placeholder=" \u2026") or "(no words)"
    return "\n".join(textwrap.wrap(short, _TEXT_WIDTH))
