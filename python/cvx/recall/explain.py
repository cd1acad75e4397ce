"""Why a hit stands where it stands."""

from __future__ import annotations

from cvx.escaping import one_line
from cvx.recall.trace import Trace
from cvx.types import Hit

_LEAST = 5e-4


def explain(hit: Hit, trace: Trace | None = None) -> str:
    """Return what made the score of a hit, the greatest share first.

    The shares printed add up to the score; what contributed less than 0.0005 each is joined in one
    line.

    Parameters
    ----------
    hit : Hit
        From a recall.
    trace : Trace, optional
        Of that recall: the filters and floors that the hit has passed are named too.

    Examples
    --------
    >>> from cvx.types import Factor
    >>> hit = Hit(node=3, distance=0.1, score=0.7, similarity=0.9, entity_id=1, timestamp=9,
    ...           factors=(Factor("similarity", 0.9, 0.5, 0.45), Factor("recency", 0.5, 0.5, 0.25)))
    >>> print(explain(hit))
    score 0.700 of node 3 (similarity 0.900, distance 0.100)
      similarity            0.900 x  0.500 =  0.450   64%
      recency               0.500 x  0.500 =  0.250   36%
    """
    event = (
        ""
        if hit.event is None
        else f'event {hit.event.event_id} "{one_line(hit.event.text, 50)}", '
    )
    lines = [
        f"score {hit.score:.3f} of {event}node {hit.node} "
        f"(similarity {hit.similarity:.3f}, distance {hit.distance:.3f})"
    ]
    large = [factor for factor in hit.factors if abs(factor.share) >= _LEAST]
    small = sum(factor.share for factor in hit.factors if abs(factor.share) < _LEAST)
    for name, value, weight, share in sorted(large, key=lambda factor: -abs(factor.share)):
        part = f"{share / hit.score:>5.0%}" if hit.score else ""
        lines.append(f"  {name:<20} {value:>6.3f} x {weight:>6.3f} = {share:>6.3f} {part}")
    if small:
        lines.append(f"  {'others':<20} {'':>6}   {'':>6} = {small:>6.3f}")
    lines += [
        f"  walked {edge.from_node} -{one_line(edge.kind)} {edge.weight:.2f}-> {edge.to_node}"
        + (f": {one_line(edge.why)}" if edge.why else "")
        for edge in hit.path
    ]
    if trace is not None:
        lines.append(
            f"  passed: {one_line('; '.join([*trace.passed, f'floor {trace.floor}']), 10_000)}"
        )
    return "\n".join(lines)
