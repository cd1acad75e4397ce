"""Gymnasium's classic problems, to see how many steps an agent needs whose learner is cvx."""
