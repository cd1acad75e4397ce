"""The trace of one recall: what each source found, timings, what failed; and `Hits`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cvx.escaping import html_table, one_line, printable
from cvx.render.block import SHORT, kind_of
from cvx.types import Hit, shorten

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What a source did.

    Parameters
    ----------
    name : str
        Which one.
    found : int
        How many candidates it brought.
    seconds : float
        How long it took.
    problem : str
        Why it brought none, where something was wrong.
    """

    name: str
    found: int
    seconds: float
    problem: str = ""


@dataclass(slots=True)
class Trace:
    """The steps of one recall.

    ``candidates`` = ``below_floor`` + ``merged`` + ``beyond_k`` + ``len(hits)``.

    Attributes
    ----------
    cue : str
        What was asked.
    namespace : str
        Who asked.
    cue_hash : str
        Of the cue as it was embedded; the same hash turn after turn is a stale cue.
    turn : int, optional
        The turn it was asked in.
    passed : list of str
        The filters that every candidate has passed.
    failing : mapping of str to str
        Labels of sources (``source=``) that were left out since their advice keeps failing, each
        with what is known of it; a filter that names one sees it.
    sources : list of SourceReport
        Each source that was asked.
    problems : list of str
        What went wrong beside the sources.
    candidates, below_floor, merged, beyond_k : int
        How many there were, and what became of those that did not survive.
    floor : str
        The floors in words.
    held : int
        How many memories whoever asked may know of, whatever the filter; 0: there is nothing;
        None: nobody answered.
    answerable : float, optional
        The calibrated probability that there is an answer.
    hits : list of Hit
        What survived, best first; of a block in the order in which it was taken.
    tokens, budget : int, optional
        The size of the rendered block and what it could have been.
    compacted, left_out : int
        How many of the hits were shortened or joined to fit, and how many had no room.
    omitted : dict of int to str
        By event: why a memory that was good enough is not in the block.
    seconds : dict of str to float
        By step.
    """

    cue: str = ""
    namespace: str = ""
    cue_hash: str = ""
    turn: int | None = None
    passed: list[str] = field(default_factory=list)
    failing: Mapping[str, str] = field(default_factory=dict)
    sources: list[SourceReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    candidates: int = 0
    below_floor: int = 0
    merged: int = 0
    beyond_k: int = 0
    floor: str = "none"
    held: int | None = 0
    answerable: float | None = None
    hits: list[Hit] = field(default_factory=list)
    tokens: int | None = None
    budget: int | None = None
    compacted: int = 0
    left_out: int = 0
    omitted: dict[int, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def degraded(self) -> bool:
        """Whether something that should have answered did not."""
        return bool(self.problems) or any(source.problem for source in self.sources)

    def __str__(self) -> str:
        lines = [f'recall("{one_line(self.cue, _LONGEST)}")']
        found = ", ".join(f"{s.name} {s.found}" for s in self.sources if not s.problem)
        lines.append(f"candidates: {self.candidates}" + (f" ({found})" if found else ""))
        lines += [f"{source.name}: {source.problem}" for source in self.sources if source.problem]
        lines += [f"source {one!r} is left out: {why}" for one, why in self.failing.items()]
        lines += self.problems
        lines = [printable(line) for line in lines]
        if self.held == 0:
            lines.append(f"nothing is remembered in {self.namespace!r}")
        if self.answerable is not None:
            lines.append(f"an answer is held with probability {self.answerable:.2f}")
        lines.append(f"after composite scoring + floor({self.floor}): {self._survive()}")
        for hit in self.hits:
            text = "" if hit.event is None else hit.event.text
            kind = SHORT[kind_of(hit.event)]
            lines.append(f"  [{kind}] {one_line(text, _LONGEST):<{_LONGEST}} {hit.score:.2f}")
        gone = [
            (self.below_floor, "below floor"),
            (self.merged, "merged with a duplicate"),
            (self.beyond_k, "beyond k"),
        ]
        if any(n for n, _ in gone):
            lines.append(", ".join(f"{n} {why}" for n, why in gone if n) + ", dropped")
        if self.tokens is not None and self.budget is not None:
            how = f"{self.compacted} compacted" if self.compacted else "no compaction"
            if self.left_out:
                how += f", {self.left_out} left out"
            shown = len(self.hits) - self.left_out
            lines.append(f"{shown} memories, {self.tokens} tok of {self.budget}: {how}")
        return "\n".join(lines)

    def _survive(self) -> str:
        n = len(self.hits) + self.merged + self.beyond_k
        return f"{n} survive" if n else "nothing survives: an empty recall"


class Hits(list[Hit]):
    """What a recall returns: a list of hits that knows how it came about.

    Attributes
    ----------
    trace : Trace
        What happened, the failure of a source or of the embedder among it.
    decision : int, optional
        The number by which ``feedback`` says later what became of it; None where the memory cannot
        be written to.
    nearest : list of Hit
        Of an empty answer: what it would have been without floors.
    """

    def __init__(self, hits: Iterable[Hit], trace: Trace, nearest: Iterable[Hit] = ()) -> None:
        super().__init__(hits)
        self.trace, self.nearest = trace, list(nearest)
        self.decision: int | None = None

    def __repr__(self) -> str:
        if not self:
            return "[]"
        told = [f"<Hits: {len(self)} for {shorten(self.trace.cue, _LONGEST)!r}>"]
        for hit in self:
            text = f"node {hit.node}" if hit.event is None else one_line(hit.event.text, _LONGEST)
            told.append(f"  {hit.score:.2f} {text}")
        return "\n".join(told)

    def _repr_html_(self) -> str:
        rows = ((f"{hit.score:.3f}", hit.event.text if hit.event else hit) for hit in self)
        return html_table(f"{len(self)} for {self.trace.cue}", ["score", "memory"], rows)
