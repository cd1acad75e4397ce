"""Questions that a memory should answer with nothing: of fields it never heard of, and nonsense.

They are made from small tables of terms, seeded, so that everyone measures the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvx.evaluation import Label

FOREIGN = 200
_FIELDS = (
    (
        "kerning pair", "hyphenation table", "widow line", "ligature glyph", "baseline grid",
        "optical margin", "small capitals", "leading value", "em dash", "bleed margin",
    ),
    (
        "basalt dyke", "thrust fault", "metamorphic aureole", "turbidite bed", "zircon grain",
        "glacial moraine", "unconformity", "feldspar cleavage", "karst sinkhole", "magma chamber",
    ),
    (
        "Lucena position", "opposite bishops", "zugzwang", "passed pawn", "Philidor defence",
        "rook lift", "triangulation", "fortress draw", "outside passer", "queenside majority",
    ),
    (
        "Grignard reagent", "chiral centre", "nucleophilic attack", "ester hydrolysis",
        "boronic acid", "protecting group", "tosylate", "enolate ion", "racemic mixture",
        "palladium catalyst",
    ),
    (
        "manorial court", "frankpledge", "writ of entry", "feudal relief", "wardship",
        "escheat", "tithing man", "assize roll", "villein tenure", "deodand",
    ),
)  # fmt: skip
_FORMS = (
    "What happens to the {0} once the {1} is removed?",
    "How many kinds of {0} are there?",
    "Where would one look for a {0}?",
    "Which {0} did they compare with the {1}?",
    "How long does it take to prepare a {0}?",
)
_SYLLABLES = "bra vok lun tis mer qua zel pod fim gra shu nix wol dri kep".split()  # noqa: SIM905
_NONSENSE_SHARE = 0.2


def foreign_cues(count: int) -> list[str]:
    """Return so many questions that a memory cannot answer, all different, some of made-up words.

    Examples
    --------
    >>> foreign_cues(150)[0] == foreign_cues(1)[0]
    True
    """
    rng = np.random.default_rng([0, 7])
    out = dict[str, None]()
    while len(out) < count:
        terms: tuple[str, ...] = _FIELDS[int(rng.choice(len(_FIELDS)))]
        if rng.random() < _NONSENSE_SHARE:
            terms = tuple(
                "".join(rng.choice(_SYLLABLES, rng.integers(2, 4), replace=False)) for _ in range(2)
            )
        first, second = (str(term) for term in rng.choice(terms, 2, replace=False))
        out[str(rng.choice(_FORMS)).format(first, second)] = None
    return list(out)


def foreign_labels(labels: Sequence[Label], count: int = FOREIGN) -> list[Label]:
    """Return such questions as labels without gold, in turn in the namespaces of some labels."""
    namespaces = list(dict.fromkeys(label.namespace for label in labels)) or [""]
    return [
        Label(
            query=cue,
            gold=frozenset(),
            group="foreign",
            category="foreign",
            namespace=namespaces[at % len(namespaces)],
        )
        for at, cue in enumerate(foreign_cues(count))
    ]
