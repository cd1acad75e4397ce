"""The doctor of a store: finds damage, and repairs what can be repaired.

``examine`` only reads; ``repair`` changes what findings name and says what it did. Nothing that
was ever acknowledged is deleted: a row that cannot be put right moves to the table ``set_aside``.
"""

from cvx.store.doctor.examination import examine
from cvx.store.doctor.findings import Finding, Report
from cvx.store.doctor.repair import Salvaged, repair, salvage

__all__ = ["Finding", "Report", "Salvaged", "examine", "repair", "salvage"]
