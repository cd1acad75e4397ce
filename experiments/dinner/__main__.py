"""The dinner from beginning to end: ``python -m experiments.dinner [--embedder PATH]``.

Prints the dialogue with what each speaker had in mind, and how many tokens that saved; writes a
picture of who remembers which line. No language model is asked: the lines are scripted, and can
only be spoken where what they say was recalled.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cvx
from cvx.escaping import one_line
from experiments.dinner.picture import draw
from experiments.dinner.play import BUDGET, Line, play, seeded, who_knows


def main() -> int:
    """Play it once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", default="lexical", help="as for cvx.Memory")
    parser.add_argument("--budget", type=int, default=BUDGET, help="tokens of memories in a prompt")
    parser.add_argument("--picture", type=Path, default=Path("runs/dinner.png"))
    given = parser.parse_args()
    cast = seeded(cvx.Memory(embedder=given.embedder, clock="turns"))
    lines = []
    for line in play(cast, given.budget):
        lines.append(line)
        print(f"{line.turn:2} {line.speaker}: {line.text}")
        for text in line.recalled[:3]:
            print(f"      recalled: {one_line(text, 96)}")
    print(f"\n{table(lines)}")
    given.picture.parent.mkdir(parents=True, exist_ok=True)
    draw(who_knows(cast), lines, given.picture)
    print(f"\n{given.picture}")
    return 0


def table(lines: list[Line]) -> str:
    """Return the tokens of a turn and the facts that were known, with memories and without."""
    rows = ["| of a turn | full definition | memories | saved |", "|---|---|---|---|"]
    for name in dict.fromkeys(one.speaker for one in lines):
        own = [one for one in lines if one.speaker == name]
        whole = sum(one.definition_tokens for one in own) / len(own)
        used = sum(one.tokens for one in own) / len(own)
        rows.append(f"| tokens, {name} | {whole:.0f} | {used:.0f} | {1 - used / whole:.0%} |")
    for fact in ("definition", "dialogue"):
        own = [one for one in lines if one.fact == fact]
        whole, known = sum(o.with_definition for o in own), sum(o.with_memory for o in own)
        rows.append(f"| facts of the {fact} | {whole} of {len(own)} | {known} of {len(own)} | |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
