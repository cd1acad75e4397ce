"""The region model (MDP): which action leads where and succeeds, by region of the vector space."""

from cvx.learn.region_mdp.model import RegionMDP

__all__ = ["RegionMDP"]
