"""The doctor of a store: names damage, and saves what is sound into a new store.

A store that is damaged is never changed: what is left of it may be worth more than a repair.
"""

from cvx.store.doctor.examination import check
from cvx.store.doctor.findings import Finding, Report
from cvx.store.doctor.salvage import Salvaged, repair

__all__ = ["Finding", "Report", "Salvaged", "check", "repair"]
