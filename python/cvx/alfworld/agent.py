"""An agent without a language model that plays by what memory returns.

It knows how English marks function words, that a word before a number is an instance, and how
to tell commands apart by their shape. No object, place or verb of any game is named here: what to
do for a goal (plans), how to go on when the next step of a plan is not possible yet (moments), and
where things were found (finds) are all recalled. With an empty memory it draws at random.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cvx.alfworld.explore import Advice, Wish, tally, worth
from cvx.alfworld.language import (
    Binding,
    arguments,
    filled,
    shape,
    signature,
    template,
    unnumbered,
    words,
)
from cvx.alfworld.lessons import COMMANDS, GOAL, SLOTS, learned, read, take_in, terms_of
from cvx.alfworld.sight import (
    FIND,
    MOMENT,
    PLAN,
    SUBGOAL,
    Attempt,
    Game,
    Result,
    Sight,
    plan_of,
    verbs,
)
from cvx.embed import LexicalEmbedder
from cvx.types import Cue, Decision, Filter, Hit, Vector

if TYPE_CHECKING:
    from cvx.active import ActiveMemory
    from cvx.alfworld.demonstrations import Played


class Agent:
    """Plays games with an `ActiveMemory`, and closes every attempt with its outcome.

    An attempt is one episode of the memory: it starts with the recall of a plan, goes on with the
    steps of the plan and, in between, with explored ones; it ends when the game is won, or when
    the plan was carried out, or got stuck, in vain. The game then goes on with another plan. An
    attempt that was broken off teaches nothing, since its plan was not followed to the end.

    Parameters
    ----------
    memory : ActiveMemory
        Its default embedder, `action_type=shape` and `usage_key=use_key` suit this agent. What
        its episodes teach about words is learned again from them.
    neighbours : int, default 15
        How many moments, and how many finds, have a vote.
    exponent : float, default 1.0
        The vote of a neighbour is its score to this power.
    plans : int, default 64
        How many episodes are looked at for a plan.
    patience : int, default 8
        When a plan counts as stuck: every command on the way to a subgoal that was given before,
        or is about the very thing that is wanted, is one more doubt.
    seed : int, default 0
        Decides between equals.
    """

    def __init__(
        self,
        memory: ActiveMemory,
        *,
        neighbours: int = 15,
        exponent: float = 1.0,
        plans: int = 64,
        patience: int = 8,
        seed: int = 0,
    ) -> None:
        self.memory = memory
        self.neighbours, self.exponent = neighbours, exponent
        self.plans = plans
        self.patience = patience
        self.lexicon = learned(memory.episodes)
        self._rng = random.Random(seed)
        self._features = LexicalEmbedder(dim=memory.index.dim, ngram_weight=0.0)
        self._decisions, self._seconds = 0, 0.0

    def learn(self, demonstrations: Sequence[tuple[str, Sequence[Played]]]) -> None:
        """Remember won games that somebody else played.

        Parameters
        ----------
        demonstrations : iterable of (goal, steps)
            Each step has an ``observation`` and the ``command`` given on it.
        """
        ready = []
        for goal, steps in demonstrations:
            slots = read(self.lexicon, goal, [step.command for step in steps])
            ready.append((goal, slots, steps))
        for goal, slots, steps in ready:
            self._observe(goal, slots, steps)

    def _observe(self, goal: str, slots: Sequence[str], steps: Sequence[Played]) -> None:
        binding = Binding(slots, self.lexicon)
        plan = tuple(binding.abstract(s.command) for s in steps if self._aimed(s.command, slots))
        shown = {GOAL: goal, COMMANDS: [step.command for step in steps]}
        run = self.memory.begin(goal, template(goal, slots), kind="demonstration", metadata=shown)
        attempt = Attempt(run, Binding(slots, self.lexicon), plan)
        terms = [*terms_of(self.lexicon, goal, slots), *(words(p)[0] for p in plan)]
        self.memory.step(run, goal, None, self._sum(dict.fromkeys(terms, 1.0)), tags=(PLAN,))
        sight = Sight(steps[0].observation)
        for seen, command in steps:
            sight.seen = seen
            text = sight.moment(attempt.subgoal)
            if self._aimed(command, slots):
                self._advance(attempt, sight, command, text)
            else:
                self.memory.step(run, text, shape(command), self._stored(text), tags=(MOMENT,))
                attempt.explored = True
            sight.do(command)
        self._close(attempt, won=True)

    def _aimed(self, command: str, slots: Sequence[str]) -> bool:
        named = any(a.word in slots for a in arguments(command))
        return named and self.lexicon.aimed(shape(command))

    def _sum(self, weights: Mapping[str, float]) -> Vector:
        kept = {w: x for w, x in weights.items() if x} or {"": 1.0}
        rows = self.memory.embedder.embed(list(kept))
        return np.asarray(np.array(list(kept.values()), dtype=np.float32) @ rows)

    def _stored(self, moment: str) -> Vector:
        return np.asarray(self._features.embed([moment])[0])

    def play(self, game: Game) -> Result:
        """Play one game to its end.

        Returns
        -------
        Result
            ``attempts`` is how many plans were tried, ``decisions`` how many commands were chosen
            with the help of memory, ``seconds`` what memory took for them, embedding apart.
        """
        self._decisions, self._seconds = 0, 0.0
        sight = Sight(game.reset())
        attempt: Attempt | None = None
        stuck: Attempt | None = None
        attempts, won, over = 0, False, False
        while not over:
            slots = sight.listen(self.lexicon)
            if attempt is None:
                attempt, attempts = self._begin(sight, slots, stuck), attempts + 1
            attempt.binding.slots = list(slots)
            text = sight.moment(attempt.subgoal)
            command = attempt.next_command(sight, self._rng)
            if command is None:
                command = self._explore(attempt, sight, text)
            else:
                self._advance(attempt, sight, command, text)
            sight.do(command)
            sight.seen, reward, over = game.step(command)
            won = reward > 0
            done = bool(attempt.plan) and attempt.subgoal is None
            hopeless = bool(attempt.plan) and attempt.doubts > self.patience
            if won or over or done or hopeless:
                # Carried out in vain, the plan is wrong; stuck, perhaps only this reading of it.
                vain = verbs(attempt.plan) if done else frozenset()
                sight.rejected[signature(attempt.plan)] = vain
                if won or done or not attempt.plan:
                    self._close(attempt, won)
                else:
                    # Broken off, it says nothing about its plan: that was not followed to the end.
                    self.memory.discard(attempt.run)
                stuck, attempt = (None if done else attempt), None
        return Result(won, len(sight.done), attempts, self._decisions, self._seconds)

    def state(self) -> dict[str, Any]:
        """Return what is not in the memory: how the next draw will fall."""
        version, numbers, _ = self._rng.getstate()
        return {"draws": [version, numbers]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as the agent that gave this state did; it had the same memory."""
        version, numbers = state["draws"]
        self._rng.setstate((version, tuple(numbers), None))

    def _recall(self, cue: Cue, tag: str, k: int) -> Decision:
        start = time.perf_counter()
        distinct: Literal["entity"] | None = "entity" if tag == PLAN else None
        decision = self.memory.recall(cue, Filter(tags=(tag,)), k, distinct=distinct)
        self._seconds += time.perf_counter() - start
        return decision

    def _begin(self, sight: Sight, slots: tuple[str, ...], stuck: Attempt | None = None) -> Attempt:
        goal = sight.seen.goal
        run = self.memory.begin(goal, template(goal, slots))
        terms = terms_of(self.lexicon, goal, slots)
        query = self._sum({w: self.lexicon.weight(w) for w in terms})
        self._decisions += 1
        decision = self._recall(Cue(goal=goal, vector=query), PLAN, self.plans)
        hit, plan = self._choose(decision.hits, sight)
        stored = self._sum(dict.fromkeys([*terms, *(words(p)[0] for p in plan)], 1.0))
        followed = () if hit is None else hit
        self.memory.act(decision, None, followed, vector=stored, tags=(PLAN,))
        attempt = Attempt(run, Binding(slots, self.lexicon), plan)
        same = 0 if stuck is None else stuck.place
        if stuck is not None and signature(stuck.plan[:same]) == signature(plan[:same]):
            # The world is as the stuck attempt left it: what it did for this plan is done.
            attempt.binding, attempt.place = stuck.binding, same
            for step in stuck.steps:
                self._record(attempt, *step)
        return attempt

    def _choose(self, hits: Sequence[Hit], sight: Sight) -> tuple[Hit | None, tuple[str, ...]]:
        """Return the most promising plan that was not in vain in this game, and whose it is."""
        options: dict[str, tuple[float, int, Hit, tuple[str, ...]]] = {}
        for place, hit in enumerate(hits):
            for plan, odds in self.lexicon.readings(plan_of(hit), self._nouns(hit)):
                known = options.get(signature(plan))
                if known is None or known[0] < hit.score * odds:
                    options[signature(plan)] = (hit.score * odds, -place, hit, plan)
        left = [o for name, o in options.items() if name not in sight.rejected]
        if not left:
            sight.rejected.clear()
            left = list(options.values())
        vain = set(sight.rejected.values())
        other = [o for o in left if verbs(o[3]) not in vain]
        best = max(other or left, key=lambda o: o[:2], default=None)
        return (None, ()) if best is None else best[2:]

    def _nouns(self, hit: Hit) -> dict[int, str]:
        episode = self.memory.episode_of(hit)
        return {} if episode is None else filled(episode.task_type or "", episode.goal)

    def _advance(self, attempt: Attempt, sight: Sight, command: str, text: str) -> None:
        """Record a step of the plan and, if it was made possible by exploring, what did so."""
        known = set(attempt.binding.names)
        action = attempt.binding.abstract(command)
        nouns = sorted({thing.split()[0] for thing in set(attempt.binding.names) - known})
        if attempt.explored and nouns:
            vector = self._sum(dict.fromkeys(nouns, 1.0))
            way = unnumbered(sight.done[-1])
            self.memory.step(attempt.run, " ".join(nouns), way, vector, tags=(FIND,))
        self._record(attempt, text, action, self._stored(text))
        attempt.place += 1
        attempt.doubts, attempt.explored = 0, False

    def _record(self, attempt: Attempt, text: str, action: str, vector: Vector) -> None:
        attempt.steps.append((text, action, vector))
        self.memory.step(attempt.run, text, action, vector, tags=(SUBGOAL,))

    def _explore(self, attempt: Attempt, sight: Sight, text: str) -> str:
        named = text.split()
        rare = np.array([self.lexicon.moments.rarity(f) for f in named], dtype=np.float32)
        vector = rare @ self._features.embed(named) if rare.any() else self._stored(text)
        self._decisions += 1
        decision = self._recall(Cue(step=text, vector=vector), MOMENT, self.neighbours)
        votes = tally(((str(h.action), h.score) for h in decision.hits), self.exponent)
        wish = Wish(attempt)
        advice = Advice(votes, dict(decision.action_scores), self._finds(wish.unbound))
        if votes:
            command = max(
                sight.commands,
                key=lambda c: (worth(c, sight, wish, advice, self.lexicon), self._rng.random()),
            )
        else:
            command = self._rng.choice(sight.commands)
        self.memory.act(decision, shape(command), vector=self._stored(text), tags=(MOMENT,))
        attempt.explored = True
        attempt.doubts += (sight.tried[command] > 0) + wish.about(command)
        return command

    def _finds(self, nouns: Iterable[str]) -> dict[str, float]:
        """Return which commands led to such things before, as shares."""
        asked = sorted(nouns)
        if not asked:
            return {}
        vector = self._sum(dict.fromkeys(asked, 1.0))
        decision = self._recall(Cue(text=" ".join(asked), vector=vector), FIND, self.neighbours)
        votes = tally(((str(h.action), h.similarity) for h in decision.hits), 2.0)
        total = 1.0 + sum(votes.values())
        return {command: n / total for command, n in votes.items()}

    def _close(self, attempt: Attempt, won: bool) -> None:
        """End an attempt, and learn its words if memory kept it."""
        run = attempt.run
        run.metadata = {**run.metadata, SLOTS: list(attempt.binding.slots)}
        take_in(self.lexicon, self.memory.close(run, float(won)))
