"""An agent without a language model that plays by what memory returns.

It knows how English marks function words, that a word before a number is an instance, and how
to tell commands apart by their shape. No object, place or verb of any game is named here: what to
do for a goal (plans), how to go on when the next step of a plan is not possible yet (moments), and
where things were found (finds) are all recalled. With an empty memory it draws at random.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from cvx.alfworld.language import (
    Binding,
    Lexicon,
    arguments,
    content,
    shape,
    signature,
    unnumbered,
    variables_of,
    words,
)
from cvx.embed import LexicalEmbedder
from cvx.types import Cue, Decision, Filter, Hit, Vector

if TYPE_CHECKING:
    from cvx.active import ActiveMemory
    from cvx.alfworld.demonstrations import Played
    from cvx.alfworld.engine import Observation
    from cvx.episodes import OpenEpisode

PLAN, SUBGOAL, MOMENT, FIND = "goal", "subgoal", "explore", "found"
_INSTANCE = re.compile(r"([a-z]+) \d+")


class Game(Protocol):
    """Anything that is played by commands."""

    def reset(self) -> Observation:
        """Start an episode."""
        ...

    def step(self, command: str) -> tuple[Observation, float, bool]:
        """Play a command; return what is seen, the reward and whether it is over."""
        ...


class Result(NamedTuple):
    """How one game went."""

    won: bool
    steps: int
    attempts: int
    decisions: int
    seconds: float


def plan_of(hit: Hit) -> tuple[str, ...]:
    """Return the subgoals that follow the start of an episode."""
    return tuple(s.action for s in hit.successors if s.action and variables_of(s.action))


def use_key(hit: Hit, task_type: str | None) -> Hashable:
    """Return what the success of advice is counted for: a plan for a goal, or a kind of command."""
    if hit.action is None:
        return ("plan", task_type, signature(plan_of(hit)))
    return ("moment", hit.action)


def template(goal: str, slots: Sequence[str]) -> str:
    """Return a goal with numbered gaps in the place of its nouns.

    Examples
    --------
    >>> template("hang a hat on the peg", ("hat", "peg"))
    'hang a {0} on the {1}'
    """
    return " ".join(f"{{{slots.index(w)}}}" if w in slots else w for w in words(goal))


@dataclass(slots=True)
class _Sight:
    """What the agent keeps in mind during one game."""

    seen: Observation
    before: frozenset[str] = frozenset()
    heard: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    ways: dict[str, list[str]] = field(default_factory=dict)
    rejected: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def commands(self) -> tuple[str, ...]:
        return self.seen.admissible_commands

    def do(self, command: str) -> None:
        """Note a command that is about to be given."""
        if not self.tried[command]:
            self.met.update((shape(command), a.word) for a in arguments(command))
        self.tried[command] += 1
        self.before = frozenset(self.commands)
        self.done.append(command)

    def moment(self, subgoal: str | None) -> str:
        """Return what is possible now, what is newly so, and what was done last, without names."""
        can = {shape(c) for c in self.commands}
        new = {shape(c) for c in self.commands if c not in self.before}
        last = shape(self.done[-1]) if self.done else "nothing"
        named = [f"last {last}", *(f"new {s}" for s in sorted(new))]
        named += [f"can {s}" for s in sorted(can)]
        if subgoal:
            named.append(f"need {words(subgoal)[0]}")
        return " ".join(re.sub(r"\W", "_", name.replace("#", "x")) for name in named)


@dataclass(slots=True)
class _Attempt:
    """One plan, and how far it is carried out."""

    run: OpenEpisode
    binding: Binding
    plan: tuple[str, ...]
    place: int = 0
    doubts: int = 0
    explored: bool = False
    steps: list[tuple[str, str, Vector]] = field(default_factory=list)

    @property
    def subgoal(self) -> str | None:
        return self.plan[self.place] if self.place < len(self.plan) else None


class Agent:
    """Plays games with an `ActiveMemory`, and closes every attempt with its outcome.

    An attempt is one episode of the memory: it starts with the recall of a plan, goes on with the
    steps of the plan and, in between, with explored ones; it ends when the game is won, or when
    the plan was carried out, or got stuck, in vain. The game then goes on with another plan.

    Parameters
    ----------
    memory : ActiveMemory
        Its default embedder, `action_type=shape` and `usage_key=use_key` suit this agent.
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
        self.neighbours = neighbours
        self.exponent = exponent
        self.plans = plans
        self.patience = patience
        self.lexicon = Lexicon()
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
            heard = {a.word for step in steps for a in arguments(step.command)}
            slots = [w for w in content(goal) if w in heard]
            self.lexicon.learn(goal, slots, [step.command for step in steps])
            ready.append((goal, slots, steps))
        for goal, slots, steps in ready:
            self._observe(goal, slots, steps)

    def _observe(self, goal: str, slots: Sequence[str], steps: Sequence[Played]) -> None:
        binding = Binding(slots, self.lexicon)
        plan = tuple(binding.abstract(s.command) for s in steps if self._aimed(s.command, slots))
        run = self.memory.begin(goal, template(goal, slots), kind="demonstration")
        attempt = _Attempt(run, Binding(slots, self.lexicon), plan)
        terms = [*self._terms(goal, slots), *(words(p)[0] for p in plan)]
        self.memory.step(run, goal, None, self._sum(dict.fromkeys(terms, 1.0)), tags=(PLAN,))
        sight = _Sight(steps[0].observation)
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

    def _terms(self, goal: str, slots: Sequence[str]) -> list[str]:
        return [w for w in content(goal) if w not in slots and w not in self.lexicon.nouns]

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
        sight = _Sight(game.reset())
        attempt: _Attempt | None = None
        stuck: _Attempt | None = None
        attempts, won, over = 0, False, False
        while not over:
            slots = self._listen(sight)
            if attempt is None:
                attempt, attempts = self._begin(sight, slots, stuck), attempts + 1
            attempt.binding.slots = list(slots)
            text = sight.moment(attempt.subgoal)
            command = self._next_of_plan(attempt, sight)
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
                vain = _verbs(attempt.plan) if done else frozenset()
                sight.rejected[signature(attempt.plan)] = vain
                self._close(attempt, won)
                stuck, attempt = (None if done else attempt), None
        return Result(won, len(sight.done), attempts, self._decisions, self._seconds)

    def _listen(self, sight: _Sight) -> tuple[str, ...]:
        sight.heard.update(a.word for c in sight.commands for a in arguments(c))
        slots = self.lexicon.slots(sight.seen.goal, sight.heard)
        if sight.done:
            for found in _INSTANCE.finditer(sight.seen.text.lower()):
                if found[1] in slots:
                    sight.ways[found[0]] = sight.done[-2:]
        return slots

    def _recall(self, cue: Cue, tag: str, k: int) -> Decision:
        start = time.perf_counter()
        distinct: Literal["entity"] | None = "entity" if tag == PLAN else None
        decision = self.memory.recall(cue, Filter(tags=(tag,)), k, distinct=distinct)
        self._seconds += time.perf_counter() - start
        return decision

    def _begin(
        self, sight: _Sight, slots: tuple[str, ...], stuck: _Attempt | None = None
    ) -> _Attempt:
        goal = sight.seen.goal
        run = self.memory.begin(goal, template(goal, slots))
        terms = self._terms(goal, slots)
        query = self._sum({w: self.lexicon.weight(w) for w in terms})
        self._decisions += 1
        decision = self._recall(Cue(goal=goal, vector=query), PLAN, self.plans)
        hit, plan = self._choose(decision.hits, sight)
        stored = self._sum(dict.fromkeys([*terms, *(words(p)[0] for p in plan)], 1.0))
        followed = () if hit is None else hit
        self.memory.act(decision, None, followed, vector=stored, tags=(PLAN,))
        attempt = _Attempt(run, Binding(slots, self.lexicon), plan)
        same = 0 if stuck is None else stuck.place
        if stuck is not None and signature(stuck.plan[:same]) == signature(plan[:same]):
            # The world is as the stuck attempt left it: what it did for this plan is done.
            attempt.binding, attempt.place = stuck.binding, same
            for step in stuck.steps:
                self._record(attempt, *step)
        return attempt

    def _choose(self, hits: Sequence[Hit], sight: _Sight) -> tuple[Hit | None, tuple[str, ...]]:
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
        other = [o for o in left if _verbs(o[3]) not in vain]
        best = max(other or left, key=lambda o: o[:2], default=None)
        return (None, ()) if best is None else best[2:]

    def _nouns(self, hit: Hit) -> dict[int, str]:
        """Return the nouns of the goal that a hit was recorded for, by number."""
        episode = self.memory.episode_of(hit)
        if episode is None or episode.task_type is None:
            return {}
        pairs = zip(words(episode.task_type), words(episode.goal), strict=True)
        return {int(gap[1]): noun for gap, noun in pairs if gap.startswith("{")}

    def _next_of_plan(self, attempt: _Attempt, sight: _Sight) -> str | None:
        subgoal = attempt.subgoal
        if subgoal is None:
            return None
        ready = [c for c in sight.commands if attempt.binding.fits(c, subgoal)]
        as_shown = set(words(subgoal))
        return max(
            ready,
            key=lambda c: (len(as_shown & set(words(c))), -sight.tried[c], self._rng.random()),
            default=None,
        )

    def _advance(self, attempt: _Attempt, sight: _Sight, command: str, text: str) -> None:
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

    def _record(self, attempt: _Attempt, text: str, action: str, vector: Vector) -> None:
        attempt.steps.append((text, action, vector))
        self.memory.step(attempt.run, text, action, vector, tags=(SUBGOAL,))

    def _explore(self, attempt: _Attempt, sight: _Sight, text: str) -> str:
        named = text.split()
        rare = np.array([self.lexicon.moments.rarity(f) for f in named], dtype=np.float32)
        vector = rare @ self._features.embed(named) if rare.any() else self._stored(text)
        self._decisions += 1
        decision = self._recall(Cue(step=text, vector=vector), MOMENT, self.neighbours)
        votes: dict[str, float] = defaultdict(float)
        for hit in decision.hits:
            votes[str(hit.action)] += max(hit.score, 0.0) ** self.exponent
        expected = dict(decision.action_scores)
        binding, need = attempt.binding, attempt.subgoal or ""
        bound = {name: thing for thing, name in binding.names.items()}
        # A thing once chosen is wanted itself; before that, any other of its kind.
        wanted = {bound.get(v) or binding.noun(v) for v in variables_of(need)}
        as_shown = set(content(need)) - {words(need)[0]} if need else set()
        finds = self._finds(wanted - set(bound.values()))
        ways = {
            command
            for thing, way in sight.ways.items()
            if thing in wanted or (thing.split()[0] in wanted and thing not in binding.names)
            for command in way
        }

        def about(command: str) -> bool:
            return any(a.word in wanted or a.instance in wanted for a in arguments(command))

        def worth(command: str) -> float:
            form, named = shape(command), {a.word for a in arguments(command)}
            share = votes[form] * expected.get(form, 1.0) + 1e-4 * (not self.lexicon.aimed(form))
            share *= self.lexicon.leads(form)
            share *= 1 + 3 * about(command) + 2 * bool(named & as_shown)
            if command in ways and command != sight.done[-1]:
                share *= 5
            share *= 1 + 4 * finds.get(unnumbered(command), 0.0)
            known = max((sight.met[form, w] for w in named), default=0)
            return float(share / (1 + known) ** 0.5 / (1 + sight.tried[command]) ** 2)

        if votes:
            command = max(sight.commands, key=lambda c: (worth(c), self._rng.random()))
        else:
            command = self._rng.choice(sight.commands)
        self.memory.act(decision, shape(command), vector=self._stored(text), tags=(MOMENT,))
        attempt.explored = True
        attempt.doubts += (sight.tried[command] > 0) + about(command)
        return command

    def _finds(self, nouns: set[str | None]) -> dict[str, float]:
        """Return which commands led to such things before, as shares."""
        asked = sorted(n for n in nouns if n)
        if not asked:
            return {}
        vector = self._sum(dict.fromkeys(asked, 1.0))
        decision = self._recall(Cue(text=" ".join(asked), vector=vector), FIND, self.neighbours)
        votes: dict[str, float] = defaultdict(float)
        for hit in decision.hits:
            votes[str(hit.action)] += max(hit.similarity, 0.0) ** 2
        total = 1.0 + sum(votes.values())
        return {command: n / total for command, n in votes.items()}

    def _close(self, attempt: _Attempt, won: bool) -> None:
        """End an attempt, and learn its words if memory kept it."""
        episode = self.memory.close(attempt.run, float(won))
        if not episode.steps or episode.steps[0].node is None:
            return
        for step, after in zip(episode.steps, [*episode.steps[1:], None], strict=True):
            if MOMENT in step.tags and step.action:
                led = after is not None and MOMENT not in after.tags
                self.lexicon.explored(step.action, led)
                self.lexicon.moments.note(w for w in step.text.split() if "_" in w)
        if won:
            plan = [s.action for s in episode.steps if s.action and variables_of(s.action)]
            terms = self._terms(episode.goal, attempt.binding.slots)
            self.lexicon.goals.note([*terms, *(words(p)[0] for p in plan)])


def _verbs(plan: Iterable[str]) -> frozenset[str]:
    return frozenset(words(p)[0] for p in plan)
