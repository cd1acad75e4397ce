"""A page and a report that show what a memory holds, why, and what it learned."""

from cvx.inspect.report import report
from cvx.inspect.server import Server
from cvx.inspect.view import View

__all__ = ["Server", "View", "report"]
