"""True cause or effect against a look-alike: e-CARE, the part of its training file in CVX_DATA.

Ten folds by groups of rows that share no text with any other group: each row is measured once, by
a scorer that saw none of its texts. "Wholly new" are rows whose three texts occur nowhere else in
the file, so that a recurring distractor gives nothing away. The recipe (heads, their size, the
weight of the words) was chosen within the last seven folds alone; the first three are printed
apart.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benches.causal.fitting import Embed, Example, base_of, groups_by_text
from benches.causal.report import Figure, Report

FOLDS, UNTOUCHED = 10, 3
# Both count in log-odds; words that go together are seen together, so that their sum says too much.
WORDS_WEIGHT = 0.15
MUST, MUST_NEW, AIM = 0.725, 0.65, 0.75


def read(path: Path) -> list[Example]:
    """Read ``ecare/train.jsonl``."""
    examples = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        right = row[f"hypothesis{row['label'] + 1}"]
        wrong = row[f"hypothesis{2 - row['label']}"]
        if row["ask-for"] == "cause":
            examples.append(Example(right, row["premise"], wrong, True))
        else:
            examples.append(Example(row["premise"], right, wrong, False))
    return examples


def run(report: Report, path: Path, embed: Embed | None) -> None:
    """Measure cosine, words, heads and both; and the calibration of the fitted judge."""
    examples = read(path)
    folds = np.array([_fold(group) for group in groups_by_text(examples)])
    new = _wholly_new(examples)
    margins = {name: np.zeros(len(examples)) for name in ("words", "heads", "both", "cosine")}
    for fold in range(FOLDS):
        out = folds == fold
        shown = [one for one, held in zip(examples, out, strict=True) if not held]
        asked = [one for one, held in zip(examples, out, strict=True) if held]
        model = base_of(shown, embed, "here")
        true, false = ([one.true for one in asked], [one.false for one in asked])
        words = [np.array([model.words.score(*texts) for texts in side]) for side in (true, false)]
        margins["words"][out] = WORDS_WEIGHT * (words[0] - words[1])
        if embed is not None:
            heads = model.heads["here"]
            near = [
                heads.score(embed([a for a, _ in side]), embed([b for _, b in side]))
                for side in (true, false)
            ]
            margins["heads"][out] = near[0] - near[1]
        margins["both"][out] = margins["words"][out] + margins["heads"][out]
        if embed is not None:
            margins["cosine"][out] = _cosines(embed, [one.true for one in asked]) - _cosines(
                embed, [one.false for one in asked]
            )
    report.section(
        "e-CARE, true cause or effect against a look-alike, accuracy",
        f"{len(examples):,} rows in {FOLDS} folds without a common text, {int(new.sum()):,} new",
    )
    names = ("words",) if embed is None else ("cosine", "words", "heads", "both")
    for name in names:
        must = (MUST, MUST_NEW, AIM) if name == "both" else (None, None, None)
        untouched = folds < UNTOUCHED
        report.row(
            f"{name}, as shipped" if name in ("words", "both") else name,
            Figure("all", _accuracy(margins[name]), must[0], must[2]),
            Figure("wholly new", _accuracy(margins[name][new]), must[1]),
            Figure("untouched", _accuracy(margins[name][untouched])),
            Figure("untouched new", _accuracy(margins[name][untouched & new])),
        )


def _cosines(
    embed: Callable[[Sequence[str]], npt.NDArray[np.float32]], texts: Sequence[tuple[str, str]]
) -> npt.NDArray[np.float64]:
    left, right = embed([a for a, _ in texts]), embed([b for _, b in texts])
    return np.asarray((left * right).sum(axis=1), np.float64)


def _accuracy(margins: npt.NDArray[np.float64]) -> float:
    return float(np.mean(np.where(margins == 0, 0.5, margins > 0)))


def _wholly_new(examples: Sequence[Example]) -> npt.NDArray[np.bool_]:
    count = Counter(text for one in examples for text in (one.cause, one.effect, one.wrong))
    return np.array(
        [all(count[text] == 1 for text in (one.cause, one.effect, one.wrong)) for one in examples]
    )


def _fold(group: str) -> int:
    code = hashlib.blake2b(group.encode(), digest_size=8).digest()
    return int(int.from_bytes(code, "little") / 2**64 * FOLDS)
