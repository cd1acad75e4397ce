"""Candidates and their columns, computed natively, are those of the plain way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import InvalidInputError
from cvx.index import RawIndex, recall_columns
from cvx.memory import Memory
from cvx.recall import Pipeline
from cvx.types import Cue, IntArray
from tests.recall.plain_view import fused_by_rank

ROWS = 30
RANKINGS = st.lists(st.lists(st.integers(0, ROWS - 1), unique=True, max_size=12), max_size=4)


def ints(numbers: list[int]) -> IntArray:
    return np.array(numbers, dtype=np.int64)


@given(
    st.lists(st.tuples(st.sets(st.integers(0, ROWS - 1), min_size=1), st.floats(0.1, 9)),
             min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
    st.lists(st.integers(0, 4), min_size=ROWS, max_size=ROWS),
    st.integers(1, 12),
)  # fmt: skip
def test_words_rank_by_the_idf_that_rows_hold(
    words: list[tuple[set[int], float]], visible: list[bool], lengths: list[int], most: int
) -> None:
    holders, idf = [ints(sorted(rows)) for rows, _ in words], [one for _, one in words]
    found, scores = recall_columns.best_by_idf(holders, idf, np.array(visible), ints(lengths), most)
    share = {
        row: sum(one for rows, one in words if row in rows) / sum(idf)
        for row in set().union(*(rows for rows, _ in words))
        if visible[row]
    }
    expected = sorted(share, key=lambda row: (-share[row], lengths[row], -row))[:most]
    assert found.tolist() == expected
    assert scores.tolist() == [share[row] for row in expected]


@given(RANKINGS)
def test_votes_are_those_of_reciprocal_rank_fusion(rankings: list[list[int]]) -> None:
    rows, scores = recall_columns.votes([ints(one) for one in rankings], 60.0)
    fused = fused_by_rank(rankings)
    assert rows.tolist() == [*fused]
    assert scores.tolist() == pytest.approx([*fused.values()], abs=1e-15)


@given(
    RANKINGS,
    st.integers(0, 20),
    st.integers(0, 9),
    st.integers(0, 2),
    st.lists(st.integers(-1, ROWS - 1), max_size=5),
    st.sets(st.integers(0, ROWS - 1)),
    st.sets(st.integers(0, ROWS - 1)),
)
def test_a_table_holds_what_was_found_and_its_neighbours_with_what_each_source_says(
    rankings: list[list[int]],
    net: int,
    most: int,
    reach: int,
    others: list[int],
    hidden: set[int],
    unseen: set[int],
) -> None:
    # Sessions of ten rows, one after the other.
    before = ints([row - 1 if row % 10 else -1 for row in range(ROWS)])
    after = ints([row + 1 if row % 10 < 9 else -1 for row in range(ROWS)])
    readable = np.array([row not in hidden for row in range(ROWS)])
    visible = readable & [row not in unseen for row in range(ROWS)]
    pairs = [(ints(one), np.linspace(1, 0, len(one))) for one in rankings]
    rows, columns = recall_columns.candidates(
        pairs, 60.0, net, most, reach, ints(others), before, after, readable, visible
    )
    votes = fused_by_rank(rankings)
    best = [*votes][:net]
    beside = {
        near
        for row in best[:most]
        for near in range(row - reach, row + reach + 1)
        if near // 10 == row // 10 and near >= 0
    }
    wanted = {*best, *others, *beside} - {-1}
    assert rows.tolist() == sorted(row for row in wanted if visible[row])
    assert columns.shape == (2 * len(rankings) + 1, len(rows))
    for at, row in enumerate(rows.tolist()):
        for one, (held, scores) in enumerate(pairs):
            there = held.tolist().index(row) if row in held else None
            expected = (np.nan, np.nan) if there is None else (there + 1, scores[there])
            np.testing.assert_array_equal(columns[2 * one : 2 * one + 2, at], expected)
        assert columns[-1, at] == pytest.approx(votes.get(row, 0.0), abs=1e-15)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_distances_are_those_of_a_search(metric: str) -> None:
    random = np.random.default_rng(0)
    index = RawIndex(dim=24, metric=metric)
    rows = random.normal(size=(200, 24)).astype(np.float32)
    nodes = index.bulk_insert(vectors=rows)
    index.delete(nodes[7:9])
    query = random.normal(size=24).astype(np.float32)
    asked = random.permutation(210)
    far = dict(zip(asked.tolist(), index.distances(query, asked).tolist(), strict=True))
    ids, distances = index.search(query, 198)
    assert [far[node] for node in ids.tolist()] == distances.tolist()
    assert all(np.isnan(far[node]) for node in (7, 8, *range(200, 210)))
    kept = index.vectors(ints([5, 7, -1, 2**40]))
    assert (kept[0] == rows[5]).all()
    assert not kept[1:].any()


def test_rows_that_there_are_not_are_refused() -> None:
    none, flags = ints([-1, -1]), np.ones(2, dtype=np.bool_)
    for rows in ([2], [-1]):
        with pytest.raises(InvalidInputError, match=f"no row {rows[0]}: there are 2"):
            recall_columns.window(ints(rows), none, none, flags, 1)
    with pytest.raises(InvalidInputError, match="columns have"):
        recall_columns.window(none, none, ints([]), flags, 1)
    astray = ints([7, -1])
    with pytest.raises(InvalidInputError, match="no row 7: there are 2"):
        recall_columns.window(ints([0]), none, astray, flags, 1)
    found = [(ints([0]), np.ones(1))]
    with pytest.raises(InvalidInputError, match="no row 7: there are 2"):
        recall_columns.candidates(found, 60.0, 1, 1, 1, none, astray, none, flags, flags)
    gone = [(ints([9]), np.ones(1))]
    with pytest.raises(InvalidInputError, match="no row 9: there are 2"):
        recall_columns.candidates(gone, 60.0, 1, 1, 1, none, none, none, flags, flags)
    with pytest.raises(InvalidInputError, match="reach is 4611686018427387904: "):
        recall_columns.neighbourhood(ints([0]), none, none, flags, 2**62)
    near, places = recall_columns.neighbourhood(ints([0]), none, ints([1, -1]), flags, 1)
    holders: list[IntArray] = []
    rest = holders, [0.0][:0], flags, ints([1, 1]), ints([0, 0])
    with pytest.raises(InvalidInputError, match="columns have"):
        recall_columns.signal_columns(near, places, np.zeros(1), *rest)
    with pytest.raises(InvalidInputError, match="a window has 1 rows"):
        recall_columns.signal_columns(near, places[:, :1].copy(), np.zeros(2), *rest)
    with pytest.raises(InvalidInputError, match="columns have"):
        recall_columns.weighed([np.zeros(2), np.zeros(1)], [1.0, 1.0])
    with pytest.raises(InvalidInputError, match="columns have"):
        recall_columns.stretched([np.zeros(2), np.zeros(1)])
    zeros = np.zeros(2)
    with pytest.raises(InvalidInputError, match="no row 2: there are 2"):
        recall_columns.best(zeros, ints([2]), zeros, zeros, zeros, ints([0, 1]), 9)


NUMBERS = st.sampled_from((0.0, -0.0, 0.5, 0.5 + 1e-12, 1.0, -2.0))


@given(
    st.lists(
        st.tuples(NUMBERS, NUMBERS | st.just(np.nan), NUMBERS, NUMBERS), min_size=1, max_size=9
    ),
    st.data(),
)
def test_the_best_come_first_and_ties_are_decided_in_turn(
    rows: list[tuple[float, float, float, float]], data: st.DataObject
) -> None:
    places = data.draw(st.permutations(range(len(rows))).map(lambda some: some[1:]))
    score, salience, time, votes = (np.array(column) for column in zip(*rows, strict=True))
    events = ints([*range(5, 5 + len(rows))])
    found = recall_columns.best(score, ints([*places]), salience, time, votes, events, 9)

    def key(place: int) -> tuple[float, ...]:
        matters = 0.0 if np.isnan(salience[place]) else salience[place]
        return -round(score[place], 9), -matters, -time[place], -votes[place], events[place]

    assert found.tolist() == sorted(places, key=key)


@pytest.mark.parametrize("reach", [-1, 1_001, 2**62, 2**63, 2**64])
def test_a_reach_that_no_memory_could_hold_is_refused(reach: int) -> None:
    with pytest.raises(InvalidInputError, match=f"reach is {reach}: "):
        Pipeline(reach=reach)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_a_hit_is_as_far_as_the_index_says_and_no_distance_away_without_a_vector(
    metric: str,
) -> None:
    memory = Memory(dim=2, metric=metric)
    for vector in ([1.0, 0.0], [0.6, 0.9], [0.0, 2.0]):
        memory.add("a horse", vector=np.array(vector, dtype=np.float32), timestamp=len(vector))
    query = np.array([0.8, 0.5], dtype=np.float32)
    hits = memory.recall(Cue("horse", vector=query))
    nodes, distances = memory.index.search(query, 3)
    expected = dict(zip(nodes.tolist(), distances.tolist(), strict=True))
    assert len(hits) == 3
    for hit in hits:
        assert hit.distance == pytest.approx(expected[hit.node], abs=1e-6)
    wordy = memory.recall("horse", pipeline=Pipeline())
    assert len(wordy) == 3
    for hit in wordy:
        assert (hit.distance, hit.similarity) == (np.inf, 0.0)
