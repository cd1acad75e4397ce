"""Predicts whether a task succeeds, from other trials of it or of other tasks.

Airline episodes of tau-bench (50 tasks, 4 trials each). Everything is fixed beforehand, so nothing
is tuned on what is measured: a prior's strength follows from the number of features, and the
witnesses are averaged.

    python -m benches.learning.tau
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benches.figures import RUNS, Figure, leave
from benches.learning.pairs import Interval, pair_auc, pooled_auc
from benches.learning.tasks import Tasks, complexity, known_words
from cvx.scoring import Calibration, LearnedWeights, calibration, evidence_posterior
from cvx.scoring.logistic import Floats, sigmoid

ROOT = Path(__file__).resolve().parents[2]
ORACLE, BEST_BEFORE, ECE_MUST = 0.78, 0.64, 0.08
NEIGHBOURS = 10

Predict: TypeAlias = Callable[[Tasks, Sequence[int], Sequence[int]], Floats]
"""From the tasks known and those asked about to the chance of success of each of the latter."""


def from_complexity(tasks: Tasks, known: Sequence[int], asked: Sequence[int]) -> Floats:
    """Return what the length and shape of the texts lets expect."""
    columns = np.array([complexity(text) for text in tasks.texts])
    return _by_weights(columns, tasks, known, asked)


def from_words(tasks: Tasks, known: Sequence[int], asked: Sequence[int]) -> Floats:
    """Return what the words lets expect that several known tasks use."""
    return _by_weights(known_words(tasks.texts, known), tasks, known, asked)


def _by_weights(
    columns: Floats, tasks: Tasks, known: Sequence[int], asked: Sequence[int]
) -> Floats:
    # Beforehand, all features together move the log odds by about one: a variance of 1 / d each.
    # The trials of a task are one observation, so that penalty is counted once for each of them.
    strength = tasks.trials * columns.shape[1]
    names = [str(place) for place in range(columns.shape[1])]
    learned = LearnedWeights(names, strength=strength)
    rows = np.repeat(columns[known], tasks.trials, axis=0)
    return learned.update(rows, tasks.outcomes[known].ravel()).predict(columns[asked])


def from_similar(tasks: Tasks, known: Sequence[int], asked: Sequence[int]) -> Floats:
    """Return the posterior of what the most similar known tasks came to."""
    base = float(tasks.outcomes[known].mean())
    out = []
    for task in asked:
        rewards, similarities = tasks.recall(task, known, NEIGHBOURS * tasks.trials)
        # Again the trials of a task are one observation; the prior is worth two.
        posterior = evidence_posterior(rewards, similarities, mean=base, strength=2 * tasks.trials)
        out.append(posterior.mean)
    return np.array(out)


def together(tasks: Tasks, known: Sequence[int], asked: Sequence[int]) -> Floats:
    """Return the mean log odds of the three as a chance (a logarithmic opinion pool)."""
    chances = np.array([witness(tasks, known, asked) for witness in WITNESSES.values()])
    return sigmoid(np.log(chances / (1.0 - chances)).mean(axis=0))


def base_rate(tasks: Tasks, known: Sequence[int], asked: Sequence[int]) -> Floats:
    """Return the share of successes of the known tasks: no signal."""
    return np.full(len(asked), tasks.outcomes[known].mean())


WITNESSES: dict[str, Predict] = {
    "complexity": from_complexity,
    "words": from_words,
    "similar tasks": from_similar,
}


def from_other_trials(tasks: Tasks) -> Floats:
    """Return the posterior of each trial from the other trials of its task, (tasks, trials).

    The prior's mean is a constant: the base rate of the other tasks is the lower, the better this
    task ends, and would order trials with equal evidence backwards.
    """
    chances = np.empty(tasks.outcomes.shape)
    for task in range(len(tasks.texts)):
        rewards, similarities = tasks.recall(task, [task], tasks.trials)
        for trial in range(tasks.trials):
            others = np.arange(tasks.trials) != trial
            chances[task, trial] = evidence_posterior(rewards[others], similarities[others]).mean
    return chances


def one_left_out(tasks: Tasks, predict: Predict) -> Floats:
    """Return the prediction of each task from all others, repeated by trial."""
    everyone = range(len(tasks.texts))
    chances = [predict(tasks, [t for t in everyone if t != task], [task])[0] for task in everyone]
    return np.repeat(np.array(chances)[:, None], tasks.trials, axis=1)


def judged(tasks: Tasks, chances: Floats) -> Calibration:
    """Return the calibration of predictions, resampled by task."""
    groups = np.repeat(np.arange(len(tasks.texts)), tasks.trials)
    return calibration(chances.ravel(), tasks.outcomes.ravel(), groups)


class Row(NamedTuple):
    """What predictions are worth.

    Attributes
    ----------
    auc : Interval
        Over pairs of tasks that were left out together; of given predictions, pooled.
    pooled : float
        AUC of predictions that were made leaving out one task at a time.
    calibration : Calibration
        Of the latter.
    """

    auc: Interval
    pooled: float
    calibration: Calibration


def measured(tasks: Tasks) -> dict[str, Row]:
    """Return the rows of the table by their names."""
    same = from_other_trials(tasks)
    auc = pooled_auc(tasks.outcomes, same)
    table = {"other trials of the task": Row(auc, auc.value, judged(tasks, same))}
    shuffled = tasks.shuffled(seed=0)
    for name, some, predict in (
        *((name, tasks, witness) for name, witness in WITNESSES.items()),
        ("all three", tasks, together),
        ("base rate", tasks, base_rate),
        ("all three, outcomes shuffled", shuffled, together),
    ):
        alone = one_left_out(some, predict)
        table[f"other tasks: {name}"] = Row(
            pair_auc(some.outcomes, partial(predict, some)),
            pooled_auc(some.outcomes, alone).value,
            judged(some, alone),
        )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where a bound is missed, 0 where the data is absent too."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.environ.get("CVX_DATA", str(ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--json", type=Path, default=RUNS / "tau.json")
    options = parser.parse_args(arguments)
    path = options.data / "taubench" / "episodes.jsonl"
    if not path.is_file():
        print(f"tau-bench: skipped, {options.data} has no taubench/episodes.jsonl")
        return 0
    tasks = Tasks.load(path)
    table = measured(tasks)
    print(
        f"{len(tasks.texts)} tasks x {tasks.trials} trials, {tasks.outcomes.mean():.2f} succeed; "
        "intervals by resampling tasks"
    )
    print(f"{'':42}{'AUC':22}{'pooled':>8}{'Brier':>8}{'ECE':>8}")
    for name, row in table.items():
        auc = f"{row.auc.value:.3f} [{row.auc.low:.2f}, {row.auc.high:.2f}]"
        found = row.calibration
        print(f"{name:42}{auc:22}{row.pooled:8.3f}{found.brier.value:8.3f}{found.ece.value:8.3f}")
    same, other = table["other trials of the task"], table["other tasks: all three"]
    met = {
        f"same task, AUC {ORACLE}": round(same.pooled, 2) >= ORACLE,
        f"same task, ECE < {ECE_MUST}": same.calibration.ece.value < ECE_MUST,
        f"other tasks, AUC > {BEST_BEFORE}": other.auc.value > BEST_BEFORE,
        f"other tasks, ECE < {ECE_MUST}": other.calibration.ece.value < ECE_MUST,
    }
    print("; ".join(f"{name}: {'met' if good else 'NOT met'}" for name, good in met.items()))
    print(
        f"{len(tasks.texts)} tasks are few: that other tasks say "
        f"{'something' if other.auc.low > 0.5 else 'anything'} is "
        f"{'sure' if other.auc.low > 0.5 else 'not sure'}; that they say more than "
        f"{BEST_BEFORE} is {'sure' if other.auc.low > BEST_BEFORE else 'not'}"
    )
    rows = {
        name: {"auc": row.auc, "pooled": row.pooled, "calibration": row.calibration.to_dict()}
        for name, row in table.items()
    }
    figures = [
        Figure(name, f"AUC {row.auc.value:.3f}, ECE {row.calibration.ece.value:.3f}")
        for name, row in table.items()
    ]
    figures += [Figure(name, "", "must", good) for name, good in met.items()]
    title = "Learning: P(success) of real agents' trajectories"
    leave(options.json, title, "python -m benches.learning.tau", figures, table=rows)
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
