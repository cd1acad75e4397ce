"""Action values for an open episode: what earlier episodes taught, and its own steps."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cvx.learn.advisor.task_model import BOLDNESS, JITTER, WEAKEST, Task, worth_trying
from cvx.learn.advisor.types import NARROWEST, ActionValue, Basis, Key, Moment, Observation, Run
from cvx.statistics import Beta
from cvx.types import Vector

_BACK_UPS = 24
"""How many states at most change their value by one step of an open episode."""

_Z = 1.645
"""Standard deviations to either side that hold 90% of a normal distribution."""

_DRAWS = 256
"""How many draws of the posterior tell how likely an action is chosen."""

_WAIT, _PATIENCE, _CHEAPEST, _DEAREST = 0.75, 1.5, 0.25, 1e6
"""For how many visits of a state an action waits before it is tried again there, the power by which
its trials make that more, and bounds of what it loses as a share of what can be gained."""


@dataclass(slots=True)
class _Menu:
    """What can be done in a state, with what the task expects of each."""

    actions: tuple[Hashable, ...]
    at: dict[Hashable, int]
    pairs: list[int]
    mean: list[float]
    variance: list[float]
    hope: list[float]
    strength: list[float]
    n: list[float]
    worth: list[float]
    bold: list[float]
    told_by: dict[int, Basis] | None = field(default=None, init=False)


class EpisodeView:
    """Action values of one open episode; its own steps affect no other episode.

    Parameters
    ----------
    task : Task
    run : Run
        Whose steps so far count.
    """

    def __init__(self, task: Task, run: Run) -> None:
        self.task, self.run = task, run
        self.version = task.episodes
        self._nodes: dict[Key, int] = {}
        self._keys: dict[int, tuple[Key, Vector | None]] = {}
        self._menus: dict[int, _Menu] = {}
        self._own: dict[tuple[int, Hashable], dict[tuple[int, float], float]] = {}
        # In the order in which they were done: that of a set is another one in each process.
        self._into: dict[int, dict[tuple[int, Hashable], None]] = {}
        self._value: dict[int, tuple[float, float]] = {}
        self._path: list[int] = []
        self._arrived = 0
        self._asked: int | None = None
        self._due: Hashable | None = None

    @property
    def noted(self) -> int:
        """How many steps of the episode it has taken in."""
        return len(self._path)

    def _node(self, observation: Observation, upto: int) -> int:
        """Return the number of a state: the task's, or one of its own below -1."""
        key = self.task.key(self.run, observation, upto)
        node = self.task.states.get(key)
        if node is None:
            node = self._nodes.get(key)
            if node is None:
                node = self._nodes[key] = -2 - len(self._nodes)
        self._keys[node] = key, observation.vector if observation.text is not None else None
        return node

    def _menu(self, node: int, actions: Sequence[Hashable] | None) -> _Menu | None:
        """Return what can be done in a state, as asked now or as it was known before."""
        held = self._menus.get(node)
        wanted = None if actions is None else tuple(actions)
        if held is not None and wanted in (None, held.actions):
            return held
        task = self.task
        if wanted is None:
            known = task.menus.get(node)
            pairs = task.counts.pairs_at.get(node, [])
            tried = [task.actions.names[task.counts.action[pair]] for pair in pairs]
            wanted = tuple(dict.fromkeys([*(known or ()), *tried]))
            if not wanted:
                return None
        held = self._menus[node] = self._look_up(node, wanted)
        for i, action in enumerate(held.actions):
            if self._own.get((node, action)):
                self._weigh(node, held, i)
        return held

    def _look_up(self, node: int, actions: tuple[Hashable, ...]) -> _Menu:
        """Return what the task knows of actions; what it expects of those new in the state."""
        task, counts = self.task, self.task.counts
        numbers = [task.actions.of.get(action) for action in actions]
        pairs = [-1 if at is None else counts.pair_of.get((node, at), -1) for at in numbers]
        of = np.array(pairs)
        known, new = np.flatnonzero(of >= 0), np.flatnonzero(of < 0)
        mean, variance, hope, strength, n, worth, bold = told = np.zeros((7, len(pairs)))
        if len(known):
            columns = (
                task.mean.all, task.variance.all, task.hope, task.strength, counts.n.all,
                task.worth, task.bold_worth,
            )  # fmt: skip
            told[:, known] = [column[of[known]] for column in columns]
        if len(new):
            asked = [actions[i] for i in new]
            expected = task.expect(*self._keys[node], asked, len(self._menus), actions)
            mean[new], variance[new], hope[new] = expected
            if not task.flat:
                best = max(mean[new].max(), worth[known].max(initial=-math.inf))
                hope[new] = worth_trying(mean[new], hope[new], best, n.sum())
            worth[new], bold[new] = mean[new], hope[new]
        strength[n <= 0] = max(WEAKEST, min(1.0, counts.surprise))
        at = {action: i for i, action in enumerate(actions)}
        return _Menu(actions, at, pairs, *told.tolist())

    def _opinions(
        self, moment: Moment, actions: Sequence[Hashable]
    ) -> Iterator[tuple[Basis, bool, Sequence[Beta | None]]]:
        """Yield what other routes tell of actions, and whether to try them in that order."""
        task = self.task
        agreed = task.parts.others and task.others_agree()
        if task.flat or agreed:
            told = [task.elsewhere(moment.state, action) for action in actions]
            yield "other tasks", agreed, told
        for basis, route in task.routes.items():
            yield basis, True, route(moment, actions)

    def _ask_around(self, moment: Moment, menu: _Menu) -> dict[int, Basis]:
        """Join what other routes tell of untried actions, each as much as it is sure.

        Returns
        -------
        dict of int to Basis
            The narrowest of the routes that know an action.
        """
        task = self.task
        untried = [i for i, n in enumerate(menu.n) if n <= 0]
        if not untried:
            return {}
        low, high = task.range()
        width, found = high - low, dict[int, Basis]()
        # Else what is sure elsewhere, but not here, would never be tried: it counts less the more
        # often this state was met.
        doubt = 1.0 if task.flat else 1.0 + sum(menu.n)
        for basis, leads, beliefs in self._opinions(moment, [menu.actions[i] for i in untried]):
            for i, belief in zip(untried, beliefs, strict=True):
                if belief is None:
                    continue
                a, b = belief.alpha, belief.beta
                spread = doubt * width**2 * a * b / ((a + b) ** 2 * (a + b + 1.0))
                before, mean = menu.variance[i], low + width * belief.mean
                # A task of which nothing was told expects nothing itself.
                share = 1.0 if task.untold and i not in found else before / (before + spread)
                found[i] = min(basis, found.get(i, "everywhere"), key=NARROWEST.index)
                if task.flat:
                    # What is good is not known yet: it only comes earlier or later.
                    menu.hope[i] += leads * 1e-3 * (task.best - low) * (belief.mean - 0.5)
                else:
                    above = (menu.hope[i] - menu.mean[i]) * math.sqrt(spread / (before + spread))
                    joined = menu.mean[i] + share * (mean - menu.mean[i])
                    menu.hope[i] = min(task.best, joined + above)
                menu.mean[i] += share * (mean - menu.mean[i])
                menu.variance[i] = share * spread
                menu.worth[i], menu.bold[i] = menu.mean[i], menu.hope[i]
        return found

    def _value_of(self, node: int) -> tuple[float, float]:
        own = self._value.get(node)
        if own is not None:
            return own
        if node >= -1:
            return float(self.task.values[node]), float(self.task.bold[node])
        return self.task.worth_of_new()

    def _weigh(self, node: int, menu: _Menu, i: int) -> None:
        """Work out anew what an action is worth, own steps included."""
        task, counts, gamma = self.task, self.task.counts, self.task.gamma
        n = total = value = bold = 0.0
        pair = menu.pairs[i]
        if pair >= 0:
            for row in counts.rows[pair]:
                v, b = self._value_of(counts.next[row])
                reward, count = counts.reward[row], counts.count[row]
                weight = float(task.weights[row])
                n += count
                total += weight
                value += count * (reward + gamma * v)
                bold += weight * (reward + gamma * b)
        for (to, reward), count in self._own.get((node, menu.actions[i]), {}).items():
            v, b = self._value_of(to)
            n += count
            total += count
            value += count * (reward + gamma * v)
            bold += count * (reward + gamma * b)
        menu.n[i] = n
        if n:
            s = menu.strength[i]
            menu.worth[i] = (value + s * menu.mean[i]) / (n + s)
            menu.bold[i] = (bold + s * menu.hope[i]) / (total + s)

    def note(self, number: int) -> None:
        """Learn from the step before this one, now that it is known where it led."""
        run = self.run
        step = run.steps[number]
        if self.task.continuous:
            self._path.append(-1)
            return
        node = self._node(step.observation, number)
        self._path.append(node)
        if step.menu is not None:
            self._menu(node, step.menu)
        self._arrive(node, number)

    def _arrive(self, node: int, number: int) -> None:
        """Count where the step before this one led to, once it is known."""
        if number and self._arrived < number:
            self._arrived = number
            before = self.run.steps[number - 1]
            self._count(self._path[number - 1], before.action, node, before.reward)

    def _count(self, node: int, action: Hashable, to: int, reward: float) -> None:
        rows = self._own.setdefault((node, action), {})
        reward = 0.0 if self.task.unit == "P(success)" else reward
        rows[to, reward] = rows.get((to, reward), 0.0) + 1.0
        self._into.setdefault(to, {})[node, action] = None
        menu = self._menu(node, None)
        if menu is None or action not in menu.at:
            menu = self._menu(node, (*(menu.actions if menu else ()), action))
        assert menu is not None
        self._weigh(node, menu, menu.at[action])
        waiting = [node]
        low, high = self.task.range()
        enough = 1e-3 * (high - low)
        for _ in range(_BACK_UPS):
            if not waiting:
                break
            here = waiting.pop()
            menu = self._menu(here, None)
            if menu is None:
                continue
            before = self._value_of(here)
            value = max(menu.worth), max(menu.bold)
            self._value[here] = value
            if abs(value[0] - before[0]) + abs(value[1] - before[1]) < enough:
                continue
            for back, how in self._leading_to(here):
                there = self._menu(back, None)
                if there is not None and how in there.at:
                    self._weigh(back, there, there.at[how])
                    if back not in waiting:
                        waiting.insert(0, back)

    def _leading_to(self, node: int) -> list[tuple[int, Hashable]]:
        found = list(self._into.get(node, ()))
        if node >= 0:
            counts, names = self.task.counts, self.task.actions.names
            for pair in counts.into.get(node, ()):
                state = counts.state[pair]
                found.append((state, names[counts.action[pair]]))
        return found[:_BACK_UPS]

    def chances(
        self, actions: Sequence[Hashable], behind: Mapping[Hashable, Hashable]
    ) -> list[float]:
        """Return how likely each action is the one to explore, over the draws of the posterior.

        Parameters
        ----------
        actions : sequence of hashable
        behind : mapping
            Actions that come behind another one, whatever is drawn.
        """
        task = self.task
        held = None if self._asked is None else self._menus.get(self._asked)
        if held is None or any(action not in held.at for action in actions):
            hopes = [self.run.asked[a][1] if a in self.run.asked else 0.0 for a in actions]
            best = [hope >= max(hopes) - 1e-9 for hope in hopes]
            return [float(is_best) / sum(best) for is_best in best]
        at = [held.at[action] for action in actions]
        n, strength, mean, worth, spread = (
            np.array(part)[at]
            for part in (held.n, held.strength, held.mean, held.worth, np.sqrt(held.variance))
        )
        rng = np.random.default_rng(0)
        z = BOLDNESS + JITTER * rng.standard_normal((_DRAWS, len(at)))
        low, _ = task.range()
        hope = np.clip(mean + z * spread, low, task.best) if not task.flat else task.best - 1e-3 * z
        share = np.where(n > 0, strength / (n + strength), 1.0)
        drawn = worth + share * (hope - mean)
        drawn[:, [action == self._due for action in actions]] = np.inf
        drawn[:, [action in behind for action in actions]] = -np.inf
        best = drawn.argmax(1)
        counts = np.bincount(best, minlength=len(at)) + 0.5
        return [float(x) for x in counts / counts.sum()]

    def _by_vector(
        self, vector: Vector, actions: Sequence[Hashable]
    ) -> dict[Hashable, tuple[ActionValue, float]]:
        task = self.task
        numbers = [task.actions.of.get(action) for action in actions]
        own: dict[Hashable, list[tuple[Vector, float, Vector]]] = {}
        seen = [step.observation.vector for step in self.run.steps] + [vector]
        for step, here, there in zip(self.run.steps, seen, seen[1:], strict=False):
            if here is not None and there is not None:
                reward = 0.0 if task.unit == "P(success)" else step.reward
                own.setdefault(step.action, []).append((here, reward, there))
        out = {}
        for action, told in zip(actions, task.vectors.worth(vector, numbers), strict=True):
            if action in own:
                told = task.vectors.joined(told, vector, own[action])
            ends = told.value - _Z * told.spread, told.value + _Z * told.spread
            basis: Basis = "near" if told.trials else "task"
            option = ActionValue(action, told.value, *ends, told.trials, basis, told.episodes)
            out[action] = option, told.hope
        return out

    def options(
        self, observation: Observation, actions: Sequence[Hashable]
    ) -> dict[Hashable, tuple[ActionValue, float]]:
        """Return an option for each action, with what it is worth when exploring."""
        task = self.task
        if task.continuous and observation.vector is not None:
            return self._by_vector(observation.vector, actions)
        node = self._node(observation, len(self.run.steps))
        self._arrive(node, len(self._path))
        self._asked = node
        menu = self._menu(node, actions)
        assert menu is not None
        if menu.told_by is None:
            moment = Moment(task.name, self.run.goal, self._keys[node][0], observation)
            menu.told_by = self._ask_around(moment, menu)
        out = {}
        untried: Basis | None = None
        bounded = task.unit != "return"
        within = max(1e-30, task.within)
        # What so many repeats that all end alike do not rule out (Wilson's bound).
        unseen = _Z**2 / (task.counts.repeats + 1.0 + _Z**2)
        for i, action in enumerate(menu.actions):
            value, n = menu.worth[i], menu.n[i]
            spread = _Z / math.sqrt(1.0 / max(1e-30, menu.variance[i]) + n / within)
            low, high = value - spread, value + spread
            if bounded:
                value = min(1.0, max(0.0, value))
                # Rewards on the way may have led above 1, where the ends are cut off as well.
                low = min(value, max(0.0, low - unseen * value))
                high = max(value, min(1.0, high + unseen * (1.0 - value)))
            pair = menu.pairs[i]
            if n <= 0 and untried is None:
                untried = task.basis_of(*self._keys[node])
            basis: Basis = "state"
            if n <= 0 and untried is not None:
                basis = min(untried, menu.told_by.get(i, untried), key=NARROWEST.index)
            if basis == "everywhere":
                # Nothing is known: all that can be had is as likely.
                low, high = task.range()
                value = (low + high) / 2.0
            episodes = () if pair < 0 else tuple(task.latest[pair])
            option = ActionValue(action, value, low, high, round(n), basis, episodes)
            out[action] = option, menu.bold[i]
        self._due = self._retrial(menu)
        if self._due is not None:
            most = max(hope for _, hope in out.values())
            out[self._due] = out[self._due][0], math.nextafter(most, math.inf)
        return out

    def _retrial(self, menu: _Menu) -> Hashable | None:
        """Return the action that is to be tried again here, None for none.

        Where everything else always ends alike one try is believed, and what ended alike may have
        changed. So what never varied has its turn after so many visits of the state: the more, the
        more often it was tried, the more it loses, and the more pairs there are to try. What then
        paid more than the best known is done again at once, to see whether it does so twice.
        """
        worth, n, pairs = (np.array(part) for part in (menu.worth, menu.n, menu.pairs))
        loss = worth.max() - worth
        worse = loss > 0.0
        if self.task.flat or not worse.any():
            return None
        gain = 1.0 - worth.max()
        if self.task.unit == "return":
            # Nobody knows what is better than the best: as much again is taken for likely.
            gain = max(abs(worth.max()), loss[worse].min())
        kinds, repeated = self.task.kinds()
        for i in np.flatnonzero(worse & (pairs >= 0) & (kinds[pairs] == 2)):
            if self._surprised(pairs[i], menu.actions[i], worth.max()):
                return menu.actions[i]
        risk = np.clip(loss / max(1e-30, gain), _CHEAPEST, _DEAREST)
        # What costs more than can be gained is hardly ever worth it.
        risk *= np.maximum(1.0, risk)
        wait = _WAIT * (repeated + 2.0) ** 2 * risk * np.maximum(1.0, n) ** _PATIENCE
        wait[(pairs >= 0) & (kinds[pairs] > 1)] = math.inf
        due = int(wait.argmin())
        return menu.actions[due] if n.sum() > wait[due] else None

    def _surprised(self, pair: int, action: Hashable, best: float) -> bool:
        """Return whether what always ended alike ended better than the best, once or twice now."""
        counts = self.task.counts
        row = counts.latest(pair)
        paid = counts.reward[row] + self.task.gamma * self._value_of(counts.next[row])[0]
        new = counts.count[row] <= 2.0 and (self._asked, action) not in self._own
        return new and paid > best
