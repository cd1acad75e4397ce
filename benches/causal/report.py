"""Prints figures beside their targets, and writes them as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from benches.figures import Figure as Row
from benches.figures import leave


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes
    ----------
    of : str
        What was measured.
    value : float
        The number.
    must, aim : float or None
        What it has to reach, and what would be good; None for a baseline.
    lower : bool
        Whether lower is better.
    """

    of: str
    value: float
    must: float | None = None
    aim: float | None = None
    lower: bool = False

    @property
    def short(self) -> bool:
        """Whether it misses what it must reach, at the precision it is printed with."""
        if self.must is None:
            return False
        value = round(self.value, 4)
        return value > self.must if self.lower else value < self.must

    def __str__(self) -> str:
        text = f"{self.value:.3g}" if self.lower else f"{self.value:.3f}"
        if self.must is not None:
            sign = "<=" if self.lower else ">="
            text += f" {'SHORT of' if self.short else 'ok'} {sign} {self.must:g}"
        return text


@dataclass
class Report:
    """Sections of rows of figures.

    Attributes
    ----------
    sections : dict
        Title to rows; a row is a name and its figures.
    notes : dict
        Title to what was fitted on what, and what was skipped.
    """

    sections: dict[str, list[tuple[str, list[Figure]]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def section(self, title: str, note: str = "") -> None:
        """Begin a section and print its head."""
        self.sections[title] = []
        self.notes[title] = note
        print(f"\n{title}" + (f"\n  {note}" if note else ""), flush=True)

    def row(self, name: str, *figures: Figure) -> None:
        """Add a row to the last section and print it."""
        rows = list(self.sections.values())[-1]
        rows.append((name, list(figures)))
        print(f"  {name:<44}" + "   ".join(f"{f.of} {f}" for f in figures), flush=True)

    @property
    def shortfalls(self) -> list[str]:
        """Every figure that misses what it must reach."""
        return [
            f"{title}: {name}, {figure.of} {figure}"
            for title, rows in self.sections.items()
            for name, figures in rows
            for figure in figures
            if figure.short
        ]

    def write(self, path: Path) -> None:
        """Write all figures as JSON."""
        sections = {
            title: {
                "note": self.notes[title],
                "rows": {name: [asdict(figure) for figure in row] for name, row in rows},
            }
            for title, rows in self.sections.items()
        }
        figures = [
            Row(
                f"{title}: {name}, {one.of}",
                f"{one.value:.3g}",
                f"{'<=' if one.lower else '>='} {one.must:g}",
                not one.short,
            )
            for title, rows in self.sections.items()
            for name, row in rows
            for one in row
            if one.must is not None
        ]
        leave(path, "Causes", "python -m benches.causal", figures, sections=sections)
