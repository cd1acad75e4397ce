"""What is known of one task: its states, what was counted, and a plan over both."""

from __future__ import annotations

import hashlib
import math
import re
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from cvx.learn.advisor_counts import END, Column, Counts, Floats
from cvx.learn.advisor_prior import Process, Sample
from cvx.types import Vector

Basis: TypeAlias = Literal["state", "near", "region", "task", "other tasks", "everywhere"]
Unit: TypeAlias = Literal["P(success)", "return"]
Key: TypeAlias = Hashable

_WORD = re.compile(r"\w+")
_MOST_SAMPLES = 128


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent sees: a text with its vector, or a vector of numbers alone.

    Parameters
    ----------
    text : str, optional
    vector : ndarray of shape (dim,), float32, optional
        The text's embedding; without a text the raw observation, of any scale.
    """

    text: str | None = None
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """One action with what it is worth from here.

    Parameters
    ----------
    action : hashable
    value, low, high : float
        Expected outcome in the task's unit when the best is done afterwards, with a 90% interval.
    trials : int
        How often it was done in this state.
    basis : str
        The narrowest evidence: this "state", what is "near", its "region", the "task",
        "other tasks", or "everywhere".
    episodes : tuple of str
        The latest episodes that did it here, latest last.
    """

    action: Hashable
    value: float
    low: float
    high: float
    trials: int
    basis: Basis
    episodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """Which parts of the learner are at work; for taking them out in experiments.

    Parameters
    ----------
    gamma : float, default 0.99
        What a reward is worth one step later.
    gate : float, default 100
        Evidence at which older outcomes are dropped for a change; infinity for never.
    process : bool, default True
        Whether other states and actions are the prior of untried ones.
    relevance : bool, default True
        Whether words have relevances that are learned.
    planning : bool, default True
        Whether values are carried back through stored transitions.
    boldness, jitter : float
        How many standard deviations above its mean an untried action is taken for when
        exploring, and how much that varies between episodes.
    """

    gamma: float = 0.99
    gate: float = 100.0
    process: bool = True
    relevance: bool = True
    planning: bool = True
    boldness: float = 0.0
    jitter: float = 1.0
    weakest: float = 0.02
    strongest: float = 6.0
    thompson: bool = True


@dataclass(slots=True)
class Step:
    """One action, what it was done in, its reward and what else could be done."""

    observation: Observation
    action: Hashable
    reward: float
    menu: tuple[Hashable, ...] | None


@dataclass
class Run:
    """An episode that is open, with what it alone knows so far."""

    episode: str
    goal: str
    task: str
    trust: float
    source: str
    steps: list[Step] = field(default_factory=list)
    outcome: float | None = None
    last: Observation | None = None
    truncated: bool = False
    menu: tuple[Hashable, ...] | None = None
    asked: dict[Hashable, tuple[Option, float]] = field(default_factory=dict)
    local: Local | None = None

    def forget_local(self) -> None:
        """Drop what only an open episode needs."""
        self.local = None
        self.asked = {}
        self.menu = None


class Actions:
    """Numbers of actions, and how alike they are."""

    def __init__(self, embed: Callable[[Sequence[str]], Vector]) -> None:
        self._embed = embed
        self.of: dict[Hashable, int] = {}
        self.names: list[Hashable] = []
        self._vectors: list[Floats] = []
        self._like = np.zeros((0, 0))

    def number(self, action: Hashable) -> int:
        """Return the number of an action, a new one if it is new."""
        at = self.of.get(action)
        if at is None:
            at = self.of[action] = len(self.names)
            self.names.append(action)
            vector = np.asarray(self._embed([str(action)])[0], dtype=np.float64)
            self._vectors.append(vector / max(1e-12, float(np.linalg.norm(vector))))
        return at

    @property
    def like(self) -> Floats:
        """How alike two actions are, of shape (actions, actions), in [0, 1]."""
        if len(self._like) != len(self.names):
            table = np.array(self._vectors)
            self._like = np.clip(table @ table.T, 0.0, 1.0)
        return self._like


class Local:
    """What an open episode adds to the counts of its task, for itself alone."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.rows: dict[tuple[Key, Hashable], dict[tuple[Key, float], float]] = {}
        self.value: dict[Key, float] = {}
        self.bold: dict[Key, float] = {}
        self.menus: dict[Key, tuple[Hashable, ...]] = {}
        self.path: list[Key] = []


