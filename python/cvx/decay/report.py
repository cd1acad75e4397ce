"""What each policy does to which memory, and why: a frame, and a page to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cvx.decay.case import DecayPolicy
from cvx.decay.ledger import Judged
from cvx.decay.page import page_of
from cvx.decay.policies import (
    BayesianDecay,
    BlindDecay,
    ContextAwareDecay,
    GatedDecay,
    ProportionalDecay,
    reason_of,
)
from cvx.errors import InvalidParameterError, OutputError

if TYPE_CHECKING:
    import polars as pl

POLICIES: Mapping[str, DecayPolicy] = MappingProxyType(
    {
        "blind": BlindDecay(),
        "context-aware": ContextAwareDecay(),
        "proportional": ProportionalDecay(),
        "Bayesian": BayesianDecay(),
        "gated": GatedDecay(ContextAwareDecay(), max_phase_gap=0.25, same_region=True),
    }
)
"""The policies that a report compares unless others are given."""


class DecayReport:
    """The same failures under several policies; ``decay_report`` makes it.

    Attributes
    ----------
    cases : polars.DataFrame
        A row for each policy, failed game and memory recalled there: ``policy``, ``game``,
        ``node``, ``memory``, ``before``, ``after`` (reward; null where it has none), ``factor``,
        ``why``.
    """

    def __init__(self, cases: pl.DataFrame) -> None:
        self.cases = cases

    def memories(self) -> pl.DataFrame:
        """Return a row for each policy and memory.

        Returns
        -------
        polars.DataFrame
            ``policy``, ``node``, ``memory``, ``games`` (failed ones it was recalled in),
            ``decays`` (those that cost it reward), ``before``, ``after`` (rewards), ``lost`` (the
            share of its reward).
        """
        import polars as pl

        grouped = self.cases.group_by("policy", "node", maintain_order=True).agg(
            pl.col("memory").first(),
            pl.col("game").n_unique().alias("games"),
            (pl.col("after") < pl.col("before")).sum().cast(pl.Int64).alias("decays"),
            pl.col("before").first(),
            pl.col("after").last(),
        )
        lost = pl.when(pl.col("before") > 0).then(1.0 - pl.col("after") / pl.col("before"))
        return grouped.with_columns(lost.otherwise(0.0).alias("lost"))

    def policies(self) -> pl.DataFrame:
        """Return a row for each policy.

        Returns
        -------
        polars.DataFrame
            ``policy``, ``memories``, ``lowered`` (how many of them lost reward), ``cases``,
            ``spared`` (cases that cost nothing), ``mean_lost`` (share of the reward, over all
            memories).
        """
        import polars as pl

        per_memory = (
            self.memories()
            .group_by("policy", maintain_order=True)
            .agg(
                pl.len().cast(pl.Int64).alias("memories"),
                (pl.col("lost") > 0).sum().cast(pl.Int64).alias("lowered"),
                pl.col("lost").mean().alias("mean_lost"),
            )
        )
        per_case = self.cases.group_by("policy").agg(
            pl.len().cast(pl.Int64).alias("cases"),
            (pl.col("factor") == 1.0).sum().cast(pl.Int64).alias("spared"),
        )
        columns = ["policy", "memories", "lowered", "cases", "spared", "mean_lost"]
        return per_memory.join(per_case, on="policy", maintain_order="left").select(columns)

    def to_html(self, title: str = "Decay", *, most: int = 200) -> str:
        """Return a page that opens without a network.

        Parameters
        ----------
        title : str
            Its heading.
        most : int, default 200
            How many memories are listed, those that lost most first; the page says how many are
            left out.
        """
        if most < 1:
            raise InvalidParameterError(f"most is {most}: give at least 1")
        return page_of(self, title, most)

    def write(self, path: str | Path, title: str = "Decay", *, most: int = 200) -> Path:
        """Write the page, and return where.

        Raises
        ------
        OutputError
            The file cannot be written.
        """
        where = Path(path)
        try:
            where.write_text(self.to_html(title, most=most), encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"{where} cannot be written ({error}): give a file in a folder that is there"
            ) from error
        return where


def decay_report(
    cases: Iterable[Judged],
    rewards: Mapping[int, float | None],
    policies: Mapping[str, DecayPolicy] = POLICIES,
    *,
    label_of: Callable[[int], str] = str,
) -> DecayReport:
    """Let several policies judge the same failures, each from the rewards before any decay.

    Nothing is changed: the report says what each policy would have done.

    Parameters
    ----------
    cases : iterable of Judged
        What was recalled in which failed game, oldest first; ``DecayLedger.cases`` keeps them. A
        memory is judged once a game, however often it is listed.
    rewards : mapping of int to float or None
        By node, before any decay.
    policies : mapping of str to DecayPolicy
        By the name to be shown; default ``POLICIES``.
    label_of : callable
        From a node to what is shown of the memory; default its number.

    Examples
    --------
    >>> from cvx.decay import DecayCase, Judged, decay_report
    >>> ignored, followed = DecayCase(followed=False), DecayCase(followed=True, region_quality=0.0)
    >>> report = decay_report([Judged(0, 4, ignored), Judged(0, 5, followed)], {4: 1.0, 5: 1.0})
    >>> report.cases.filter(policy="context-aware")["why"].to_list()
    ['its advice was not followed', 'followed in a region of quality 0.00']
    """
    import polars as pl

    rows = []
    judged: dict[tuple[int, int], Judged] = {}
    for one in cases:
        judged.setdefault((one.game, one.node), one)
    for name, policy in policies.items():
        left: dict[int, float | None] = {}
        for game, node, case in judged.values():
            before = left.get(node, rewards.get(node))
            factor, why = policy.factor(case), reason_of(policy, case)
            if before is None:
                factor, why = 1.0, "it has no reward to lose"
            after = left[node] = None if before is None else before * factor
            rows.append((name, game, node, label_of(node), before, after, factor, why))
    return DecayReport(
        pl.DataFrame(
            rows,
            schema={
                "policy": pl.String,
                "game": pl.Int64,
                "node": pl.Int64,
                "memory": pl.String,
                "before": pl.Float64,
                "after": pl.Float64,
                "factor": pl.Float64,
                "why": pl.String,
            },
            orient="row",
        )
    )
