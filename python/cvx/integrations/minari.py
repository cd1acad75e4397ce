"""Writes the episodes of a memory as a Minari data set, for libraries of reinforcement learning.

It needs the packages ``minari`` and ``h5py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvx.arguments import a_text, checked, optional, wrong
from cvx.errors import InvalidInputError
from cvx.extras import needs
from cvx.integrations import a_memory
from cvx.memory import Memory
from cvx.store.rows import DISCARDED
from cvx.types import Episode, Event

with needs("minari"):
    import h5py  # type: ignore[import-untyped]  # noqa: F401
    import minari  # type: ignore[import-untyped]
    from gymnasium.spaces import Box, Discrete, Space, Text
    from minari import MinariDataset
    from minari.data_collector import EpisodeBuffer  # type: ignore[import-untyped]


@checked(memory=a_memory, name=a_text, task=optional(a_text))
def export(
    memory: Memory,
    name: str,
    *,
    task: str | None = None,
    actions: Sequence[Any] | None = None,
    **about: Any,
) -> MinariDataset:
    """Write episodes that ended as a data set of Minari; discarded ones are left out.

    Observations are texts, vectors of floats or exact states, as the agent was given them, and all
    of one kind; actions likewise. The spaces are the narrowest that hold what was seen and done.

    Parameters
    ----------
    memory : Memory
        Of the whole store.
    name : str
        The id of the data set, such as "kitchen/tea-v0"; below the folder that
        ``MINARI_DATASETS_PATH`` names.
    task : str, optional
        Only the episodes of it; needed where tasks differ in what they see or do.
    actions : sequence, optional
        All that can be done. Actions are then their places in it, from 0.
    **about
        What else ``minari.create_dataset_from_buffers`` takes: ``algorithm_name``, ``author``,
        ``env``...

    Returns
    -------
    minari.MinariDataset
        As ``minari.load_dataset(name)`` opens it. Rewards are those of the steps; of an episode
        that ended with an outcome, the outcome is the reward of its last step and the others are
        0. ``infos`` name each ``event``; the metadata of an episode its ``goal`` and ``task``.

    Raises
    ------
    NamespaceError
        The memory is bound to a namespace.
    InvalidInputError
        No such episode, observations or actions of several kinds, or an action that is not among
        ``actions``.
    """
    kept = [
        one
        for one in memory.record.episodes()
        if one.kind != DISCARDED and one.steps and task in (None, one.task_type)
    ]
    if not kept:
        raise wrong("task", task, "one with an episode that ended and has steps")
    seen = [[*map(_observation, one.steps), _last(one)] for one in kept]
    done = [[_action(step, actions) for step in one.steps] for one in kept]
    spaces = {
        "observation_space": _space("observations", [one for each in seen for one in each]),
        "action_space": (
            Discrete(len(actions))
            if actions is not None
            else _space("actions", [one for each in done for one in each])
        ),
    }
    buffers = [
        _buffer(episode, seen[place], done[place], place) for place, episode in enumerate(kept)
    ]
    with warnings.catch_warnings():
        # It names everything of a data set's description that was not given.
        warnings.simplefilter("ignore", UserWarning)
        made = minari.create_dataset_from_buffers(name, buffers, **{**spaces, **about})
    made.storage.update_episode_metadata(
        [{"goal": one.goal, "task": one.task_type or one.goal} for one in kept]
    )
    return made


def _buffer(episode: Episode, seen: list[Any], done: list[Any], place: int) -> EpisodeBuffer:
    rewards = [float(step.metadata.get("reward", 0.0)) for step in episode.steps]
    if "return" not in episode.metadata:
        rewards = [0.0] * (len(rewards) - 1) + [float(episode.reward or 0.0)]
    truncated = bool(episode.metadata.get("truncated"))
    before = [False] * (len(rewards) - 1)
    # Of the observation after the last step there is no event.
    events = [-1 if step.event_id is None else step.event_id for step in episode.steps]
    return EpisodeBuffer(
        id=place,
        observations=seen,
        actions=done,
        rewards=rewards,
        terminations=[*before, not truncated],
        truncations=[*before, truncated],
        infos={"event": np.array([*events, -1], np.int64)},
    )


def _observation(step: Event) -> Any:
    told = step.metadata.get("observation")
    if told == "vector" and step.vector is not None:
        return np.asarray(step.vector, np.float32)
    return np.array(told, np.float32) if isinstance(told, list) else _state(step.text)


def _last(episode: Episode) -> Any:
    """Return what was seen at the end; where nobody said, what was seen before."""
    told = episode.metadata.get("last")
    if isinstance(told, Mapping) and "state" in told:
        return _state(told["state"])
    if isinstance(told, list):
        return np.array(told, np.float32)
    return _observation(episode.steps[-1]) if told is None else _state(str(told))


def _state(text: str) -> Any:
    """Return the numbers of an exact state, which are kept as a text."""
    try:
        return np.array([int(one) for one in text.split()] or text, np.int64)
    except ValueError:
        return text


def _action(step: Event, actions: Sequence[Any] | None) -> Any:
    done = step.metadata.get("action", step.action)
    done = tuple(done) if isinstance(done, list) else done
    if actions is not None:
        if done not in actions:
            raise InvalidInputError(f"an action is {done!r:.60}: name all of them in actions")
        return list(actions).index(done)
    if isinstance(done, str | int):
        return int(done) if isinstance(done, int) else done
    return np.atleast_1d(np.array(done, np.float32))


def _space(name: str, values: list[Any]) -> Space[Any]:
    """Return the narrowest space of values that are all of one kind."""
    if all(isinstance(one, str) for one in values):
        longest = max(map(len, values))
        return Text(max(longest, 1), min_length=0, charset="".join(sorted({*"".join(values)})))
    if all(isinstance(one, int) for one in values):
        least = min(values)
        return Discrete(max(values) - least + 1, start=least)
    if {type(one) for one in values} != {np.ndarray} or len(
        {(one.shape, one.dtype) for one in values}
    ) != 1:
        raise InvalidInputError(
            f"{name} are of several kinds or lengths: choose one task=, or give actions= by name"
        )
    rows = np.stack(values)
    return Box(rows.min(axis=0), rows.max(axis=0), dtype=rows.dtype.type)