class Task:
    """What is known of one task: its states, counts, process and plan."""

    def __init__(self, name: str, actions: Actions, parts: Parts, seed: int) -> None:
        self.name, self.actions, self.parts, self.seed = name, actions, parts, seed
        self.unit: Unit | None = None
        self.states: dict[Key, int] = {}
        self.names: list[Key] = []
        self.words: dict[str, int] = {}
        self.tokens: list[list[int]] = []
        self.counts = Counts(parts.gate)
        self.process = Process()
        self.mean, self.variance = Column(np.float64), Column(np.float64)
        self.episodes = 0
        self.fitted_at = 0
        self.latest: list[deque[str]] = []
        self.least, self.most = math.inf, -math.inf
        self.anchor = np.zeros(1)
        self.strength = np.zeros(0)
        self.within = 0.05
        self.values, self.bold, self.weights = np.zeros(1), np.zeros(1), np.zeros(0)
        self.worth, self.hope, self.z = np.zeros(0), np.zeros(0), np.zeros(0)
        self.best = 1.0

    # --- states

    def key(self, run: Run, observation: Observation, history: int | None, upto: int) -> Key:
        """Return what tells the state of an observation after so many steps from others."""
        if observation.text is not None:
            here = " ".join(observation.text.casefold().split())
            if not history:
                return here
            seen = [step.observation.text or "" for step in run.steps[:upto]] + [here]
            past = [
                (str(run.steps[at].action), seen[at + 1])
                for at in range(max(0, upto - history), upto)
            ]
            return (seen[0], tuple(past), here)
        if observation.vector is None:
            return None
        return np.round(np.asarray(observation.vector, dtype=np.float64), 4).tobytes()

    def _tokens(self, key: Key) -> list[str]:
        if isinstance(key, str):
            return list(dict.fromkeys(_WORD.findall(key)))
        if isinstance(key, tuple):
            first, past, here = key
            found = [f"first:{w}" for w in _WORD.findall(str(first).casefold())]
            for back, (action, result) in enumerate(reversed(past)):
                found += [f"{back}:{w}" for w in _WORD.findall(f"{action} {result}".casefold())]
            return list(dict.fromkeys(found + _WORD.findall(here)))
        return []

    def state(self, key: Key) -> int:
        """Return the number of a state, a new one if it is new."""
        at = self.states.get(key)
        if at is None:
            at = self.states[key] = len(self.names)
            self.names.append(key)
            self.tokens.append(
                [self.words.setdefault(word, len(self.words)) for word in self._tokens(key)]
            )
        return at

    def features(self, states: Sequence[int]) -> Floats:
        """Return the words of states, of shape (n, words), each row of norm 1."""
        out = np.zeros((len(states), max(1, len(self.words))))
        for row, state in zip(out, states, strict=True):
            tokens = self.tokens[state]
            if tokens:
                row[tokens] = 1.0 / math.sqrt(len(tokens))
        return out

    def features_of(self, key: Key) -> Floats:
        """Return the same of a state that may be new; its unknown words are the last column."""
        found = self._tokens(key)
        out = np.zeros((1, max(1, len(self.words)) + 1))
        if found:
            share = 1.0 / math.sqrt(len(found))
            known = [at for word in found if (at := self.words.get(word)) is not None]
            out[0, known] = share
            out[0, -1] = math.sqrt((len(found) - len(known)) / len(found))
        return out

    def known_actions(
        self, run: Run, observation: Observation, history: int | None
    ) -> list[Hashable]:
        """Return the actions done here, else those of the whole task."""
        state = self.states.get(self.key(run, observation, history, len(run.steps)))
        names = self.actions.names
        if state is not None:
            here = self.counts.pairs_at.get(state)
            if here:
                return [names[int(self.counts.action.all[pair])] for pair in here]
        return [names[at] for at in dict.fromkeys(self.counts.action.all.tolist())]

    # --- learning

    def learn(self, run: Run, history: int | None) -> None:
        """Count an episode that ended and plan anew."""
        counts = self.counts
        keys = [self.key(run, s.observation, history, i) for i, s in enumerate(run.steps)]
        states = [self.state(key) for key in keys]
        last: int | None = END
        if run.truncated:
            last = None
            if run.last is not None:
                last = self.state(self.key(run, run.last, history, len(run.steps)))
        for i, (step, state) in enumerate(zip(run.steps, states, strict=True)):
            for action in step.menu or ():
                self._pair(state, action)
            pair = self._pair(state, step.action)
            final = i + 1 == len(states)
            reward = step.reward
            if run.outcome is not None:
                reward = run.outcome if final and not run.truncated else 0.0
            to = last if final else states[i + 1]
            if to is None or run.trust <= 0:
                continue
            counts.add(pair, to, reward, run.trust)
            if run.episode not in self.latest[pair]:
                self.latest[pair].append(run.episode)
            self.least, self.most = min(self.least, reward), max(self.most, reward)
        self.episodes += 1
        self._refit_if_due()
        self.plan()

    def _pair(self, state: int, action: Hashable) -> int:
        before = len(self.counts.rows)
        pair = self.counts.pair_at(state, self.actions.number(action))
        if len(self.counts.rows) > before:
            self.mean.append(math.nan)
            self.variance.append(math.nan)
            self.latest.append(deque(maxlen=3))
        return pair

    @property
    def flat(self) -> bool:
        """Whether all rewards were alike so far: nothing is known of what is good."""
        return not self.most > self.least

    def _range(self) -> tuple[float, float]:
        """Least and most that a state can be worth, as far as is known."""
        if self.least > self.most:
            return 0.0, 1.0
        if self.flat:
            return min(0.0, self.least), max(self.least, 0.0) + (1.0 if self.least >= 0 else 0.0)
        return self.least, self.most

    def _refit_if_due(self) -> None:
        due = self.episodes <= 40 or self.episodes >= self.fitted_at * 1.05 + 1
        if not due:
            return
        self.fitted_at = self.episodes
        counts = self.counts
        n = counts.n.all
        values, _ = self._sweep(self.anchor, counts.count.all, self._priors(), self._strengths())
        self.anchor = values
        tried = np.flatnonzero(n > 0)
        if not len(tried):
            return
        target, squares = self._targets(values)
        more = float((n[tried] - 1).clip(0).sum())
        span = self._range()
        scale = max(1e-9, span[1] - span[0]) ** 2
        self.within = (squares + 0.05 * scale) / (more + 2.0)
        if self.parts.process:
            some = tried[-_MOST_SAMPLES:]
            like = self.actions.like
            sample = Sample(
                self.features(counts.state.all[some].tolist()),
                counts.action.all[some],
                target[some],
                np.maximum(self.within / n[some], 1e-4 * scale),
            )
            mean, variance = self.process.fit(sample, like, math.sqrt(scale))
            rest = np.ones(len(n), dtype=bool)
            rest[some] = False
            self.mean.all[some], self.variance.all[some] = mean, variance
            others = np.flatnonzero(rest)
            if len(others):
                at = counts.state.all[others]
                told = self.process.predict(
                    self.features(at.tolist()), counts.action.all[others], like
                )
                self.mean.all[others], self.variance.all[others] = told
        else:
            centre = float(np.mean(target[tried])) if len(tried) else 0.0
            self.mean.all[:] = centre
            self.variance.all[:] = max(float(np.var(target[tried])), 0.05 * scale)

    def _targets(self, values: Floats) -> tuple[Floats, float]:
        c = self.counts
        worth = c.reward.all + self.parts.gamma * values[c.next.all]
        n = np.maximum(c.n.all, 1e-12)
        mean = np.bincount(c.pair.all, c.count.all * worth, len(n)) / n
        squares = float((c.count.all * np.square(worth - mean[c.pair.all])).sum())
        return mean, squares

    def _priors(self) -> Floats:
        self._fill()
        mean: Floats = self.mean.all
        return np.maximum(mean, self._range()[0]) if self.flat else mean

    def _fill(self) -> None:
        new = np.flatnonzero(np.isnan(self.mean.all))
        if not len(new):
            return
        low, high = self._range()
        if self.parts.process and self.process.fitted:
            at = self.counts.state.all[new].tolist()
            told = self.process.predict(
                self.features(at), self.counts.action.all[new], self.actions.like
            )
            self.mean.all[new], self.variance.all[new] = told
        else:
            self.mean.all[new], self.variance.all[new] = low, (high - low) ** 2 / 12

    def _strengths(self) -> Floats:
        n = self.counts.n.all
        weak = self.counts.surprise / np.sqrt(np.maximum(n, 1.0))
        by_noise = np.clip(
            self.within / np.maximum(self.variance.all, 1e-9),
            self.parts.weakest, self.parts.strongest,
        )  # fmt: skip
        return np.where(n > 0, np.maximum(by_noise, np.minimum(weak, 1.0)), 1.0)

    def _sweep(
        self, start: Floats, weights: Floats, prior: Floats, strength: Floats,
        leaf: float | None = None, sweeps: int = 60,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Carry values back; return those of states, with a last 0 for the end, and of pairs."""
        c, states = self.counts, len(self.names)
        values = np.zeros(states + 1)
        values[: min(states, len(start) - 1)] = start[:-1][:states]
        pairs = len(c.rows)
        if not pairs:
            return values, np.zeros(0)
        own = c.state.all
        order = np.argsort(own, kind="stable")
        starts = np.flatnonzero(np.diff(own[order], prepend=-1))
        heads = own[order][starts]
        total = np.bincount(c.pair.all, weights, pairs) + strength
        base = (np.bincount(c.pair.all, weights * c.reward.all, pairs) + strength * prior) / total
        share = weights / total[c.pair.all] * self.parts.gamma
        to = c.next.all
        if leaf is not None:
            bare = np.ones(states, dtype=bool)
            bare[heads] = False
            values[:-1][bare] = leaf
        worth = base
        if not self.parts.planning:
            sweeps = 1
        for _ in range(sweeps):
            worth = base + np.bincount(c.pair.all, share * values[to], pairs)
            new = np.maximum.reduceat(worth[order], starts)
            change = float(np.abs(new - values[heads]).max())
            values[heads] = new
            if change < 1e-4:
                break
        return values, worth

    def plan(self) -> None:
        """Plan on the mean of what is believed, and on one draw from it, for this episode on."""
        c = self.counts
        prior, strength = self._priors(), self._strengths()
        self.strength = strength
        low, high = self._range()
        self.values, self.worth = self._sweep(self.anchor, c.count.all, prior, strength, leaf=None)
        digest = hashlib.blake2b(
            repr((self.seed, self.name, self.episodes)).encode(), digest_size=8
        ).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "little"))
        self.best = best = max(high, float(self.values[:-1].max(initial=low)))
        self.z = self.parts.boldness + self.parts.jitter * rng.standard_normal(len(prior))
        sd = np.sqrt(self.variance.all)
        if self.flat:
            hope = best - 1e-3 * (best - low) * rng.random(len(prior))
        else:
            hope = np.clip(prior + self.z * sd, low, best)
        self.hope = hope
        weights = c.count.all
        if self.parts.thompson and len(weights):
            weights = rng.gamma(np.maximum(weights, 1e-9))
            sums = np.bincount(c.pair.all, weights, len(prior))
            weights = weights * (c.n.all / np.maximum(sums, 1e-12))[c.pair.all]
        self.weights = weights
        self.bold, self.bold_worth = self._sweep(self.anchor, weights, hope, strength, leaf=best)

    # --- asking

    def _local(self, run: Run) -> Local:
        if run.local is None or run.local.version != self.episodes:
            old = run.local
            run.local = Local(self.episodes)
            if old is not None:
                run.local.rows, run.local.menus, run.local.path = old.rows, old.menus, old.path
        return run.local

    def _gather(
        self, local: Local, key: Key, action: Hashable, prior: float, hope: float, strength: float
    ) -> tuple[float, float, float]:
        """Return trials, value and hopeful value of an action, own steps included."""
        gamma, c = self.parts.gamma, self.counts
        n = total = value = bold = 0.0
        state = self.states.get(key)
        number = self.actions.of.get(action)
        pair = None if state is None or number is None else c.pair_of.get((state, number))
        if pair is not None:
            for row in c.rows[pair]:
                to, r = int(c.next.all[row]), float(c.reward.all[row])
                count, weight = float(c.count.all[row]), float(self.weights[row])
                if to >= 0 and local.value:
                    name = self.names[to]
                    v, b = local.value.get(name), local.bold.get(name)
                    v = float(self.values[to]) if v is None else v
                    b = float(self.bold[to]) if b is None else b
                else:
                    v, b = float(self.values[to]), float(self.bold[to])
                n += count
                total += weight
                value += count * (r + gamma * v)
                bold += weight * (r + gamma * b)
        own = local.rows.get((key, action))
        if own:
            for (there, r), count in own.items():
                v, b = self._value_of(local, there)
                n += count
                total += count
                value += count * (r + gamma * v)
                bold += count * (r + gamma * b)
        if not n:
            return 0.0, prior, hope
        return (
            n,
            (value + strength * prior) / (n + strength),
            (bold + strength * hope) / (total + strength),
        )

    def _value_of(self, local: Local, key: Key) -> tuple[float, float]:
        if key in local.value:
            return local.value[key], local.bold[key]
        state = self.states.get(key)
        if state is not None:
            return float(self.values[state]), float(self.bold[state])
        known = not self.flat and len(self.mean)
        return (float(np.mean(self.mean.all)) if known else self._range()[0]), self.best

    def _beliefs(
        self, key: Key, actions: Sequence[Hashable], salt: int
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return prior mean, variance, hope and strength of actions in a state."""
        low, high = self._range()
        size = len(actions)
        mean, variance = np.full(size, low), np.full(size, (high - low) ** 2 / 12)
        hope, strength = np.full(size, high), np.full(size, max(0.02, self.counts.surprise))
        state = self.states.get(key)
        numbers = [self.actions.of.get(action) for action in actions]
        new = []
        for i, number in enumerate(numbers):
            pair = (
                None
                if state is None or number is None
                else self.counts.pair_of.get((state, number))
            )
            if pair is None:
                new.append(i)
            else:
                mean[i], variance[i] = self.mean.all[pair], self.variance.all[pair]
                hope[i], strength[i] = self.hope[pair], self.strength[pair]
                if not self.counts.n.all[pair]:
                    strength[i] = max(0.02, self.counts.surprise)
        if new and self.episodes:
            rng = np.random.default_rng([self.seed & 0xFFFF, self.episodes, salt])
            if self.parts.process and self.process.fitted:
                at = np.array([self.actions.number(actions[i]) for i in new])
                x = np.repeat(self.features_of(key), len(new), axis=0)
                m, v = self.process.predict(x, at, self.actions.like)
            else:
                seen = self.counts.n.all > 0
                m = np.full(len(new), float(self.mean.all[seen].mean()) if seen.any() else low)
                v = np.full(len(new), float(self.variance.all.mean()))
            mean[new], variance[new] = m, v
            z = self.parts.boldness + self.parts.jitter * rng.standard_normal(len(new))
            hope[new] = self.best if self.flat else np.clip(m + z * np.sqrt(v), low, self.best)
        return mean, variance, hope, strength

    def weigh(
        self, run: Run, observation: Observation, actions: Sequence[Hashable], history: int | None
    ) -> dict[Hashable, tuple[Option, float]]:
        """Return an option for each action, with what it is worth when exploring."""
        local = self._local(run)
        key = self.key(run, observation, history, len(run.steps))
        local.menus[key] = tuple(actions)
        mean, variance, hope, strength = self._beliefs(key, actions, len(run.steps))
        out = {}
        for i, action in enumerate(actions):
            n, value, bold = self._gather(
                local, key, action, float(mean[i]), float(hope[i]), float(strength[i])
            )
            spread = math.sqrt(
                1.0 / (1.0 / max(1e-9, float(variance[i])) + n / max(1e-9, self.within))
            )
            ends = value - 1.645 * spread, value + 1.645 * spread
            if self.unit == "P(success)" or self.unit is None:
                value = min(1.0, max(0.0, value))
                ends = max(0.0, ends[0]), min(1.0, ends[1])
            out[action] = (self._option(key, action, value, ends, n), bold)
        return out

    def _option(
        self, key: Key, action: Hashable, value: float, ends: tuple[float, float], n: float
    ) -> Option:
        state, number = self.states.get(key), self.actions.of.get(action)
        pair = None if state is None or number is None else self.counts.pair_of.get((state, number))
        basis: Basis = "state" if n > 0 else "task" if self.episodes else "everywhere"
        episodes = () if pair is None else tuple(self.latest[pair])
        return Option(action, value, ends[0], ends[1], round(n), basis, episodes)

    def note(self, run: Run, step: Step, history: int | None) -> None:
        """Let an open episode learn from its own step."""
        local = self._local(run)
        key = self.key(run, step.observation, history, len(run.steps))
        if local.path:
            before = run.steps[-1]
            self._count(local, local.path[-1], before.action, key, before.reward)
        local.path.append(key)
        if step.menu:
            local.menus[key] = step.menu
        run.steps.append(step)

    def _count(self, local: Local, key: Key, action: Hashable, to: Key, reward: float) -> None:
        rows = local.rows.setdefault((key, action), {})
        reward = 0.0 if self.unit == "P(success)" else reward
        rows[to, reward] = rows.get((to, reward), 0.0) + 1.0
        done: set[Key] = set()
        for back in reversed(local.path[-20:]):
            if back in done:
                continue
            done.add(back)
            self._back_up(local, back)

    def _back_up(self, local: Local, key: Key) -> None:
        state = self.states.get(key)
        names = self.actions.names
        here = list(local.menus.get(key, ()))
        if state is not None:
            held = set(here)
            here += [
                name
                for pair in self.counts.pairs_at.get(state, ())
                if (name := names[int(self.counts.action.all[pair])]) not in held
            ]
        if not here:
            return
        mean, _, hope, strength = self._beliefs(key, here, 0)
        found = [
            self._gather(local, key, a, float(m), float(h), float(s))
            for a, m, h, s in zip(here, mean, hope, strength, strict=True)
        ]
        local.value[key] = max(value for _, value, _ in found)
        local.bold[key] = max(bold for *_, bold in found)
