"""The reading half: from a cue to a decision, and from a decision to text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from cvx.active.advice import Distinct, advise, locate
from cvx.active.erased import without
from cvx.active.parts import Default, Parts
from cvx.active.render import render_decision
from cvx.errors import InvalidParameterError
from cvx.learn.episodes import OpenEpisode
from cvx.recall.cue import checked_cue
from cvx.recall.sampling import drawn_from
from cvx.recall.tokens import CountTokens, estimate_tokens
from cvx.store.spaces import narrowed, visible_spaces
from cvx.types import Cue, Decision, Filter, Hit


class Recall(Parts):
    """What asks the memory and changes nothing in it."""

    def recall(
        self,
        cue: Cue,
        where: Filter | None = None,
        k: int | None = None,
        *,
        distinct: Distinct | Default | None = "default",
        episode: OpenEpisode | None = None,
        outcome: Literal["success", "failure"] = "success",
    ) -> Decision:
        """Find what was done in moments like this one, best first.

        Parameters
        ----------
        cue : Cue
            Its vector, or else its words, say where to look.
        where : Filter, optional
            What may come back; ``recallable`` is set by ``outcome``. The namespace of the episode
            asks (the loop's own, outside of one): its own, what ``also`` shares and what is public
            can come back, and namespaces of the filter narrow that.
        k : int, optional
            How many hits; default that of the memory.
        distinct : {"episode", "entity", None}, optional
            Keep only the best hit of each episode, of each entity, or all; default that of the
            memory.
        episode : OpenEpisode, optional
            The one it is for; default the one begun last.
        outcome : {"success", "failure"}, default "success"
            What may advise, or the failed episodes that must not; their events are of kind
            "failed_step".

        Returns
        -------
        Decision
            ``hits`` with the continuation of each as ``successors``; ``action_scores``; ``cue``
            with its vector.

        Raises
        ------
        EpisodeClosedError, ForeignEpisodeError
            The episode is over, or another memory's.
        InvalidParameterError
            A cue that is no Cue or has a part of another type, a filter that is no Filter, k
            below 1, another outcome, another ``distinct``.
        DimensionError, NonFiniteVectorError, ZeroVectorError
            A vector that cannot be compared.
        """
        checked_cue(cue)
        if not (where is None or isinstance(where, Filter)):
            raise InvalidParameterError(f"where is {where!r}: give a cvx.Filter or None")
        if k is not None and k < 1:
            raise InvalidParameterError(f"k is {k}: give at least 1")
        if outcome not in ("success", "failure"):
            raise InvalidParameterError(f"outcome is {outcome!r}: give 'success' or 'failure'")
        self.notice()
        run = self._current if episode is None else self._running(episode)
        if run is not None and run.closed:
            run = None
        cue = locate(self, cue, run)
        asker = self.namespace if run is None else run.namespace
        where = where or Filter()
        where = where._replace(
            recallable=outcome == "success", namespaces=self._readable(asker, where)
        )
        if distinct == "default":
            distinct = self.distinct
        elif distinct not in ("episode", "entity", None):
            raise InvalidParameterError(
                f"distinct is {distinct!r}: give 'episode', 'entity' or None"
            )
        number, k = self.record.take_decision_number(), k or self.k
        self._asked = number
        most = k if self.order is None else k * self.pool
        found = advise(self, cue, where, most, asker=asker, distinct=distinct, run=run)
        hits, chances, drawn = found.hits, None, None
        if self.order is not None:
            hits, chances = self.order.draw(found.hits, k, number)
            drawn = drawn_from(found.hits, hits, chances)
        return Decision(
            number,
            cue,
            tuple(hits),
            tuple(found.action_scores),
            None if run is None else run.episode_id,
            found.region,
            propensities=chances,
            namespace=asker,
            drawn_from=drawn,
        )

    def _readable(self, asker: str, where: Filter) -> list[str]:
        spaces = visible_spaces(asker, self.also, self.record.public_namespaces())
        return spaces if where.namespaces is None else narrowed(spaces, where.namespaces)

    def render(
        self,
        decision: Decision,
        *,
        limit: int = 12,
        budget_tokens: int | None = None,
        count: CountTokens = estimate_tokens,
    ) -> str:
        """Return a decision as text for an agent that reads: evidence, never an order.

        Parameters
        ----------
        decision : Decision
            From ``recall``.
        limit : int, default 12
            Actions a chain at the most.
        budget_tokens : int, optional
            Tokens at the most, of which nothing is fit at 0; by default as many as it takes.
        count : callable, default estimate_tokens
            From a text to tokens.

        Raises
        ------
        InvalidParameterError
            A limit below 2, or a budget below 0.
        """
        if limit < 2 or (budget_tokens is not None and budget_tokens < 0):
            raise InvalidParameterError(
                f"limit {limit}, budget_tokens {budget_tokens}: give at least 2 actions, and a "
                "budget of at least 0"
            )
        self.notice()
        strategy: Sequence[str] = ()
        region, mdp = decision.region, self.mdp_of(decision.namespace)
        # A decision may be older than the regions in force.
        if mdp is not None and region is not None and mdp.knows(region):
            strategy = mdp.strategy_for(region, decision.cue.task_type)
        told = self._still_told(decision)
        text = render_decision(
            told,
            strategy,
            self._label,
            limit=limit,
            budget_tokens=budget_tokens,
            count=count,
        )
        if text and self.on_render is not None:
            self.on_render(decision.namespace, text, [hit.node for hit in told.hits])
        return text

    def _still_told(self, decision: Decision) -> Decision:
        """Return a decision without what was put away or erased after it was made."""
        if decision.decision_id > self._outdated:
            return decision
        away, region, mdp = self.history.away, decision.region, self.mdp_of(decision.namespace)
        known: dict[str, float] = {}
        if mdp is not None and region is not None and mdp.knows(region):
            known = dict(mdp.best_action(region, decision.cue.task_type))
        scores = [(kind, known[kind]) for kind, _ in decision.action_scores if kind in known]
        return replace(
            without(decision, away.__contains__),
            action_scores=tuple(sorted(scores, key=lambda pair: (-pair[1], pair[0]))),
        )

    def _label(self, hit: Hit) -> str:
        episode = self.episode_of(hit)
        if episode is None:
            return "event"
        won = episode.reward is not None and episode.reward > self.success_above
        family = f" ({episode.task_type})" if episode.task_type else ""
        doubt = ""
        if hit.event is not None and hit.event.trust < 1.0:
            source = f" in {hit.event.source}" if hit.event.source else ""
            doubt = f", trust {hit.event.trust:.2f}{source}"
        return f"{episode.kind} that {'succeeded' if won else 'failed'}{family}{doubt}"
