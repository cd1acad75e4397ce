"""Usage counts: how often a memory was retrieved, followed, and helped; its success rate."""

from __future__ import annotations

import copy
import json
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Literal, NamedTuple, Self

from cvx.arguments import a_share, above_zero, among, number
from cvx.scoring.formulas import beta_mean, censored_failure, usage_ratio
from cvx.scoring.scorer import Feature, ScoringContext
from cvx.store import Record, Writer
from cvx.store.rows import use_context, whose_use
from cvx.types import Hit


class UsageCount(NamedTuple):
    """How often something was recalled, taken up, and taken up in an episode that succeeded.

    ``helped`` is no whole number where episodes were cut off: each counts by its chance. Nor is any
    of them where the source of an episode is not fully trusted: each counts by its trust.
    """

    retrieved: float = 0
    followed: float = 0
    helped: float = 0


class Whose(NamedTuple):
    """Who may read the episodes in which use was counted, and their source.

    Attributes
    ----------
    readers : str, default ""
        Who may read them, see ``cvx.store.namespaces.readers``.
    source : str, default ""
        Where they come from.
    """

    readers: str = ""
    source: str = ""


_NEVER = UsageCount()
_NOBODY = Whose()


class UsageTracker:
    """Counts of use by context, and the rate of success of following it.

    A context is whatever the counts are to be kept for: a node, an entity, or a tuple such as
    (family of goals, entity). Only what was followed says something about success: what was
    retrieved and ignored is counted, but not held against it.

    Parameters
    ----------
    mode : {"beta", "ratio"}, default "beta"
        The mean of a Beta posterior, or RFC-013's helped / (helped + followed).
    strength : float, default 0.3
        How many uses the prior is worth; above 0. A weak prior lets one failure speak.
    mean : float or "similarity", default 0.5
        The success that the prior expects, in [0, 1]; or that it is how similar something was when
        it was recalled (as `use_posterior` has it), 0.5 where that is not known.

    Examples
    --------
    >>> usage = UsageTracker()
    >>> usage.add(("clean", 4), followed=True, helped=True)
    >>> usage.count(("clean", 4)), round(usage[("clean", 4)], 4), usage[("heat", 4)]
    (UsageCount(retrieved=1, followed=1, helped=1), 0.8846, 0.5)
    """

    def __init__(
        self,
        *,
        mode: Literal["beta", "ratio"] = "beta",
        strength: float = 0.3,
        mean: float | Literal["similarity"] = 0.5,
    ) -> None:
        self.by_similarity = mean == "similarity"
        self.mean = 0.5 if mean == "similarity" else a_share("mean", mean)
        self.mode = among("beta", "ratio")("mode", mode)
        self.strength = above_zero("strength", strength)
        self._parts: dict[Whose, dict[Hashable, UsageCount]] = {}
        self._readers: Collection[str] | None = None
        self._without: Collection[str] = ()

    def within(self, readers: Collection[str], without: Collection[str] = ()) -> Self:
        """Return what an asker may know of the counts; both go on counting together.

        Parameters
        ----------
        readers : collection of str
            Whom the asker goes by, see ``cvx.store.namespaces.reads``.
        without : collection of str
            Sources whose episodes do not count.
        """
        view = copy.copy(self)
        view._readers, view._without = readers, without
        return view

    def _known(self) -> list[dict[Hashable, UsageCount]]:
        return [
            part
            for whose, part in self._parts.items()
            if (self._readers is None or whose.readers in self._readers)
            and whose.source not in self._without
        ]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Hashable]:
        return iter({context: None for part in self._known() for context in part})

    def __getitem__(self, context: Hashable) -> float:
        return self.success(context)

    def count(self, context: Hashable) -> UsageCount:
        """Return the counts of a context; zeros if it was never recalled."""
        found = [count for part in self._known() if (count := part.get(context)) is not None]
        if len(found) < 2:
            return found[0] if found else _NEVER
        return UsageCount(*map(sum, zip(*found, strict=True)))

    def success(self, context: Hashable) -> float:
        """Return how well following it went, in [0, 1]."""
        found = self.count(context)
        if self.mode == "ratio":
            return usage_ratio(found.helped, found.followed)
        return beta_mean(found.helped, found.followed, self.strength, self.mean)

    def add(
        self,
        context: Hashable,
        *,
        followed: bool,
        helped: bool,
        exposure: float = 1.0,
        mean: float | None = None,
        whose: Whose = _NOBODY,
        weight: float = 1,
    ) -> None:
        """Count one episode in which it was recalled.

        Parameters
        ----------
        context : hashable
            What was recalled.
        followed : bool
            Whether its advice was taken.
        helped : bool
            Whether the episode then succeeded; counts only together with ``followed``.
        exposure : float, default 1.0
            Below 1 an episode without success was cut off: the chance that one which succeeds had
            done so by then, in [0, 1]. It counts as a success by its chance still to become one,
            see `censored_failure`.
        mean : float, optional
            What the prior expects of this context, in [0, 1], for the sake of that chance; default
            ``mean``. It has to be that of whoever reads the counts: with another, to have been cut
            off would raise what was thought unlikely.
        whose : Whose, optional
            Whose episode it is; by default nobody's, which the default namespace reads.
        weight : float, default 1
            How much it counts: the trust in its source.

        Raises
        ------
        InvalidInputError
            The exposure or the mean is outside [0, 1].

        Examples
        --------
        >>> usage = UsageTracker()
        >>> usage.add("plan", followed=True, helped=False, exposure=0.1)
        >>> round(usage["plan"], 2)    # it had hardly begun: near the 0.5 of before
        0.48
        """
        self.put(
            {
                context: self.after(
                    context,
                    followed=followed,
                    helped=helped,
                    exposure=exposure,
                    mean=mean,
                    whose=whose,
                    weight=weight,
                )
            },
            whose,
        )

    def after(
        self,
        context: Hashable,
        *,
        followed: bool,
        helped: bool,
        exposure: float = 1.0,
        mean: float | None = None,
        whose: Whose = _NOBODY,
        weight: float = 1,
    ) -> UsageCount:
        """Return what the counts of a context would be after one more episode; see ``add``."""
        exposure = a_share("exposure", exposure)
        prior = self.mean if mean is None else a_share("mean", mean)
        gain: float = followed and helped
        if followed and not helped and exposure < 1:
            known = self.count(context)
            expected = beta_mean(known.helped, known.followed, self.strength, prior)
            gain = 1 - censored_failure(expected, exposure)
        old = self._parts.get(whose, {}).get(context, _NEVER)
        return UsageCount(
            old.retrieved + weight, old.followed + weight * followed, old.helped + weight * gain
        )

    def put(self, counts: Mapping[Hashable, UsageCount], whose: Whose = _NOBODY) -> None:
        """Set the counts of contexts in somebody's episodes."""
        self._parts.setdefault(whose, {}).update(counts)

    def save(
        self,
        write: Writer,
        counts: Mapping[Hashable, UsageCount] | None = None,
        whose: Whose = _NOBODY,
    ) -> None:
        """Store counts in somebody's episodes, or all that there are in anybody's.

        Parameters
        ----------
        write : Writer
            An open transaction.
        counts : mapping of hashable to UsageCount, optional
            By contexts made of strings, numbers, None and tuples of them.
        whose : Whose, optional
            Together with ``counts``.
        """
        chosen = self._parts if counts is None else {whose: counts}
        write.set_usage(
            (
                _compact(use_context(context, *name)),
                _stored(n.retrieved),
                _stored(n.followed),
                _stored(n.helped),
            )
            for name, part in chosen.items()
            for context, n in part.items()
        )

    def load(self, record: Record, *, anew: bool = False) -> None:
        """Take over the counts of a record, replacing those of the same contexts, or all."""
        if anew:
            self._parts.clear()
        for text, *count in record.usage():
            context, *whose = whose_use(json.loads(text))
            self._parts.setdefault(Whose(*whose), {})[_from_json(context)] = UsageCount(*count)


