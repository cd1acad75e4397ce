"""Pictures of what a memory has learned; needs the extra ``plot``."""

from cvx.plot.regions import plot_regions
from cvx.plot.reliability import plot_reliability

__all__ = ["plot_regions", "plot_reliability"]
