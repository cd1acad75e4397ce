"""Filters used for the first time: new bounds at every call.

An index with every kind of column is asked under filters of one kind, each accepting about one row
in a hundred. *Cold*: more filters in turn than an index remembers. *Warm*: one filter again and
again. Beside both a bare exact scan, an index of the accepted rows alone without a filter: those of
the cold filters in turn, whose rows are then as far from the processor, and one again and again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benches.peers.data import SEED, Ids, K, Matrix, recall
from benches.peers.targets import Line

#: One row in so many is accepted; and so many entities, namespaces, tags and ranges of reward.
PARTS = 100
#: Filters asked in turn, more than an index remembers.
TURNS = 32


class Columns:
    """An index in which every kind of filter can be asked, and what each accepts."""

    def __init__(self, base: Matrix) -> None:
        self.base = base
        rows = len(base)
        rng = np.random.default_rng([SEED, PARTS])
        self.times = np.arange(rows)
        self.entities = self.times * PARTS // rows
        self.spaces, self.tags = rng.integers(0, PARTS, (2, rows))
        self.halves = rng.integers(0, 2, rows)
        self.rewards = rng.random(rows, dtype=np.float32)
        tags = [[f"tag {t}", f"half {h}"] for t, h in zip(self.tags, self.halves, strict=True)]
        self.index = self._made(tags=tags, rewards=self.rewards)
        self.apart = self._made(namespaces=[f"space {n}" for n in self.spaces])

    def _made(self, **columns: Any) -> Any:
        from cvx.index import RawIndex

        # Few links: under these filters nothing is walked.
        index = RawIndex(self.base.shape[1], "cosine", 4, 8, SEED)
        index.bulk_insert(self.entities, self.times, self.base, **columns)
        return index

    def condition(self, kind: str, turn: int) -> tuple[dict[str, Any], Ids]:
        """What a filter asks for, and the rows that it accepts."""
        rows, rng = len(self.base), np.random.default_rng([SEED, turn])
        width = rows // PARTS
        start = int(rng.integers(0, rows - 2 * width))
        lowest = float(rng.uniform(0, 1 - 1 / PARTS))
        named = (turn * 7) % PARTS
        window = (self.times >= start) & (self.times < start + width)
        conditions: dict[str, tuple[dict[str, Any], Any]] = {
            "window": ({"since": start, "until": start + width}, window),
            "entity": ({"entities": [named]}, self.entities == named),
            "namespace": ({"namespaces": [f"space {named}"]}, self.spaces == named),
            "tag": ({"tags": [f"tag {named}"]}, self.tags == named),
            "reward": (
                {"min_reward": lowest, "max_reward": lowest + 1 / PARTS},
                (self.rewards >= np.float32(lowest))
                & (self.rewards <= np.float32(lowest + 1 / PARTS)),
            ),
            "window and tag": (
                {"since": start, "until": start + 2 * width, "tags": ["half 0"]},
                (self.times >= start) & (self.times < start + 2 * width) & (self.halves == 0),
            ),
        }
        asked, accepted = conditions[kind]
        return asked, np.flatnonzero(accepted).astype(np.int64)


KINDS = ("window", "entity", "namespace", "tag", "reward", "window and tag")


def timed(calls: Sequence[Callable[[], object]]) -> float:
    """Return the median of rounds, in microseconds of CPU time a call."""
    rounds = []
    for _ in range(7):
        start = time.process_time()
        for call in calls:
            call()
        rounds.append((time.process_time() - start) / len(calls) * 1e6)
    return median(rounds)


def bare(rows: Matrix) -> Any:
    """Return an index that compares with every one of these rows."""
    from cvx.index import RawIndex

    index = RawIndex(rows.shape[1], "cosine", 4, 8, SEED, exact_below=len(rows) + 1)
    index.bulk_insert(np.arange(len(rows)), np.arange(len(rows)), rows)
    return index


def cold(library: Any) -> dict[str, dict[str, float]]:
    """Times cold, warm and bare of every kind of filter, and the recall of the cold ones."""
    from cvx.types import Filter

    base, queries = library.data.base, library.data.queries
    columns = Columns(base)
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        asked = [columns.condition(kind, turn) for turn in range(TURNS)]
        index = columns.apart if kind == "namespace" else columns.index

        def ask(turn: int, which: int, index: Any = index, asked: Any = asked) -> Ids:
            ids: Ids = index.search(queries[turn], K, where=Filter(**asked[which][0]))[0]
            return ids

        cold_calls = [partial(ask, turn, turn) for turn in range(TURNS)]
        warm_calls = [partial(ask, turn, 0) for turn in range(TURNS)]
        alone = [bare(base[rows]) for _, rows in asked]
        bare_calls = [partial(alone[turn].search, queries[turn], K) for turn in range(TURNS)]
        same_calls = [partial(alone[0].search, queries[turn], K) for turn in range(TURNS)]
        truth = [
            rows[np.argsort(-(base[rows] @ queries[turn]))[:K]]
            for turn, (_, rows) in enumerate(asked)
        ]
        got = np.stack([ask(turn, turn) for turn in range(TURNS)])
        found[kind] = {
            "cold_us": timed(cold_calls),
            "warm_us": timed(warm_calls),
            "bare_us": timed(bare_calls),
            "bare_warm_us": timed(same_calls),
            "recall": recall(got, np.stack(truth)),
            "accepted": median(len(rows) for _, rows in asked),
        }
    return found


def lines(found: dict[str, dict[str, float]]) -> list[Line]:
    """A line a kind: the cold filter beside the bare scan of what it accepts."""
    table = []
    print(
        f"\nfilters of 1%, cold{'':12}{'accepted':>10}{'cold us':>10}{'warm us':>10}{'bare us':>10}"
    )
    for kind, one in found.items():
        print(
            f"  {kind:29}{one['accepted']:>10.0f}{one['cold_us']:>10.1f}{one['bare_us']:>10.1f}"
            f"{one['warm_us']:>10.1f}{one['bare_warm_us']:>10.1f}",
            flush=True,
        )
        share = one["cold_us"] / one["bare_us"]
        kept = one["recall"] >= 0.99
        warm = one["warm_us"] / one["bare_warm_us"]
        for state, value in (("cold", share), ("warm", warm)):
            measure = f"{state} filter, {kind} 1%, a bare scan"
            table.append(Line(measure, value, 1.3, 1.1, at_most=True, holds=kept, detail=dict(one)))
    return table
