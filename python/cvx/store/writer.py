"""What may be written, inside a transaction of the record and nowhere else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cvx.types import Decision, Edge, Episode, Event


class Writer:
    """The open end of one transaction; ``Record.transaction`` hands it out.

    It is of no use after the transaction has ended.
    """

    def __init__(self, connection: sqlite3.Connection, recorded: int) -> None:
        self._db = connection
        self.recorded = recorded

    def add_episode(self, episode: Episode, *, recallable: bool = True) -> int:
        """Store a closed episode with its steps.

        Parameters
        ----------
        episode : Episode
            Its ``episode_id`` is kept if it has one.
        recallable : bool, default True
            Whether its steps may advise.

        Returns
        -------
        int
            The episode's id.
        """
        cursor = self._db.execute(
            "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                episode.episode_id,
                episode.entity_id,
                episode.namespace,
                episode.kind,
                episode.goal,
                episode.task_type,
                episode.reward,
                _json(episode.metadata),
                self.recorded,
            ),
        )
        episode_id = int(cursor.lastrowid or 0)
        self.add_events(episode.steps, episode_id=episode_id, recallable=recallable)
        return episode_id

    def add_events(
        self, events: Iterable[Event], *, episode_id: int | None = None, recallable: bool = True
    ) -> None:
        """Store events; those without an ``event_id`` get the next one.

        Parameters
        ----------
        events : iterable of Event
            In any order.
        episode_id : int, optional
            The episode they are steps of; ``None`` keeps each event's own.
        recallable : bool, default True
            Whether they may advise.
        """
        self._db.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    event.event_id,
                    event.timestamp,
                    event.text,
                    None
                    if event.vector is None
                    else np.ascontiguousarray(event.vector, dtype="<f4").tobytes(),
                    event.entity_id,
                    event.node,
                    event.namespace,
                    event.kind,
                    event.action,
                    _json(event.metadata),
                    event.reward,
                    int(recallable),
                    event.episode_id if episode_id is None else episode_id,
                    json.dumps(event.tags, separators=(",", ":")),
                    self.recorded,
                )
                for event in events
            ),
        )

    def add_links(self, edges: Iterable[Edge]) -> None:
        """Store edges; one of the same ends and kind replaces the older one."""
        self._db.executemany(
            "INSERT OR REPLACE INTO links VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (e.from_node, e.to_node, e.kind, e.weight, e.why, e.evidence, self.recorded)
                for e in edges
            ),
        )

    def add_decays(self, decays: Iterable[tuple[int, int, float, float]]) -> None:
        """Store decays as (episode, node, reward before, reward after), and the new rewards."""
        rows = list(decays)
        self._db.executemany(
            "INSERT INTO decays VALUES (?, ?, ?, ?, ?)", ((*row, self.recorded) for row in rows)
        )
        self.set_rewards((node, after) for _, node, _, after in rows)

    def clear_decays(self, nodes: Iterable[int]) -> None:
        """Forget the decays of these nodes; their rewards are set apart from this."""
        self._db.executemany("DELETE FROM decays WHERE node = ?", ((node,) for node in nodes))

    def set_rewards(self, rewards: Iterable[tuple[int, float]]) -> None:
        """Store new rewards as (node, reward)."""
        self._db.executemany(
            "UPDATE events SET reward = ? WHERE node = ?",
            ((reward, node) for node, reward in rewards),
        )

    def set_usage(self, rows: Iterable[tuple[str, int, int, int]]) -> None:
        """Store counts as (context, retrieved, followed, helped), replacing older ones."""
        self._db.executemany("INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?)", rows)

    def add_decisions(self, decisions: Iterable[Decision]) -> None:
        """Store decisions; a hit is kept as node, entity, distance, score and its factors."""
        self._db.executemany(
            "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((*_decision_row(decision), self.recorded) for decision in decisions),
        )

    def set_state(self, name: str, value: Mapping[str, Any]) -> None:
        """Store the state of a model as JSON, replacing the older one."""
        self._db.execute(
            "INSERT OR REPLACE INTO model_state VALUES (?, ?, ?)",
            (name, _json(value), self.recorded),
        )


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False) if value else "{}"


def _decision_row(decision: Decision) -> tuple[object, ...]:
    cue = decision.cue
    asked = {
        "goal": cue.goal,
        "step": cue.step,
        "questions": cue.questions,
        "text": cue.text,
        "task_type": cue.task_type,
        "time": cue.time,
        "place": cue.place,
        "region": decision.region,
    }
    hits = [
        [h.node, h.entity_id, h.distance, h.score, [f[:3] for f in h.factors]]
        for h in decision.hits
    ]
    return (
        decision.decision_id,
        decision.episode_id,
        json.dumps(asked, separators=(",", ":")),
        json.dumps(hits, separators=(",", ":")),
        json.dumps(decision.action_scores, separators=(",", ":")),
        decision.rendered,
        decision.action,
        json.dumps(decision.followed),
        decision.outcome,
    )
