"""The model of one task: its states, transition counts, priors, and a plan over them."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from cvx.learn.advisor.continuous_states import Transition, VectorModel
from cvx.learn.advisor.gaussian_process import GaussianProcess, Sample
from cvx.learn.advisor.history_evidence import HistoryEvidence
from cvx.learn.advisor.naming import NAMED, beside, naming, usual_words
from cvx.learn.advisor.types import (
    LEAST_REWARD,
    NO_ROUTES,
    Basis,
    Key,
    Observation,
    Route,
    Run,
    Unit,
    plain,
    restored_action,
)
from cvx.learn.decay import DecayCase, DecayPolicy
from cvx.learn.transition_counts import END, Column, Counts, Floats, Ints
from cvx.statistics import Beta, backed_off
from cvx.types import Vector

_WORD = re.compile(r"\w+")
_MOST_SAMPLES = 600
"""How many pairs expectations are fitted to, at the most."""

_EVERY, _FEW = 40, 160
"""For how many episodes, and pairs, expectations are fitted after every one."""

_MOST_WORDS = 256
_SWEEPS = 60
_MOST_TOLD = 2000
"""Of how many pairs, the newest, expectations follow every fit; older ones keep what they were."""

_TINY = 1e-30
_WORK = 800_000
"""How many outcomes one plan looks at, at the most: rows times sweeps."""

_STRANGE = 0.8
"""From which share of words that no other state has a text's vector tells what it is like."""

LOOK_BACK, _SURE = 2, 5.0
"""How many actions with their results a history has, and the log evidence that decides for it."""

_TRIED, _SEVERAL = 300, 200
"""After how many episodes, or states that look different, a history that is not ahead is no longer
tried: worlds that hide what was done show few."""

_BACK_OFF, _MOST_ASKED, _MOST_JUDGED = 2.0, 8, 24
"""How many states what is wider counts as, how many other tasks are asked, and on how many pairs
of each it is judged whether they agree."""

_MOST_REPEATED = 8
"""How many pairs of other tasks that were repeated count against trying again, at the most."""

GAMMA = 0.99
"""What a reward is worth one step later, where there is time."""

BOLDNESS, JITTER = 1.0, 0.5
"""How many standard deviations above its mean an untried action is taken for when exploring, and
how much that varies between episodes."""

WEAKEST, _STRONGEST = 0.02, 6.0
"""How many trials an expectation is worth beside those of a pair, at least and at most."""

_SOME, _DECIDED = 30, 500
"""After how many observations of numbers it is judged whether they repeat, and until when."""

_ANEW, _MOVING = 0.7, 0.3
"""From which share of different ones on they do not: of those that differ within an episode, and of
all."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Switches for parts of the learner, for ablations.

    Parameters
    ----------
    gate : float, default 100
        Evidence at which older outcomes are dropped for a change; infinity for never.
    process : bool, default True
        Whether other states and actions are the prior of untried ones.
    relevance : bool, default True
        Whether words have relevances that are learned.
    names : bool, default True
        Whether it counts how far the goal and the text name an action, and how much of the goal a
        text holds; and what is named is tried sooner before anything has paid.
    planning : bool, default True
        Whether values are carried back through stored transitions.
    thompson : bool, default True
        Whether exploring draws what the counted outcomes allow.
    decay : DecayPolicy, optional
        What a failed episode costs what was counted before it; the gate needs none.
    others : bool, default True
        Whether, before the first success, what was good in other tasks is tried first, if these
        agree with each other.
    """

    gate: float = 100.0
    process: bool = True
    relevance: bool = True
    names: bool = True
    planning: bool = True
    thompson: bool = True
    decay: DecayPolicy | None = None
    others: bool = True


class Actions:
    """Numbers actions and compares their texts."""

    def __init__(self, embed: Callable[[Sequence[str]], Vector]) -> None:
        self._embed = embed
        self.of: dict[Hashable, int] = {}
        self.names: list[Hashable] = []
        self._vectors: list[Floats] = []

    def saved(self) -> dict[str, Any]:
        """Return names and vectors."""
        return {"names": self.names, "vectors": np.array(self._vectors)}

    def restore(self, told: Mapping[str, Any]) -> None:
        """Take over what was saved."""
        self.names = [restored_action(name) for name in told["names"]]
        self.of = {name: number for number, name in enumerate(self.names)}
        self._vectors = [*told["vectors"]]
        if {len(self.of), len(self._vectors)} != {len(self.names)}:
            raise ValueError("an action is there twice, or without a vector")

    def number(self, action: Hashable) -> int:
        """Return the number of an action, a new one if it is new."""
        at = self.of.get(action)
        if at is None:
            # First what may fail.
            vector = np.asarray(self._embed([str(action)])[0], dtype=np.float64)
            at = self.of[action] = len(self.names)
            self.names.append(action)
            self._vectors.append(vector / max(1e-12, float(np.linalg.norm(vector))))
        return at

    def like(self, a: Ints, b: Ints) -> Floats:
        """Return how alike actions are, by their numbers, of shape (len(a), len(b)), in [0, 1]."""
        # Each text is compared once: in a sample most actions come many times.
        (some, at), (others, of) = (np.unique(one, return_inverse=True) for one in (a, b))
        mine, theirs = (
            np.array([self._vectors[i] for i in one.tolist()]) for one in (some, others)
        )
        # Rounded: the last bits of a product hang on how many others were asked about.
        table = np.clip(np.round(mine @ theirs.T, 9), 0.0, 1.0)
        return np.asarray(table[np.ix_(at, of)])


