"""The MCP server: a memory that any assistant plugs in; ``cvx mcp`` starts it.

``cvx.mcp.server`` makes it, ``cvx.mcp.tools`` holds the tools, ``cvx.mcp.clients`` whom it serves,
and ``cvx.mcp.hosts`` writes the settings of the hosts. ``import cvx`` imports nothing of it.
"""
