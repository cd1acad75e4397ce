"""Commands that read: recall, why, causes, stats and eval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvx.cli.console import (
    NOTHING,
    EmbedderSpec,
    Json,
    Namespace,
    Since,
    Store,
    Until,
    emit,
    line,
    note,
    note_elsewhere,
    opened,
    plain_event,
    show_event,
    timestamp_of,
)
from cvx.dates import when
from cvx.escaping import one_line

if TYPE_CHECKING:
    from cvx.memory.causes import StoryStep
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
        if not hits and not json:
            line("nothing fits", dim=True)
            note_elsewhere(memory, namespace)
    problems = [
        *hits.trace.problems,
        *(f"{s.name}: {s.problem}" for s in hits.trace.sources if s.problem),
    ]
    if json:
        emit({"cue": cue, "hits": [_hit_json(hit) for hit in hits], "problems": problems})
    else:
        for problem in problems:
            note(problem)
        for hit in hits:
            _show_hit(hit, explain=explain)
    if not hits:
        raise typer.Exit(NOTHING)


def _hit_json(hit: Hit) -> dict[str, Any]:
    found = {} if hit.event is None else plain_event(hit.event)
    return found | {
        "score": hit.score,
        "similarity": hit.similarity,
        "factors": [factor._asdict() for factor in hit.factors],
    }


def _show_hit(hit: Hit, *, explain: bool) -> None:
    if hit.event is None:
        return
    show_event(hit.event, f"{hit.score:.4f}  ")
    for factor in hit.factors if explain else ():
        if factor.share:
            line(
                f"        {factor.name}: {factor.value:.4f} x {factor.weight:g} = "
                f"{factor.share:.4f}",
                dim=True,
            )


def why(
    event: Annotated[str, typer.Argument(help="The id of the event, or words that find it.")],
    depth: Annotated[int, typer.Option(min=1, help="How many links away at the most.")] = 5,
    consequences: Annotated[
        bool, typer.Option("--consequences", help="What it led to, instead of what led to it.")
    ] = False,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Who asks; by default whoever the event is of."),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Say what led to an event, over its links backwards. Exit code 1 where nothing is known.

    For example:
      cvx link 1 2 --why "the drain is too small"
      cvx why 2
      cvx why "the cellar flooded"
    """
    number = int(event) if event.isascii() and event.isdecimal() else None
    with opened(store, embeds=number is None, reads=True) as memory:
        if number is not None and namespace is None:
            namespace = memory.get(number).namespace
        walk = memory.consequences if consequences else memory.why
        meant = event if number is None else number
        story = walk(meant, namespace=namespace, max_depth=depth)
        asked = story.of
    if json:
        emit(
            {
                "event": plain_event(asked),
                "steps": [_step_json(step) for step in story.steps],
                "narrative": str(story),
                "truncated": story.truncated,
                "deeper": story.deeper,
            }
        )
    else:
        line(f"{asked.id:>6}  {when(asked.timestamp)}", dim=True)
        line(f"        {one_line(asked.text)}")
        for step in story.steps:
            _show_step(step, consequences=consequences)
        if story:
            line()
            line(one_line(str(story), 10_000))
    if not story:
        if not json:
            line("nothing is known to have come of it" if consequences else "no cause is known")
        raise typer.Exit(NOTHING)


def causes(
    event: Annotated[str, typer.Argument(help="The id of the event, or words that find it.")],
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="How many at the most.")] = 5,
    draw: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Link what is at least so likely.")
    ] = 0.5,
    store: Store = None,
    json: Json = False,
) -> None:
    """Propose what led to an event, and link what is likely. Exit code 1 where nothing is.

    What is less likely is kept as a candidate that no story tells.

    For example:
      cvx causes "the cellar flooded"
      cvx why "the cellar flooded"
    """
    number = int(event) if event.isascii() and event.isdecimal() else None
    with opened(store, embeds=number is None) as memory:
        made = memory.causes.propose(event if number is None else number, count, draw=draw)
        texts = [memory.get(int(link.cause)).text for link in made]
    for link, text in zip(made, texts, strict=True):
        if json:
            emit(
                {"cause": link.cause, "effect": link.effect, "text": text}
                | {"probability": link.probability, "state": link.state, "why": link.why}
            )
        else:
            line(f"{link.cause:>6}  {link.weight:.0%}  {link.state}")
            line(f"        {one_line(text)}")
            if link.why:
                line(f"            {one_line(link.why)}", dim=True)
    if not made:
        if not json:
            line("nothing that is remembered is likely to have led to it")
        raise typer.Exit(NOTHING)


def _step_json(step: StoryStep) -> dict[str, Any]:
    edge = step.edge
    return {
        "depth": step.depth,
        "event": plain_event(step.event),
        "link": {
            "from": edge.cause,
            "to": edge.effect,
            "kind": edge.kind,
            "weight": edge.weight,
            "why": edge.why,
            "evidence": edge.evidence,
        },
    }


