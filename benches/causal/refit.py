"""Fit a statistical judge on labelled pairs: ``python -m benches.causal.refit pairs.jsonl out``.

A line of the file is a JSON object with the texts ``cause``, ``effect`` and ``wrong`` (what looks
like one of the two), and ``"wrong_is": "cause"`` or ``"effect"`` for which one it stands in for.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benches.causal.fitting import Embed, Example, fit_judge
from cvx.errors import CvxError, InvalidInputError

_SIDES = ("cause", "effect")


def read_examples(path: Path) -> list[Example]:
    """Read labelled pairs, one JSON object a line; empty lines are passed over.

    Raises
    ------
    InvalidInputError
        A line that holds something else; the message says which.
    """
    return [
        _example(f"{path}, line {number}", line)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if line.strip()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read pairs, fit, write; return 0, or 1 with what went wrong on the standard error."""
    parser = argparse.ArgumentParser(prog="python -m benches.causal.refit", description=__doc__)
    parser.add_argument("pairs", type=Path, help="labelled pairs, JSON lines")
    parser.add_argument("out", type=Path, help="where the judge goes: an .npz file")
    parser.add_argument("--model", type=Path, help="folder of a sentence encoder; words alone else")
    chosen = parser.parse_args(arguments)
    try:
        examples = read_examples(chosen.pairs)
        fit_judge(examples, _embedder(chosen.model)).save(chosen.out)
    except (CvxError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{chosen.out}: fitted on {len(examples):,} pairs")
    return 0


def _example(where: str, line: str) -> Example:
    try:
        row = json.loads(line)
        texts = cause, effect, wrong = row["cause"], row["effect"], row["wrong"]
        side = row["wrong_is"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"{where} is no labelled pair ({error}): give cause, effect, wrong and wrong_is"
        ) from error
    if side not in _SIDES or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InvalidInputError(f"{where}: three texts are needed, and wrong_is cause or effect")
    return Example(cause, effect, wrong, side == "cause")


def _embedder(model: Path | None) -> Embed | None:
    if model is None:
        return None
    from cvx.embed import LocalEmbedder

    return LocalEmbedder(model, truncate=True).embed


if __name__ == "__main__":
    sys.exit(main())
