"""cvx recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvx.cli.failing import NOTHING
from cvx.cli.opening import opened
from cvx.cli.options import EmbedderSpec, Json, Namespace, Since, Store, Until
from cvx.cli.output import emit, line, note, plain_event, when
from cvx.cli.times import timestamp_of
from cvx.escaping import one_line

if TYPE_CHECKING:
    from cvx.types import Hit


def recall(
    cue: Annotated[str, typer.Argument(help="What you are after, in any words.")],
    k: Annotated[int, typer.Option("-k", help="How many at the most.")] = 5,
    namespace: Namespace = "",
    also: Annotated[
        list[str] | None,
        typer.Option(help="A further namespace, of which what is shared may come; repeatable."),
    ] = None,
    since: Since = None,
    until: Until = None,
    entity: Annotated[
        list[str] | None, typer.Option(help="Only of this entity; may be repeated.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Only with this label; repeated: with all.")
    ] = None,
    min_reward: Annotated[float | None, typer.Option(help="Only from this reward up.")] = None,
    outcome: Annotated[
        str, typer.Option(help="success: what may advise; failure: what may not; any.")
    ] = "success",
    floor: Annotated[
        float | None,
        typer.Option(help="Less similar events come only if they have words of the cue."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what made each score.")] = False,
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Find what fits a cue; best first. Exit code 1 where nothing does.

    For example:
      cvx recall "where is the key?"
      cvx recall "what broke" -k 10 --since 2026-11-01 --tag house --json
    """
    from cvx.types import Filter

    where = Filter(
        since=timestamp_of(since, "--since"),
        until=timestamp_of(until, "--until"),
        entities=entity or None,
        tags=tag or None,
        min_reward=min_reward,
        outcome=outcome,
    )
    if outcome not in ("success", "failure", "any"):
        raise typer.BadParameter(f"--outcome {outcome!r}: give success, failure or any")
    with opened(store, embedder, reads=True) as memory:
        hits = memory.within(namespace, also=also or ()).recall(
            cue,
            k,
            where=where,
            floor=floor,
        )
    problems = [
        *hits.trace.problems,
        *(f"{s.name}: {s.problem}" for s in hits.trace.sources if s.problem),
    ]
    if json:
        emit({"cue": cue, "hits": [_plain(hit) for hit in hits], "problems": problems})
    else:
        for problem in problems:
            note(problem)
        for hit in hits:
            _show(hit, explain=explain)
    if not hits:
        if not json:
            line("nothing fits", dim=True)
        raise typer.Exit(NOTHING)


def _plain(hit: Hit) -> dict[str, Any]:
    found = {} if hit.event is None else plain_event(hit.event)
    return found | {
        "score": hit.score,
        "similarity": hit.similarity,
        "factors": [factor._asdict() for factor in hit.factors],
    }


def _show(hit: Hit, *, explain: bool) -> None:
    event = hit.event
    if event is None:
        return
    end = "" if event.reward is None else f"  reward {event.reward:g}"
    line(f"{event.event_id:>6}  {hit.score:.4f}  {when(event.timestamp)}{end}", dim=True)
    line(f"        {one_line(event.text)}")
    if event.action:
        line(f"        did: {one_line(event.action)}")
    if explain:
        for factor in hit.factors:
            if not factor.share:
                continue
            line(
                f"        {factor.name}: {factor.value:.4f} x {factor.weight:g} = "
                f"{factor.share:.4f}",
                dim=True,
            )
