"""Computes all figures of an experiment as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cvx.scoring import wilson
from experiments.harness.arms import ARMS, FOCUS
from experiments.harness.play_arm import Played
from experiments.harness.setup import Setup, conditions, describe
from experiments.harness.statistics import Pairs, area_weights, corrected, paired_difference

Value = Callable[[Played], float]


def summary(setup: Setup, games: Sequence[Played]) -> dict[str, Any]:
    """Return all figures of an experiment.

    What is judged are the measured games, if the protocol measures, else all. *Late* are the last
    point of the curve where memory does not learn while it is measured, and the last third of the
    rounds elsewhere; *early* as many at the beginning.

    Returns
    -------
    dict
        ``conditions``, ``setup``, ``early`` and ``late`` (rounds).
        ``arms``: for each its ``title``; ``rounds``, ``early``, ``late``, ``all`` and
        ``by_task_type`` (late) with games, success (95%, Wilson over distinct games), score, steps,
        steps of won games, milliseconds a decision; ``area`` under the curve; ``seeds``: early and
        late success of each; ``gain``: late minus early success, where the games are the same;
        ``steps_saved``: the same of the steps of games won both times; ``held``: what memory held
        in each round, and the shares of successes in it; ``practice``: success on the games that
        were learned from, by round.
        ``differences``: the full loop minus each other arm, paired by seed and game, for ``late``,
        ``area`` and, where success is measured apart, ``practice`` (the last third of the rounds,
        on the games that were learned from); p also corrected by Holm's method over all of these.
        ``all`` and ``steps`` beside them.
        A rate of no game at all is None.
    """
    judged = [g for g in games if g.measured == setup.measures]
    early, late = periods(setup)
    weights = area_weights(setup.points)
    arms = {}
    for name in setup.arms:
        own = [g for g in judged if g.arm == name]
        if own:
            practice = [g for g in games if g.arm == name and not g.measured]
            arms[name] = {
                "title": ARMS[name].title,
                **_arm(setup, own, early, late),
                "area": _area(own, weights),
                "held": _held([g for g in games if g.arm == name]),
                "practice": _practice(practice),
            }
    practised = [g for g in games if setup.measures and not g.measured]
    last = range(setup.rounds - max(1, setup.rounds // 3), setup.rounds)
    differences = {
        name: {
            "late": _difference(_at(judged, late), name, _won),
            "area": _difference(judged, name, _won, weights),
            "all": _difference(judged, name, _won),
            "practice": _difference(_at(practised, last), name, _won),
            "steps": _difference(_at(judged, late), name, lambda g: float(g.steps)),
        }
        for name in arms
        if name != FOCUS and FOCUS in arms
    }
    _correct(differences)
    return {
        "conditions": conditions(setup),
        "setup": describe(setup),
        "early": early,
        "late": late,
        "arms": arms,
        "differences": differences,
    }


def scored(figures: Mapping[str, Any]) -> bool:
    """Whether a game can be won in part, so that its score says more than success does."""
    return any(
        abs(arm["all"]["score"] - arm["all"]["success"]["mean"]) > 1e-9
        for arm in figures["arms"].values()
    )


def periods(setup: Setup) -> tuple[list[int], list[int]]:
    """Return the rounds that count as early, and those that count as late."""
    points = setup.points
    n = 1 if setup.measures else max(1, len(points) // 3)
    return list(points[:n]), list(points[-n:])


def _arm(
    setup: Setup, own: Sequence[Played], early: Sequence[int], late: Sequence[int]
) -> dict[str, Any]:
    ends = _at(own, late)
    return {
        "rounds": [{"round": n, **_counts(_at(own, [n]))} for n in setup.points],
        "early": _counts(_at(own, early)),
        "late": _counts(ends),
        "all": _counts(own),
        "by_task_type": {
            kind: _counts([g for g in ends if g.task_type == kind])
            for kind in sorted({g.task_type for g in ends})
        },
        "seeds": {
            str(seed): {
                "early": _rate([g for g in _at(own, early) if g.seed == seed]),
                "late": _rate([g for g in ends if g.seed == seed]),
            }
            for seed in sorted({g.seed for g in own})
        },
        "gain": _growth(own, early[0], late[-1], _won),
        "steps_saved": _growth(own, early[0], late[-1], lambda g: float(g.steps), wins=True),
    }


def _counts(games: Sequence[Played]) -> dict[str, Any]:
    wins = [g.steps for g in games if g.won]
    decisions = sum(g.decisions for g in games)
    return {
        "games": len(games),
        "distinct": len({g.game for g in games}),
        "success": _success(games),
        "score": _mean(g.score for g in games),
        "steps": _mean(float(g.steps) for g in games),
        "steps_of_wins": _mean(map(float, wins)),
        "ms_per_decision": 1000 * sum(g.seconds for g in games) / decisions if decisions else None,
    }


def _practice(games: Sequence[Played]) -> list[dict[str, Any]]:
    rounds = sorted({g.round for g in games})
    return [{"round": n, "success": _rate(_at(games, [n]))} for n in rounds]


def _held(games: Sequence[Played]) -> list[dict[str, Any]]:
    """Return what memory held as each round began, the mean of the seeds."""
    first: dict[tuple[int, int], Played] = {}
    for game in sorted(games, key=lambda g: g.place):
        first.setdefault((game.round, game.seed), game)
    rows = []
    for number in sorted({at for at, _ in first}):
        ones = [game for (at, _), game in first.items() if at == number]
        wins, failures, advising = (
            sum(getattr(game, name) for game in ones) / len(ones)
            for name in ("wins_held", "failures_held", "failures_advising")
        )
        rows.append(
            {
                "round": number,
                "wins": wins,
                "failures": failures,
                "share_of_all": wins / (wins + failures) if wins + failures else None,
                "share_of_advice": wins / (wins + advising) if wins + advising else None,
            }
        )
    return rows


def _growth(
    own: Sequence[Played], first: int, last: int, value: Value, *, wins: bool = False
) -> dict[str, float] | None:
    """Return the last round minus the first, over the games that are in both."""
    before = {(g.seed, g.game): g for g in own if g.round == first}
    after = {(g.seed, g.game): g for g in own if g.round == last}
    if first == last:
        return None
    both = [(after[key], before[key]) for key in after if key in before]
    return _paired([(a, b) for a, b in both if not wins or (a.won and b.won)], value)


def _difference(
    games: Sequence[Played], other: str, value: Value, weights: Mapping[int, float] | None = None
) -> dict[str, float] | None:
    first = {(g.seed, g.place): g for g in games if g.arm == FOCUS}
    second = {(g.seed, g.place): g for g in games if g.arm == other}
    return _paired([(first[key], second[key]) for key in first if key in second], value, weights)


def _paired(
    both: Sequence[tuple[Played, Played]],
    value: Value,
    weights: Mapping[int, float] | None = None,
) -> dict[str, float] | None:
    """Return the first of each pair minus the second; None where there is no pair."""
    if not both:
        return None
    pairs = Pairs(
        [value(a) for a, _ in both],
        [value(b) for _, b in both],
        [a.seed for a, _ in both],
        [a.game for a, _ in both],
        None if weights is None else [weights[a.round] for a, _ in both],
    )
    return paired_difference(pairs)._asdict()


def _correct(differences: Mapping[str, Mapping[str, Any]]) -> None:
    tested = [
        found[kind]
        for found in differences.values()
        for kind in ("late", "area", "practice")
        if found[kind] is not None
    ]
    for one, p in zip(tested, corrected([one["p"] for one in tested]), strict=True):
        one["p_corrected"] = p


def _at(games: Iterable[Played], rounds: Sequence[int]) -> list[Played]:
    return [g for g in games if g.round in rounds]


def _won(game: Played) -> float:
    return float(game.won)


def _rate(games: Sequence[Played]) -> float | None:
    return _mean(map(_won, games))


def _success(games: Sequence[Played]) -> dict[str, float] | None:
    rate = _rate(games)
    if rate is None:
        return None
    # Equal games are one trial, however often each was played.
    mean, low, high = wilson(rate, len({g.game for g in games}))
    return {"mean": mean, "low": low, "high": high}


def _area(own: Sequence[Played], weights: Mapping[int, float]) -> float | None:
    rates = {n: _rate(_at(own, [n])) for n in weights}
    known = [weights[n] * rate for n, rate in rates.items() if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def _mean(values: Iterable[float]) -> float | None:
    kept = list(values)
    return sum(kept) / len(kept) if kept else None
