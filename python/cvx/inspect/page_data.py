"""The data of the inspection page: events, map, chains, recalls, episodes, as JSON values."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from cvx.arguments import wrong
from cvx.errors import CvxError, StaleRegionsError, UnknownError
from cvx.escaping import printable
from cvx.extras import needs
from cvx.inspect.json_values import (
    WON,
    Asked,
    Told,
    brief,
    choices_of,
    commonest,
    curve_of,
    edge_of,
    factors_of,
    heading_of,
    hit_of,
    is_number,
    lines,
    link_of,
    row_of,
    whole_of,
    word,
    words_of,
)
from cvx.inspect.map_layout import Regions, regions_of
from cvx.memory.settings import setting
from cvx.types import Event
from cvx.validation import STATES

if TYPE_CHECKING:
    import polars as pl

    from cvx.memory import Memory
    from cvx.store.lock import Tail

PAGE = 50
_BINS = 60
_DECISIONS = 2_000
_BRANCHES = 8
_CURVES = 6
_FLOWS = 12
_AT_ONCE_S = 0.25
"""A table that takes longer to read is read anew in the background."""
_SOON_S = 0.2
"""So long after the start pages wait for all events before they show the latest alone."""
_UNTOLD = frozenset(("irrelevant", "same_action_type", "region_transition", "mentions"))
"""Kinds of links that no story walks."""


@dataclass(frozen=True, slots=True)
class Table:
    """All events of a store, the latest first, as of one state of it."""

    tail: Tail
    frame: pl.DataFrame
    lower: pl.Series
    seconds: float


class PageData:
    """Answers what a page asks about a memory, which it only reads; `change` alone writes.

    Parameters
    ----------
    memory : Memory
        Not bound to a namespace: what is shown is the whole store.
    can_edit : bool, default False
        Whether the page may offer to change events.

    Raises
    ------
    MissingExtraError
        polars is not installed (extra ``inspect``).

    Examples
    --------
    >>> from cvx.embed import LexicalEmbedder
    >>> from cvx.memory import Memory
    >>> memory = Memory(embedder=LexicalEmbedder())
    >>> rain = memory.add("it rained all night", entity="ana")
    >>> view = PageData(memory)
    >>> view.events({"q": "rain", "entity": "ana"})["total"], view.events({"q": "snow"})["total"]
    (1, 0)
    """

    def __init__(self, memory: Memory, *, can_edit: bool = False) -> None:
        with needs("inspect"):
            import polars  # noqa: F401
        self.memory, self.can_edit = memory, can_edit
        self._lock, self._placing = threading.RLock(), threading.Lock()
        self._table: Table | None = None
        self._regions: tuple[Tail, Regions] | None = None
        self._reader: threading.Thread | None = None
        self._first = threading.Event()
        self._first.set()
        self._until = 0.0

    def prepare(self) -> None:
        """Read what takes long in the background; until then, pages show what was written last."""
        self._first.clear()
        self._until = time.monotonic() + _SOON_S

        def read() -> None:
            # Whoever asks meets the error and shows it.
            with suppress(CvxError):
                try:
                    self._read()
                finally:
                    self._first.set()
                self.memory.events(limit=1)
                self._placed()

        threading.Thread(target=read, daemon=True).start()

    # Memories.

    def overview(self) -> Told:
        """Return how much there is, and what can be chosen in a filter, commonest first."""
        if not self._soon():
            return self._latest()
        frame = self._read().frame
        choices = {
            name: choices_of(frame[name]) for name in ("entity", "kind", "source", "namespace")
        }
        return {
            **self._latest(),
            "events": frame.height,
            "active": int((frame["state"] == "active").sum()),
            "episodes": self._episodes().height,
            **choices,
            "tag": choices_of(frame["tags"].explode()),
        }

    def _soon(self) -> bool:
        """Wait for the first reading as long as a page may wait, and tell whether it is done."""
        return self._first.wait(max(0.0, self._until - time.monotonic()))

    def _latest(self) -> Told:
        """Return what can be said before all events were read."""
        choices: Told = {name: [] for name in ("entity", "kind", "source", "namespace", "tag")}
        return choices | {
            "store": "in RAM" if self.memory.folder is None else self.memory.folder.name,
            "events": len(self.memory),
            "active": len(self.memory),
            "episodes": 0,
            "clock": setting(self.memory.record, "clock"),
            "embedder": str(self.memory.embedder.info()["id"]),
            "can_edit": self.can_edit,
            "states": list(STATES),
        }

    def events(self, asked: Asked) -> Told:
        """Return a page of the events that pass the filters, the latest first.

        Before all of them have been read, and where no filter asks for it, that is the page that
        was written last.
        """
        page = whole_of(asked, "page", 0)
        everything = not {*asked} - {"page", "state"} and not page
        if everything and not self._soon():
            owners = self.memory.record.events_of_nodes(
                self.memory.index.node_ids()[-PAGE:].tolist()
            )
            some = self.memory.record.events(set(owners.values()))
            some.sort(key=lambda one: (one.timestamp, one.id), reverse=True)
            rows = [row_of(one) for one in some if one.state == asked.get("state", one.state)]
            return {"total": None, "page": 0, "pages": None, "rows": rows}
        table = self._read()
        passing = table.frame.filter(self._mask(table, asked))
        pages = -(-passing.height // PAGE)
        rows = [row_of(row) for row in passing.slice(page * PAGE, PAGE).iter_rows(named=True)]
        return {"total": passing.height, "page": page, "pages": pages, "rows": rows}

    def timeline(self, asked: Asked) -> Told:
        """Return how many events that pass fall into each part of their time, by outcome."""
        table = self._read()
        chosen = table.frame.lazy().filter(self._mask(table, asked))
        passing = chosen.select("timestamp", "reward").collect()
        if not passing.height:
            return {"bins": []}
        times = passing["timestamp"].to_numpy()
        rewards = passing["reward"].to_numpy()
        low, high = int(times.min()), int(times.max())
        width = max(1, -(-(high - low + 1) // _BINS))
        # As floats: the span of two times of 64 bits may be of 65.
        places = np.minimum((times.astype(float) - low) // width, _BINS - 1).astype(int)
        counts = [
            np.bincount(places[some], minlength=_BINS)
            for some in (rewards > WON, rewards <= WON, np.isnan(rewards))
        ]
        bins = [
            {"since": low + at * width, "until": low + (at + 1) * width}
            | {"won": int(won), "lost": int(lost), "other": int(other)}
            for at, (won, lost, other) in enumerate(zip(*counts, strict=True))
            if low + at * width <= high
        ]
        return {"bins": bins, "low": low, "high": high}

    def event(self, asked: Asked) -> Told:
        """Return all that is known of an event: versions, links, and where it was shown."""
        event = self.memory.get(whole_of(asked, "id"))
        causes, consequences = (
            [
                link_of(s.edge, s.event)
                for s in walk(event, max_depth=1, namespace=event.namespace).steps
            ]
            for walk in (self.memory.why, self.memory.consequences)
        )
        shown = [
            heading_of(told)
            for told in self._decisions()
            if any(hit[0] == event.node for hit in told["hits"])
        ]
        return {
            **row_of(event),
            "text": lines(event.text),
            "metadata": {printable(str(k)): printable(str(v)) for k, v in event.metadata.items()},
            "trust": event.trust,
            "salience": event.salience,
            "visibility": event.visibility,
            "key": word(event.key),
            "version": event.version,
            "history": [{"version": one.version, "text": lines(one.text)} for one in event.history],
            "causes": causes,
            "consequences": consequences,
            "shown": shown[:20],
        }

    # Regions and causes.

    def map(self) -> Told:
        """Return where the regions lie in a plane, how large they are and how they ended."""
        table, placed = self._read(), self._placed()
        facts = {
            row["event_id"]: row
            for row in table.frame.select("event_id", "reward", "text", "state").iter_rows(
                named=True
            )
        }
        hubs = self.memory.record.events_of_nodes(list(placed.hubs))
        regions: list[Told] = []
        for region, (x, y) in placed.hubs.items():
            members = [facts[one] for one in placed.members.get(region, ()) if one in facts]
            rewards = [one["reward"] for one in members if one["reward"] is not None]
            hub = facts.get(hubs.get(region, -1)) or next(iter(members), None)
            regions.append(
                {"id": region, "x": x, "y": y, "events": len(members)}
                | {"reward": sum(rewards) / len(rewards) if rewards else None}
                | {"text": "" if hub is None else brief(hub["text"])}
            )
        regions.sort(key=lambda one: (-one["events"], one["id"]))
        points = [
            {"id": event, "x": x, "y": y, "reward": facts[event]["reward"]}
            for event, (x, y) in placed.points.items()
            if event in facts
        ]
        kept = [one for one in regions if one["events"]]
        return {"level": placed.level, "share": placed.share, "regions": kept, "points": points}

    def members(self) -> dict[int, list[int]]:
        """Return the events of each region of the map."""
        return self._placed().members

    def chain(self, asked: Asked) -> Told:
        """Return what led to an event and what it led to, as nodes and links of a graph."""
        of = asked.get("of", "").strip()
        event = self.memory.get(int(of)) if is_number(of) else self._meant(of)
        nodes = {event.id: {"id": event.id, "depth": 0, "text": brief(event.text)}}
        edges: list[Told] = []
        more = False
        for sign, walk in ((-1, self.memory.why), (1, self.memory.consequences)):
            story = walk(event, namespace=event.namespace)
            more = more or story.truncated or story.deeper
            drawn: dict[int, int] = {}
            for step in story.steps:
                drawn[step.depth] = drawn.get(step.depth, 0) + 1
                if drawn[step.depth] > _BRANCHES:
                    more = True
                    continue
                told = {"id": step.event.id, "depth": sign * step.depth}
                nodes.setdefault(step.event.id, told | {"text": brief(step.event.text)})
                edges.append(edge_of(step.edge))
        return {"of": event.id, "nodes": [*nodes.values()], "edges": edges, "more": more}

    def linked(self) -> Told:
        """Return the events that most links lead to, to begin with."""
        import polars as pl

        links = self.memory.frames.links()
        told = links.filter(~pl.col("kind").is_in(list(_UNTOLD)) & (pl.col("weight") > 0))
        counted = told.drop_nulls("to_event").group_by("to_event").len()
        most = counted.sort(["len", "to_event"], descending=[True, False]).head(20)
        numbers = dict(most.iter_rows())
        events = {one.id: one for one in self.memory.record.events(numbers)}
        rows = [
            {"id": number, "links": links, "text": brief(events[number].text)}
            for number, links in numbers.items()
            if number in events
        ]
        return {"rows": rows, "links": told.height}

    # Recalls.

    def recall(self, asked: Asked) -> Told:
        """Return what a recall of a cue returns now, factor by factor, and what one returned then.

        With ``decision``, its cue is asked again; with ``cue``, the latest decision of the same
        words is what is compared with. Without ``namespace`` that of the decision asks, or the
        one with most events.
        """
        then, cue = None, asked.get("cue", "").strip()
        if "decision" in asked:
            then = self.memory.record.decision(whole_of(asked, "decision"))
            if then is None:
                raise UnknownError(f"there is no decision {asked['decision']}: it was dropped")
            cue = words_of(then)
        elif cue:
            same = (one for one in self._decisions() if words_of(one).casefold() == cue.casefold())
            then = next(same, None)
        if not cue:
            raise wrong("cue", cue, "words to recall by")
        whose = asked.get("namespace")
        if whose is None and then is not None:
            whose = then["record"].get("namespace") or ""
        if whose is None:
            whose = self._namespaces()[0]
        found = self.memory.learning.ranked(cue, whole_of(asked, "k", 10, most=50), namespace=whose)
        return {
            "cue": printable(cue),
            "namespace": whose,
            "now": [hit_of(hit) for hit in found],
            "nearest": [hit_of(hit) for hit in found.nearest[:5]],
            "trace": str(found.trace),
            "then": None if then is None else self._decision(then),
        }

    def decisions(self, asked: Asked) -> Told:
        """Return a page of what was asked of the memory, the latest first."""
        page, words = whole_of(asked, "page", 0), asked.get("q", "").casefold()
        told = [one for one in self._decisions() if words in words_of(one).casefold()]
        some = told[page * PAGE : (page + 1) * PAGE]
        return {
            "total": len(told),
            "page": page,
            "pages": -(-len(told) // PAGE),
            "rows": [heading_of(one) for one in some],
        }

    # Episodes and what they taught.

    def episodes(self, asked: Asked) -> Told:
        """Return a page of episodes, the latest first, and the tasks there are."""
        import polars as pl

        frame = self._episodes()
        page, mask = whole_of(asked, "page", 0), pl.lit(value=True)
        if asked.get("q"):
            words = pl.concat_str("goal", "task", separator=" ").str.to_lowercase()
            mask &= words.str.contains(asked["q"].lower(), literal=True)
        if asked.get("task"):
            mask &= pl.col("task") == asked["task"]
        if asked.get("outcome"):
            won = pl.col("reward") > WON
            mask &= won if asked["outcome"] == "won" else ~won
        passing = frame.filter(mask)
        rows = [
            {"id": row["episode_id"], "goal": brief(row["goal"]), "task": brief(row["task"])}
            | {"kind": row["kind"], "reward": row["reward"], "steps": row["steps"]}
            | {"recorded": row["recorded"]}
            for row in passing.slice(page * PAGE, PAGE).iter_rows(named=True)
        ]
        pages = -(-passing.height // PAGE)
        told = {"total": passing.height, "page": page, "pages": pages, "rows": rows}
        return told | {"tasks": choices_of(frame["task"])}

    def episode(self, asked: Asked) -> Told:
        """Return an episode step by step: what was seen, advised, done, expected, and the end."""
        number = whole_of(asked, "id")
        found = self.memory.record.episodes([number])
        episode = found[0] if found else self.memory.record.unfinished(number)
        if episode is None:
            raise UnknownError(f"there is no episode {number}")
        at = {one["cue"]["place"] or 0: one for one in self.memory.record.decisions(number)}
        steps = [
            {"id": step.id, "text": lines(step.text[:4000]), "action": word(step.action)}
            | {"reward": step.metadata.get("reward", step.reward), "time": step.timestamp}
            | {"advice": None if place not in at else self._advice(at[place])}
            for place, step in enumerate(episode.steps)
        ]
        return {
            "id": number,
            "goal": brief(episode.goal),
            "task": word(episode.task_type),
            "kind": episode.kind,
            "reward": episode.reward,
            "return": episode.metadata.get("return"),
            "steps": steps,
        }

    def learning(self, asked: Asked) -> Told:
        """Return learning curves, the regions of the decision process with flows, and weights."""
        try:
            flows = self._flows(asked.get("task") or None)
        except StaleRegionsError as error:
            flows = {"regions": [], "moves": [], "problem": printable(str(error))}
        found = self.memory.learning.calibration()
        return {
            "curves": self.curves(),
            "mdp": flows,
            "calibration": None if found is None else found.to_dict(),
            "weights": self.memory.learning.weights,
        }

    # Writing.

    def change(self, asked: Mapping[str, Any]) -> Told:
        """Change an event: its ``text``, ``tags`` or ``state``; "archived" forgets it.

        Raises
        ------
        InvalidInputError
            Something else, or a value that cannot be stored.
        ReadOnlyError
            The memory was opened to be read only.
        """
        odd = asked.keys() - {"id", "text", "tags", "state"}
        if odd or not isinstance(asked.get("id"), int):
            raise wrong("the change", {*asked}, "an id with text, tags or state")
        given = {name: value for name, value in asked.items() if name != "id"}
        self.memory.update(asked["id"], **given)
        return self.event({"id": str(asked["id"])})

    # What the answers are made of.

    def _read(self) -> Table:
        """Return all events; where that takes long, those of a moment ago while it is done anew."""
        known, tail = self._table, self.memory.record.tail()
        if known is not None and known.tail == tail:
            return known
        if known is not None and known.seconds > _AT_ONCE_S:
            reader = self._reader
            if reader is None or not reader.is_alive():
                self._reader = threading.Thread(target=self._read_now, args=(tail,), daemon=True)
                self._reader.start()
            return known
        return self._read_now(tail)

    def _read_now(self, tail: Tail) -> Table:
        with self._lock:
            known = self._table
            if known is not None and known.tail == tail:
                return known
            start = time.perf_counter()
            order = ["timestamp", "event_id"]
            frame = self.memory.frames.events(state=None).sort(order, descending=True)
            lower = frame["text"].str.to_lowercase()
            self._table = Table(tail, frame, lower, time.perf_counter() - start)
            return self._table

    def _mask(self, table: Table, asked: Asked) -> pl.Expr:
        import polars as pl

        mask = pl.lit(value=True)
        if asked.get("q"):
            mask &= pl.lit(table.lower).str.contains(asked["q"].lower(), literal=True)
        for name in ("entity", "kind", "source", "namespace", "state"):
            if name in asked:
                mask &= pl.col(name) == asked[name]
        if asked.get("tag"):
            mask &= pl.col("tags").list.contains(asked["tag"])
        if "episode" in asked:
            mask &= pl.col("episode") == whole_of(asked, "episode")
        for name, passes in (("since", pl.Expr.ge), ("until", pl.Expr.lt)):
            if asked.get(name):
                mask &= passes(pl.col("timestamp"), pl.lit(whole_of(asked, name), pl.Int64))
        outcome = asked.get("outcome")
        if outcome == "none":
            mask &= pl.col("reward").is_null()
        elif outcome:
            won = pl.col("reward") > WON
            mask &= won if outcome == "won" else ~won
        if "region" in asked:
            members = self._placed().members.get(whole_of(asked, "region"), [])
            mask &= pl.col("event_id").is_in(members)
        return mask

    def _placed(self) -> Regions:
        """Return the regions of the finest level that a picture can show."""
        with self._placing:
            tail = self.memory.record.tail()
            if self._regions is None or self._regions[0] != tail:
                self._regions = tail, regions_of(self.memory)
            return self._regions[1]

    def _meant(self, words: str) -> Event:
        if not words:
            raise wrong("of", words, "the id of an event, or words that find it")
        found = [
            hit
            for namespace in self._namespaces()
            for hit in self.memory.learning.ranked(
                words, 1, where={"outcome": "any"}, namespace=namespace
            )
        ]
        best = max(found, key=lambda hit: hit.score, default=None)
        if best is None or best.event is None:
            raise UnknownError(f"no event fits {words!r:.60}: use other words, or give its id")
        return best.event

    def _namespaces(self) -> list[str]:
        """Return the namespaces that can be chosen, the one with most events first."""
        return [one["value"] for one in choices_of(self._read().frame["namespace"])] or [""]

    def _decisions(self) -> list[Told]:
        return list(islice(self.memory.record.newest_decisions(), _DECISIONS))

    def _decision(self, told: Told) -> Told:
        owners = self.memory.record.events_of_nodes([hit[0] for hit in told["hits"]])
        events = {one.id: one for one in self.memory.record.events(owners.values())}
        hits = []
        for node, _, distance, score, factors, *_ in told["hits"]:
            event = events.get(owners.get(node, -1))
            hits.append(
                {"id": None if event is None else event.id, "score": score, "distance": distance}
                | {"text": "(erased)" if event is None else brief(event.text)}
                | {"followed": node in told["followed"]}
                | {"factors": factors_of((n, v, w, v * w) for n, v, w in factors)}
            )
        return heading_of(told) | {"hits": hits, "rendered": lines(told["rendered"])}

    def _advice(self, told: Told) -> Told:
        noted = told["record"]
        return self._decision(told) | {
            "unit": noted.get("advice", "P(success)"),
            "predicted": noted.get("predicted"),
            "chance": noted.get("chance"),
            "options": [
                {"action": printable(str(action)), "value": value}
                for action, value in sorted(told["action_scores"], key=lambda one: -one[1])
            ],
        }

    def _episodes(self) -> pl.DataFrame:
        import polars as pl

        frame = self.memory.frames.episodes().sort("episode_id", descending=True)
        task = pl.coalesce("task_type", "goal").fill_null("").alias("task")
        return frame.with_columns(task, pl.col("goal").fill_null(""))

    def curves(self) -> list[Told]:
        """Return the trailing mean of outcomes over the episodes of all tasks, and of each."""
        import polars as pl

        own = self._episodes().filter(
            (pl.col("kind") == "experience") & pl.col("reward").is_not_null()
        )
        own = (
            own.sort("episode_id")
            .with_row_index("number", offset=1)
            .with_columns(
                total=pl.col("metadata")
                .str.json_path_match("$.return")
                .cast(pl.Float64, strict=False)
            )
        )
        tasks = [task for task, _ in commonest(own["task"])][:_CURVES]
        named = [("all tasks", own.filter(pl.col("total").is_null()))] if len(tasks) != 1 else []
        named += [(task, own.filter(pl.col("task") == task)) for task in tasks]
        return [curve_of(name, frame) for name, frame in named if frame.height]

    def _flows(self, task: str | None) -> Told:
        """Return the regions that episodes pass most, and how they move between them."""
        mdp = self.memory.learning.mdp
        if mdp is None or not len(mdp):
            return {"regions": [], "moves": [], "left_out": 0}
        frames = mdp.frames(task)
        visited = frames.regions.sort(["moves", "region"], descending=[True, False])
        shown = list(visited.head(_FLOWS).iter_rows(named=True))
        owners = self.memory.record.events_of_nodes([row["region"] for row in shown])
        events = {one.id: one for one in self.memory.record.events(owners.values())}
        moves: dict[tuple[int, int | str], float] = {}
        chosen = {row["region"] for row in shown}
        for row in frames.moves.iter_rows(named=True):
            there = row["end"] if row["end"] is not None else row["to"]
            if row["region"] in chosen and (isinstance(there, str) or there in chosen):
                way = row["region"], there
                moves[way] = moves.get(way, 0.0) + row["count"]
        regions = [
            {"id": row["region"], "event": owners.get(row["region"])}
            | {"moves": row["moves"], "quality": row["quality"]}
            | {"low": row["low"], "high": row["high"], "when": row["when"]}
            | {"best": [word(one[0]) for one in mdp.best_action(row["region"], task)[:1]]}
            | {"text": brief(events[owners[row["region"]]].text)
               if owners.get(row["region"]) in events else ""}
            for row in shown
        ]  # fmt: skip
        flows = [
            {"from": start, "to": stop, "count": count}
            for (start, stop), count in sorted(moves.items(), key=lambda one: -one[1])
            if start != stop
        ]
        return {"regions": regions, "moves": flows, "left_out": len(visited) - len(shown)}
