"""Features of each step of a text game, without names.

A word before a number is an instance. Instances of the goal's nouns become ``{0}``, ``{1}``, the
place the agent went to last ``@``, all others ``#``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Instance: TypeAlias = tuple[str, str]

_INSTANCE = re.compile(r"([a-z]+) (\d+)")
_WORD = re.compile(r"[a-z]+")
_LISTED = re.compile(r"(?:, and |, |a |and )?# ?")
_GO = "go to"


def masked(action: str) -> str:
    """Return an action with its digits masked."""
    return re.sub(r"\d+", "#", action.lower())


def nouns_of(actions: Iterable[str]) -> set[str]:
    """Return the words before numbers."""
    return {kind for action in actions for kind, _ in _INSTANCE.findall(action.lower())}


@dataclass(slots=True)
class State:
    """One step: what was known before the action, and the action.

    Attributes
    ----------
    episode : int
        Whose step it is.
    features : dict of str to float
        Named features with their weights.
    action : str
        What was done.
    abstract : str
        The same without names.
    here : Instance or None
        The place gone to last.
    slots : list of str
        The goal's nouns.
    held : list of Instance
        What was taken last and not put down.
    kinds : Counter of str
        How many places of each kind the first view names.
    visited : Counter of Instance
        How often each place was gone to.
    seen : dict of Instance to Instance
        Where each thing was seen last.
    used : set of Instance
        The goal's things that an action concerned already.
    task : str
        What is to be done, as it reads.
    text : str
        Task and observation as they read.
    """

    episode: int
    features: dict[str, float]
    action: str
    abstract: str
    here: Instance | None
    slots: list[str]
    held: list[Instance]
    kinds: Counter[str]
    visited: Counter[Instance]
    seen: dict[Instance, Instance]
    used: set[Instance]
    task: str
    text: str

    def named(self, start: str) -> str:
        """Return the features that start so, in one line."""
        return " ".join(sorted(name for name in self.features if name.startswith(start)))

    def relations(self, kind: str) -> list[str]:
        """Return what a kind of place is to the agent in this state."""
        out = [f"kind {kind}"]
        if kind in self.slots:
            out.append(f"goal {self.slots.index(kind)}")
        if self.here and self.here[0] == kind:
            out.append("same kind as here")
        known = sum(place[0] == kind for place in self.visited)
        out.append("fresh" if not known else "partly" if known < self.kinds[kind] else "all")
        for thing, place in self.seen.items():
            if thing[0] in self.slots and thing not in self.used and place[0] == kind:
                out.append(f"holds {self.slots.index(thing[0])}")
        return out

    def concrete(self, abstract: str) -> str:
        """Return an abstract action with names, its digits masked."""
        named = re.sub(r"@(?:\{\d\})?|\{\d\}|#", self._name, abstract)
        return re.sub(r"\s+", " ", named)

    def _name(self, gap: re.Match[str]) -> str:
        if gap[0].startswith("@"):
            return f"{self.here[0]} #" if self.here else "@"
        if gap[0] == "#":
            return f"{self.held[0][0]} #" if self.held else "#"
        number = int(gap[0][1])
        return f"{self.slots[number]} #" if number < len(self.slots) else gap[0]


@dataclass(slots=True)
class _Reader:
    """Follows one episode."""

    goal: list[str]
    nouns: set[str]
    heard: set[str] = field(default_factory=set)
    here: Instance | None = None
    held: list[Instance] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    aimed: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    visited: Counter[Instance] = field(default_factory=Counter)
    seen: dict[Instance, Instance] = field(default_factory=dict)
    used: set[Instance] = field(default_factory=set)

    def slots(self) -> list[str]:
        known = self.heard | self.nouns
        return [word for word in dict.fromkeys(self.goal) if word in known]

    def abstract(self, action: str, slots: list[str]) -> str:
        def gap(found: re.Match[str]) -> str:
            kind, number = found[1], found[2]
            own = f"{{{slots.index(kind)}}}" if kind in slots else ""
            return f"@{own}" if (kind, number) == self.here else own or "#"

        return _INSTANCE.sub(gap, action)

    def features(self, view: str, slots: list[str]) -> dict[str, float]:
        template = " ".join(f"{{{slots.index(w)}}}" if w in slots else w for w in self.goal)
        shown = _LISTED.sub("# ", self.abstract(view, slots)).partition("{")[0]
        out = {f"goal {template}": 2.0, f"view {shown.partition('#')[0]}": 2.0}
        for instance in _INSTANCE.findall(view):
            if instance[0] in slots and instance != self.here:
                age = "known" if instance in self.used else "new"
                out[f"sees {slots.index(instance[0])} {age}"] = 3.0
        for back in (1, 2, 3):
            before = self.done[-back] if len(self.done) >= back else "nothing"
            out[f"before {back} {before}"] = 2.0 / back
        out[f"so far {' '.join(self.aimed)}"] = 4.0
        out[f"steps so far {len(self.aimed)}"] = 1.0
        if self.here:
            own = slots.index(self.here[0]) if self.here[0] in slots else "other"
            out[f"at {own}"] = 2.0
            out[f"at kind {self.here[0]}"] = 1.0
        for kind, _ in self.held:
            out[f"holds {slots.index(kind) if kind in slots else 'other'}"] = 3.0
        for number, kind in enumerate(slots):
            where = any(k == kind and (k, n) not in self.used for k, n in self.seen)
            out[f"knows where {number} {where}"] = 2.0
        return out

    def step(self, view: str, action: str, slots: list[str], abstract: str) -> None:
        named = _INSTANCE.findall(action)
        for instance in _INSTANCE.findall(view):
            if self.here and instance != self.here:
                self.seen[instance] = self.here
        if action.startswith(_GO) and named:
            self.here = named[0]
            self.visited[self.here] += 1
        elif len(named) > 1 and any(kind in slots for kind, _ in named):
            self.aimed.append(abstract)
            self.used.update(instance for instance in named if instance[0] in slots)
        # Of two instances in a command the first was somewhere, or is now.
        if len(named) > 1 and named[1] == self.here:
            if named[0] in self.held:
                self.held, self.seen[named[0]] = [], named[1]
            else:
                self.held = [named[0]]
                self.seen.pop(named[0], None)
        self.done.append(abstract)


def states(episode: int, played: Mapping[str, object], nouns: set[str]) -> Iterator[State]:
    """Yield the states of an episode.

    Parameters
    ----------
    episode : int
        Its number.
    played : mapping
        ``task_description`` and ``state_action_pairs`` of ``state`` and ``action``.
    nouns : set of str
        Words that other episodes name in commands.
    """
    task = str(played["task_description"]).lower()
    reader = _Reader(_WORD.findall(task), nouns)
    pairs = played["state_action_pairs"]
    assert isinstance(pairs, list)
    for pair in pairs:
        view, action = pair["state"].lower(), pair["action"].lower()
        kinds = [kind for kind, _ in _INSTANCE.findall(view)]
        if not reader.done:
            reader.kinds = Counter(kinds)
        reader.heard.update(kinds)
        slots = reader.slots()
        abstract = reader.abstract(action, slots)
        yield State(
            episode, reader.features(view, slots), action, abstract, reader.here, slots,
            list(reader.held), reader.kinds, Counter(reader.visited), dict(reader.seen),
            set(reader.used), task, f"{task} {view}",
        )  # fmt: skip
        reader.step(view, action, slots, abstract)
