"""Nothing crosses from one namespace to another that is not meant to."""

import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest

from cvx.errors import InvalidInputError
from cvx.learn.loop import ActiveMemory
from cvx.learn.region_mdp import RegionMDP
from cvx.memory import Memory
from cvx.types import Cue, Episode, Event, Filter, Vector
from tests.store.processes import embedder

NAMES = ("", "ana", "bob", "eve")
WORDS = ("lamp", "door", "cat", "rain", "key")


def may_see(event: Event, own: str, also: list[str]) -> bool:
    """What visibility means, in three lines."""
    if event.namespace == own or event.visibility == "public":
        return True
    return event.visibility == "shared" and event.namespace in also


@pytest.mark.requirement("X17", "B9")
def test_random_operations_never_cross_a_namespace() -> None:
    # 3,000 operations a memory; nightly 102,000 over 34 of them.
    memories = 34 if "CVX_NIGHTLY" in os.environ else 1
    calls = sum(operate_at_random(seed) for seed in range(11, 11 + memories))
    print(f"{calls:,} recalls among {3_000 * memories:,} operations, no leak")
    assert calls > 1_000 * memories


def operate_at_random(seed: int) -> int:
    """Add, put away, restore and recall; return how many recalls there were."""
    rng = random.Random(seed)
    vectors = np.random.default_rng(seed).normal(size=(64, 16)).astype(np.float32)
    calls = 0
    with Memory(embedder=embedder()) as memory:
        events: dict[int, Event] = {}
        for _ in range(3000):
            kind = rng.random()
            if kind < 0.3 or len(events) < 20:
                words = " ".join(rng.choices(WORDS, k=2))
                event = memory.add(
                    words,
                    namespace=rng.choice(NAMES),
                    visibility=rng.choice(["private", "private", "shared", "public"]),
                    vector=vectors[rng.randrange(64)],
                    entity=str(rng.randrange(4)),
                    timestamp=rng.randrange(100),
                    reward=rng.choice([None, 0.0, 0.5, 1.0]),
                    again=True,
                ).id
                events[event] = memory.get(event)
            elif kind < 0.36:
                event = rng.choice(list(events))
                memory.forget(event)
                events[event] = memory.get(event)
            elif kind < 0.4:
                event = rng.choice(list(events))
                memory.update(event, state="active")
                events[event] = memory.get(event)
            else:
                calls += 1
                own, k = rng.choice(NAMES), rng.choice([1, 1, 5, 5, 20, 400])
                also = rng.sample(NAMES, rng.randrange(3))
                where = random_filter(rng)._replace(outcome=rng.choice(["success", "any"]))
                sources = rng.choice([["dense"], ["lexical"], ["dense", "lexical"]])
                # A cue with a vector of its own needs no embedder, which works in a thread.
                given = None if rng.random() < 0.05 else vectors[rng.randrange(64)]
                hits = memory.within(own, also=also).recall(
                    Cue(text=rng.choice(WORDS), vector=given),
                    k,
                    where=where,
                    sources=sources,
                    floor=-2.0,
                )
                allowed = {
                    number
                    for number, event in events.items()
                    if may_see(event, own, also)
                    and event.state == "active"
                    and passes(event, where)
                }
                found = [hit.event.event_id for hit in hits if hit.event]
                assert set(found) <= allowed
                assert len(found) == len(set(found))
                if "dense" in sources:
                    # The filter is inside the search: k results whenever k events match.
                    assert len(found) == min(k, len(allowed))
    return calls


@pytest.mark.requirement("X17", "B9", "B3", "V1", "V18", "V23")
def test_random_episodes_never_cross_a_namespace() -> None:
    # 200 operations a memory; nightly 6,800 over 34 of them.
    memories = 34 if "CVX_NIGHTLY" in os.environ else 1
    asked = sum(play_at_random(seed) for seed in range(11, 11 + memories))
    print(f"{asked:,} questions to loops among {200 * memories:,} operations, no leak")
    assert asked > 50 * memories


@dataclass(frozen=True)
class Played:
    """An episode of the random test: whose it was, its steps, and what it made of others."""

    namespace: str
    visibility: str
    source: str
    trust: float
    won: bool
    task: str
    steps: tuple[Event, ...]
    recalled: frozenset[int]
    followed: frozenset[int]


