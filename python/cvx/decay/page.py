"""The page of a decay report."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvx.decay.report import DecayReport

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
