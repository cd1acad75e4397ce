"""One line of the table: the figure, its target, the shortfall."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from benches.figures import Figure


@dataclass(frozen=True)
class Line:
    """A measure beside its bounds; `detail` holds the times, recalls and widths behind it.

    Where it is short of `must`, it says by which share of `must`.
    """

    measure: str
    value: float | None
    must: float
    aim: float
    unit: str = "x"
    at_most: bool = False
    holds: bool = True
    detail: dict[str, Any] = field(default_factory=dict)

    def reaches(self, bound: float) -> bool:
        if self.value is None or not self.holds:
            return False
        return self.value <= bound if self.at_most else self.value >= bound

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "short: not reached at any width"
        if not self.holds:
            return "short: the recall or agreement it has to keep"
        if self.reaches(self.aim):
            return "pass, aim reached"
        if self.reaches(self.must):
            return "pass"
        return f"short by {abs(self.value - self.must) / (self.must or 1):.0%}"

    def figure(self) -> Figure:
        """Return it as a row of docs/figures.md."""
        value = "not reached" if self.value is None else f"{self.value:.2f}{self.unit}"
        bound = f"{'<=' if self.at_most else '>='} {self.must:g}{self.unit}"
        return Figure(self.measure, value, bound, self.reaches(self.must))

    def as_row(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        value = "-" if self.value is None else f"{self.value:.2f}{self.unit}"
        bounds = f"{sign} {self.must:g} (aim {self.aim:g})"
        return f"{self.measure:52}{value:>12}   {bounds:22}{self.verdict}{self._times()}"

    def _times(self) -> str:
        own = self.detail.get("cvx")
        if not isinstance(own, dict):
            return ""
        return f"; p50 {own['p50_us']:.1f}, p99 {own['p99_us']:.1f} us"


def ratio(result: dict[str, Any], name: str, to: str = "cvx") -> float | None:
    """How many times faster `to` is than `name`."""
    if name not in result or to not in result:
        return None
    return float(result[name]["mean_us"] / result[to]["mean_us"])


def best(result: dict[str, Any], names: list[str]) -> str | None:
    """Return the fastest of `names` that took part."""
    present = [name for name in names if name in result]
    return min(present, key=lambda name: float(result[name]["mean_us"]), default=None)
