"""The read pipeline: what stands between the answers of several sources and one ranking."""

from cvx.recall.fusion import Fused, reciprocal_rank_fusion

__all__ = ["Fused", "reciprocal_rank_fusion"]