def _show_step(step: StoryStep, *, consequences: bool) -> None:
    indent = "    " * step.depth
    word = "led to" if consequences else "because"
    reason = f": {one_line(step.edge.why)}" if step.edge.why else ""
    line(f"        {indent}{word} ({step.edge.kind}, {step.edge.weight:g}){reason}", dim=True)
    line(f"{step.event.event_id:>6}  {indent}{one_line(step.event.text)}")


_NAMESPACES = "SELECT namespace, count(*) FROM events GROUP BY namespace ORDER BY namespace"


def stats(store: Store = None, json: Json = False) -> None:
    """Count what the memory holds, and say what it is made with.

    For example:
      cvx stats --json
    """
    from cvx.store.store import size_of

    with opened(store, embeds=False, reads=True) as memory:
        counts = memory.admin.stats()
        told = {
            "store": str(memory.folder),
            "events": counts["events"],
            "active": counts["active"],
            "put_away": counts["events"] - counts["active"],
            "episodes": counts["episodes"],
            "links": counts["links"],
            "aliases": memory.record.query("SELECT count(*) FROM aliases")[0][0],
            "namespaces": dict(memory.record.query(_NAMESPACES)),
            "bytes": size_of(memory.folder),
            "embedder": memory.record.meta("embedder_spec"),
            "embedder_id": counts["embedder"],
            "dim": memory.dim,
            "metric": memory.metric,
            "changes": counts["seq"],
            "history": counts["history"],
            "snapshot_of": counts["snapshot_seq"],
            "snapshots_refused": counts["snapshots_refused"],
            "damaged": counts["damaged"],
            "calibration": counts["calibration"],
            "sources": counts["sources"],
        }
    if json:
        emit(told)
        return
    for key, value in told.items():
        if key == "namespaces":
            for name, number in told["namespaces"].items():
                line(f"{'namespace':<18} {name or '(default)'}: {number}")
        elif key == "history":
            for name in ("decisions", "changes"):
                line(f"{f'{name} kept':<18} {value[name]} (at most {value[f'most_{name}']})")
        elif key == "calibration" and value is not None:
            _show_calibration(value)
        elif key == "sources":
            for space, sources in value.items():
                for name, known in sources.items():
                    said = f"advice helped {known['helped']}, failed {known['failed']}"
                    said += ", left out of recall" if known["left_out"] else ""
                    whose = f" in {space}" if space else ""
                    line(f"{'source':<18} {name or '(no label)'}{whose}: {said}")
        elif value not in (None, [], 0) or key == "events":
            line(f"{key.replace('_', ' '):<18} {value}")


def _show_calibration(calibration: dict[str, Any]) -> None:
    brier, ece = calibration["brier"], calibration["ece"]
    line(
        f"{'predictions':<18} {calibration['n']} of {calibration['groups']} episodes, "
        f"Brier {brier[0]:.3f} [{_bound(brier[1])}, {_bound(brier[2])}], "
        f"ECE {ece[0]:.3f} [{_bound(ece[1])}, {_bound(ece[2])}]"
    )
    for one in calibration["bins"]:
        happened, low, high = one["happened"]
        line(
            f"{'':<18} expected {one['predicted']:.2f}, happened {happened:.2f} "
            f"[{low:.2f}, {high:.2f}], n {one['n']}"
        )


def _bound(figure: float | None) -> str:
    """A bound that one episode alone cannot give is unknown."""
    return "?" if figure is None else f"{figure:.3f}"


def eval_(
    labels: Annotated[
        Path,
        typer.Argument(help="JSON Lines: query, gold (event ids or keys); see docs/evaluation.md."),
    ],
    tune: Annotated[
        bool,
        typer.Option("--tune", help="Fit the weights; each question measures those of others."),
    ] = False,
    folds: Annotated[int, typer.Option(min=2, help="With --tune: in so many parts.")] = 5,
    at: Annotated[
        list[int] | None, typer.Option("--at", help="Where rankings are cut; default 5, 10, 20.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Let the store recall with what was fitted to all.")
    ] = False,
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Measure recall on labelled questions, beside the plain ways.

    For example:
      cvx eval questions.jsonl
      cvx eval questions.jsonl --tune --save
    """
    from cvx import evaluation as ev

    if save and not tune:
        raise typer.BadParameter("--save keeps what was fitted: give --tune too")
    asked, cuts, tuning = ev.read_labels(labels), at or ev.AT, None
    with opened(store, embedder, reads=not save) as memory:
        gold = ev.resolved(memory, asked)
        rankers = {**ev.baselines(memory), "this memory": ev.recalling(memory)}
        measured = [ev.measure(name, one, asked, gold, at=cuts) for name, one in rankers.items()]
        if tune:
            tuning = ev.cross_validated(memory, asked, gold, folds, at=cuts)
            measured.append(replace(tuning.after, name="tuned"))
        if tuning is not None and save:
            memory.learning.recall_with(tuning.weights)
    if json:
        told = {} if tuning is None else {"weights": dict(tuning.weights)}
        emit({"measured": [ev.as_json(one) for one in measured], **told})
        return
    for row in ev.table(measured).splitlines():
        line(row)
    if tuning is not None:
        line()
        line("weights: " + ", ".join(f"{name} {one}" for name, one in tuning.weights.items()))