def _first(luck: Floats, named: Floats) -> Floats:
    """Return when actions have their turn, from 0 to 1: what is named sooner, mostly."""
    return np.asarray(luck ** (1.0 + 2.0 * named))


def worth_trying(mean: Floats, hope: Floats, known: Any, visits: Any) -> Floats:
    """Return what untried actions are taken for: their hope where it outweighs what it costs.

    That is if what it would be better than the best known, as often again as the state was met
    before, is more than what it is expected to lose once.
    """
    return np.where((hope - known) * (1.0 + visits) >= known - mean, hope, mean)


def _evenly(numbers: Ints, most: int) -> Ints:
    """Return all numbers, or so many at even distances."""
    if len(numbers) <= most:
        return numbers
    return numbers[np.linspace(0, len(numbers) - 1, most).astype(np.int64)]


class Task:
    """The learned model of one task: states, counts, process, plan."""

    def __init__(
        self,
        name: str,
        actions: Actions,
        parts: Parts,
        seed: int,
        *,
        history: int = 0,
        others: dict[str, Task] | None = None,
        routes: Mapping[Basis, Route] = NO_ROUTES,
    ) -> None:
        self.history, self.routes = history, routes
        self._others = {} if others is None else others
        self.name, self.actions, self.parts, self.seed = name, actions, parts, seed
        self.unit: Unit | None = None
        # Once a second goal came, the goal is part of what tells states apart.
        self.goal: str | None = None
        self.by_goal = False
        self.states: dict[Key, int] = {}
        self.names: list[Key] = []
        self.words: Counter[str] = Counter()
        self.shared: dict[str, int] = {}
        self.tokens: list[list[str]] = []
        self.meanings: list[Vector | None] = []
        self.dim = 0
        # Words that tell no actions apart.
        self.usual: frozenset[str] = frozenset()
        # The menu whose words were asked for last, with the usual ones then, and what was found.
        self._asked_menu: tuple[tuple[Hashable, ...] | None, frozenset[str], frozenset[str]] = (
            None, self.usual, self.usual,
        )  # fmt: skip
        self.menus: dict[int, tuple[Hashable, ...]] = {}
        self.counts = Counts(parts.gate)
        self.vectors = VectorModel(GAMMA)
        # How often each observation of numbers was made, and how many different ones each episode
        # made, added up.
        self.repeats: Counter[bytes] = Counter()
        self.different = 0
        self.continuous = False
        self.process = GaussianProcess(relevance=parts.relevance)
        self.mean, self.variance = Column(np.float64), Column(np.float64)
        # How far the actions of pairs are named, added up.
        self.leads = Column(np.float64)
        self._stale = True
        self.history_evidence: HistoryEvidence | None = None
        # The same episodes told apart by a history, while it is open whether that pays.
        self.with_history: Task | None = None
        self.episodes = 0
        # After how many episodes the process was fitted last, on which pairs, and of how many.
        self.fitted_at = self._fitted_pairs = 0
        self._fitted_on: Ints = np.zeros(0, np.int64)
        self.latest: list[deque[str]] = []
        self.least, self.most = math.inf, -math.inf
        self.anchor = np.zeros(1)
        self._was_flat = True
        self.strength = np.zeros(0)
        self.within = 0.05
        self.values, self.bold, self.weights = np.zeros(1), np.zeros(1), np.zeros(0)
        self.worth, self.bold_worth, self.hope = np.zeros(0), np.zeros(0), np.zeros(0)
        self.best = 1.0
        # Whether other tasks agree, and after which of their episodes that was judged.
        self._agreed: tuple[tuple[tuple[str, int], ...], bool] = ((), False)
        # In how many ways each pair ended and how many were repeated, after how many episodes.
        self._kinds = -1, (np.zeros(0, np.int64), 0)
        # Of each action, and of all: in how many states it was tried, and how good it was there.
        self._goodness: list[tuple[float, float]] = []
        self._overall = (0.0, 0.0)
        # How many steps were done, and how many episodes were cut off before anything was gained.
        self.steps = self.cut_off = 0.0

    # --- saving

    def saved(self, runs: Mapping[str, int]) -> dict[str, Any]:
        """Return what was learned as lists, numbers and arrays; the plan follows from it.

        Parameters
        ----------
        runs : mapping of str to int
            Numbers of the episodes.
        """
        texts: dict[str, int] = {}

        def text(told: str) -> int:
            return texts.setdefault(told, len(texts))

        def key(told: Any) -> Any:
            if isinstance(told, str):
                return text(told)
            if isinstance(told, bytes):
                return [text(told.decode("latin-1"))]
            if told is None:
                return None
            first, past, here = told
            return [text(first), [[text(a), text(b)] for a, b in past], text(here)]

        names = [key(name) for name in self.names]
        meant = [at for at, vector in enumerate(self.meanings) if vector is not None]
        menus: dict[tuple[Hashable, ...], int] = {}
        of = [menus.setdefault(menu, len(menus)) for menu in self.menus.values()]
        numbers = self.actions.of
        # Newer pairs are told of anew: what is expected of them does not hang on who asked.
        old = [self.mean.all.copy(), self.variance.all.copy()]
        for column in old:
            column[self._fitted_pairs :] = math.nan
        latest = np.full((len(self.latest), 3), -1, dtype=np.int64)
        for row, kept in zip(latest, self.latest, strict=True):
            row[: len(kept)] = [runs[name] for name in kept]
        return {
            "task": [self.name, self.unit, self.goal, self.by_goal, self.history],
            "texts": [*texts],
            "names": names,
            "meant": [meant, np.array([self.meanings[at] for at in meant])],
            "words": [*self.shared],
            "usual": sorted(self.usual),
            "menus": [[[numbers[one] for one in menu] for menu in menus], [*self.menus], of],
            "counts": self.counts.saved(),
            "vectors": self.vectors.saved(),
            "repeats": [
                [seen.decode("latin-1") for seen in self.repeats], [*self.repeats.values()],
            ],
            "process": self.process.saved(),
            "fitted": [self.fitted_at, self._fitted_pairs, self.within, self._was_flat, self.dim],
            "fitted_on": self._fitted_on,
            "columns": [*old, self.leads.all],
            "anchor": self.anchor,
            "history": None if self.history_evidence is None else self.history_evidence.saved(),
            "with_history": None if self.with_history is None else self.with_history.saved(runs),
            "seen": [self.continuous, self.different, self.episodes, self.least, self.most],
            "cut_off": [self.steps, self.cut_off],
            "latest": latest,
        }  # fmt: skip

    def restore(self, told: Mapping[str, Any], runs: Sequence[str]) -> None:
        """Take over what was saved, with the names of the episodes.

        Raises
        ------
        ValueError, TypeError, LookupError
            It is not what ``saved`` returned.
        """
        _, self.unit, self.goal, self.by_goal, _ = told["task"]
        texts = told["texts"]
        for name in told["names"]:
            if name is None:
                self.names.append(None)
            elif isinstance(name, int):
                self.names.append(texts[name])
            elif len(name) == 1:
                self.names.append(texts[name[0]].encode("latin-1"))
            else:
                past = tuple((texts[a], texts[b]) for a, b in name[1])
                self.names.append((texts[name[0]], past, texts[name[2]]))
        self.states = {name: at for at, name in enumerate(self.names)}
        if len(self.states) != len(self.names):
            raise ValueError("a state is there twice")
        self.tokens = [self._tokens(name) for name in self.names]
        for tokens in self.tokens:
            self.words.update(tokens)
        self.meanings = [None] * len(self.names)
        for at, vector in zip(*told["meant"], strict=True):
            self.meanings[at] = vector
        self.shared = {word: at for at, word in enumerate(told["words"])}
        listed, at, of = told["menus"]
        menus = [tuple(self.actions.names[number] for number in menu) for menu in listed]
        self.menus = {state: menus[number] for state, number in zip(at, of, strict=True)}
        self.counts = Counts.restored(
            told["counts"], self.parts.gate, len(self.names), len(self.actions.names)
        )
        self.vectors.restore(told["vectors"])
        seen, often = told["repeats"]
        self.repeats.update({one.encode("latin-1"): n for one, n in zip(seen, often, strict=True)})
        self.fitted_at, self._fitted_pairs, self.within, self._was_flat, self.dim = told["fitted"]
        self.mean, self.variance, self.leads = (Column(np.float64, one) for one in told["columns"])
        self._fitted_on, self.anchor = told["fitted_on"], told["anchor"]
        self.usual = frozenset(told["usual"])
        self.process.restore(told["process"], *self._sampled(self._fitted_on))
        if told["history"] is not None:
            self.history_evidence = HistoryEvidence.restored(told["history"])
        if self.with_history is not None:
            self.with_history.restore(told["with_history"], runs)
        self.continuous, self.different, self.episodes, self.least, self.most = told["seen"]
        self.steps, self.cut_off = told["cut_off"]
        names = told["latest"].tolist()
        self.latest = [deque((runs[at] for at in row if at >= 0), maxlen=3) for row in names]
        pairs = len(self.counts.rows)
        if {len(self.latest), *map(len, (self.mean, self.variance, self.leads))} != {pairs}:
            raise ValueError("columns of different lengths")

    # --- what is expected

    @property
    def untold(self) -> bool:
        """Whether no episode told of anything that can be done, be it that they had no steps."""
        return not len(self.mean)

    def worth_of_new(self) -> tuple[float, float]:
        """Return value and hope of a state that is not known."""
        known = not self.flat and len(self.mean)
        return (float(np.mean(self.mean.all)) if known else self.range()[0]), self.best

    def expect(
        self,
        key: Key,
        vector: Vector | None,
        actions: Sequence[Hashable],
        salt: int,
        menu: tuple[Hashable, ...],
    ) -> tuple[Floats, Floats, Floats]:
        """Return prior mean, variance and hope of actions that were never done in a state.

        They are some of its ``menu``, which is all that can be done there.
        """
        low, high = self.range()
        size = len(actions)
        if self.untold:
            hope = np.full(size, self.best - 5e-4 * (self.best - low))
            return np.full(size, low), np.full(size, (high - low) ** 2 / 12), hope
        named = self.named([(key, action, menu) for action in actions])
        if self.parts.process and self.process.fitted:
            at = np.array([self.actions.number(action) for action in actions])
            x = np.repeat(self.features_of(key, vector), size, axis=0)
            state = np.full(size, self.states.get(key, -1))
            mean, variance = self.process.predict(x, at, state, named, self.actions.like)
        else:
            seen = self.counts.n.all > 0
            mean = np.full(size, float(self.mean.all[seen].mean()) if seen.any() else low)
            variance = np.full(size, float(self.variance.all.mean()))
        if self.flat:
            luck = _first(self.random(salt).random(size), named[:, :NAMED].sum(1))
            return mean, variance, self.best - 1e-3 * (self.best - low) * (0.5 + 0.1 * luck)
        z = BOLDNESS + JITTER * self.random(salt).standard_normal(size)
        return mean, variance, np.clip(mean + z * np.sqrt(variance), low, self.best)

    def _neighbours(self) -> list[Task]:
        """Return the newest of the other tasks that know what is good."""
        known = (
            task
            for task in reversed(self._others.values())
            if task.name != self.name and task.unit and not task.flat and not task.continuous
        )
        return list(islice(known, _MOST_ASKED))

    def elsewhere(self, key: Key, action: Hashable, *, but: Task | None = None) -> Beta | None:
        """Return how good an action was in this state in other tasks, None if it was done in none.

        That backs off to the action in any state, and to all actions.
        """
        number = self.actions.of.get(action)
        if number is None:
            return None
        told = [other.good(key, number) for other in self._neighbours() if other is not but]
        cells = [
            (sum(n for n, _ in cell), sum(good for _, good in cell))
            for cell in zip(*told, strict=True)
        ]
        return backed_off(cells, _BACK_OFF) if cells and cells[1][0] else None

    def kinds(self) -> tuple[Ints, int]:
        """Return in how many ways each pair ended, and how many pairs were repeated.

        The second are counted in other tasks as well, up to a bound.
        """
        others = sum(task._kinds_here()[1] for task in self._neighbours())
        kinds, repeated = self._kinds_here()
        return kinds, repeated + min(_MOST_REPEATED, others)

    def _kinds_here(self) -> tuple[Ints, int]:
        if self._kinds[0] != self.episodes:
            c = self.counts
            kinds = np.bincount(c.pair.all[c.count.all > 0.0], minlength=len(c.rows))
            self._kinds = self.episodes, (kinds, int((c.n.all > 1.0).sum()))
        return self._kinds[1]

    def good(self, key: Key, action: int) -> tuple[tuple[float, float], ...]:
        """Return trials and goodness in [0, 1]: of the task, an action, an action in a state."""
        self.ready()
        of_action = self._goodness[action] if action < len(self._goodness) else (0.0, 0.0)
        state = self.states.get(key)
        pair = None if state is None else self.counts.pair_of.get((state, action))
        here = (0.0, 0.0)
        if pair is not None and pair < len(self.worth) and self.counts.n[pair] > 0:
            low, high = self.range()
            here = 1.0, min(1.0, max(0.0, (float(self.worth[pair]) - low) / (high - low)))
        return self._overall, of_action, here

    def _share(self, worth: Any) -> Any:
        """Return worths as shares of the range of what can be had."""
        low, high = self.range()
        return np.clip((worth - low) / (high - low), 0.0, 1.0)

    def others_agree(self) -> bool:
        """Return whether what was good in other tasks foretold it in the next one of them."""
        neighbours = self._neighbours()
        now = tuple((task.name, task.episodes) for task in neighbours)
        if now == self._agreed[0]:
            return self._agreed[1]
        missed = missed_by_mean = 0.0
        for task in neighbours:
            task.ready()
            tried = _evenly(np.flatnonzero(task.counts.n.all[: len(task.worth)] > 0), _MOST_JUDGED)
            share = task._share(task.worth[tried])
            for pair, own in zip(tried.tolist(), share.tolist(), strict=True):
                key = task.names[task.counts.state[pair]]
                action = task.actions.names[task.counts.action[pair]]
                told = self.elsewhere(key, action, but=task)
                if told is not None:
                    missed += (own - told.mean) ** 2
                    missed_by_mean += (own - float(share.mean())) ** 2
        self._agreed = now, missed < missed_by_mean
        return self._agreed[1]

    def basis_of(self, key: Key, vector: Vector | None) -> Basis:
        """Return what the expectation of an action rests on that was never done in a state."""
        if self.untold:
            return "everywhere"
        if key in self.states:
            return "near"
        if not (self.parts.process and self.process.fitted):
            return "task"
        likeness = self.process.nearest(self.features_of(key, vector)[0])
        return "near" if likeness >= 0.7 else "region" if likeness >= 0.3 else "task"

    # --- states

    def key(self, run: Run, observation: Observation, upto: int) -> Key:
        """Return what tells the state of an observation after so many steps from others."""
        if observation.text is not None:
            return self._told_by(run, observation.text, upto, self.history)
        return observation.key

    def is_news(self, goal: str) -> bool:
        """Whether this is a goal beside another, and states are not told apart by goals yet."""
        return not self.by_goal and self.goal not in (None, plain(goal))

    def tell_goals_apart(self) -> None:
        """Let the goal be part of what tells states apart: so far, there was one."""
        self.by_goal = True
        self.names = [self._of_goal(name) for name in self.names]
        self.states = {name: at for at, name in enumerate(self.names)}
        self.tokens = [self._tokens(name) for name in self.names]
        self.words = Counter(word for tokens in self.tokens for word in tokens)
        self.fitted_at, self._stale = 0, True
        self._refit_if_due()
        if self.with_history is not None:
            self.with_history.goal = self.goal
            self.with_history.tell_goals_apart()

    def _of_goal(self, key: Key) -> Key:
        """Return what tells a state apart with the goal, as `_told_by` does."""
        if isinstance(key, str):
            return f"{self.goal}\n{key}"
        if not isinstance(key, tuple):
            return key
        first, past, here = key
        here = f"{self.goal}\n{here}"
        # What was seen last is where it is now.
        return (
            first if past else here,
            (*past[:-1], *((done, here) for done, _ in past[-1:])),
            here,
        )

    def _told_by(self, run: Run, text: str, upto: int, history: int) -> Key:
        """Return a text, or with a history the first text, what was done last, and what came."""
        here = plain(text)
        if self.by_goal:
            here = f"{plain(run.goal)}\n{here}"
        if not history:
            return here

        def seen(at: int) -> str:
            return here if at == upto else plain(run.steps[at].observation.text)

        past = [
            (str(run.steps[at].action), seen(at + 1)) for at in range(max(0, upto - history), upto)
        ]
        return (seen(0), tuple(past), here)

    def _tokens(self, key: Key) -> list[str]:
        if isinstance(key, str):
            return [*dict.fromkeys(_WORD.findall(key)), *self._met(key)]
        if isinstance(key, tuple):
            first, past, here = key
            found = [f"first:{w}" for w in _WORD.findall(str(first).casefold())]
            for back, (action, result) in enumerate(reversed(past)):
                found += [f"{back}:{w}" for w in _WORD.findall(f"{action} {result}".casefold())]
            return [*dict.fromkeys(found + _WORD.findall(here)), *self._met(here)]
        return []

    def _met(self, here: str) -> list[str]:
        """Return a word for how many words of the goal a text holds, where goals differ.

        So what is done where the text tells of what is wanted carries over to other goals.
        """
        if not (self.by_goal and self.parts.names):
            return []
        goal, _, text = here.partition("\n")
        return [f"met:{len({*_WORD.findall(goal)} & {*_WORD.findall(text)})}"]

    def state(self, key: Key, vector: Vector | None) -> int:
        """Return the number of a state, a new one if it is new."""
        at = self.states.get(key)
        if at is None:
            at = self.states[key] = len(self.names)
            self.names.append(key)
            tokens = self._tokens(key)
            self.tokens.append(tokens)
            self.meanings.append(vector if tokens else None)
            for word in tokens:
                self.words[word] += 1
        return at

    def features(self, states: Sequence[int]) -> Floats:
        """Return what the process sees of states, of shape (n, words + dim), of norm 1 or less.

        That is the words that they share with others; and, where most words of a text are its
        own, where its vector points, as far as no word tells it.
        """
        out = np.zeros((len(states), self._wide + self.dim))
        for row, state in zip(out, states, strict=True):
            self._fill_row(row, self.tokens[state], self.meanings[state])
        return out

    def features_of(self, key: Key, vector: Vector | None) -> Floats:
        """Return the same of a state that may be new, of shape (1, words + dim)."""
        out = np.zeros((1, self._wide + self.dim))
        self._fill_row(out[0], self._tokens(key), vector)
        return out

    @property
    def _wide(self) -> int:
        return max(1, len(self.shared))

    def _fill_row(self, row: Floats, tokens: Sequence[str], vector: Vector | None) -> None:
        known = [at for word in tokens if (at := self.shared.get(word)) is not None]
        if known:
            row[known] = 1.0 / math.sqrt(len(tokens))
        rest = 1.0 - len(known) / max(1, len(tokens))
        if vector is not None and rest > _STRANGE and len(vector) == self.dim:
            length = float(np.linalg.norm(vector)) or 1.0
            row[self._wide :] = vector * (math.sqrt(rest) / length)

    def known_actions(self, run: Run, observation: Observation) -> list[Hashable]:
        """Return the actions done here, else those done for this goal, else in the whole task."""
        here, names = self.key(run, observation, len(run.steps)), self.actions.names
        pairs = self.counts.pairs_at.get(self.states.get(here, -1))
        if not pairs:
            pairs = [
                pair
                for state, done in self.counts.pairs_at.items()
                if self._goal_in(self.names[state]) == self._goal_in(here)
                for pair in done
            ]
        done = self.counts.action.all
        done = done[pairs] if pairs else done
        return [names[at] for at in dict.fromkeys(done.tolist())]

    def _goal_in(self, key: Key) -> str:
        """Return the goal in what tells a state apart, nothing where goals do not."""
        here = key[2] if isinstance(key, tuple) else key
        return here.partition("\n")[0] if self.by_goal and isinstance(here, str) else ""

    # --- learning

    def blame(self, task: str, policy: DecayPolicy, acted: Collection[int]) -> None:
        """Discount counts of a task after an episode failed.

        Parameters
        ----------
        task : str
            In which it failed.
        policy : DecayPolicy
        acted : collection of int
            Pairs that were done in it, if it was this task.
        """
        counts = self.counts
        for pair in np.flatnonzero(counts.n.all > 0).tolist():
            quality = float(np.clip(self.values[counts.state[pair]], 0.0, 1.0))
            case = DecayCase(self.name, task, followed=pair in acted, region_quality=quality)
            counts.fade(pair, policy.factor(case))

    def _learn_vectors(self, run: Run) -> None:
        """Note the moves of an episode seen in numbers, and whether its observations repeat."""
        undecided = self.repeats.total() <= _DECIDED
        told = [step.observation for step in run.steps]
        told += [] if run.last is None else [run.last]
        seen = [one.vector if one.text is None else None for one in told]
        seen += [None] * (len(run.steps) + 1 - len(seen))
        moves = []
        for i, step in enumerate(run.steps):
            final, here, there = i + 1 == len(run.steps), seen[i], seen[i + 1]
            ended = final and not run.truncated
            if here is None or (there is None and not ended):
                continue
            reward = step.reward
            if run.outcome is not None:
                reward = run.outcome if ended else 0.0
            there = here if there is None else there
            number = self.actions.number(step.action)
            moves.append(Transition(here, number, reward, there, ended, run.episode))
        if run.weight > 0:
            self.vectors.add(moves)
        if undecided:
            made = Counter(move.here.tobytes() for move in moves)
            self.repeats.update(made)
            self.different += len(made)
        steps, seen_once = self.repeats.total(), len(self.repeats)
        if steps <= _DECIDED:
            # States come again in other episodes, too; numbers only where something stands still.
            anew = seen_once > _ANEW * self.different and seen_once > _MOVING * steps
            self.continuous = steps >= _SOME and anew

    def _foresee(self, run: Run, evidence: HistoryEvidence) -> None:
        """Let both kinds of state foretell what this episode saw."""
        for i, step in enumerate(run.steps):
            final = i + 1 == len(run.steps)
            after = run.last if final else run.steps[i + 1].observation
            ended = final and not run.truncated
            reward = run.outcome if ended and run.outcome is not None else step.reward
            outcome = (ended, None if after is None else plain(after.text), f"{reward:.1g}")
            text = step.observation.text or ""
            short, long = (self._told_by(run, text, i, history) for history in (0, LOOK_BACK))
            evidence.see((short, step.action), (long, step.action), outcome)

    @property
    def wanted_history(self) -> int:
        """How much history the evidence asks for."""
        if self.history_evidence is None:
            return self.history
        if self.history_evidence.gain > _SURE:
            return LOOK_BACK
        return 0 if self.history_evidence.gain < -_SURE else self.history

    def pairs_of(self, run: Run) -> set[int]:
        """Return the pairs of a state and an action that an episode did."""
        found = set()
        for number, step in enumerate(run.steps):
            state = self.states.get(self.key(run, step.observation, number))
            action = self.actions.of.get(step.action)
            if state is not None and action is not None:
                found.add(self.counts.pair_of.get((state, action), -1))
        return found

    def learn(self, run: Run) -> None:
        """Count an episode that ended and plan anew."""
        self.goal = plain(run.goal)
        if self.repeats.total() <= _DECIDED or self.continuous:
            self._learn_vectors(run)
        if self.continuous:
            self.episodes += 1
            return
        counts = self.counts
        keys = [self.key(run, s.observation, i) for i, s in enumerate(run.steps)]
        states = [
            self.state(key, step.observation.vector)
            for key, step in zip(keys, run.steps, strict=True)
        ]
        touched: dict[int, None] = {}
        last = END
        if run.truncated and run.last is not None:
            last = self.state(self.key(run, run.last, len(run.steps)), run.last.vector)
        elif run.truncated and states:
            # It would have gone on: from about here, as nothing else is known.
            last = states[-1]
        if run.steps and run.steps[0].observation.text is not None:
            # An int names a state exactly: it has no vector, and hides nothing.
            if self.with_history is not None and run.steps[0].observation.vector is not None:
                self.with_history.unit, self.with_history.by_goal = self.unit, self.by_goal
                self.with_history.learn(run)
            if self.history_evidence is not None:
                self._foresee(run, self.history_evidence)
                gain = self.history_evidence.gain
                enough = self.episodes >= _TRIED or len(self.names) > _SEVERAL
                if gain < -_SURE or (gain < 0.0 and enough):
                    self.with_history = None
        for i, (step, state) in enumerate(zip(run.steps, states, strict=True)):
            if step.menu is not None and self.menus.get(state) != step.menu:
                self.menus[state] = step.menu
                for action in step.menu:
                    self._pair(state, action)
            pair = self._pair(state, step.action)
            final = i + 1 == len(states)
            reward = step.reward
            if run.outcome is not None:
                reward = run.outcome if final and not run.truncated else 0.0
            to = last if final else states[i + 1]
            if run.weight <= 0:
                continue
            counts.add(pair, to, reward, run.weight)
            touched[pair] = None
            if run.episode not in self.latest[pair]:
                self.latest[pair].append(run.episode)
            self.least, self.most = min(self.least, reward), max(self.most, reward)
        for pair in touched:
            counts.forget_what_changed(pair)
        self.episodes += 1
        if run.steps and not run.doubted:
            gained = run.outcome is None and any(step.reward > 0.0 for step in run.steps)
            self.steps += run.trust * len(run.steps)
            self.cut_off += run.trust * (run.truncated and not gained)
        self._refit_if_due()
        self._stale = True

    def _pair(self, state: int, action: Hashable) -> int:
        before = len(self.counts.rows)
        pair = self.counts.pair_at(state, self.actions.number(action))
        if len(self.counts.rows) > before:
            self.mean.append(math.nan)
            self.variance.append(math.nan)
            self.latest.append(deque(maxlen=3))
            self.leads.append(
                sum(naming(*self._texts(self.names[state], action, self.menus.get(state))))
            )
        return pair

    @property
    def gamma(self) -> float:
        """What a reward is worth one step later: less, the more often time ran out before any."""
        return GAMMA * (1.0 - self.cut_off / max(1.0, self.steps))

    @property
    def flat(self) -> bool:
        """Whether all rewards so far were equal, so that no action is known to be better."""
        return not self.most > self.least

    def range(self) -> tuple[float, float]:
        """Least and most that a state can be worth, as far as is known."""
        if self.least > self.most:
            return 0.0, 1.0
        if self.flat:
            return min(0.0, self.least), max(self.least, 0.0) + (1.0 if self.least >= 0 else 0.0)
        return self.least, self.most

    def _refit_if_due(self) -> None:
        pairs = len(self.counts.rows)
        small = self.episodes <= _EVERY and pairs <= _FEW
        more = 1.05 if pairs <= _MOST_TOLD else 1.15
        if not (small or self.episodes >= self.fitted_at * more + 1):
            return
        self.fitted_at, self._fitted_pairs = self.episodes, pairs
        counts = self.counts
        n = counts.n.all
        if self.flat:
            # Nothing is known to be worth anything: what is expected of it is no value to keep.
            values = np.zeros(len(self.names) + 1)
        else:
            # So was what was expected before rewards differed.
            prior = self._priors_on_average()
            if self._was_flat:
                prior = np.zeros(pairs)
            values, _ = self._sweep(self.anchor, counts.count.all, prior, self._strengths())
        self.anchor, self._was_flat = values, self.flat
        tried = np.flatnonzero(n > 0)
        if not len(tried):
            return
        target, _ = self._targets(values, -math.inf)
        # What costs far more than anything pays is simply bad: it must not set the scale. Where
        # most pays, what pays nothing is told from it all the same.
        middle, top = float(np.median(target[tried])), float(target[tried].max())
        least = min(0.0, middle - 2.0 * (top - middle)) if top > middle else -math.inf
        target, squares = self._targets(values, least)
        more = float((n[tried] - 1).clip(0).sum())
        low, high = self.range()
        scale = max(_TINY, min(high - low, float(np.ptp(target[tried])) or high - low)) ** 2
        self.within = (squares + 0.05 * scale) / (more + 2.0)
        if self.parts.process:
            some = self._fitted_on = _evenly(tried, _MOST_SAMPLES)
            acted = np.unique(self.counts.action.all[tried]).tolist()
            self.usual = usual_words(tuple(str(self.actions.names[at]) for at in acted))
            common = [word for word, n in self.words.most_common(_MOST_WORDS) if n > 1]
            self.shared = {word: at for at, word in enumerate(common)}
            self.dim = next((len(one) for one in self.meanings if one is not None), 0)
            sample = Sample(
                *self._sampled(some),
                target[some],
                np.maximum(self.within / n[some], 1e-4 * scale),
            )
            # What was expected before the first fit came from the range alone.
            told = _MOST_TOLD if self.process.fitted else pairs
            self.mean.all[-told:] = math.nan
            self.mean.all[some], self.variance.all[some] = self.process.fit(
                sample, common, self.actions.like, self._ends(target[tried])
            )
            self._fill()
        else:
            self.mean.all[:] = float(np.mean(target[tried]))
            self.variance.all[:] = max(float(np.var(target[tried])), 0.05 * scale)

    def _sampled(self, pairs: Ints) -> tuple[Floats, Ints, Ints, Floats]:
        """Return features of the states of pairs, their actions and states, how far named."""
        states, actions = self.counts.state.all[pairs], self.counts.action.all[pairs]
        return self.features(states.tolist()), actions, states, self._named(states, actions)

    def _named(self, states: Ints, actions: Ints) -> Floats:
        pairs = zip(states.tolist(), actions.tolist(), strict=True)
        names, done = self.names, self.actions.names
        return self.named([(names[at], done[by], self.menus.get(at)) for at, by in pairs])

    def named(self, pairs: Sequence[tuple[Key, Hashable, tuple[Hashable, ...] | None]]) -> Floats:
        """Return how far goals and states name actions, of shape (n, 3 + m); see `naming`.

        The rest are the words beside their names, those before and those after, see `beside`.
        Words do not count that most of what can be done there shares, or most of what was tried.
        """
        size = len(self.shared)
        out = np.zeros((len(pairs), NAMED + 2 * size))
        for row, (key, action, menu) in zip(out, pairs, strict=True):
            texts = self._texts(key, action, menu)
            row[:NAMED] = naming(*texts)
            near = beside(*texts) if row.any() else ()
            at = [
                NAMED + side * size + self.shared[word]
                for side, word in near
                if word in self.shared
            ]
            row[at] = 1.0 / math.sqrt(max(1, len(at)))
        return out

    def _texts(
        self, key: Key, action: Hashable, menu: tuple[Hashable, ...] | None
    ) -> tuple[str, str, str, frozenset[str]]:
        """Return goal, text and action of a pair, and the words that tell no actions apart."""
        here = key[2] if isinstance(key, tuple) else key
        if not (self.parts.names and isinstance(here, str)):
            return "", "", "", frozenset()
        goal = self.goal or ""
        if self.by_goal:
            goal, _, here = here.partition("\n")
        held, usual, words = self._asked_menu
        if menu is not held or usual is not self.usual:
            # All that can be done in a state is asked about in a row.
            words = self.usual | usual_words(tuple(map(str, menu or ())))
            self._asked_menu = menu, self.usual, words
        return goal, here, str(action), words

    def _ends(self, target: Floats) -> tuple[float, float]:
        """Return least and most that an action can be worth: what was seen, and 0."""
        least, most = float(target.min()), float(target.max())
        if self.unit == "P(success)":
            return 0.0, 1.0
        low, high = min(0.0, least), max(0.0, most)
        return low, high if high - low >= LEAST_REWARD else low + 1.0

    def _targets(self, values: Floats, least: float) -> tuple[Floats, float]:
        c = self.counts
        worth = np.maximum(c.reward.all + self.gamma * values[c.next.all], least)
        n = np.maximum(c.n.all, 1e-12)
        mean = np.bincount(c.pair.all, c.count.all * worth, len(n)) / n
        squares = float((c.count.all * np.square(worth - mean[c.pair.all])).sum())
        return mean, squares

    def _priors_on_average(self) -> Floats:
        """Return priors by which what was never done in a state counts as it does on average there.

        Expectations that are fitted to the best of themselves would drift upwards.
        """
        state, prior, size = self.counts.state.all, self._priors(), len(self.names)
        mean = np.bincount(state, prior, size) / np.maximum(np.bincount(state, minlength=size), 1)
        return np.where(self.counts.n.all > 0, prior, mean[state])

    def _priors(self) -> Floats:
        self._fill()
        mean: Floats = self.mean.all
        return np.maximum(mean, self.range()[0]) if self.flat else mean

    def _fill(self) -> None:
        new = np.flatnonzero(np.isnan(self.mean.all))
        if not len(new):
            return
        low, high = self.range()
        if not (self.parts.process and self.process.fitted):
            self.mean.all[new], self.variance.all[new] = low, (high - low) ** 2 / 12
            return
        own, action = self.counts.state.all[new], self.counts.action.all[new]
        # Many pairs look the same to the process: each kind is asked for once. States of which it
        # learned a pair are each a kind of their own.
        learned = {*self.counts.state.all[self._fitted_on].tolist()}
        states, at = np.unique(own, return_inverse=True)
        looks: dict[Hashable, int] = {}
        seen = np.array(
            [
                looks.setdefault(s if s in learned else self._look(s), len(looks))
                for s in states.tolist()
            ]
        )
        named = self._named(own, action)
        kinds: dict[Hashable, int] = {}
        told = zip(seen[at].tolist(), action.tolist(), map(bytes, named), strict=True)
        which = np.array([kinds.setdefault(kind, len(kinds)) for kind in told])
        first = np.unique(which, return_index=True)[1]
        parts = [
            self.process.predict(
                self.features(own[some].tolist()),
                action[some],
                own[some],
                named[some],
                self.actions.like,
            )
            for some in np.array_split(first, 1 + len(first) // _MOST_TOLD)
        ]
        mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
        self.mean.all[new], self.variance.all[new] = mean[which], variance[which]

    def _look(self, state: int) -> Hashable:
        """Return what the process sees of a state."""
        tokens = self.tokens[state]
        known = tuple(word for word in tokens if word in self.shared)
        own = self.meanings[state] is not None and len(known) < (1.0 - _STRANGE) * len(tokens)
        return (state,) if own else known

    def _strengths(self) -> Floats:
        n = self.counts.n.all
        weak = self.counts.surprise / np.sqrt(np.maximum(n, 1.0))
        by_noise = np.clip(
            self.within / np.maximum(self.variance.all, _TINY),
            WEAKEST, _STRONGEST,
        )  # fmt: skip
        return np.where(n > 0, np.maximum(by_noise, np.minimum(weak, 1.0)), 1.0)

    def _sweep(
        self, start: Floats, weights: Floats, prior: Floats, strength: Floats,
        leaf: float | None = None, sweeps: int = _SWEEPS,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Carry values back; return those of states, with a last 0 for the end, and of pairs."""
        c, states = self.counts, len(self.names)
        values = np.zeros(states + 1)
        values[: min(states, len(start) - 1)] = start[:-1][:states]
        pairs = len(c.rows)
        if not pairs:
            return values, np.zeros(0)
        sweeps = max(12, min(sweeps, _WORK // max(1, len(c.pair))))
        if leaf is not None:
            bare = np.ones(states, dtype=bool)
            bare[c.acted_in] = False
            values[:-1][bare] = leaf
        low, high = self.range()
        worth = c.carry_back(
            values, weights, prior, strength, self.gamma,
            sweeps=sweeps if self.parts.planning else 1, enough=1e-4 * (high - low),
        )  # fmt: skip
        return values, worth

    def random(self, *about: int) -> np.random.Generator:
        """Return a source of chance that follows from the episodes so far."""
        name = zlib.crc32(self.name.encode("utf-8", "surrogatepass"))
        return np.random.default_rng([self.seed & 0xFFFFFFFF, name, self.episodes, *about])

    def ready(self) -> None:
        """Plan, unless that was done since the last episode ended."""
        if self._stale:
            self._stale = False
            self._plan()

    def _plan(self) -> None:
        """Plan on the mean of what is believed, and on one draw from it, for this episode on."""
        c = self.counts
        prior, strength = self._priors(), self._strengths()
        self.strength = strength
        low, high = self.range()
        self.values, self.worth = self._sweep(self.anchor, c.count.all, prior, strength, leaf=None)
        rng = self.random()
        self.best = best = max(high, float(self.values[:-1].max(initial=low)))
        z = BOLDNESS + JITTER * rng.standard_normal(len(prior))
        sd = np.sqrt(self.variance.all)
        if self.flat:
            luck = _first(rng.random(len(prior)), self.leads.all)
            hope = best - 1e-3 * (best - low) * (0.5 + 0.1 * luck)
        else:
            hope = np.clip(prior + z * sd, low, best)
            seen = np.bincount(c.state.all, c.n.all, len(self.names))
            at = c.state.all
            hope = np.where(c.n.all > 0, hope, worth_trying(prior, hope, self.values[at], seen[at]))
        self.hope = hope
        weights = c.count.all
        if self.parts.thompson and len(weights):
            # A pair that always led to the same leaves nothing to draw.
            several = np.bincount(c.pair.all, weights > 0, len(prior))[c.pair.all] > 1
            weights = weights.copy()
            weights[several] = rng.gamma(np.maximum(weights[several], 1e-9))
            sums = np.bincount(c.pair.all, weights, len(prior))
            weights *= (c.n.all / np.maximum(sums, 1e-12))[c.pair.all]
        self.weights = weights
        self.bold, self.bold_worth = self._sweep(self.anchor, weights, hope, strength, leaf=best)
        tried = np.flatnonzero(c.n.all > 0)
        acted, size = c.action.all[tried], len(self.actions.names)
        good = np.bincount(acted, self._share(self.worth[tried]), size)
        often = np.bincount(acted, minlength=size)
        self._goodness = [*zip(often.tolist(), good.tolist(), strict=True)]
        self._overall = float(often.sum()), float(good.sum())
