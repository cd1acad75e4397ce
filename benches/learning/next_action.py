"""Predicts the next action from similar situations in other episodes.

Expert trajectories of ALFWorld; each episode is left out in turn, and once more together with all
that share its first view. A prediction is right in type by its first word, exact with its digits
masked. Nearest neighbours vote; or linear rankers choose the act, and the place to go, by columns
that memory provides. Their weights are learned without the episode's fold, nothing is tuned.

    python -m benches.learning.next_action
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benches.figures import RUNS, Figure, leave
from benches.learning.acts import Acts
from benches.learning.neighbours import Neighbours, Vectors, votes
from benches.learning.next_places import Places, place_of, relation_odds
from benches.learning.ranking import ranked
from benches.learning.states import State, masked, nouns_of, states
from cvx.embed import LexicalEmbedder

ROOT = Path(__file__).resolve().parents[2]
DIM, NEIGHBOURS, WAYS, MOST, EXPONENT = 2048, 15, 25, 60, 6.0
MUST = {"type": 0.87, "exact": 0.70}
AIM = {"type": 0.92, "exact": 0.80}
Apart: TypeAlias = Mapping[int, Sequence[int]]


class Score(NamedTuple):
    """Shares of right predictions."""

    type: float
    exact: float


def load(folder: Path) -> tuple[list[State], list[str]]:
    """Return every state, and the first view of every episode."""
    played = json.loads((folder / "alfworld" / "agentinstruct_dev.json").read_text())
    episodes = played["trajectories"]
    named = [nouns_of(p["action"] for p in e["state_action_pairs"]) for e in episodes]
    counts = Counter(noun for nouns in named for noun in nouns)
    rows: list[State] = []
    for number, episode in enumerate(episodes):
        # What only this episode names is not known before it is played.
        others = {noun for noun, n in counts.items() if n > (noun in named[number])}
        rows += states(number, episode, others)
    return rows, [episode["state_action_pairs"][0]["state"] for episode in episodes]


def by_features(rows: Sequence[State]) -> Vectors:
    """Return a vector of hashed features a state, the rare ones heavier."""
    counts = Counter(name for row in rows for name in row.features)
    embedder = LexicalEmbedder(dim=DIM, ngram_weight=0.0)
    names = sorted(counts)
    idf = np.array([math.sqrt(max(0.1, math.log(len(rows) / counts[n]))) for n in names])
    table = embedder.embed([n.replace(" ", "_") for n in names]) * idf[:, None]
    at = {name: place for place, name in enumerate(names)}
    return np.stack(
        [sum(math.sqrt(w) * table[at[name]] for name, w in row.features.items()) for row in rows]
    ).astype(np.float32)


def by_text(rows: Sequence[State]) -> Vectors:
    """Return the vector of goal and observation as they read: the plain way."""
    return LexicalEmbedder(dim=DIM).embed([row.text for row in rows])


def as_they_did(near: Neighbours, at: int) -> str:
    """Return what most neighbours did, by their words."""
    said = votes(near.of(at)[:NEIGHBOURS], EXPONENT, lambda other: masked(other.action))
    return said.most_common(1)[0][0]


def as_it_means_here(rows: Sequence[State], near: Neighbours, at: int) -> str:
    """Return what most neighbours did, in this episode's names and towards the likeliest place."""
    state, around = rows[at], near.of(at)
    said = votes(around[:NEIGHBOURS], EXPONENT, lambda other: other.abstract)
    abstract = said.most_common(1)[0][0]
    if not abstract.startswith("go to"):
        return state.concrete(abstract)
    went = [one for one in around[:MOST] if place_of(one[0])][:WAYS]
    odds = relation_odds(state, went)
    return f"go to {max(sorted(state.kinds), key=odds.__getitem__, default='')} #"


def as_learned(
    rows: Sequence[State], features: Neighbours, texts: Neighbours, apart: Apart
) -> list[str]:
    """Return the acts that rankers choose, and the places where they go."""
    episode_of = [row.episode for row in rows]
    acts = ranked(Acts(rows, features, texts, apart), episode_of, apart)
    places = ranked(Places(rows, features, apart), episode_of, apart)
    return [
        f"go to {place} #" if act and act.startswith("go to") else row.concrete(act or "")
        for row, act, place in zip(rows, acts, places, strict=True)
    ]


def score(rows: Sequence[State], predictions: Sequence[str]) -> Score:
    """Return how often predictions are right."""
    pairs = [(said, masked(row.action)) for said, row in zip(predictions, rows, strict=True)]
    types = sum(said.split()[:1] == did.split()[:1] for said, did in pairs)
    return Score(types / len(rows), sum(said == did for said, did in pairs) / len(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where the must is missed, 0 where the data is absent too."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("CVX_DATA", str(ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--json", type=Path, default=RUNS / "next_action.json")
    options = parser.parse_args(arguments)
    if not (options.data / "alfworld" / "agentinstruct_dev.json").is_file():
        print(f"next action: skipped, {options.data} has no alfworld/agentinstruct_dev.json")
        return 0
    rows, views = load(options.data)
    alone = {episode: [episode] for episode in range(len(views))}
    rooms = {
        episode: [e for e, other in enumerate(views) if other == view]
        for episode, view in enumerate(views)
    }
    vectors, words = by_features(rows), by_text(rows)
    print(f"next action of {len(views)} expert episodes, {len(rows)} steps")
    print(f"{'':38}{'type':>7}{'exact':>7}")
    table: dict[str, Score] = {}
    for protocol, apart in (("episode left out", alone), ("rooms disjoint", rooms)):
        features, texts = Neighbours(rows, vectors, apart), Neighbours(rows, words, apart)
        every = range(len(rows))
        for name, predictions in (
            ("raw text", [as_they_did(texts, at) for at in every]),
            ("features", [as_it_means_here(rows, features, at) for at in every]),
            ("learned rankers", as_learned(rows, features, texts, apart)),
        ):
            found = table[f"{name}, {protocol}"] = score(rows, predictions)
            print(f"{f'{name}, {protocol}':38}{found.type:7.3f}{found.exact:7.3f}")
    best = table["learned rankers, episode left out"]
    met = {
        name: all(getattr(best, part) >= bound for part, bound in bounds.items())
        for name, bounds in (("must", MUST), ("aim", AIM))
    }
    print(f"must {MUST}: {told(met['must'])}; aim {AIM}: {told(met['aim'])}")
    figures = []
    for name, found in table.items():
        bound = (f"{MUST['type']} / {MUST['exact']}", met["must"]) if found is best else ("", None)
        figures.append(Figure(name, f"{found.type:.3f} / {found.exact:.3f}", *bound))
    title = "Learning: the next action of an expert, type / exact"
    result = {name: found._asdict() for name, found in table.items()}
    leave(options.json, title, "python -m benches.learning.next_action", figures, scores=result)
    return 0 if met["must"] else 1


def told(met: bool) -> str:
    """Return a word for it."""
    return "met" if met else "NOT met"


if __name__ == "__main__":
    sys.exit(main())
