"""Features of a pair of events of a passage: 24 numbers for a cause ranker.

How far apart they stand and on which side; what known pairs say, compared in the space of the
event words alone (the sentence around them drowns the event); and where the candidate stands
among the others, since only the order within one passage is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benches.causal.passages import KnownLinks, Passage, head
from cvx.causal.fusion import Floats

_NEIGHBOURS = 10
_FARTHEST_SECTION = 6

PLAIN = (
    "log_distance",
    "signed_log_distance",
    "same_section",
    "section_offset",
    "log_order",
    "next_event",
    "transfer_best",
    "transfer_mean",
    "reverse_best",
    "reverse_mean",
    "stem_pairs",
    "reverse_stem_pairs",
    "same_stem",
    "cause_share",
    "effect_share",
    "likeness",
)
COMPARED = (
    "log_distance",
    "transfer_best",
    "transfer_mean",
    "reverse_best",
    "reverse_mean",
    "cause_share",
    "effect_share",
    "likeness",
)
NAMES = (*PLAIN, *(f"{name}_among" for name in COMPARED))
_COMPARED_AT = [PLAIN.index(name) for name in COMPARED]


def evidence(passage: Passage, known: KnownLinks) -> Floats:
    """Return what speaks for each pair of events, before candidates are compared.

    Parameters
    ----------
    passage : Passage
        n events; its own links are not read.
    known : KnownLinks
        Links of other passages.

    Returns
    -------
    ndarray of shape (n, n, len(PLAIN))
        Entry [c, e] is about c as a cause of e:

        - distance in positions, its logarithm, signed (below 0: c comes first), whether both are
          in one section, how many sections apart (6 at the most), how many events apart;
        - transfer: the best, and the mean of the three best, over known pairs (a, b), of
          cos(c, a) * cos(e, b), negative cosines as 0; the reverse (e as a cause of c) likewise;
        - how often the two stems were cause and effect, either way round (log(1 + count));
        - the share of the ten known events nearest to c that were causes, and effects;
        - cosine of c and e.
    """
    count = len(passage)
    gaps = passage.positions[:, None] - passage.positions[None]
    sections = passage.sections[:, None] - passage.sections[None]
    order = np.abs(np.arange(count)[:, None] - np.arange(count)[None])
    best, mean = _transfer(passage, known)
    heads = [head(words) for words in passage.words]
    pairs = np.array([[known.stem_pairs[a, b] for b in heads] for a in heads], np.float64)
    pairs = np.log1p(pairs).reshape(count, count)
    same = np.array([[float(a == b) for b in heads] for a in heads]).reshape(count, count)
    was_cause, was_effect = _shares(passage, known)
    column = np.ones((1, count))
    far = np.log1p(np.abs(gaps))
    return np.stack(
        [
            far,
            np.sign(gaps) * far,
            (sections == 0).astype(np.float64),
            np.clip(np.abs(sections), 0, _FARTHEST_SECTION),
            np.log1p(order),
            (order == 1).astype(np.float64),
            best,
            mean,
            best.T,
            mean.T,
            pairs,
            pairs.T,
            same,
            was_cause[:, None] * column,
            was_effect[:, None] * column,
            (passage.vectors @ passage.vectors.T).astype(np.float64),
        ],
        axis=-1,
    )


def compared(rows: Floats) -> Floats:
    """Add where each candidate stands among the others, in standard deviations.

    Parameters
    ----------
    rows : ndarray of shape (m, len(PLAIN))
        The candidates of one effect.

    Returns
    -------
    ndarray of shape (m, len(NAMES))
    """
    chosen = rows[:, _COMPARED_AT]
    spread = chosen - chosen.mean(axis=0)
    return np.hstack([rows, spread / (chosen.std(axis=0) + 1e-6)])


def candidates_of(
    passage: Passage, effect: int, *, other_sections_only: bool = False
) -> Sequence[int]:
    """Return the events that may be causes of one: all others, or those of other sections."""
    own = passage.sections[effect]
    return [
        at
        for at in range(len(passage))
        if at != effect and not (other_sections_only and passage.sections[at] == own)
    ]


def _transfer(passage: Passage, known: KnownLinks) -> tuple[Floats, Floats]:
    count = len(passage)
    if not len(known.causes):
        return np.zeros((count, count)), np.zeros((count, count))
    as_cause = np.clip(passage.vectors @ known.causes.T, 0, 1).astype(np.float64)
    as_effect = np.clip(passage.vectors @ known.effects.T, 0, 1).astype(np.float64)
    products = as_cause[:, None, :] * as_effect[None, :, :]
    top = min(3, products.shape[-1])
    best = np.partition(products, -top, axis=-1)[..., -top:]
    return best.max(axis=-1), best.mean(axis=-1)


def _shares(passage: Passage, known: KnownLinks) -> tuple[Floats, Floats]:
    if not len(known.events):
        return np.zeros(len(passage)), np.zeros(len(passage))
    cosines = passage.vectors @ known.events.T
    near = np.argsort(-cosines, axis=1, kind="stable")[:, :_NEIGHBOURS]
    return known.was_cause[near].mean(axis=1), known.was_effect[near].mean(axis=1)