def use_posterior(
    usage: UsageTracker,
    key: Callable[[Hit, str | None], Hashable],
    strength: float | None = None,
) -> Feature:
    """Return a feature: the success to expect of following a hit, at first its similarity.

    The mean of a Beta posterior whose prior expects the hit's similarity, cut to [0, 1]: without
    any use the order is that of similarity, and a few uses overrule it.

    Parameters
    ----------
    usage : UsageTracker
        Its counts are read; in a loop, those of them that the asker may know. Give it
        ``mean="similarity"`` where episodes are cut off (`add`).
    key : callable
        From (hit, family of goals) to the context in which its use is counted, as in
        ``ActiveMemory``.
    strength : float, optional
        How many uses the prior is worth; default that of ``usage``.

    Examples
    --------
    >>> usage = UsageTracker(strength=0.3, mean="similarity")
    >>> feature = use_posterior(usage, lambda hit, task: (task, hit.entity_id))
    >>> hit = Hit(node=0, distance=0.2, score=0.8, similarity=0.8, entity_id=7, timestamp=0)
    >>> round(feature(hit, ScoringContext(task_type="clean")), 2)
    0.8
    >>> usage.add(("clean", 7), followed=True, helped=False)
    >>> round(feature(hit, ScoringContext(task_type="clean")), 2)
    0.18
    """
    prior = usage.strength if strength is None else strength

    def feature(hit: Hit, context: ScoringContext) -> float:
        expected = min(max(hit.similarity, 0.0), 1.0)
        known = usage if context.told is None else context.told(usage)
        counts = known.count(key(hit, context.task_type))
        return beta_mean(counts.helped, counts.followed, prior, expected)

    return feature


