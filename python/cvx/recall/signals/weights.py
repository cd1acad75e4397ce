"""What each signal counts by default.

The weights are single digits: of a listwise logistic regression on three conversations of LoCoMo,
with vectors of MiniLM and of the lexical embedder together, doubled and rounded; what came out near
zero was left out. A column of 1 adds half of its weight to the log-odds that a text is wanted.
The weights of titles and links are set by reasoning: a link makes a text a candidate for what its
neighbour lacks, so it has to outweigh a text that merely repeats the neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "dense": 2.0,
        "dense_wide": 2.0,
        "dense_pair": 2.0,
        "bm25_wide": 5.0,
        "coverage_pair": 5.0,
        "speaker": 2.0,
        "date_near": 8.0,
        "date_month": 5.0,
        "session_best": 3.0,
        "session_coverage": 2.0,
        "answers": 2.0,
        "asks": -1.0,
        "length": 2.0,
        "title": 5.0,
        "linked": 8.0,
        "residual": 8.0,
    }
)
"""Weight of each column; columns that are not named count nothing until they are tuned."""

PASSAGE_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"dense": 5.0, "bm25": 5.0, "title": 2.0, "linked": 4.0, "residual": 4.0}
)
"""The same in a memory of passages, which have no neighbours that speak of the same: meaning and
words alike, stretched to one range, and titles and links in the measure of the others."""

COLUMNS = (
    *DEFAULT_WEIGHTS,
    "dense_window",
    "dense_neighbour",
    "bm25",
    "bm25_window",
    "coverage",
    "coverage_window",
    "asked_before",
    "date_year",
    "session_mean",
)
"""Every column that can tell candidates apart: what is tuned."""

SCALES: Mapping[str, Literal["min-max", "none"]] = MappingProxyType(
    dict.fromkeys(
        (
            "dense",
            "dense_window",
            "dense_wide",
            "dense_pair",
            "dense_neighbour",
            "bm25",
            "bm25_window",
            "bm25_wide",
        ),
        "min-max",
    )
)
"""Columns whose level depends on the encoder or on the lengths of texts, and which are therefore
stretched to [0, 1] among the candidates; the others are what they say, in [-1, 1]."""
