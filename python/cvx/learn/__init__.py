"""Learning from outcomes: episodes, the loop, the region model and its planner, decay.

Names are imported from the modules; ``cvx`` has those that most programs need.
"""
