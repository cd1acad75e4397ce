"""Gymnasium wrappers that record episodes and give advice; an agent that follows it.

It needs the package ``gymnasium``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Self, SupportsFloat, TypeAlias

import numpy as np

from cvx.arguments import a_flag, optional, whole, wrong
from cvx.errors import InvalidInputError, MissingExtraError
from cvx.integrations import a_memory
from cvx.memory import Memory
from cvx.memory.advice import Advice
from cvx.memory.episode import RunningEpisode

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
    from gymnasium.vector.utils import iterate
except ImportError as error:
    raise MissingExtraError(f"{error}: pip install gymnasium") from error

Told: TypeAlias = str | Callable[[Any, Mapping[str, Any]], str | None] | None
"""A text, or what returns one from an observation and its info."""
Ways: TypeAlias = Sequence[Any] | Callable[[Any, Mapping[str, Any]], Sequence[Any] | None] | None
"""Actions, or what returns some from an observation and its info."""

_MOST_NUMBERS = 4096
_some_history = optional(whole(0))


def readable(observation: Any) -> Any:
    """Return an observation as an episode takes it.

    A text stays one, and numbers of which one is no integer become a list. Integers, alone or many,
    are an exact state; so is what mixes them with texts.

    Raises
    ------
    InvalidInputError
        Something else is in it, or too many numbers.

    Examples
    --------
    >>> readable(np.float32([0.5, 2])), readable((13, 5, np.True_)), readable("a hall")
    ([0.5, 2.0], (13, 5, 1), 'a hall')
    """
    if isinstance(observation, str):
        return observation
    leaves = list(_leaves(observation))
    if len(leaves) > _MOST_NUMBERS:
        raise InvalidInputError(
            f"the observation has {len(leaves)} numbers: give at most {_MOST_NUMBERS}, by a "
            "wrapper of the environment that makes features of them"
        )
    if any(isinstance(one, float) for one in leaves):
        return [float(_as_state(one) if isinstance(one, str) else one) for one in leaves]
    return tuple(_as_state(one) for one in leaves)


def _leaves(value: Any) -> Iterator[int | float | str]:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _leaves(value[key])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, bool | int | float | str):
        yield int(value) if isinstance(value, bool) else value
    elif value is not None:
        raise wrong("the observation", value, "texts and numbers, by a wrapper that makes some")


def _as_state(value: float | str) -> int:
    if isinstance(value, str):
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=6).digest()
        return int.from_bytes(digest, "little")
    return int(value)


def hashable(action: Any) -> Any:
    """Return an action as an episode takes it: arrays and lists become tuples.

    Examples
    --------
    >>> hashable(np.array([0.5, 1.0])), hashable(np.int64(2))
    ((0.5, 1.0), 2)
    """
    if isinstance(action, np.ndarray | np.generic):
        action = action.tolist()
    if isinstance(action, Mapping):
        return tuple((key, hashable(one)) for key, one in sorted(action.items()))
    if isinstance(action, list | tuple):
        return tuple(map(hashable, action))
    return action


class Recorder:
    """Records what is played as episodes of a memory, one at a time.

    Parameters
    ----------
    memory : Memory
        Where to.
    goal, task : str or callable, optional
        From the first observation of an episode and its info; default ``info["goal"]``, and none.
    actions : sequence or callable, optional
        What can be done; default ``info["admissible"]``, else all of a discrete ``space``. Texts,
        as many as a discrete space has actions, are the names of these.
    history, k : int
        As for ``Memory.episode`` and ``advise``.
    learn : bool
        As for ``Memory.episode``.
    space : gymnasium.Space, optional
        Of the actions.
    """

    def __init__(
        self,
        memory: Memory,
        goal: Told,
        task: Told,
        actions: Ways,
        history: int | None,
        k: int,
        learn: bool,
        space: Any,
    ) -> None:
        self.memory, self.learn = a_memory("memory", memory), a_flag("learn", learn)
        self.goal, self.task, self.actions = goal, task, actions
        self.history, self.k = _some_history("history", history), whole(1)("k", k)
        self.space = space
        self.episode: RunningEpisode | None = None
        self.advice: Advice | None = None
        self._seen: Any = None
        self._names = self._named()

    def _named(self) -> list[str]:
        discrete = isinstance(self.space, gymnasium.spaces.Discrete)
        if not discrete or callable(self.actions) or self.actions is None:
            return []
        names = list(self.actions)
        fitting = len(names) == self.space.n and all(isinstance(one, str) for one in names)
        return names if fitting else []

    def begin(self, observation: Any, info: Mapping[str, Any]) -> Advice:
        """Begin an episode with its first observation; one that is open is broken off."""
        self.break_off()
        goal = self._told(self.goal, observation, info, info.get("goal"))
        task = self._told(self.task, observation, info, None)
        self.episode = self.memory.episode(
            "" if goal is None else goal, task=task, history=self.history, learn=self.learn
        )
        return self._advise(observation, info)

    def _told(
        self, wanted: Told, observation: Any, info: Mapping[str, Any], else_: Any
    ) -> str | None:
        if callable(wanted):
            return wanted(observation, info)
        return wanted if wanted is not None or else_ is None else str(else_)

    def _advise(self, observation: Any, info: Mapping[str, Any]) -> Advice:
        assert self.episode is not None
        try:
            self._seen = readable(observation)
            self.advice = self.episode.advise(
                self._seen, self._admissible(observation, info), k=self.k
            )
        except BaseException:
            self.break_off()
            raise
        return self.advice

    def _admissible(self, observation: Any, info: Mapping[str, Any]) -> list[Any] | None:
        given = self.actions
        if callable(given):
            given = given(observation, info)
        elif given is None:
            given = info.get("admissible")
        if given is None and isinstance(self.space, gymnasium.spaces.Discrete):
            given = range(int(self.space.start), int(self.space.start + self.space.n))
        return None if given is None else [hashable(one) for one in given]

    def named(self, action: Any) -> Any:
        """Return an action as the episode knows it."""
        plain = hashable(action)
        if self._names and isinstance(plain, int):
            return self._names[plain - int(self.space.start)]
        return plain

    def played(self, action: Any) -> Any:
        """Return an action as the environment takes it."""
        if self._names and action in self._names:
            return int(self.space.start) + self._names.index(action)
        if isinstance(action, tuple) and isinstance(self.space, gymnasium.spaces.Box):
            return np.array(action, dtype=self.space.dtype).reshape(self.space.shape)
        if isinstance(action, tuple) and hasattr(self.space, "dtype"):
            return np.array(action, dtype=self.space.dtype)
        return action

    def step(
        self,
        action: Any,
        observation: Any,
        reward: SupportsFloat,
        ended: tuple[bool, bool],
        info: Mapping[str, Any],
    ) -> Advice | None:
        """Record a step; return the advice on what came of it, None if the episode is over."""
        assert self.episode is not None
        terminated, truncated = ended
        try:
            self.episode.act(self.named(action), reward=float(reward), observation=self._seen)
            if not (terminated or truncated):
                return self._advise(observation, info)
            self.episode.end(
                observation=readable(observation), truncated=truncated and not terminated
            )
        except BaseException:
            self.break_off()
            raise
        self.episode = self.advice = None
        return None

    def break_off(self) -> None:
        """Discard a running episode."""
        if self.episode is not None and not self.episode.ended:
            self.episode.discard()
        self.episode = self.advice = None


class MemoryWrapper(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Records the episodes of an environment, and says what memory knows of each moment.

    ``reset`` begins an episode, a step that terminates or truncates it ends it with the sum of its
    rewards. ``info["advice"]`` is what memory has to say about the observation that comes with it,
    None after the last. An agent that never looks at it is recorded all the same. Nothing is
    learned of an episode that is broken off: by an exception of the environment, by ``reset``
    before its end, or by ``close``.

    A vector environment becomes a `VectorMemoryWrapper`: one episode a slot. Anything else with
    ``reset`` and ``step`` will do, too.

    Parameters
    ----------
    env : gymnasium.Env, gymnasium.vector.VectorEnv, or object with reset and step
        Observations are texts, numbers, or any arrangement of these: see `readable`.
    memory : Memory
        It may hold other things, be bound to a namespace, and be used by others meanwhile.
    goal : str or callable, optional
        What is to be reached; default ``info["goal"]`` of ``reset``. A callable is given the first
        observation and its info.
    task : str or callable, optional
        Which family of goals that belongs to; without one, goals learn from each other.
    actions : sequence or callable, optional
        What can be done; default ``info["admissible"]``, or all actions of a discrete space. A
        list of texts, one for each of these, names them in the memory.
    history : int, optional
        How many of the last actions with what came of them tell states apart.
    k : int, default 3
        Steps of earlier episodes that an option names.
    learn : bool, default True
        False measures: the episodes leave nothing behind; see ``Memory.episode``.

    Raises
    ------
    InvalidInputError
        No memory, an environment without ``reset`` and ``step``, or ``k`` below 1.
    """

    def __new__(
        cls,
        env: Any,
        memory: Memory,
        *,
        goal: Told = None,
        task: Told = None,
        actions: Ways = None,
        history: int | None = None,
        k: int = 3,
        learn: bool = True,
    ) -> Self:
        """Return a wrapper of the kind that the environment needs."""
        if isinstance(env, VectorEnv):
            made: Any = VectorMemoryWrapper(
                env,
                memory,
                goal=goal,
                task=task,
                actions=actions,
                history=history,
                k=k,
                learn=learn,
            )
            return made  # type: ignore[no-any-return]
        return super().__new__(cls)

    def __init__(
        self,
        env: Any,
        memory: Memory,
        *,
        goal: Told = None,
        task: Told = None,
        actions: Ways = None,
        history: int | None = None,
        k: int = 3,
        learn: bool = True,
    ) -> None:
        plain = env if isinstance(env, gymnasium.Env) else PlainEnvironment(env)
        # With these gymnasium can make it again of its spec, over the same memory.
        gymnasium.utils.RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            memory=memory,
            goal=goal,
            task=task,
            actions=actions,
            history=history,
            k=k,
            learn=learn,
        )
        gymnasium.Wrapper.__init__(self, plain)
        space = getattr(plain, "action_space", None)
        self.recorder = Recorder(memory, goal, task, actions, history, k, learn, space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; one that is still running is broken off."""
        self.recorder.break_off()
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {**info, "advice": self.recorder.begin(observation, info)}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take a step, and learn from the episode if it was the last.

        Raises
        ------
        gymnasium.error.ResetNeeded
            No episode is running.
        """
        if self.recorder.episode is None:
            raise gymnasium.error.ResetNeeded("no episode is running: call reset() before step()")
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except BaseException:
            self.recorder.break_off()
            raise
        ended = bool(terminated), bool(truncated)
        advice = self.recorder.step(action, observation, reward, ended, info)
        return observation, reward, terminated, truncated, {**info, "advice": advice}

    def close(self) -> None:
        """Break off a running episode, and close the environment."""
        self.recorder.break_off()
        super().close()


class PlainEnvironment(gymnasium.Env[Any, Any]):
    """An object with ``reset`` and ``step`` as an environment.

    ``reset`` may return an observation or (observation, info), and take ``seed`` and ``options``
    or nothing; ``step`` may return (observation, reward, terminated, truncated, info), or the same
    without ``truncated``, or only the first three.

    Parameters
    ----------
    world : object
        With these two methods; spaces of it are taken over.

    Raises
    ------
    InvalidInputError
        It has not both.
    """

    def __init__(self, world: Any) -> None:
        if not all(callable(getattr(world, verb, None)) for verb in ("reset", "step")):
            raise wrong("env", world, "an environment, or an object with reset and step")
        self.world = world
        for name in ("observation_space", "action_space", "render_mode", "metadata"):
            if hasattr(world, name):
                setattr(self, name, getattr(world, name))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin again; a seed and options are passed on where they are given."""
        given = {"seed": seed, "options": options}
        told = self.world.reset(**{name: one for name, one in given.items() if one is not None})
        if isinstance(told, tuple) and len(told) == 2 and isinstance(told[1], Mapping):
            return told[0], dict(told[1])
        return told, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step.

        Raises
        ------
        InvalidInputError
            The object returned something else than a tuple of three to five.
        """
        told = self.world.step(action)
        if isinstance(told, tuple) and len(told) == 5:
            return told
        if isinstance(told, tuple) and len(told) in (3, 4):
            observation, reward, over, *info = told
            return observation, reward, bool(over), False, dict(info[0]) if info else {}
        raise wrong(
            "what step returned", told, "(observation, reward, terminated, truncated, info)"
        )


class VectorMemoryWrapper(VectorWrapper):
    """The same for a vector environment: each slot plays episodes of its own.

    ``infos["advice"]`` is a list with the advice of each slot, None where its episode is over.
    Parameters are those of `MemoryWrapper`; a callable is given the observation and info of a slot.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        memory: Memory,
        *,
        goal: Told = None,
        task: Told = None,
        actions: Ways = None,
        history: int | None = None,
        k: int = 3,
        learn: bool = True,
    ) -> None:
        super().__init__(env)
        space = env.single_action_space
        self.recorders = [
            Recorder(memory, goal, task, actions, history, k, learn, space)
            for _ in range(env.num_envs)
        ]

    def reset(
        self,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in every slot, or in those of ``options["reset_mask"]``."""
        mask = (options or {}).get("reset_mask", [True] * self.num_envs)
        for recorder, wanted in zip(self.recorders, mask, strict=True):
            if wanted:
                recorder.break_off()
        observations, infos = self.env.reset(seed=seed, options=options)
        seen = list(iterate(self.observation_space, observations))
        for slot, wanted in enumerate(mask):
            if wanted:
                self.recorders[slot].begin(seen[slot], _of_slot(infos, slot))
        return observations, {**infos, "advice": [one.advice for one in self.recorders]}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Take a step in every slot; those whose episode was over begin another one."""
        given = list(iterate(self.action_space, actions))
        try:
            observations, rewards, terminated, truncated, infos = self.env.step(actions)
            mode = self.env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
            seen = list(iterate(self.observation_space, observations))
            for slot, recorder in enumerate(self.recorders):
                info = _of_slot(infos, slot)
                if recorder.episode is None:
                    # This step was its reset.
                    if mode == AutoresetMode.NEXT_STEP:
                        recorder.begin(seen[slot], info)
                    continue
                ended = bool(terminated[slot]), bool(truncated[slot])
                last = any(ended) and mode == AutoresetMode.SAME_STEP
                shown = info.get("final_obs", seen[slot]) if last else seen[slot]
                recorder.step(given[slot], shown, rewards[slot], ended, info)
                if last:
                    recorder.begin(seen[slot], info)
        except BaseException:
            self._break_off()
            raise
        told = {**infos, "advice": [one.advice for one in self.recorders]}
        return observations, rewards, terminated, truncated, told

    def _break_off(self) -> None:
        for recorder in self.recorders:
            recorder.break_off()

    def close(self, **options: Any) -> None:
        """Break off running episodes, and close the environment."""
        self._break_off()
        super().close(**options)


def _of_slot(infos: Mapping[str, Any], slot: int) -> dict[str, Any]:
    """Return what a vector environment says of one slot."""
    told: dict[str, Any] = {}
    for name, value in infos.items():
        there = infos.get(f"_{name}")
        if name.startswith("_") or (there is not None and not there[slot]):
            continue
        if isinstance(value, Mapping):
            told[name] = _of_slot(value, slot)
        elif isinstance(value, np.ndarray | list | tuple) and len(value) > slot:
            told[name] = value[slot]
    return told


class MemoryAgent:
    """An agent whose only learner is a memory: it does what advice says, or may be better.

    In a folder (``MemoryAgent(Memory.open(folder))``) it goes on after it was closed or killed.

    Parameters
    ----------
    memory, goal, task, actions, history
        As for `MemoryWrapper`.

    Examples
    --------
    >>> from cvx.embed import LexicalEmbedder
    >>> class Doors:
    ...     def reset(self):
    ...         return "two doors", {"admissible": ["left", "right"]}
    ...     def step(self, action):
    ...         return "outside", float(action == "right"), True, {}
    >>> agent = MemoryAgent(Memory(embedder=LexicalEmbedder(64)))
    >>> rewards = [agent.play(Doors()) for _ in range(20)]
    >>> sum(rewards[10:])
    10.0
    """

    def __init__(
        self,
        memory: Memory,
        *,
        goal: Told = None,
        task: Told = None,
        actions: Ways = None,
        history: int | None = None,
    ) -> None:
        self.memory = a_memory("memory", memory)
        self._about: dict[str, Any] = {
            "goal": goal,
            "task": task,
            "actions": actions,
            "history": _some_history("history", history),
        }

    def play(
        self, env: Any, *, explore: bool = True, seed: int | None = None, learn: bool = True
    ) -> float:
        """Play one episode, learn from it, and return the sum of its rewards.

        Parameters
        ----------
        env : gymnasium.Env, or object with reset and step
            It is reset, and not closed.
        explore : bool, default True
            Try what may be better than what is known; without it, do what is best.
        seed : int, optional
            For the environment's ``reset``.
        learn : bool, default True
            False measures: nothing is learned or stored; see ``Memory.episode``.

        Raises
        ------
        InvalidInputError
            A vector environment; or one that does not say what can be done.
        """
        if isinstance(env, VectorEnv):
            raise wrong("env", env, "one environment; wrap a vector one in MemoryWrapper")
        wrapped = MemoryWrapper(env, self.memory, **self._about, learn=learn)
        recorder, total, over = wrapped.recorder, 0.0, False
        _, info = wrapped.reset(seed=seed)
        try:
            while not over:
                action = recorder.played(_chosen(info["advice"], explore))
                _, reward, terminated, truncated, info = wrapped.step(action)
                total += float(reward)
                over = bool(terminated or truncated)
        finally:
            recorder.break_off()
        return total


def _chosen(advice: Advice, explore: bool) -> Hashable:
    if not len(advice):
        raise InvalidInputError(
            "no action is known here, and the environment names none: give actions=, or put "
            "those that can be done into info['admissible']"
        )
    return advice.choose(explore=explore).action
