"""Pictures of what a memory has learned; needs the extra ``plot``."""

from cvx.plot.reliability import plot_reliability

__all__ = ["plot_reliability"]
