"""What an open episode sees of its task: what others learned, and its own steps on top."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from cvx.learn.advisor_task import Basis, Key, Option, Run, Task

_BACK_UPS = 24
"""How many states at most change their value by one step of an open episode."""


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


class View:
    """The task as one open episode knows it; nothing here reaches another episode.

    Parameters
    ----------
    task : Task
    run : Run
        Whose steps so far count.
    history : int, optional
    """

    def __init__(self, task: Task, run: Run, history: int | None) -> None:
        self.task, self.run, self.history = task, run, history
        self.version = task.episodes
        self._nodes: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}
        self._menus: dict[int, _Menu] = {}
        self._own: dict[tuple[int, Hashable], dict[tuple[int, float], float]] = {}
        self._into: dict[int, set[tuple[int, Hashable]]] = {}
        self._value: dict[int, tuple[float, float]] = {}
        self._path: list[int] = []
        self._arrived = 0

    @property
    def noted(self) -> int:
        """How many steps of the episode it has taken in."""
        return len(self._path)

    def _node(self, key: Key) -> int:
        """Return the number of a state: the task's, or one of its own below -1."""
        node = self.task.states.get(key)
        if node is None:
            node = self._nodes.get(key)
            if node is None:
                node = self._nodes[key] = -2 - len(self._nodes)
        self._keys[node] = key
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
            tried = [task.actions.names[int(task.counts.action.all[pair])] for pair in pairs]
            wanted = tuple(dict.fromkeys([*(known or ()), *tried]))
            if not wanted:
                return None
        held = self._menus[node] = self._look_up(node, wanted)
        for i, action in enumerate(held.actions):
            if self._own.get((node, action)):
                self._weigh(node, held, i)
        return held

    def _look_up(self, node: int, actions: tuple[Hashable, ...]) -> _Menu:
        task, counts = self.task, self.task.counts
        pairs = []
        for action in actions:
            number = task.actions.of.get(action)
            pairs.append(-1 if number is None else counts.pair_of.get((node, number), -1))
        menu = (
            _Menu(
                actions,
                {action: i for i, action in enumerate(actions)},
                pairs,
                task.mean.all[pairs].tolist(),
                task.variance.all[pairs].tolist(),
                task.hope[pairs].tolist(),
                task.strength[pairs].tolist(),
                counts.n.all[pairs].tolist(),
                task.worth[pairs].tolist(),
                task.bold_worth[pairs].tolist(),
            )
            if min(pairs) >= 0
            else self._partly(node, actions, pairs)
        )
        weak = max(task.parts.weakest, min(1.0, counts.surprise))
        menu.strength = [s if n else weak for s, n in zip(menu.strength, menu.n, strict=True)]
        return menu

    def _partly(self, node: int, actions: tuple[Hashable, ...], pairs: list[int]) -> _Menu:
        """Look up a menu of which some actions are new in the state."""
        task = self.task
        new = [i for i, pair in enumerate(pairs) if pair < 0]
        told = task.expect(self._keys[node], [actions[i] for i in new], len(self._menus))
        menu = _Menu(
            actions, {action: i for i, action in enumerate(actions)}, pairs,
            *([0.0] * len(actions) for _ in range(7)),
        )  # fmt: skip
        for i, pair in enumerate(pairs):
            if pair >= 0:
                menu.mean[i], menu.variance[i] = task.mean.all[pair], task.variance.all[pair]
                menu.hope[i], menu.strength[i] = task.hope[pair], task.strength[pair]
                menu.n[i] = task.counts.n.all[pair]
                menu.worth[i], menu.bold[i] = task.worth[pair], task.bold_worth[pair]
        for i, mean, variance, hope in zip(new, *(part.tolist() for part in told), strict=True):
            menu.mean[i], menu.variance[i], menu.hope[i] = mean, variance, hope
            menu.worth[i], menu.bold[i] = mean, hope
        return menu

    def _value_of(self, node: int) -> tuple[float, float]:
        own = self._value.get(node)
        if own is not None:
            return own
        if node >= -1:
            return float(self.task.values[node]), float(self.task.bold[node])
        return self.task.worth_of_new()

    def _weigh(self, node: int, menu: _Menu, i: int) -> None:
        """Work out anew what an action is worth, own steps included."""
        task, counts, gamma = self.task, self.task.counts, self.task.parts.gamma
        n = total = value = bold = 0.0
        pair = menu.pairs[i]
        if pair >= 0:
            for row in counts.rows[pair]:
                v, b = self._value_of(int(counts.next.all[row]))
                reward, count = float(counts.reward.all[row]), float(counts.count.all[row])
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
        node = self._node(self.task.key(run, step.observation, self.history, number))
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
        self._into.setdefault(to, set()).add((node, action))
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
                state = int(counts.state.all[pair])
                found.append((state, names[int(counts.action.all[pair])]))
        return found[:_BACK_UPS]

    def options(
        self, key: Key, actions: Sequence[Hashable]
    ) -> dict[Hashable, tuple[Option, float]]:
        """Return an option for each action, with what it is worth when exploring."""
        task, node = self.task, self._node(key)
        self._arrive(node, len(self._path))
        menu = self._menu(node, actions)
        assert menu is not None
        out = {}
        bounded = task.unit != "return"
        within = max(1e-9, task.within)
        for i, action in enumerate(menu.actions):
            value, n = menu.worth[i], menu.n[i]
            spread = 1.645 / math.sqrt(1.0 / max(1e-9, menu.variance[i]) + n / within)
            low, high = value - spread, value + spread
            if bounded:
                value, low, high = (min(1.0, max(0.0, end)) for end in (value, low, high))
            pair = menu.pairs[i]
            basis: Basis = "state" if n > 0 else "task" if task.episodes else "everywhere"
            episodes = () if pair < 0 else tuple(task.latest[pair])
            option = Option(action, value, low, high, round(n), basis, episodes)
            out[action] = option, menu.bold[i]
        return out