def _stored(count: float) -> float:
    """Return a count as the record gives it back: a whole number as such."""
    return int(count) if float(count).is_integer() else count


_compact = json.JSONEncoder(separators=(",", ":")).encode


def _from_json(value: object) -> Hashable:
    if isinstance(value, list):
        return tuple(_from_json(part) for part in value)
    return value


class Durations:
    """Times that successes took, by context: what share of them is through by a time.

    Of n successes, k of which were through by then, the next one is with chance k / (n + 1), since
    it may fall into any gap between them. That is the prior of each context, worth one success.

    Only successes are taken in. What counts is success within the time allowed, so a trial that
    used all of it has failed, and one that was cut off before had its chance so far as successes
    are that quick.

    Examples
    --------
    >>> durations = Durations()
    >>> for time in (4, 6, 9):
    ...     durations.add("plan", time)
    >>> [durations.done_by(time, "another plan") for time in (3, 4, 6, 50)]
    [0.0, 0.25, 0.5, 0.75]
    >>> durations.done_by(50, "plan")
    0.9375
    """

    def __init__(self) -> None:
        self._all: list[float] = []
        self._own: defaultdict[Hashable, list[float]] = defaultdict(list)

    def add(self, context: Hashable, time: float) -> None:
        """Take in how long a success took.

        Parameters
        ----------
        context : hashable
            What succeeded.
        time : float
            In any unit, 0 or more.

        Raises
        ------
        InvalidInputError
            The time is no such number.
        """
        time = number(0.0)("time", time)
        insort(self._all, time)
        insort(self._own[context], time)

    def done_by(self, time: float, context: Hashable) -> float:
        """Return the chance that a success is through by a time; 1 where nothing is known.

        Parameters
        ----------
        time : float
            In the unit of the others.
        context : hashable
            What is tried.
        """
        if not self._all:
            return 1.0
        own = self._own.get(context, [])
        prior = bisect_right(self._all, time) / (len(self._all) + 1)
        return (bisect_right(own, time) + prior) / (len(own) + 1)
