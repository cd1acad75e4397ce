"""How the predictions that a record keeps turned out."""

from __future__ import annotations

from cvx.scoring.calibration import Calibration, calibration
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
