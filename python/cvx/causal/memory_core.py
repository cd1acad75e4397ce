"""The causal memory core: events in one DuckDB file, each with the event that led to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from os import PathLike
from typing import Any, Self

import numpy as np

from cvx.causal.cosine import as_vector, unit
from cvx.causal.judges import Judge, Judgement, Pair, as_judge, judgements
from cvx.causal.linker import CauseSearch
from cvx.causal.memory_core_duckdb import CoreEvent, CoreFile
from cvx.causal.narrative import tell_chain
from cvx.causal.walk import walk
from cvx.embed import Embedder, embed_query
from cvx.errors import InvalidInputError, InvalidVectorError
from cvx.index import RawIndex
from cvx.types import Edge, EventId, Vector


class CoreIndex:
    """What a core's events say and where they lie, in RAM; made of the file at every opening."""

    def __init__(self) -> None:
        self._index: RawIndex | None = None
        self._rows: list[tuple[int, datetime, str]] = []

    def follow(self, file: CoreFile) -> None:
        """Take in what the file has beside this; no other process writes it, other cores may."""
        if file.count() == len(self._rows):
            return
        ids, known = set(file.ids()), {row[0] for row in self._rows}
        if not known <= ids:
            self._index, self._rows, known = None, [], set()
        self.add(file.events(sorted(ids - known) if known else None))

    def add(self, events: Sequence[CoreEvent]) -> None:
        """Take in events."""
        if not events:
            return
        if self._index is None:
            self._index = RawIndex(len(events[0].embedding))
        # A vector of zeros has no direction: nothing is similar to it.
        rows: list[Any] = [e.embedding if e.embedding.any() else None for e in events]
        whole = all(row is not None for row in rows)
        places = np.arange(len(self._rows), len(self._rows) + len(events))
        self._index.bulk_insert(
            np.zeros(len(events), dtype=np.int64), places, np.stack(rows) if whole else rows
        )
        self._rows += [(event.event_id, event.timestamp, event.effect_text) for event in events]

    def similar(self, embedding: Vector, most: int, threshold: float) -> list[CoreEvent]:
        """Return events at least so similar, the most similar first; their causes are left out.

        Raises
        ------
        InvalidVectorError
            Another dimension than that of the vectors before.
        """
        if self._index is None:
            return []
        if len(embedding) != self._index.dim:
            raise InvalidVectorError(
                f"the vector has {len(embedding)} dimensions, those of the file "
                f"{self._index.dim}: give the embedding model that it was made with"
            )
        if not embedding.any():
            return []
        nodes, distances = self._index.search(embedding, most)
        return [
            self._event(node)
            for node, distance in zip(nodes.tolist(), distances.tolist(), strict=True)
            if 1.0 - distance >= threshold
        ]

    def latest(self, most: int, since: datetime | None) -> Iterator[CoreEvent]:
        """Yield the events recorded last, the last one first; their causes are left out."""
        last = len(self._rows)
        for node in range(last - 1, max(last - most, 0) - 1, -1):
            if since is None or self._rows[node][1] >= since:
                yield self._event(node)

    def _event(self, node: int) -> CoreEvent:
        assert self._index is not None
        vector = self._index.vector(node)
        return CoreEvent(
            *self._rows[node], np.zeros(self._index.dim, np.float32) if vector is None else vector
        )


NOTHING_FOUND = "No relevant context found in memory."
NO_WORDS = "the one led to the other"
_SAME = 1.0 - 1e-6
_NO_END = 2**31
_SEARCH = CauseSearch(threshold=0.5, window=86_400_000_000)


