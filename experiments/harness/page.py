"""The report of an experiment as one page that opens without a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from textwrap import indent
from typing import Any

from experiments.harness import pictures
from experiments.harness.arms import FOCUS, GROUPS
from experiments.harness.figures import scored
from experiments.harness.report import NOTES, p, points, rate
from experiments.harness.steps import Step

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1d2430; background: #fbfbf9;
  max-width: 62rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { margin-top: 2.4rem; font-size: 1.2rem; }
.lead { font-size: 1.1rem; } .note { color: #59626f; font-size: .88rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; }
th, td { padding: .32rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #e3e3de; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child, td.text { text-align: left; }
tr.focus { background: #eaf2f8; font-weight: 600; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
pre { background: #f0f0ec; padding: .8rem 1rem; overflow-x: auto; border-radius: 4px; }
"""


def write_page(
    path: Path,
    figures: Mapping[str, Any],
    command: str,
    seconds: float,
    steps: Sequence[Step] = (),
) -> None:
    """Write the report; its pictures are part of it, and nothing is loaded from elsewhere.

    Parameters
    ----------
    path : Path
    figures : mapping
        As `summary` returns them, or as they are read from the JSON file.
    command : str
        What reproduces it.
    seconds : float
        How long that took.
    steps : sequence of Step, optional
        What happened in one game.
    """
    sections = [
        _head(figures),
        _section("What was played", _played(figures)),
        _section("Games won", _headline(figures)),
        _section("Learning curves", _curves(figures)),
        _section("What experience brought", _growth(figures)),
        _section(f"How far {FOCUS} is ahead", _differences(figures)),
        _section("What memory holds", _memory(figures)),
        _section("By kind of task", _kinds(figures)),
        _section("Seeds", _seeds(figures)),
        *([_section("One game, step by step", _steps_of(steps))] if steps else []),
        _section("What to keep in mind", _caveats(figures)),
        _section("How to play it again", _again(command, seconds)),
    ]
    title = f"Learning from episodes: {figures['setup']['domain']['name']}"
    text = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>"
        f"{''.join(part for part in sections if part)}</body></html>\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>\n" if body else ""


def _head(figures: Mapping[str, Any]) -> str:
    arm = figures["arms"].get(FOCUS)
    if arm is None:
        return "<h1>Learning from episodes</h1>"
    first, last = arm["rounds"][0]["success"]["mean"], arm["rounds"][-1]["success"]["mean"]
    text = f"The full loop wins {100 * first:.1f}% of its games at first and {100 * last:.1f}% at "
    text += "the end"
    before, after = (arm[when]["steps_of_wins"] for when in ("early", "late"))
    if before and after:
        text += f"; a win takes {before:.1f} steps, then {after:.1f}"
    none = figures["arms"].get("none")
    if none is not None:
        text += f". Without memory the same agent wins {100 * none['late']['success']['mean']:.1f}%"
    return f'<h1>Learning from episodes</h1><p class="lead">{escape(text)}.</p>'


def _played(figures: Mapping[str, Any]) -> str:
    arms = _table(
        ["arm", "what it is"],
        ([name, arm["title"]] for name, arm in figures["arms"].items()),
        words=True,
    )
    note = "All arms play the same games in the same order, from the same demonstrations."
    return f"<p>{escape(figures['conditions'])}.</p><p>{note}</p>{arms}"


def _headline(figures: Mapping[str, Any]) -> str:
    measures = bool(figures["setup"]["measured"])
    heads = [
        f"after {n}" if measures else f"round {n + 1}" for n in figures["setup"]["measured_after"]
    ]
    score = ["score"] if scored(figures) else []
    rows = (
        [
            name,
            *(rate(row["success"]) for row in arm["rounds"]),
            f"{100 * arm['area']:.1f}",
            *(f"{100 * arm['late'][kind]:.1f}" for kind in score),
            *(_number(arm[when]["steps_of_wins"]) for when in ("early", "late")),
            _number(arm["all"]["ms_per_decision"]),
        ]
        for name, arm in figures["arms"].items()
    )
    steps = ["steps of a win, first", "last", "ms a decision"]
    table = _table(["arm", *heads, "area", *(f"{kind}, late" for kind in score), *steps], rows)
    note = (
        f"Columns: {NOTES['measured' if measures else 'learning']}; per cent. Intervals: "
        f"{NOTES['interval']}. Area: under the learning curve. ms: what memory takes, embedding "
        "apart."
    )
    return f'{table}<p class="note">{escape(note)}</p>'


def _curves(figures: Mapping[str, Any]) -> str:
    return _figure(figures, pictures.success, pictures.success_closer, pictures.steps)


def _growth(figures: Mapping[str, Any]) -> str:
    rows = [
        [name, points(arm["gain"]), _p(arm["gain"]), _steps(arm["steps_saved"])]
        for name, arm in figures["arms"].items()
        if arm["gain"] is not None
    ]
    if not rows:
        return ""
    note = (
        "The last point of the curve minus the first, on the same games; p as it stands, not "
        "corrected. Steps: of games won both times."
    )
    table = _table(["arm", "success, points", "p", "steps"], rows)
    return f'{table}<p class="note">{escape(note)}</p>'


