"""A story: what happened, because of what, and what followed; in sentences, a table, a picture."""

from __future__ import annotations

import re
import textwrap
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cvx.causal.events import CausalEvent, EventId, Link
from cvx.causal.walk import Reached, Walk
from cvx.errors import FileError
from cvx.escaping import quoted_line
from cvx.extras import needs

if TYPE_CHECKING:
    import polars as pl

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
    told += [f"That was {result_of(*one)}." for one in earlier[1:]]
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
    causes, effects : tuple of Link
        What is told: links on the way back, and those on the way forward. An end that is in no
        event any more is told as unknown.
    back, forward : Walk or None
        How far each event is, and how surely it belongs; ``None`` where nobody looked.
    """

    subject: CausalEvent
    events: Mapping[EventId, CausalEvent]
    causes: tuple[Link, ...]
    effects: tuple[Link, ...]
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

    def narrative(self) -> str:
        """Tell it: one paragraph for what led here, one for what followed.

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
        The cellar flooded. This was because it rained all night (the drain is too small).
        Because of it, the books are mouldy.
        """
        before = [*self._tell_causes(), *([MORE_BEFORE] if self.back and self.back.deeper else [])]
        paragraphs = [" ".join([sentence(self.subject.text), *before])]
        followed = [*self._tell_effects()]
        if self.forward and self.forward.deeper:
            followed.append(MORE_AFTER)
        if followed:
            paragraphs.append(" ".join(followed))
        if self.truncated:
            paragraphs.append("There is more than is told here.")
        return "\n".join(paragraphs)

    def _tell_causes(self) -> Iterable[str]:
        if self.back is None:
            return []
        into = _grouped((link.effect, link) for link in self.causes)
        if not into.get(self.subject.id):
            return [NOTHING_BEFORE]
        sentences = []
        for event, links, told, last in self._stages(into, lambda link: link.cause, again=True):
            if event == self.subject.id:
                reasons = [self._reason(link, told) for link in links]
                sentences.append(f"This was {joined(reasons)}.")
            else:
                who = "That was" if event == last else f'"{self._text(event)}" was itself'
                sentences.append(f"{who} {self._results(links, told)}.")
        return sentences

    def _stages(
        self,
        grouped: Mapping[EventId, list[Link]],
        far: Callable[[Link], EventId],
        *,
        again: bool,
    ) -> Iterator[tuple[EventId, list[Link], set[EventId], EventId]]:
        """Yield each event with its links, what was told before, and the event told last.

        Without ``again``, links to what was told before are left out.
        """
        last, waiting = self.subject.id, deque([self.subject.id])
        told = {last}
        while waiting:
            event = waiting.popleft()
            links = [one for one in grouped.get(event, []) if again or far(one) not in told]
            if not links:
                continue
            yield event, links, told, last
            waiting.extend(dict.fromkeys(far(link) for link in links if far(link) not in told))
            told.update(map(far, links))
            last = far(links[-1])

    def _reason(self, link: Link, told: set[EventId]) -> str:
        if link.cause not in self.events:
            return f"because of {UNKNOWN_CAUSE}{bracketed(link.why)}"
        again = ", as was said," if link.cause in told else ""
        return f"{because(self.events[link.cause].text, link.why)}{again}"

    def _results(self, links: Sequence[Link], told: set[EventId]) -> str:
        if len(links) > 1:
            causes = [self._cause(link, told) for link in links]
            return f"a result of {len(links)} things: {'; '.join(causes)}"
        (link,) = links
        if link.cause in told or link.cause not in self.events:
            return f"a result of {self._cause(link, told)}"
        return result_of(self.events[link.cause].text, link.why)

    def _cause(self, link: Link, told: set[EventId]) -> str:
        text = self._text(link.cause)
        if link.cause in told:
            return f'"{text}" again'
        return f"{text}{bracketed(link.why)}"

    def _tell_effects(self) -> Iterable[str]:
        onward = _grouped((link.cause, link) for link in self.effects)
        sentences = []
        for event, links, _, last in self._stages(onward, lambda link: link.effect, again=False):
            before = "that" if event == last else f'"{self._text(event)}"'
            sentences.append(self._followed("it" if event == self.subject.id else before, links))
        return sentences

    def _followed(self, who: str, links: Sequence[Link]) -> str:
        texts = [self._text(link.effect) for link in links]
        parts = [f"{text}{bracketed(link.why)}" for text, link in zip(texts, links, strict=True)]
        if all(is_clause(text) for text in texts):
            return f"Because of {who}, {joined(parts)}."
        return f"{who[:1].upper() + who[1:]} led to this: {'; '.join(parts)}."

    def _text(self, event: EventId) -> str:
        found = self.events.get(event)
        return UNKNOWN_CAUSE if found is None else named(found.text)

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
        self, role: str, event: EventId, depth: int, path_weight: float | None, link: Link | None
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
        _draw(self, Path(path))


def _grouped(pairs: Iterable[tuple[EventId, Link]]) -> dict[EventId, list[Link]]:
    out: dict[EventId, list[Link]] = {}
    for key, link in sorted(pairs, key=lambda pair: -pair[1].weight):
        out.setdefault(key, []).append(link)
    return out


_COLOURS = {"cause": "#fde2c8", "event": "#f6b3a8", "consequence": "#cfe3f5"}
_WIDEST, _TALLEST = 60.0, 40.0
_TEXT_WIDTH, _TEXT_LENGTH = 22, 88


def _draw(story: Story, path: Path) -> None:
    with needs("plot"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    columns = _columns(story)
    tallest = max(map(len, columns.values()))
    width, height = min(_WIDEST, 2.6 * len(columns) + 0.6), min(_TALLEST, 1.3 * tallest + 0.8)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
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
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be written ({error}): give a .png, .svg or .pdf") from error


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
