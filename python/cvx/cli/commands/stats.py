"""cvx stats."""

from __future__ import annotations

from typing import Any

from cvx.cli.opening import opened
from cvx.cli.options import Json, Store
from cvx.cli.output import emit, line

_NAMESPACES = "SELECT namespace, count(*) FROM events GROUP BY namespace ORDER BY namespace"


def stats(store: Store = None, json: Json = False) -> None:
    """Count what the memory holds, and say what it is made with.

    For example:
      cvx stats --json
    """
    from cvx.store.doctor.rowrepair import set_aside
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
            "set_aside": set_aside(memory.record),
            "calibration": counts["calibration"],
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
            _tell(value)
        elif value not in (None, [], 0) or key == "events":
            line(f"{key.replace('_', ' '):<18} {value}")


def _tell(calibration: dict[str, Any]) -> None:
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