def _differences(figures: Mapping[str, Any]) -> str:
    found = figures["differences"]
    if not found:
        return ""
    measured = bool(figures["setup"]["measured"])
    kinds = ["late", "area", *(["practice"] if measured else [])]
    heads = [text for kind in kinds for text in (f"{kind}, points", "p")]
    rows = (
        [name, *(text for kind in kinds for text in (points(one[kind]), p(one[kind])))]
        for name, one in found.items()
    )
    late = ", ".join(str(n if measured else n + 1) for n in figures["late"])
    note = f"{NOTES['paired']}. Late: {'after round' if measured else 'rounds'} {late}."
    if measured:
        note += " Practice: the last third of the games that were learned from, each new to memory."
    ablated = [name for name in found if name in GROUPS["ablations"]]
    text = ""
    if ablated:
        text = _verdict(found, ablated)
    picture = _figure(figures, pictures.gaps)
    return f'{picture}{_table(["arm", *heads], rows)}<p class="note">{escape(note)}</p>{text}'


def _verdict(found: Mapping[str, Any], ablated: Sequence[str]) -> str:
    """Say which changes to the full loop make a difference, and which do not."""
    groups: dict[str, list[str]] = {"cost": [], "gain": [], "open": []}
    for name in ablated:
        one = found[name]["late"]
        if one is not None:
            sure = one["p_corrected"] < 0.05
            groups["open" if not sure else "cost" if one["mean"] > 0 else "gain"].append(name)
    words = {
        "cost": "Changes that cost something",
        "gain": "Changes that help",
        "open": "Changes that make no difference that these games could show",
    }
    said = [f"{words[kind]}: {', '.join(names)}." for kind, names in groups.items() if names]
    return f"<p>{escape(' '.join(said))}</p>"


def _memory(figures: Mapping[str, Any]) -> str:
    rows = [
        [
            name,
            *(_number(arm["held"][-1][key]) for key in ("wins", "failures")),
            *(_share(arm["held"][-1][key]) for key in ("share_of_advice", "share_of_all")),
        ]
        for name, arm in figures["arms"].items()
        if arm["held"]
    ]
    heads = ["arm", "won", "failed", "won, % of what may advise", "% of all"]
    note = "Episodes in the index as the last round begins, mean of the seeds."
    picture = _figure(figures, pictures.contamination)
    return f'{picture}{_table(heads, rows)}<p class="note">{note}</p>'


def _kinds(figures: Mapping[str, Any]) -> str:
    arms = figures["arms"]
    kinds = sorted({kind for arm in arms.values() for kind in arm["by_task_type"]})
    rows = (
        [name, *(rate(arm["by_task_type"][k]["success"]) for k in kinds)]
        for name, arm in arms.items()
    )
    return _figure(figures, pictures.by_task_type) + _table(
        ["arm, late", *(kind.replace("_", " ") for kind in kinds)], rows
    )


def _seeds(figures: Mapping[str, Any]) -> str:
    seeds = list(dict.fromkeys(seed for arm in figures["arms"].values() for seed in arm["seeds"]))
    rows = (
        [
            name,
            *(
                f"{100 * arm['seeds'][seed]['early']:.1f} → {100 * arm['seeds'][seed]['late']:.1f}"
                for seed in seeds
            ),
        ]
        for name, arm in figures["arms"].items()
    )
    note = '<p class="note">Early and late success, per cent.</p>'
    return _table(["arm", *(f"seed {seed}" for seed in seeds)], rows) + note


def _caveats(figures: Mapping[str, Any]) -> str:
    setup = figures["setup"]
    told = [
        "A seed is a draw of demonstrations, of the order of games and of the agent's choices "
        "between equals. The intervals of differences are the wider of two: seeds and games drawn "
        "anew, and Student's t over the means of seeds. With one seed they speak of games alone, "
        "under that one draw of demonstrations.",
        "Success of several seeds on the same games is not independent; the intervals of single "
        "arms count each game once and do not know of seeds.",
    ]
    if setup["domain"].get("games") is None:
        told.append(
            "The games are generated from the packages' own parts; they are not those of a release."
        )
    if not setup["measured"]:
        told.append(
            "Success is measured while memory learns: it is not the success of a fixed memory."
        )
    if setup["llm"] is None:
        told.append("No language model played.")
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in told)}</ul>"


def _steps_of(steps: Sequence[Step]) -> str:
    lines = "\n".join(f"{step.what}\n{indent(step.came, '    ')}" for step in steps)
    return (
        f"<p>A game that was measured, played once more by <em>{FOCUS}</em> after all rounds, with "
        "the first seed. Advice names the episodes that an option rests on, the latest first.</p>"
        f"<details><summary>{len(steps)} lines</summary><pre>{escape(lines)}</pre></details>"
    )


def _again(command: str, seconds: float) -> str:
    took = f"It took {seconds:.0f} s here. The JSON file beside this page has every game."
    return f"<pre>{escape(command)}</pre><p>{took}</p>"


def _figure(figures: Mapping[str, Any], *drawn: Any) -> str:
    return "".join(f"<figure>{pictures.svg(one, figures)}</figure>" for one in drawn)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = ""
    for row in rows:
        mark = ' class="focus"' if row[0] == FOCUS else ""
        kind = ' class="text"' if words else ""
        cells = "".join(f"<td{kind}>{escape(str(cell))}</td>" for cell in row)
        body += f"<tr{mark}>{cells}</tr>"
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _p(found: Mapping[str, float]) -> str:
    return "<.001" if found["p"] < 0.001 else f"{found['p']:.3f}"


def _steps(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "-"
    return f"{found['mean']:+.1f} [{found['low']:.1f}, {found['high']:.1f}]"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
