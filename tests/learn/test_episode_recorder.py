"""Episodes: steps in order, one outcome."""

import numpy as np
import pytest

from cvx.errors import (
    EpisodeEndedError,
    InvalidInputError,
)
from cvx.learn.episode_recorder import EpisodeRecorder, OpenEpisode


def closed(recorder: EpisodeRecorder, run: OpenEpisode, reward: float) -> None:
    recorder.seal(run, recorder.outcome(run, reward))


def played(recorder: EpisodeRecorder, reward: float = 1.0) -> None:
    run = recorder.begin("cool the apple", "cool", metadata={"game": 7})
    recorder.step(run, "a fridge", action="open fridge 1", vector=np.ones(2, np.float32))
    recorder.step(run, "an open fridge", action="cool apple 1 with fridge 1")
    closed(recorder, run, reward)


def test_an_episode_is_what_was_recorded() -> None:
    recorder = EpisodeRecorder()
    played(recorder, 0.5)
    (episode,) = recorder.log
    assert (episode.goal, episode.task_type, episode.reward) == ("cool the apple", "cool", 0.5)
    assert episode.actions == ("open fridge 1", "cool apple 1 with fridge 1")
    assert episode.metadata == {"game": 7}


def test_the_outcome_reaches_every_step() -> None:
    recorder = EpisodeRecorder()
    played(recorder, 0.25)
    assert [step.reward for step in recorder.log[0].steps] == [0.25, 0.25]


def test_each_episode_is_an_entity_of_its_own_and_time_goes_on() -> None:
    recorder = EpisodeRecorder()
    played(recorder)
    played(recorder)
    assert [e.entity_id for e in recorder.log] == [0, 1]
    assert [s.timestamp for e in recorder.log for s in e.steps] == [0, 1, 2, 3]


def test_a_given_entity_is_kept_and_the_next_one_lies_above_it() -> None:
    recorder = EpisodeRecorder()
    assert recorder.begin(entity_id=10).entity_id == 10
    assert recorder.begin().entity_id == 11


def test_an_episode_closed_twice_is_an_error() -> None:
    recorder = EpisodeRecorder()
    run = recorder.begin()
    closed(recorder, run, 1.0)
    with pytest.raises(EpisodeEndedError, match="closed already"):
        closed(recorder, run, 1.0)
    assert len(recorder.log) == 1


def test_a_step_after_the_end_is_an_error() -> None:
    recorder = EpisodeRecorder()
    run = recorder.begin()
    closed(recorder, run, 0.0)
    with pytest.raises(EpisodeEndedError, match="begin another"):
        recorder.step(run, "too late")


@pytest.mark.parametrize("reward", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_reward_outside_its_range_is_an_error_and_the_episode_stays_open(reward: float) -> None:
    recorder = EpisodeRecorder()
    run = recorder.begin()
    with pytest.raises(InvalidInputError, match=r"in \[0, 1\]"):
        closed(recorder, run, reward)
    assert not run.closed
    closed(recorder, run, 1.0)


def test_a_step_back_in_time_is_an_error() -> None:
    recorder = EpisodeRecorder()
    run = recorder.begin()
    recorder.step(run, timestamp=5)
    with pytest.raises(InvalidInputError, match="at 4 comes before the last one at 5"):
        recorder.step(run, timestamp=4)


def test_tags_are_kept_and_a_single_string_is_refused() -> None:
    recorder = EpisodeRecorder()
    run = recorder.begin()
    assert recorder.step(run, tags=["plan", "kitchen"]).tags == ("plan", "kitchen")
    with pytest.raises(InvalidInputError, match="'plan'"):
        recorder.step(run, tags="plan")
