"""Blocks of recalled memory for a prompt, and what became of them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cvx.arguments import checked, optional, whole
from cvx.errors import InvalidParameterError, StaleCueWarning
from cvx.memory.recalling import RECALL, Outcome, Recalling, Sources, asker_of, plan_of
from cvx.recall import Floor, Pipeline
from cvx.recall.block import Block
from cvx.recall.recalled import Recalled, hits_of, recall_once
from cvx.recall.sampling import drawn_from
from cvx.recall.serving import Served
from cvx.recall.trace import Hits
from cvx.types import DEFAULT_NAMESPACE, Cue, Decision, Filter, Hit


class Contexts(Recalling):
    """Recall for a prompt, written down so that it can be judged by what came of it."""

    @checked(**RECALL, budget_tokens=optional(whole(0)))
    def context(
        self,
        cue: str | Cue,
        budget_tokens: int | None = None,
        *,
        k: int = 10,
        namespace: str = DEFAULT_NAMESPACE,
        also: Sequence[str] = (),
        where: Filter | None = None,
        outcome: Outcome = "success",
        sources: Sources | None = None,
        floor: float | Floor | None = None,
        pipeline: Pipeline | None = None,
    ) -> Block:
        """Recall for a prompt: at most k memories, each said once, as one block within a budget.

        Parameters
        ----------
        cue : str or Cue
            What the agent is after right now; its ``place`` is the number of the turn.
        budget_tokens : int, optional
            Room in the prompt, at least 0; default that of the pipeline (512).
        k : int, default 10
            How many memories at the most, at least 1.
        namespace, also, where, outcome, sources, floor, pipeline
            As for ``recall``. The pipeline's ``serving`` says what a duplicate is, how tokens are
            counted, what does the compacting, and when a memory counts as used.

        Returns
        -------
        Block
            ``text`` for a prompt, the ``hits`` it shows, the ``trace`` and the ``decision``.

        Raises
        ------
        InvalidKError, InvalidParameterError, InvalidFilterError
            A parameter outside its bounds.

        Warns
        -----
        StaleCueWarning
            The same cue was asked at the last turns too: build it anew from the agent's state.
        """
        plan = plan_of(pipeline or self.pipeline, sources, floor)
        if budget_tokens is not None:
            budget = replace(plan.serving.budget, tokens=budget_tokens)
            plan = replace(plan, serving=replace(plan.serving, budget=budget))
        asker = asker_of(namespace, also, where, outcome)
        asked = self.record.tail().seq
        most = plan.serving.head(k)
        recalled, hits = recall_once(
            self._ground(),
            plan,
            asker,
            cue,
            k,
            lambda found: hits_of(found, found.ranking.order[:most].tolist()),
        )
        trace = recalled.trace
        self._notice_staleness(namespace, recalled, plan.serving.stale_after)
        number = self.record.take_decision_number()
        served = plan.serving.serve(hits, k, recalled.cue.words(), trace, number)
        told = (hit.event for hit in served.hits if hit.event is not None)
        self._remember_handing_out(namespace, told, served.fitted.text)
        decision = self._note(number, asked, namespace, recalled, served, plan.serving.refresh)
        return Block(served.fitted.text, served.fitted.tokens, tuple(served.shown), trace, decision)

    async def acontext(self, cue: str | Cue, *args: Any, **options: Any) -> Block:
        """Do what ``context`` does in a thread, without blocking the event loop."""
        return await asyncio.to_thread(self.context, cue, *args, **options)

    async def arecall(self, cue: str | Cue, *args: Any, **options: Any) -> Hits:
        """Do what ``recall`` does in a thread, without blocking the event loop."""
        return await asyncio.to_thread(self.recall, cue, *args, **options)

    def _notice_staleness(self, namespace: str, recalled: Recalled, stale_after: int) -> None:
        trace = recalled.trace
        if trace.turn is None:
            return
        asked, turn, times = self._asked.get(namespace, ("", -1, 0))
        if asked != trace.cue_hash:
            times = 1
        elif trace.turn != turn:
            times += 1
        self._asked[namespace] = (trace.cue_hash, trace.turn, times)
        if times >= stale_after:
            said = f"the same cue for {times} turns: build it anew from the agent's state"
            trace.problems.append(said)
            warnings.warn(said, StaleCueWarning, stacklevel=4)

    def _note(
        self,
        number: int,
        asked: int,
        namespace: str,
        recalled: Recalled,
        served: Served,
        refresh: str,
    ) -> Decision | None:
        if self.record.frozen:
            return None
        trace, view = recalled.trace, recalled.view
        decision = Decision(
            number,
            recalled.cue,
            tuple(served.shown),
            rendered=served.fitted.text,
            propensities=served.chances[: len(served.shown)] or None,
            drawn_from=drawn_from(served.pool, served.hits, served.chances)
            if served.pool
            else None,
        )
        used = {"rendered": served.shown, "retrieved": served.hits}.get(refresh, [])
        noted: dict[str, Any] = {
            "cue_hash": trace.cue_hash,
            "turn": trace.turn,
            "namespace": namespace,
            "now": view.now,
            "refresh": refresh,
            "retrieved": _events(served.hits),
            "shown": _events(served.shown),
            "candidates": trace.candidates,
            "below_floor": trace.below_floor,
            "merged": trace.merged,
            "beyond_k": trace.beyond_k,
            "tokens": trace.tokens,
        }
        # Not the text that was shown: what is erased must be gone here too.
        with self.record.mutex:
            self._noted.use(_events(used), view.now)
            self._noted.decide(replace(decision, rendered=""), noted, asked)
        return decision


def event_of(hit: Hit) -> int:
    """Return the id of the event of a hit.

    Raises
    ------
    InvalidParameterError
        The hit does not know its event.
    """
    if hit.event is None or hit.event.event_id is None:
        raise InvalidParameterError(f"the hit of node {hit.node} has no event: give its id")
    return hit.event.event_id


def _events(hits: Iterable[Hit]) -> list[int]:
    return [event_of(hit) for hit in hits]
