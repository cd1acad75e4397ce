"""Small random worlds of talk for the signals, as hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.recall.plain_view import PlainView, Said

WORDS = ("lake", "paint", "horse", "violin", "garden", "storm", "bread", "the", "we")
QUESTIONS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(
    lambda words: f"What about {' '.join(words)}?"
)


@st.composite
def talks(draw: st.DrawFn) -> PlainView:
    """One to twelve turns in up to three sessions, of up to three speakers, out of order."""
    count = draw(st.integers(1, 12))
    said = []
    for _ in range(count):
        words = draw(st.lists(st.sampled_from(WORDS), max_size=6))
        said.append(
            Said(
                " ".join(words) + draw(st.sampled_from(("", "?", "!"))),
                entity=draw(st.integers(0, 2)),
                timestamp=draw(st.integers(0, 5)),
                session=draw(st.integers(0, 2)),
            )
        )
    similarity = draw(
        st.lists(
            st.floats(-1, 1, allow_subnormal=False) | st.just(float("nan")),
            min_size=count,
            max_size=count,
        )
    )
    names = {"ann": frozenset({0}), "bob": frozenset({1})}
    return PlainView(said, similarity, names)
