"""Explores: weighs commands while the next step of a plan is not possible yet."""

from __future__ import annotations

from experiments.plans import Consulted, Lexicon, arguments, kind, shape
from experiments.textgames.game_state import GameState


class Explorer:
    """Weighs commands on the way to what is wanted.

    Parameters
    ----------
    sight : GameState
    told : Consulted
        What memory says about this moment.
    lexicon : Lexicon
    """

    def __init__(self, sight: GameState, told: Consulted, lexicon: Lexicon) -> None:
        self.sight, self.told, self.lexicon = sight, told, lexicon
        here, wish = {a.word for c in sight.commands for a in arguments(c)}, told.wish
        self.ways = sight.atlas.toward(({kind(t) for t in wish.things} | wish.shown) - here)

    def worth(self, command: str) -> float:
        """Return how promising a command is.

        The chance that its shape leads to what is missing in such a moment, times the chance that
        such a command does, times factors for commands about what is wanted, or on the way to where
        it was seen; less for what is done for other ends, for what undid something, for words met
        often and commands explored before. The factors were set by hand.
        """
        sight, told, wish, lexicon = self.sight, self.told, self.told.wish, self.lexicon
        form, named = shape(command), {a.word for a in arguments(command)}
        about, shown = wish.about(command), bool(named & wish.shown)
        value = told.kinds.get(form, 1.0)
        # What only this place offers would cost the way back later.
        value *= (1 + 3 * about + 2 * shown) * (1 + (command in sight.fresh))
        # What nobody was shown to do with a thing that was chosen may undo what was done to it.
        chosen = any(a.instance in wish.known for a in arguments(command))
        if lexicon.aimed(form, unused=chosen) and not lexicon.may_be_means(form):
            value *= 0.1
        seen_there = any(command in way for thing, way in sight.ways.items() if wish.wants(thing))
        if (seen_there and command != sight.last) or command in self.ways:
            value *= 5
        value *= told.chances.get(command, 1.0)
        value /= 1 + sight.barren[wish.need, form]
        if form in sight.undid:
            value *= 0.01
        met = max((sight.met[wish.need, form, w] for w in named), default=0)
        return float(value / (1 + met) ** 0.5 / (1 + sight.repeated(wish.need, command)) ** 2)
