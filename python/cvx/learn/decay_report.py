"""Compares decay policies on the same failures: frames, and an HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cvx.errors import FileError, InvalidInputError
from cvx.extras import needs
from cvx.learn.decay import (
    BayesianDecay,
    BlindDecay,
    ContextAwareDecay,
    DecayPolicy,
    GatedDecay,
    Judged,
    ProportionalDecay,
    reason_of,
)

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
        with needs("frames"):
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
        with needs("frames"):
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
            raise InvalidInputError(f"most is {most}: give at least 1")
        return page_of(self, title, most)

    def write(self, path: str | Path, title: str = "Decay", *, most: int = 200) -> Path:
        """Write the page, and return where.

        Raises
        ------
        FileError
            The file cannot be written.
        """
        where = Path(path)
        try:
            where.write_text(self.to_html(title, most=most), encoding="utf-8")
        except OSError as error:
            raise FileError(
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
    >>> from cvx.learn.decay import DecayCase, Judged
    >>> ignored, followed = DecayCase(followed=False), DecayCase(followed=True, region_quality=0.0)
    >>> report = decay_report([Judged(0, 4, ignored), Judged(0, 5, followed)], {4: 1.0, 5: 1.0})
    >>> report.cases.filter(policy="context-aware")["why"].to_list()
    ['its advice was not followed', 'followed in a region of quality 0.00']
    """
    with needs("frames"):
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


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .3rem .7rem; text-align: left; border-bottom: 1px solid #ddd;
  vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.bar { display: inline-block; height: .6rem; background: #c0504d; margin-left: .4rem }
summary { cursor: pointer; margin-top: 1rem }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 }
  th, td { border-color: #444 } }
"""


def page_of(report: DecayReport, title: str, most: int) -> str:
    """Return a self-contained HTML page; see ``DecayReport.to_html``."""
    body = [f"<h1>{escape(title)}</h1>"]
    if report.cases.is_empty():
        body.append("<p>No memory was recalled in a failed game.</p>")
    else:
        body += [_policies(report), *_memories(report, most)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _policies(report: DecayReport) -> str:
    rows = [
        f"<tr><td>{escape(row['policy'])}</td>"
        f'<td class="n">{row["lowered"]} of {row["memories"]}</td>'
        f'<td class="n">{row["spared"]} of {row["cases"]}</td>'
        f'<td class="n">{row["mean_lost"]:.1%}{_bar(row["mean_lost"])}</td></tr>'
        for row in report.policies().iter_rows(named=True)
    ]
    head = "<th>policy</th><th>memories lowered</th><th>cases spared</th><th>mean loss</th>"
    return "<h2>Policies</h2>\n" + _table(head, rows)


def _memories(report: DecayReport, most: int) -> list[str]:
    rows = list(report.memories().iter_rows(named=True))
    names = list(dict.fromkeys(row["policy"] for row in rows))
    by_node: dict[int, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_node.setdefault(row["node"], {})[row["policy"]] = row
    worst = sorted(by_node, key=lambda node: -max(r["lost"] for r in by_node[node].values()))
    head = "<th>memory</th>" + "".join(f"<th>{escape(name)}</th>" for name in names)
    shown = [_memory(by_node[node], names) for node in worst[:most]]
    left_out = len(worst) - len(shown)
    note = f"<p>{left_out} memories that lost less are left out.</p>" if left_out else ""
    return [
        "<h2>Memories: reward before and after</h2>",
        _table(head, shown),
        note,
        *_cases(report, set(worst[:most])),
    ]


def _memory(of_policy: dict[str, dict[str, Any]], names: list[str]) -> str:
    any_row = next(iter(of_policy.values()))
    cells = [f"<td>{escape(any_row['memory'])}</td>"]
    for name in names:
        row = of_policy[name]
        before, after = _reward(row["before"]), _reward(row["after"])
        text = before if row["lost"] == 0 else f"{before} &rarr; {after}{_bar(row['lost'])}"
        cells.append(f'<td class="n">{text}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _cases(report: DecayReport, nodes: set[int]) -> list[str]:
    out = ["<h2>Why</h2>"]
    by_policy: dict[str, list[str]] = {}
    for row in report.cases.iter_rows(named=True):
        rows = by_policy.setdefault(row["policy"], [])
        if row["node"] in nodes:
            rows.append(
                f'<tr><td class="n">{row["game"]}</td><td>{escape(row["memory"])}</td>'
                f'<td class="n">&times; {row["factor"]:.3f}</td><td>{escape(row["why"])}</td></tr>'
            )
    head = "<th>failed game</th><th>memory</th><th>factor</th><th>why</th>"
    for name, rows in by_policy.items():
        table = _table(head, rows)
        out.append(f"<details>\n<summary>{escape(name)}</summary>\n{table}\n</details>")
    return out


def _reward(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _bar(share: float) -> str:
    return f'<span class="bar" style="width:{max(0.0, min(share, 1.0)) * 8:.2f}rem"></span>'


def _table(head: str, rows: list[str]) -> str:
    return f"<table>\n<tr>{head}</tr>\n" + "\n".join(rows) + "\n</table>"