def play_at_random(seed: int) -> int:
    """Play, show, put away, bring back and ask loops; return how often they were asked."""
    rng = random.Random(seed)
    vectors = np.random.default_rng(seed).normal(size=(24, 16)).astype(np.float32)
    asked = 0
    with Memory(embedder=embedder()) as memory:
        also = {name: rng.sample(NAMES, rng.randrange(3)) for name in NAMES}
        loops = {
            name: memory.learning.loop(namespace=name, also=also[name], action_type=first_word, k=4)
            for name in NAMES
        }
        played: list[Played] = []
        for number in range(200):
            kind = rng.random()
            if kind < 0.45 or len(played) < 8:
                played.append(one_episode(rng, memory, loops, vectors, number))
            elif kind < 0.6:
                put_away_or_back(rng, memory, played)
            else:
                asked += 1
                own = rng.choice(NAMES)
                loop = rng.choice([loops[own], loops[own], loops[""]])
                ask(rng, loop, own, played, vectors[rng.randrange(24)])
        assert memory.admin.check() == []
    return asked


def first_word(command: str) -> str:
    return command.split()[0]


def one_episode(
    rng: random.Random,
    memory: Memory,
    loops: Mapping[str, ActiveMemory],
    vectors: Vector,
    number: int,
) -> Played:
    """Play or show an episode; every action says whose it is, in a word of its own."""
    own, visibility = rng.choice(NAMES), rng.choice(["private", "private", "shared", "public"])
    loop = rng.choice([loops[own], loops[""]])
    source, trust = rng.choice([("", 1.0), ("web", 0.5), ("ana", 1.0)])
    task, won = rng.choice(["clean", "heat"]), rng.random() < 0.6
    whose: dict[str, Any] = {"namespace": own, "visibility": visibility, "source": source}
    recalled: set[int] = set()
    followed: set[int] = set()
    length = rng.randrange(1, 4)
    commands = [f"do{own}{visibility}{rng.randrange(3)} x{number}x{at}" for at in range(length)]
    places = [vectors[rng.randrange(24)] for _ in commands]
    if rng.random() < 0.4:
        steps = [("", command, place) for command, place in zip(commands, places, strict=True)]
        episode = loop.add_demonstration("", steps, task, reward=float(won), trust=trust, **whose)
    else:
        run = loop.begin("", task, trust=trust, **whose)
        for command, place in zip(commands, places, strict=True):
            decision = loop.recall(Cue(vector=place), episode=run)
            taken = rng.sample(decision.hits, min(len(decision.hits), rng.randrange(2)))
            loop.act(decision, command, taken)
            recalled |= {hit.node for hit in decision.hits}
            followed |= {hit.node for hit in taken}
        episode = loop.close(run, float(won))
    kept = memory.record.events(
        memory.record.events_of_nodes([step.node or 0 for step in episode.steps]).values()
    )
    return Played(
        own, visibility, source, trust, won, task, tuple(kept), frozenset(recalled),
        frozenset(followed),
    )  # fmt: skip


def put_away_or_back(rng: random.Random, memory: Memory, played: list[Played]) -> None:
    """Change the state of some steps, or of a source."""
    some = rng.choice(played).steps
    steps = [step.event_id or 0 for step in rng.sample(some, rng.randrange(1, len(some) + 1))]
    match rng.randrange(5):
        case 0:
            memory.forget(steps)
        case 1:
            memory.admin.quarantine(source="web")
        case 2:
            memory.admin.release(source="web")
        case 3:
            memory.admin.roll_back("ana")
            memory.admin.release(source="ana")
        case _:
            for step in steps:
                memory.update(step, state="active")


