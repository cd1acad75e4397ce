"""e-CARE: choosing the true cause or effect over a look-alike.

Ten folds by groups of rows that share no text with any other group: each row is measured once, by
a scorer that saw none of its texts. "Wholly new" are rows whose three texts occur nowhere else in
the file, so that a recurring distractor gives nothing away. The size of the heads was chosen within
the last seven folds alone; the first three are printed apart.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benches.causal import pairing
from benches.causal.fitting import Example, base_of, groups_by_text, read
from benches.causal.report import Figure, Report
from cvx.causal.cause_probability import NAMES, PairModel
from cvx.causal.judges.offline import WordPairs

FOLDS, UNTOUCHED = 10, 3
MUST, MUST_NEW = 0.725, 0.65


def run(report: Report, path: Path, spaces: Mapping[str, Any]) -> None:
    """Measure the pair model, as a judge of single pairs, beside the cosine of its embedder.

    Parameters
    ----------
    report : Report
        Where the figures go.
    path : Path
        ``ecare/train.jsonl``.
    spaces : mapping of str to Embedder
        By the family of their weights: "lexical", "semantic".
    """
    examples = read(path)
    folds = np.array([_fold(group) for group in groups_by_text(examples)])
    new, untouched = _wholly_new(examples), folds < UNTOUCHED
    for family, embedder in spaces.items():
        info = embedder.info()
        given = pairing.Given(embedder.embed, info)
        seen: list[tuple[int, str, pairing.Rows]] = []
        for fold in range(FOLDS):
            shown = [one for one, own in zip(examples, folds, strict=True) if own != fold]
            asked = [one for one, own in zip(examples, folds, strict=True) if own == fold]
            heads = embedder.embed if family == "semantic" else None
            model = base_of(shown, heads, str(info["id"]))
            seen.append((fold, pairing.ALONE, pairing.alone(asked, model, given, fold)))
        cosines, margins = np.zeros(len(examples)), np.zeros(len(examples))
        for fold, _, rows in seen:
            judge = PairModel(
                WordPairs({}), {f"{family} alone": pairing.fitted(seen, pairing.ALONE, fold)}
            )
            pairs = rows.evidence.reshape(rows.asked, -1, len(NAMES))[:, :2]
            odds = judge.weights[f"{family} alone"].odds(pairs).sum(axis=2)
            margins[folds == fold] = odds[:, 0] - odds[:, 1]
            likeness = pairs[:, :, NAMES.index("likeness")]
            cosines[folds == fold] = likeness[:, 0] - likeness[:, 1]
        report.section(
            f"e-CARE, true cause or effect against a look-alike, accuracy, {family} embedder",
            f"{len(examples):,} rows in {FOLDS} folds without a common text, {int(new.sum()):,} "
            "new; the pair model as it ships, fitted on the other folds",
        )
        must = (MUST, MUST_NEW) if family == "semantic" else (None, None)
        for name, values, bounds in (
            ("cosine", cosines, (None, None)),
            ("PairModel.judge", margins, must),
        ):
            report.row(
                name,
                Figure("all", _accuracy(values), bounds[0]),
                Figure("wholly new", _accuracy(values[new]), bounds[1]),
                Figure("untouched", _accuracy(values[untouched])),
                Figure("untouched new", _accuracy(values[untouched & new])),
            )


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
