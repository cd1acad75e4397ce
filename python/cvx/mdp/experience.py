"""What episodes came to, counted: apart for each group of readers, and added up for an asker."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cvx.mdp.counts import NOTHING, SuccessCounts
from cvx.mdp.trace import Trace

ANYWHERE = -1

Cell: TypeAlias = tuple[int, int | None, str | None, *tuple[str | None, ...]]
"""Level, region, family of goals; then the kind of action, and the phase, where they count."""

Place: TypeAlias = tuple[int, int | None]
"""Level and region."""

Moves: TypeAlias = dict[int, float]
"""Where an action led, and how often."""

Tally: TypeAlias = dict[tuple[str, ...], tuple[float, float]]
"""How often a sequence of kinds of action was tried, and how often it won."""

Phase: TypeAlias = Callable[[Sequence[str]], str]
"""From the kinds of action done so far in an episode to a word for where it stands."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How outcomes and places within episodes are read.

    Parameters
    ----------
    prior_strength : float
        How many episodes the more general estimate is worth.
    success_above : float
        A reward above it is a success.
    phase_of : callable
        Where in an episode a step stands.
    """

    prior_strength: float
    success_above: float
    phase_of: Phase


class Experience:
    """The counts of episodes that the same askers may read; each counts as much as it is trusted.

    Parameters
    ----------
    reading : Reading
        How episodes are read.

    Attributes
    ----------
    episodes : int
        How many were counted.
    counts : SuccessCounts
        Trials and wins by cell.
    moves : dict of (int, str) to Counter
        How often an action led where, by region and kind of action.
    seen : dict of cell to Counter
        How often each kind of action was done there.
    whole : dict of (str or None) to Tally
        Whole episodes by family of goals.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.episodes = 0
        self.counts = SuccessCounts(reading.prior_strength)
        self.moves: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
        self.seen: dict[Cell, Counter[str]] = defaultdict(Counter)
        self.whole: dict[str | None, Tally] = defaultdict(dict)

    def tables(self) -> Sequence[dict[Any, Any]]:
        """Return everything that grows."""
        return self.counts.own, self.moves, self.seen, self.whole

    def count(self, trace: Trace, places: Callable[[int], Sequence[Place]], times: int) -> None:
        """Count an episode; ``times=-1`` takes it back.

        Parameters
        ----------
        trace : Trace
        places : callable
            From a region to itself and the larger ones around it.
        times : int
            1 or -1.
        """
        if not trace.weight or not trace.nodes:
            return
        self.episodes += times
        weight: Any = times * trace.weight
        task = trace.task_type
        families = (None,) if task is None else (None, task)
        success_above = self.reading.success_above
        won = trace.won(success_above)
        if won is not None:
            for family in families:
                more(self.whole[family], trace.template(), won, weight)
        done: list[str] = []
        for region, action, arrived, reward, success in trace.moves(success_above):
            phase = self.reading.phase_of(done)
            done.append(action)
            tallied: list[tuple[Counter[Any], object]] = [(self.moves[(region, action)], arrived)]
            around: list[Place] = [(ANYWHERE, None), *places(region)]
            cells = [(level, at, family) for level, at in around for family in families]
            tallied += [(self.seen[cell], action) for cell in cells]
            for counter, key in tallied:
                counter[key] += weight
                if times < 0 and counter[key] <= NOTHING:
                    del counter[key]
            if success is not None and reward is not None:
                contexts: list[Cell] = [(*cell, kind) for cell in cells for kind in (None, action)]
                contexts += [(*around[1], family, action, phase) for family in families]
                self.counts.add(contexts, reward, success, weight)


class Told:
    """What one asker may know: the counts of several groups of readers, added up.

    Parameters
    ----------
    reading : Reading
        How episodes are read.
    parts : sequence of Experience
        Of the episodes that the asker may read; they may go on counting.

    Attributes
    ----------
    counts : SuccessCounts
        Trials and wins by cell.
    """

    def __init__(self, reading: Reading, parts: Sequence[Experience]) -> None:
        self._parts = parts
        self.counts = (
            parts[0].counts
            if len(parts) == 1
            else SuccessCounts(reading.prior_strength, [part.counts for part in parts])
        )
        self._best: dict[str | None, tuple[tuple[str, ...], float]] = {}

    def __len__(self) -> int:
        return sum(part.episodes for part in self._parts)

    def seen(self, cell: Cell) -> list[str]:
        """Return the kinds of action that were done somewhere."""
        found = (part.seen.get(cell) for part in self._parts)
        return list(dict.fromkeys(action for seen in found if seen for action in seen))

    def moves(self, region: int, action: str) -> Mapping[int, float]:
        """Return where an action led from a region, and how often."""
        out: Counter[int] = Counter()
        for part in self._parts:
            for there, n in part.moves.get((region, action), {}).items():
                out[there] += n
        return out

    def best_whole(self, family: str | None) -> tuple[tuple[str, ...], float]:
        """Return ``best_template`` of the whole episodes of a family of goals, or of all."""
        if family not in self._best:
            tally: Tally = {}
            for part in self._parts:
                for template, (trials, wins) in part.whole.get(family, {}).items():
                    before = tally.get(template, (0, 0))
                    tally[template] = before[0] + trials, before[1] + wins
            self._best[family] = best_template(tally)
        return self._best[family]

    def forget_best(self) -> None:
        """Choose the best anew: something was counted, or taken back."""
        self._best.clear()


def best_template(tally: Tally) -> tuple[tuple[str, ...], float]:
    """Return the template with the best Beta(1, 1) mean of success, and how often it was tried.

    Ties go to the shorter one. Nothing ever won: an empty template.
    """
    won = [(n, w, template) for template, (n, w) in tally.items() if w and template]
    if not won:
        return (), 0
    trials, _, best = min(won, key=lambda c: (-(c[1] + 1) / (c[0] + 2), len(c[2]), c[2]))
    return best, trials


def more(tally: Tally, template: tuple[str, ...], won: bool, weight: float) -> None:
    """Count one more try of a template, or one less."""
    trials, wins = tally.get(template, (0, 0))
    if trials + weight > NOTHING:
        tally[template] = (trials + weight, wins + won * weight)
    else:
        del tally[template]