class CausalMemoryCore:
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
        Which earlier events are looked at as causes; by default five, of those at least .5 alike
        and the latest 50 of the last 24 hours.
    floor : float, optional
        ``get_context`` answers nothing where nothing is at least this similar; by default the
        nearest event always answers, as in the blueprint.
    clock : callable, optional
        Returns the time of recording as a ``datetime``; UTC by default.

    Raises
    ------
    StoreError, DamagedStoreError
        The file cannot be opened.
    InvalidInputError
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
            raise InvalidInputError(f"db_path is {db_path!r}: give a path, or ':memory:'")
        embed_method(embedding_model)
        self.db_path = str(db_path)
        self.llm = llm_client
        self.embedder = embedding_model
        self.judge: Judge = as_judge(llm_client)
        self.search = search or _SEARCH
        self.floor = floor
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = threading.RLock()
        self._recording: CoreEvent | None = None
        self._unjudged: list[tuple[int, Judgement]] = []
        self._file = CoreFile(self.db_path)
        self._index = CoreIndex()
        self._index.follow(self._file)

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
        InvalidVectorError
            The embedder gave no vector, or one of another dimension; nothing is stored.
        """
        if not isinstance(effect_text, str) or not effect_text.strip():
            raise InvalidInputError(f"the event is {effect_text!r}: say what happened")
        embedding = embed_document(self.embedder, effect_text)
        with self._lock:
            self._recording = CoreEvent(0, self._now(), effect_text, embedding)
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
                self._recording, self._unjudged = None, []

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

    def __len__(self) -> int:
        with self._lock:
            return self._file.count()

    def chain(self, event_id: int) -> list[CoreEvent]:
        """Return an event's causes from the root on, the event itself last; [] if there is none.

        A cause that is missing, or was passed already, ends the walk.
        """
        with self._lock:
            found = self._reached(event_id, _NO_END, backward=True)
            return [*reversed(found), *self._there([event_id])]

    def consequences(self, event_id: int, max_depth: int = 2) -> list[CoreEvent]:
        """Return what came of an event, nearest first.

        Raises
        ------
        InvalidInputError
            max_depth below 1.
        """
        with self._lock:
            return self._reached(event_id, max_depth, backward=False)

    def retry_unjudged(self, judge: object = None) -> int:
        """Ask again about every pair that nobody could judge, and return how many are confirmed.

        An event that has a cause by now is not asked about; events themselves are never changed.

        Parameters
        ----------
        judge : object, optional
            Who is asked, as ``llm_client``; by default the same as for events.
        """
        asked = self.judge if judge is None else as_judge(judge)
        confirmed = 0
        with self._lock:
            for cause_id, effect_id in self._file.unjudged():
                cause, effect = self._file.event(cause_id), self._file.event(effect_id)
                if cause is None or effect is None or effect.cause_id is not None:
                    continue
                (made,) = judgements(asked, [pair_of(cause, effect)])
                if made.verdict == "unjudged":
                    continue
                if made.confirmed and not made.why:
                    made = Judgement("yes", made.probability, NO_WORDS)
                with self._file.transaction():
                    self._file.insert_judgements(self._now(), effect_id, [(cause_id, made)])
                confirmed += made.confirmed
        return confirmed

    def unjudged(self) -> list[tuple[int, int]]:
        """Return the pairs of cause and effect that nobody could judge, oldest first."""
        with self._lock:
            return self._file.unjudged()

    def events(self) -> list[CoreEvent]:
        """Return every event, in the order of writing."""
        with self._lock:
            return self._file.events()

    def close(self) -> None:
        """Close the file. Closing it again does nothing."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _find_potential_causes(self, effect_embedding: Sequence[float] | Vector) -> list[CoreEvent]:
        """The most similar and the most recent events in turn, exact repetitions left out."""
        search, embedding = self.search, np.asarray(effect_embedding, dtype=np.float32)
        self._index.follow(self._file)
        similar = self._index.similar(embedding, search.most + 1, search.threshold)
        window = search.window
        since = None if window is None else self._now() - timedelta(microseconds=window)
        recent = self._index.latest(search.latest, since)
        direction = unit(embedding)
        mixed: dict[int, CoreEvent] = {}
        turns = zip_longest(similar, recent)
        for event in (one for turn in turns for one in turn if one is not None):
            if len(mixed) == search.most:
                break
            # What lies in the very same place says the same again.
            if float(unit(event.embedding) @ direction) < _SAME:
                mixed.setdefault(event.event_id, event)
        return list(mixed.values())

    def _judge_causality(self, cause_event: CoreEvent, effect_text: str) -> str | None:
        """How the one led to the other, or None: not at all, or nobody knows."""
        effect = self._recording
        if effect is None:
            vector = embed_document(self.embedder, effect_text)
            effect = CoreEvent(0, self._now(), effect_text, vector)
        (made,) = judgements(self.judge, [pair_of(cause_event, effect)])
        if made.verdict == "unjudged" and effect is self._recording:
            self._unjudged.append((cause_event.event_id, made))
        if not made.confirmed:
            return None
        likely = "" if made.probability is None else f"judged {made.probability:.0%} likely"
        return made.why or likely or NO_WORDS

    def _find_most_relevant_event(
        self, query_embedding: Sequence[float] | Vector
    ) -> CoreEvent | None:
        floor = -1.0 if self.floor is None else self.floor
        self._index.follow(self._file)
        found = self._index.similar(np.asarray(query_embedding, dtype=np.float32), 1, floor)
        return self._get_event_by_id(found[0].event_id) if found else None

    def _insert_event(
        self,
        effect: str,
        embedding: Sequence[float] | Vector,
        cause_id: int | None,
        relationship: str | None,
    ) -> None:
        vector = np.asarray(embedding, dtype=np.float32)
        when = self._now() if self._recording is None else self._recording.timestamp
        # A single row is a transaction of its own, and costs a third less than one around it.
        with self._file.transaction():
            number = self._file.insert(when, effect, vector, cause_id, relationship)
            self._file.insert_judgements(when, number, self._unjudged)
        self._index.add([CoreEvent(number, when, effect, vector, cause_id, relationship)])

    def _get_event_by_id(self, event_id: int) -> CoreEvent | None:
        return self._file.event(event_id)

    def _format_chain_as_narrative(self, chain: Sequence[CoreEvent]) -> str:
        """Tell a chain that is given from its root on."""
        hows = [event.relationship_text or "" for event in chain[1:]]
        return tell_chain([event.effect_text for event in chain], hows)

    def _reached(self, event_id: int, max_depth: int, *, backward: bool) -> list[CoreEvent]:
        """What a walk over the primary causes finds, nearest first."""
        seen: dict[EventId, CoreEvent] = {}

        def links_of(layer: Sequence[EventId]) -> list[Edge]:
            ids = [int(one) for one in layer]
            found = self._there(ids) if backward else self._file.effects_of(ids)
            seen.update({event.event_id: event for event in found})
            return [
                Edge(event.cause_id, event.event_id, why=event.relationship_text or "")
                for event in found
                if event.cause_id not in (None, event.event_id)
            ]

        found = walk(event_id, links_of, max_depth, max_nodes=_NO_END, backward=backward).found
        return [seen[one.id] for one in found if one.id in seen]

    def _there(self, ids: Sequence[int]) -> list[CoreEvent]:
        return [event for event in map(self._file.event, ids) if event is not None]

    def _now(self) -> datetime:
        now = self._clock()
        return now if now.tzinfo is None else now.astimezone(UTC).replace(tzinfo=None)


