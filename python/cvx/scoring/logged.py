"""What the decisions that a record keeps say of predictions, and of weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvx.scoring.calibration import Calibration, calibration
from cvx.scoring.off_policy import LoggedChoice
from cvx.store import Record

_PREDICTED = """
SELECT * FROM (
    SELECT iif(json_valid(record), json_extract(record, '$.predicted'), NULL) AS predicted,
        outcome, ifnull(episode, -1 - decision_id)
    FROM decisions WHERE outcome IS NOT NULL
) WHERE predicted BETWEEN 0 AND 1
"""


def logged_calibration(record: Record, *, resamples: int = 200) -> Calibration | None:
    """Compare the predictions of all decisions whose outcome is known with that outcome.

    Decisions of one episode share its outcome, and are resampled together.

    Parameters
    ----------
    record : Record
        With the decisions of ``ActiveMemory``, which keeps the expected success of each.
    resamples : int, default 200
        Of the bootstrap for the intervals.

    Returns
    -------
    Calibration or None
        None if no decision has both a prediction and an outcome.
    """
    rows = record.query(_PREDICTED)
    if not rows:
        return None
    predicted, happened, episodes = zip(*rows, strict=True)
    return calibration(predicted, happened, episodes, resamples=resamples)


def logged_choices(record: Record, names: Sequence[str]) -> list[LoggedChoice]:
    """Return the decisions whose order was sampled and whose outcome is known, oldest first.

    Contexts and decisions of loops are in the same log. Those of one episode share its outcome,
    and are a group; each context is one of its own.

    Parameters
    ----------
    record : Record
        With the decisions of ``Memory.context`` and ``ActiveMemory``.
    names : sequence of str
        Features, in the order of the columns wanted; decisions without one are left out.

    Returns
    -------
    list of LoggedChoice
        For ``off_policy_value``.
    """
    out = []
    for row in record.decisions():
        drawn, reward = row["record"].get("drawn_from"), row["outcome"]
        if drawn is None or reward is None or not set(names) <= set(drawn["names"]):
            continue
        columns = [drawn["names"].index(name) for name in names]
        features = np.nan_to_num(np.array(drawn["features"], dtype=np.float64)[:, columns])
        # Numbers of contexts are below those of episodes.
        group = -1 - row["decision_id"] if row["episode"] is None else row["episode"]
        out.append(
            LoggedChoice(features, drawn["first"], drawn["propensity"], float(reward), group)
        )
    return out
