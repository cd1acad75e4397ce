"""The causal memory core: events in one DuckDB file, each with the event that led to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from os import PathLike

import numpy as np

from cvx.causal.core_answers import NO_WORDS, CoreAnswers, pair_of
from cvx.causal.core_event import CoreEvent
from cvx.causal.core_file import CoreFile
from cvx.causal.core_index import CauseSearch, CoreIndex
from cvx.causal.embedding import embed_document, embed_method, embed_question
from cvx.causal.judges import Judge, Judgement, as_judge, judgements
from cvx.causal.narrative import tell_chain
from cvx.causal.vectors import unit
from cvx.errors import InvalidInputError, InvalidParameterError
from cvx.types import Vector

NOTHING_FOUND = "No relevant context found in memory."
_SAME = 1.0 - 1e-6


@dataclass(slots=True)
class _Recording:
    """An event on its way in."""

    embedding: Vector
    timestamp: datetime
    unjudged: list[tuple[int, Judgement]] = field(default_factory=list)


class CausalMemoryCore(CoreAnswers):
    """Remembers events with what led to them, and tells the chain behind an answer.

    Parameters
    ----------
    db_path : str or path
        A DuckDB file, made if it does not exist; ":memory:" for none. Several cores of one process
        may have it open, and see each other's events; of several processes, one.
    llm_client : object, optional
        Who judges causes: a language model's client of any shape (see ``cvx.causal.LLMJudge``), a
        ``Judge`` such as ``RuleJudge()``, or ``None`` for nobody; what nobody judged is kept for
        ``retry_unjudged``.
    embedding_model : object
        ``embed(text)`` or ``encode(text)``, or an embedder of cvx.
    search : CauseSearch, optional
        Which earlier events are looked at as causes.
    floor : float, optional
        ``get_context`` answers nothing where nothing is at least this similar; by default the
        nearest event always answers, as in the blueprint.
    clock : callable, optional
        Returns the time of recording as a ``datetime``; UTC by default.

    Raises
    ------
    CoreLockedError, CoreDamagedError, CoreSchemaError, CoreFileError
        The file cannot be opened.
    InvalidParameterError
        A path that is none; an embedding model that cannot embed; a client that cannot be asked.
        No file is made.
    MissingExtraError
        DuckDB is not installed (extra ``duckdb``).

    Examples
    --------
    >>> from cvx.causal import RuleJudge
    >>> from cvx.embed import LexicalEmbedder
    >>> core = CausalMemoryCore(":memory:", RuleJudge(), LexicalEmbedder())
    >>> core.add_event("The drain was blocked.")
    >>> core.add_event("The cellar flooded because the drain was blocked.")
    >>> core.get_context("Why is there water in the cellar?")
    'The cellar flooded because the drain was blocked. This was because the drain was blocked \
(both speak of block, drain and it says "because").'
    """

    def __init__(
        self,
        db_path: str | PathLike[str],
        llm_client: object = None,
        embedding_model: object = None,
        *,
        search: CauseSearch | None = None,
        floor: float | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        if not isinstance(db_path, (str, PathLike)):
            raise InvalidParameterError(f"db_path is {db_path!r}: give a path, or ':memory:'")
        embed_method(embedding_model)
        self.db_path = str(db_path)
        self.llm = llm_client
        self.embedder = embedding_model
        self.judge: Judge = as_judge(llm_client)
        self.search = search or CauseSearch()
        self.floor = floor
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = threading.RLock()
        self._recording: _Recording | None = None
        self._file = CoreFile(self.db_path)
        self._index = CoreIndex(self._file.events())

    def add_event(self, effect_text: str) -> None:
        """Record something that happened, and what led to it.

        The most similar and most recent events are judged in turn; the first that is confirmed
        becomes its cause. Where none is, it is the root of a chain.

        Parameters
        ----------
        effect_text : str
            A statement of fact.

        Raises
        ------
        InvalidInputError
            An empty text; nothing is stored.
        InvalidVectorError, DimensionError
            The embedder gave no vector, or one of another dimension; nothing is stored.
        """
        if not isinstance(effect_text, str) or not effect_text.strip():
            raise InvalidInputError(f"the event is {effect_text!r}: say what happened")
        embedding = embed_document(self.embedder, effect_text)
        with self._lock:
            self._recording = _Recording(embedding, self._now())
            try:
                for cause in self._find_potential_causes(embedding):
                    if cause.effect_text.strip() == effect_text.strip():
                        continue
                    relationship = self._judge_causality(cause, effect_text)
                    if relationship:
                        self._insert_event(effect_text, embedding, cause.event_id, relationship)
                        break
                else:
                    self._insert_event(effect_text, embedding, None, None)
            finally:
                self._recording = None

    def get_context(self, query: str) -> str:
        """Return the chain that led to the event nearest to a question, told as a story.

        Returns
        -------
        str
            "No relevant context found in memory." where there is none.

        Raises
        ------
        InvalidInputError
            An empty question.
        """
        if not isinstance(query, str) or not query.strip():
            raise InvalidInputError(f"the query is {query!r}: ask something")
        with self._lock:
            event = self._find_most_relevant_event(embed_question(self.embedder, query))
            if event is None:
                return NOTHING_FOUND
            return self._format_chain_as_narrative(self.chain(event.event_id))

    def _find_potential_causes(self, effect_embedding: Sequence[float] | Vector) -> list[CoreEvent]:
        """The most similar and the most recent events in turn, exact repetitions left out."""
        search, embedding = self.search, np.asarray(effect_embedding, dtype=np.float32)
        index = self._level()
        index.check(embedding)
        similar = index.similar(embedding, search.most + 1, search.threshold)
        since = self._now() - timedelta(seconds=search.window_s)
        recent = index.latest(search.latest, since)
        direction = unit(embedding)
        mixed: dict[int, CoreEvent] = {}
        turns = (event for turn in zip_longest(similar, recent) for event in turn)
        for event in turns:
            if len(mixed) == search.most:
                break
            # What lies in the very same place says the same again.
            if event is not None and float(unit(event.embedding) @ direction) < _SAME:
                mixed.setdefault(event.event_id, event)
        return list(mixed.values())

    def _judge_causality(self, cause_event: CoreEvent, effect_text: str) -> str | None:
        """How the one led to the other, or None: not at all, or nobody knows."""
        recording = self._recording
        effect = CoreEvent(
            0,
            self._now() if recording is None else recording.timestamp,
            effect_text,
            embed_document(self.embedder, effect_text)
            if recording is None
            else recording.embedding,
        )
        (made,) = judgements(self.judge, [pair_of(cause_event, effect)])
        if recording is not None and made.verdict == "unjudged":
            recording.unjudged.append((cause_event.event_id, made))
        if not made.confirmed:
            return None
        likely = "" if made.probability is None else f"judged {made.probability:.0%} likely"
        return made.why or likely or NO_WORDS

    def _find_most_relevant_event(
        self, query_embedding: Sequence[float] | Vector
    ) -> CoreEvent | None:
        floor = -1.0 if self.floor is None else self.floor
        found = self._level().similar(np.asarray(query_embedding, dtype=np.float32), 1, floor)
        return self._get_event_by_id(found[0].event_id) if found else None

    def _insert_event(
        self,
        effect: str,
        embedding: Sequence[float] | Vector,
        cause_id: int | None,
        relationship: str | None,
    ) -> None:
        vector = np.asarray(embedding, dtype=np.float32)
        recording = self._recording or _Recording(vector, self._now())
        # A single row is a transaction of its own, and costs a third less than one around it.
        with self._file.transaction() if recording.unjudged else nullcontext():
            number = self._file.insert(recording.timestamp, effect, vector, cause_id, relationship)
            self._file.insert_judgements(recording.timestamp, number, recording.unjudged)
        event = CoreEvent(number, recording.timestamp, effect, vector, cause_id, relationship)
        self._index.add([event])

    def _get_event_by_id(self, event_id: int) -> CoreEvent | None:
        return self._file.event(event_id)

    def _format_chain_as_narrative(self, chain: Sequence[CoreEvent]) -> str:
        """Tell a chain that is given from its root on."""
        hows = [event.relationship_text or "" for event in chain[1:]]
        return tell_chain([event.effect_text for event in chain], hows)
