"""What each signal counts by default.

The weights are single digits, set by reasoning and fitted to no data set. Own content comes first:
meaning (3) and words (4) weigh alike, since encoders miss names and rare words, and words miss
paraphrases. What stands round an event counts half as much as the event does, the question that it
answers nearly as much as itself. A person or a day that the question names settles more than a good
word does: of two speakers who say the same, the one who was asked about is right. The form of a
text only breaks ties. A link makes a text a candidate for what its neighbour lacks: it has to
outweigh a text that merely repeats the neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "dense": 3.0,
        "dense_window": 1.0,
        "dense_wide": 1.0,
        "dense_pair": 2.0,
        "bm25": 2.0,
        "bm25_window": 1.0,
        "bm25_wide": 1.0,
        "coverage": 2.0,
        "coverage_pair": 2.0,
        "speaker": 2.0,
        "date_near": 2.0,
        "date_month": 1.0,
        "date_year": 1.0,
        "session_best": 1.0,
        "session_mean": 1.0,
        "session_coverage": 1.0,
        "answers": 1.0,
        "asks": -1.0,
        "length": 1.0,
        "title": 3.0,
        "linked": 5.0,
        "residual": 5.0,
    }
)
"""Weight of each column; columns that are not named count nothing until they are tuned."""

COLUMNS = (
    *DEFAULT_WEIGHTS,
    "dense_neighbour",
    "coverage_window",
    "asked_before",
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
