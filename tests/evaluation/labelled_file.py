"""Writes labelled questions as ``read_labels`` reads them."""

import json
from collections.abc import Iterable
from pathlib import Path

from cvx.evaluation import Label

_KEYS = ("category", "group", "namespace", "query", "speaker", "time")


def write_labels(path: Path, labels: Iterable[Label]) -> None:
    """Write one JSON object a line; what is empty is left out."""
    with path.open("w", encoding="utf-8") as out:
        for label in labels:
            row = {key: getattr(label, key) for key in _KEYS}
            row["gold"] = sorted(label.gold, key=str)
            kept = {key: value for key, value in row.items() if value not in (None, "")}
            out.write(json.dumps(kept, ensure_ascii=False) + "\n")
