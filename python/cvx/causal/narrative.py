"""A story: what happened, because of what, and what followed; as sentences and as a table."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cvx.causal.events import CausalEvent, EventId, Link
from cvx.causal.phrasing import because, bracketed, is_clause, joined, named, result_of, sentence
from cvx.causal.walk import Reached, Walk

if TYPE_CHECKING:
    import polars as pl

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
        from cvx.causal.picture import draw

        draw(self, Path(path))


def _grouped(pairs: Iterable[tuple[EventId, Link]]) -> dict[EventId, list[Link]]:
    out: dict[EventId, list[Link]] = {}
    for key, link in sorted(pairs, key=lambda pair: -pair[1].weight):
        out.setdefault(key, []).append(link)
    return out
