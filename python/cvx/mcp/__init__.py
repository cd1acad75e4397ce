"""The MCP server: a memory that any assistant plugs in; ``cvx mcp`` starts it.

``cvx.mcp.server`` makes it, ``cvx.mcp.tools`` holds the tools, ``cvx.mcp.client_sessions`` whom it
serves, and ``cvx.mcp.host_settings`` writes the settings of the hosts. ``import cvx`` imports
nothing of it.
"""
