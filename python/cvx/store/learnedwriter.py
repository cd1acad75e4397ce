"""What outcomes write: decays, counts of use, decisions, models.

These rows are replaced, so the journal keeps what they were: a view of the past has them back.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cvx.errors import UnknownError
from cvx.store.journalling import Journalling
from cvx.store.learned import event_context
from cvx.store.packing import decision_row, json_of
from cvx.store.rows import AMONG, COLUMNS, listed
from cvx.types import Decision


class LearnedWriter(Journalling, ABC):
    """The half of a writer that learning uses."""

    @abstractmethod
    def set_rewards(self, rewards: Iterable[tuple[int, float | None]]) -> None:
        """Store new rewards as (node, reward)."""

    def add_decays(self, decays: Iterable[tuple[int, int, float, float]]) -> None:
        """Store decays as (episode, node, reward before, reward after), and the new rewards."""
        listed = [(game, node, float(a), float(b)) for game, node, a, b in decays]
        self._put("decays", ((*row, self.recorded) for row in listed))
        self.set_rewards((node, after) for _, node, _, after in listed)

    def clear_decays(self, nodes: Iterable[int]) -> None:
        """Forget the decays of these nodes; their rewards are set apart from this."""
        for node in nodes:
            self._remove("decays", "node = ?", (node,))

    def undo_decays(self, events: Sequence[int]) -> None:
        """Take back what failed episodes cost that have these events as steps.

        What decayed in other episodes too keeps its share of that. A reward that was set since
        stays what it is.
        """
        chosen = f"(SELECT episode FROM events WHERE event_id {AMONG})"
        found = self._db.execute(
            f"SELECT DISTINCT node FROM decays WHERE episode IN {chosen}", (listed(events),)
        ).fetchall()
        for (node,) in found:
            rows = self._db.execute(
                f"SELECT episode, before, after, episode IN {chosen} FROM decays WHERE node = ?2"
                " ORDER BY recorded, episode",
                (listed(events), node),
            ).fetchall()
            reward = self._db.execute(
                "SELECT reward FROM events WHERE node = ?", (node,)
            ).fetchone()
            untouched = reward is not None and reward[0] == rows[-1][2]
            value, kept = rows[0][1], []
            for episode, before, after, undone in rows:
                if not undone:
                    kept.append((episode, node, value, value * after / before if before else 0.0))
                    value = kept[-1][3]
            self._remove("decays", "node = ?", (node,))
            self._put("decays", ((*row, self.recorded) for row in kept))
            if untouched:
                self.set_rewards([(node, value)])

    def set_usage(self, counts: Iterable[tuple[str, float, float, float]]) -> None:
        """Store counts as (context, retrieved, followed, helped), replacing older ones.

        Whole numbers are given as integers: the table turns them into such.
        """
        self._overwrite("usage", [(*row, self._last_used(row[0])) for row in counts])

    def add_usage(self, counts: Mapping[str, int]) -> None:
        """Add to how often contexts were retrieved."""
        new = []
        for context, more in counts.items():
            _, retrieved, followed, helped, last = self._usage(context)
            new.append((context, retrieved + more, followed, helped, last))
        self._overwrite("usage", new)

    def touch(self, events: Mapping[int, int]) -> None:
        """Note when events were used last, in the unit of their timestamps; the later one stays."""
        new = []
        for event, time in events.items():
            *counts, last = self._usage(event_context(event))
            new.append((*counts, time if last is None else max(time, last)))
        self._overwrite("usage", new)

    def count_use(self, contexts: Mapping[str, bool]) -> None:
        """Add one to how often contexts were followed, and to helped where that is true."""
        new = []
        for context, paid in contexts.items():
            _, retrieved, followed, helped, last = self._usage(context)
            new.append((context, retrieved, followed + 1, helped + paid, last))
        self._overwrite("usage", new)

    def _usage(self, context: str) -> tuple[Any, ...]:
        return self._row("usage", (context,)) or (context, 0, 0, 0, None)

    def _last_used(self, context: str) -> int | None:
        last: int | None = self._usage(context)[-1]
        return last

    def add_decisions(self, decisions: Iterable[tuple[Decision, Mapping[str, Any]]]) -> None:
        """Store decisions that are new, each with what else is to be noted of it.

        A hit is kept as node, entity, distance, score and its factors.
        """
        listed = [decision_row(decision, self.recorded, record) for decision, record in decisions]
        self._put("decisions", listed)
        self.next_decision = max(self.next_decision, *(int(row[0]) + 1 for row in listed), 0)

    def set_decision(self, decision: Decision, record: Mapping[str, Any] | None = None) -> None:
        """Store one decision, in the place of what is known of it, if anything is.

        Parameters
        ----------
        decision : Decision
            With its number.
        record : mapping, optional
            What else is to be noted; anything JSON can hold. Propensities of the decision are
            noted by themselves, as "propensities".
        """
        self._overwrite("decisions", [decision_row(decision, self.recorded, record or {})])
        self.next_decision = max(self.next_decision, decision.decision_id + 1)

    def take_feedback(
        self,
        decision_id: int,
        record: Mapping[str, Any],
        *,
        action: str | None,
        outcome: float | None,
        followed: Sequence[int],
    ) -> None:
        """Note what became of a decision that is stored already.

        Parameters
        ----------
        decision_id : int
            Its number.
        record : mapping
            Replaces what was noted of it.
        action, outcome
            As for ``Decision``.
        followed : sequence of int
            Nodes.
        """
        old = self._row("decisions", (decision_id,))
        if old is None:
            raise UnknownError(f"there is no decision {decision_id}: write it first")
        row = dict(zip(COLUMNS["decisions"], old, strict=True))
        row["followed"], row["record"] = json.dumps(list(followed)), json_of(record)
        row["action"], row["outcome"] = action, outcome
        self._overwrite("decisions", [tuple(row.values())])

    def set_state(self, name: str, value: Mapping[str, Any]) -> None:
        """Store the state of a model as JSON, replacing the older one."""
        self._overwrite("model_state", [(name, json_of(value), self.recorded)])
