"""Explores: weighs commands while the next step of a plan is not possible yet."""

from __future__ import annotations

from experiments.plans import Advice, Lexicon, Wish, arguments, kind, shape
from experiments.textgames.game_state import GameState

# What nobody did in such a moment has this share of all votes, times the chance that it is a means:
# .05 won more tuning games (seeds 104-109, two halves of valid_train) than .02, .1 and .2.
_CURIOSITY = 0.05


class Explorer:
    """Weighs commands on the way to what is wanted.

    Parameters
    ----------
    sight : GameState
    wish : Wish
        What the next step of the plan needs.
    advice : Advice
        What was done in moments like this one.
    lexicon : Lexicon
    """

    def __init__(self, sight: GameState, wish: Wish, advice: Advice, lexicon: Lexicon) -> None:
        self.sight, self.wish, self.advice, self.lexicon = sight, wish, advice, lexicon
        here = {a.word for c in sight.commands for a in arguments(c)}
        self.ways = sight.atlas.toward(({kind(t) for t in wish.things} | wish.shown) - here)

    def worth(self, command: str) -> float:
        """Return how promising a command is.

        The votes for its shape, times what the region model expects of it, and a little for any
        shape that may be a means, so that what nobody showed is tried in the end; times the chance
        that such a command leads to what is missing, times factors for commands about what is
        wanted, or on the way to where it was seen; less for what is done for goals and names none
        of this one, for what undid something, for words met often and commands given before.
        The factors were set by hand.
        """
        sight, wish, advice, lexicon = self.sight, self.wish, self.advice, self.lexicon
        form, named = shape(command), {a.word for a in arguments(command)}
        about, shown = wish.about(command), bool(named & wish.shown)
        value = advice.votes.get(form, 0.0) * advice.expected.get(form, 1.0)
        value += _CURIOSITY * sum(advice.votes.values()) * lexicon.doubt(form)
        value *= 1 + 3 * about + 2 * shown
        if lexicon.aimed(form) and not (about or shown or lexicon.may_be_means(form)):
            value *= 0.1
        seen_there = any(command in way for thing, way in sight.ways.items() if wish.wants(thing))
        if (seen_there and command != sight.last) or command in self.ways:
            value *= 5
        value *= advice.chances.get(command, 1.0)
        value /= 1 + sight.barren[form]
        if form in sight.undid:
            value *= 0.01
        met = max((sight.met[form, w] for w in named), default=0)
        return float(value / (1 + met) ** 0.5 / (1 + sight.repeated(command)) ** 2)
