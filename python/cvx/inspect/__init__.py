"""A page and a report that show what a memory holds, why, and what it learned."""

from cvx.inspect.page_data import PageData
from cvx.inspect.report import report
from cvx.inspect.server import Server

__all__ = ["PageData", "Server", "report"]
