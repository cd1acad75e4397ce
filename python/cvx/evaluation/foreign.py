"""Questions that a memory should answer with nothing: of fields it never heard of, and nonsense.

They are made from small tables of terms, seeded, so that everyone measures the same ones. The
fields fall into two halves that share no term: a floor is calibrated on the one and measured on
the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from cvx.errors import InvalidInputError

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "metallurgy": (
        "austenite", "martensite", "tempering furnace", "grain boundary", "quench oil",
        "eutectoid steel", "bainite", "annealing twin", "carbide precipitate", "cold rolling mill",
    ),
    "tax law": (
        "depreciation schedule", "withholding certificate", "transfer pricing", "loss carryforward",
        "capital allowance", "thin capitalisation", "input tax credit", "deferred liability",
        "fiscal residence", "excise bond",
    ),
    "orbital mechanics": (
        "Hohmann transfer", "apogee kick motor", "argument of periapsis", "Lagrange point",
        "inclination change", "gravity assist", "patched conic", "mean anomaly",
        "station keeping thruster", "retrograde burn",
    ),
    "network routing": (
        "autonomous system", "BGP prefix", "spanning tree", "multicast group", "ARP cache",
        "MPLS label", "route reflector", "VLAN trunk", "packet jitter", "subnet mask",
    ),
    "parasitology": (
        "liver fluke", "schizont", "oocyst wall", "intermediate host", "trypanosome",
        "cercaria", "proglottid", "tick vector", "merozoite", "anthelmintic dose",
    ),
    "typesetting": (
        "kerning pair", "hyphenation table", "widow line", "ligature glyph", "baseline grid",
        "optical margin", "small capitals", "leading value", "em dash", "bleed margin",
    ),
    "geology": (
        "basalt dyke", "thrust fault", "metamorphic aureole", "turbidite bed", "zircon grain",
        "glacial moraine", "unconformity", "feldspar cleavage", "karst sinkhole", "magma chamber",
    ),
    "chess endings": (
        "Lucena position", "opposite bishops", "zugzwang", "passed pawn", "Philidor defence",
        "rook lift", "triangulation", "fortress draw", "outside passer", "queenside majority",
    ),
    "organic chemistry": (
        "Grignard reagent", "chiral centre", "nucleophilic attack", "ester hydrolysis",
        "boronic acid", "protecting group", "tosylate", "enolate ion", "racemic mixture",
        "palladium catalyst",
    ),
    "medieval law": (
        "manorial court", "frankpledge", "writ of entry", "feudal relief", "wardship",
        "escheat", "tithing man", "assize roll", "villein tenure", "deodand",
    ),
}  # fmt: skip
_HALVES: Mapping[str, tuple[str, ...]] = {
    "calibrate": tuple(_FIELDS)[:5],
    "measure": tuple(_FIELDS)[5:],
}
_FORMS: Mapping[str, tuple[str, ...]] = {
    "calibrate": (
        "How does the {0} affect the {1}?",
        "When was the {0} first described?",
        "Why does a {0} need a {1}?",
        "What is the usual size of a {0}?",
        "Who introduced the {0} to replace the {1}?",
    ),
    "measure": (
        "What happens to the {0} once the {1} is removed?",
        "How many kinds of {0} are there?",
        "Where would one look for a {0}?",
        "Which {0} did they compare with the {1}?",
        "How long does it take to prepare a {0}?",
    ),
}
_SYLLABLES = "bra vok lun tis mer qua zel pod fim gra shu nix wol dri kep".split()  # noqa: SIM905
_NONSENSE_SHARE = 0.2


def foreign_cues(
    count: int, *, half: Literal["calibrate", "measure"] = "measure", seed: int = 0
) -> list[str]:
    """Make questions, four fifths about a field and one fifth of invented words.

    Parameters
    ----------
    count : int
        How many, all different; at least 1.
    half : {"calibrate", "measure"}, default "measure"
        Which fields and forms; the halves share none.
    seed : int, default 0
        The same seed gives the same questions.

    Raises
    ------
    InvalidInputError
        Less than one question, or no such half.

    Examples
    --------
    >>> foreign_cues(1, half="measure", seed=1)
    ['Which ester hydrolysis did they compare with the protecting group?']
    """
    if count < 1:
        raise InvalidInputError(f"count is {count}: give at least 1")
    if half not in _HALVES:
        raise InvalidInputError(f"half is {half!r}: give one of {', '.join(_HALVES)}")
    rng = np.random.default_rng([seed, len(half)])
    out = dict[str, None]()
    while len(out) < count:
        terms = _FIELDS[str(rng.choice(_HALVES[half]))]
        if rng.random() < _NONSENSE_SHARE:
            terms = tuple(_invented(rng) for _ in range(2))
        first, second = (str(term) for term in rng.choice(terms, 2, replace=False))
        out[str(rng.choice(_FORMS[half])).format(first, second)] = None
    return list(out)


def _invented(rng: np.random.Generator) -> str:
    return "".join(str(part) for part in rng.choice(_SYLLABLES, rng.integers(2, 4), replace=False))