def ask(
    rng: random.Random, loop: ActiveMemory, own: str, played: list[Played], place: Vector
) -> None:
    """Ask a loop in the name of a namespace, and hold every answer against what it may be from."""
    record = loop.record
    state = {e.event_id: e.state for e in record.events()}
    told = [one for one in played if may_see(one.steps[0], own, list(loop.also))]
    steps = {
        step.node: step for one in told for step in one.steps if state[step.event_id] == "active"
    }
    only = rng.choice([None, None, [rng.choice(NAMES)], list(NAMES)])
    run = loop.begin("", rng.choice(["clean", "heat"]), namespace=own)
    assert loop.mdp is not None
    # Otherwise it may still be about the regions of an epoch before.
    loop.mdp.relearn()
    decision = loop.recall(
        Cue(vector=place),
        None if only is None else Filter(namespaces=only),
        outcome=rng.choice(["success", "failure"]),
        distinct=rng.choice(["episode", None]),
    )
    # Hits and their continuations.
    for hit in decision.hits:
        seen = {hit.node, *(s.node_id for s in (*hit.predecessors, *hit.successors))}
        assert seen <= steps.keys()
        assert only is None or steps[hit.node].namespace in only
    # What is rendered: no word of an action that may not be read.
    words = set(re.findall(r"x\d+x\d+|do\w+", loop.render(decision)))
    assert words <= {word for step in steps.values() for word in (step.action or "").split()}
    # Scores of kinds of action, and strategies: those of a model of what may be read.
    mdp = RegionMDP(loop.index, classify=first_word)
    mdp.learn_from_episodes(
        loop.index,
        [
            Episode(
                entity_id=0,
                task_type=one.task,
                reward=float(one.won),
                namespace=one.namespace,
                steps=left,
            )
            for one in told
            if (left := tuple(step for step in one.steps if step.node in steps))
        ],
    )
    view = loop.models.mdp_of(own)
    assert view is not None
    assert view.moves() == mdp.moves()
    if decision.region is not None:
        best = dict(mdp.best_action(decision.region, run.task_type))
        assert dict(decision.action_scores) == pytest.approx(best)
    # Counts of use.
    distrusted = record.quarantined_sources()
    taught = [one for one in told if one.source not in distrusted]
    usage = loop.models.usage_of(own)
    assert usage is not None
    for node in {node for one in played for node in one.recalled}:
        assert usage.count(("node", node)) == pytest.approx(
            (
                sum(one.trust for one in taught if node in one.recalled),
                sum(one.trust for one in taught if node in one.followed),
                sum(one.trust for one in taught if node in one.followed and one.won),
            )
        )
    loop.discard(run)


def random_filter(rng: random.Random) -> Filter:
    since = rng.choice([None, rng.randrange(60)])
    return Filter(
        since=since,
        until=rng.choice([None, 61 + rng.randrange(40)]),
        entities=rng.choice([None, None, [str(rng.randrange(4))], ["0", "1", "2"]]),
        min_reward=rng.choice([None, None, 0.5]),
        namespaces=rng.choice([None, None, None, rng.sample(NAMES, rng.randrange(4))]),
    )


def passes(event: Event, where: Filter) -> bool:
    return (
        (where.since is None or event.timestamp >= cast(int, where.since))
        and (where.until is None or event.timestamp < cast(int, where.until))
        and (where.entities is None or event.entity in np.atleast_1d(where.entities))
        and (where.namespaces is None or event.namespace in where.namespaces)
        and (
            where.min_reward is None
            or (event.reward is not None and event.reward >= where.min_reward)
        )
    )


@pytest.mark.requirement("X17")
def test_private_shared_and_public_mean_what_they_say() -> None:
    with Memory(embedder=embedder()) as memory:
        for visibility in ("private", "shared", "public"):
            memory.add(f"a {visibility} thought", namespace="ana", visibility=visibility)

        def seen(own: str, also: tuple[str, ...] = ()) -> set[str]:
            hits = memory.within(own, also=also).recall("a thought")
            return {hit.event.text.split()[1] for hit in hits if hit.event}

        assert seen("ana") == {"private", "shared", "public"}
        assert seen("bob") == {"public"}
        assert seen("bob", ("ana",)) == {"shared", "public"}
        assert seen("") == {"public"}


@pytest.mark.requirement("X17")
def test_a_walk_does_not_enter_what_the_asker_may_not_see() -> None:
    with Memory(embedder=embedder()) as memory:
        hidden = memory.add("a private cause", namespace="ana").id
        open_cause = memory.add("a public cause", namespace="ana", visibility="public").id
        effect = memory.add("what bob saw", namespace="bob").id
        memory.link(hidden, effect)
        memory.link(open_cause, effect)
        memory.link(hidden, open_cause)
        assert [s.event.event_id for s in memory.why(effect, namespace="bob").steps] == [open_cause]


@pytest.mark.requirement("X17")
def test_one_string_is_no_list_of_namespaces() -> None:
    with (
        Memory(embedder=embedder()) as memory,
        pytest.raises(InvalidInputError, match="also is 'bob': give a list"),
    ):
        memory.within("ana", also="bob")
