"""The region model: in which region of the vector space which action leads where, and succeeds."""

from cvx.learn.region_mdp.model import RegionMDP

__all__ = ["RegionMDP"]
