"""What a command is worth while the next step of a plan is not possible yet."""

from __future__ import annotations

from cvx.plans import Advice, Lexicon, Wish, arguments, shape, unnumbered
from cvx.textgames.sight import Sight


def worth(command: str, sight: Sight, wish: Wish, advice: Advice, lexicon: Lexicon) -> float:
    """Return how promising a command is.

    The votes for its shape, times what the region model expects of it and how often the shape led
    on, times factors for commands about what is wanted, on the way to where it was seen, or such
    as found the like before; less for words met often and commands given before.
    """
    form, named = shape(command), {a.word for a in arguments(command)}
    value = advice.votes.get(form, 0.0) * advice.expected.get(form, 1.0)
    value += 1e-4 * (not lexicon.aimed(form))
    value *= lexicon.leads(form)
    value *= 1 + 3 * wish.about(command) + 2 * bool(named & wish.shown)
    seen_there = any(command in way for thing, way in sight.ways.items() if wish.wants(thing))
    if seen_there and command != sight.last:
        value *= 5
    value *= 1 + 4 * advice.finds.get(unnumbered(command), 0.0)
    met = max((sight.met[form, w] for w in named), default=0)
    return float(value / (1 + met) ** 0.5 / (1 + sight.tried[command]) ** 2)
