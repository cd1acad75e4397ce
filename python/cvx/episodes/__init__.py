"""Recording what an agent does, and looking at it as frames."""

from cvx.episodes.chunks import chunk_text
from cvx.episodes.frames import episodes_frame, steps_frame
from cvx.episodes.handle import OpenEpisode, an_open_episode
from cvx.episodes.recorder import EpisodeRecorder
from cvx.validation import check_reward

__all__ = [
    "EpisodeRecorder",
    "OpenEpisode",
    "an_open_episode",
    "check_reward",
    "chunk_text",
    "episodes_frame",
    "steps_frame",
]