def pair_of(cause: CoreEvent, effect: CoreEvent) -> Pair:
    """Return two events as a judge sees them."""
    lag = round((effect.timestamp - cause.timestamp).total_seconds() * 1e6)
    return Pair(cause.effect_text, effect.effect_text, cause.embedding, effect.embedding, lag)


def embed_method(model: object) -> Callable[[str], object]:
    """Return ``model.embed``, or ``model.encode`` where there is no such method.

    Raises
    ------
    InvalidInputError
        A model that has neither; a class instead of an object.
    """
    found = (getattr(model, name, None) for name in ("embed", "encode"))
    method: Callable[[str], object] | None = next((m for m in found if callable(m)), None)
    if method is None or isinstance(model, type):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise InvalidInputError(
            f"{name} cannot embed: give an object with embed(text) or encode(text), such as "
            "cvx.embed.LexicalEmbedder()"
        )
    return method


def embed_document(model: object, text: str) -> Vector:
    """Return the vector of what is stored.

    Parameters
    ----------
    model : object
        An embedder of cvx, or anything with ``embed(text)`` or ``encode(text)``.
    text : str

    Raises
    ------
    InvalidInputError
        As for ``embed_method``.
    InvalidVectorError
        It gave no vector of finite numbers.
    """
    if isinstance(model, Embedder):
        return as_vector(model.embed([text])[0])
    given = np.asarray(embed_method(model)(text), dtype=np.float32)
    return as_vector(given[0] if given.ndim == 2 and len(given) == 1 else given)


def embed_question(model: object, text: str) -> Vector:
    """Return the vector of what is asked; see ``embed_document``."""
    if isinstance(model, Embedder):
        return as_vector(embed_query(model, text))
    return embed_document(model, text)
