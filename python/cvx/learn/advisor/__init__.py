"""The advisor: learns from ended episodes what each action is worth in a state."""

from cvx.learn.advisor.advisor import Advisor
from cvx.learn.advisor.task_model import Parts
from cvx.learn.advisor.types import ActionValue, Basis, Moment, Observation, Route
from cvx.statistics import Beta

__all__ = ["ActionValue", "Advisor", "Basis", "Beta", "Moment", "Observation", "Parts", "Route"]
