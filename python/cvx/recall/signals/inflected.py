"""Forms of a word that its stem does not show.

Questions are asked with the base of a verb ("when did she *buy* it?") and answered with its past
("I *bought* it"). A stemmer joins regular forms; these are the irregular verbs of English that are
in common use, the irregular plurals, and the numbers up to twelve.
"""

from __future__ import annotations

from functools import lru_cache

_FORMS = """
    become became; begin began begun; bend bent; bite bit bitten; blow blew blown; break broke
    broken; bring brought; build built; burn burnt; buy bought; catch caught; choose chose
    chosen; come came; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk;
    drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find
    found; fly flew flown; forget forgot forgotten; forgive forgave forgiven; freeze froze
    frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung; hear
    heard; hide hid hidden; hold held; keep kept; know knew known; lay laid; lead led; learn
    learnt; leave left; lend lent; lose lost; make made; mean meant; meet met; pay paid; ride
    rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought;
    sell sold; send sent; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank
    shrunk; sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke
    spoken; speed sped; spend spent; spin spun; stand stood; steal stole stolen; stick stuck;
    strike struck; swear swore sworn; sweep swept; swim swam swum; swing swung; take took taken;
    teach taught; tear tore torn; tell told; think thought; throw threw thrown; understand
    understood; wake woke woken; wear wore worn; weave wove woven; win won; wind wound; write
    wrote written; child children; foot feet; goose geese; knife knives; leaf leaves; life
    lives; man men; mouse mice; person people; shelf shelves; tooth teeth; wife wives; wolf
    wolves; woman women; one 1; two 2; three 3; four 4; five 5; six 6; seven 7; eight 8; nine 9;
    ten 10; eleven 11; twelve 12
"""


def _table() -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for group in _FORMS.split(";"):
        words = tuple(group.split())
        for word in words:
            out[word] = tuple(dict.fromkeys((word, *out.get(word, ()), *words)))
    return out


IRREGULAR = _table()
_ENDINGS = ("ing", "s")


@lru_cache(maxsize=1 << 14)
def forms_of_word(word: str) -> tuple[str, ...]:
    """Return a word, and the words that are forms of the same one and do not share its stem.

    Parameters
    ----------
    word : str
        Folded in case.

    Examples
    --------
    >>> forms_of_word("buy"), forms_of_word("bought"), forms_of_word("lake")
    (('buy', 'bought'), ('bought', 'buy'), ('lake',))
    >>> forms_of_word("writing")
    ('writing', 'write', 'wrote', 'written')
    """
    if word in IRREGULAR:
        return IRREGULAR[word]
    for ending in _ENDINGS:
        if word.endswith(ending):
            bare = word.removesuffix(ending)
            # "writing" lost an e, "winning" doubled a consonant.
            for base in (bare, f"{bare}e", bare[:-1]):
                if len(base) > 1 and base in IRREGULAR:
                    return (word, *IRREGULAR[base])
    return (word,)
