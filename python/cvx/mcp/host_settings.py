"""Settings files of assistants (MCP hosts): where they are, and the entry for a server."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shutil import copy2, copymode

from cvx.errors import FileError, InvalidInputError


@dataclass(frozen=True, slots=True)
class Host:
    """A host's settings.

    Parameters
    ----------
    file : str
        Where they lie: from the home folder (``~``), the folder for settings (``@``), or the
        project's.
    key : str, default "mcpServers"
        Under which the servers are named.
    """

    file: str
    key: str = "mcpServers"

    def path(self) -> Path:
        """Return where the settings lie for this user, or in this project."""
        if self.file.startswith("@"):
            return _settings_folder() / self.file[2:]
        return Path(self.file).expanduser()


HOSTS: Mapping[str, Host] = {
    "claude-desktop": Host("@/Claude/claude_desktop_config.json"),
    "claude-code": Host(".mcp.json"),
    "cursor": Host("~/.cursor/mcp.json"),
    "gemini": Host("~/.gemini/settings.json"),
    "vscode": Host(".vscode/mcp.json", "servers"),
    "windsurf": Host("~/.codeium/windsurf/mcp_config.json"),
}


def _settings_folder() -> Path:
    if sys.platform == "darwin":
        return Path("~/Library/Application Support").expanduser()
    if sys.platform == "win32":
        return Path(os.environ["APPDATA"])
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()


def entry(store: Path, namespace: str = "", tools: str = "") -> dict[str, object]:
    """Return how a host is to start the server: with this Python, wherever the host runs."""
    given = ["-m", "cvx", "mcp", "--store", str(store.expanduser().absolute())]
    given += ["--namespace", namespace] if namespace else []
    given += ["--tools", tools] if tools else []
    return {"command": sys.executable, "args": given}


def snippet(host: Host, name: str, server: Mapping[str, object]) -> str:
    """Return what is to stand in the settings of a host, as JSON."""
    return json.dumps({host.key: {name: server}}, indent=2)


def write(host: Host, name: str, server: Mapping[str, object]) -> Sequence[Path]:
    """Put a server into the settings of a host, and keep a copy of what was there.

    Returns
    -------
    sequence of Path
        The settings; and the copy, where there were some. None where the server stands there as it
        is to be: nothing is changed.

    Raises
    ------
    InvalidInputError
        What is there is no JSON object: nothing is changed.
    FileError
        It cannot be read or written.
    """
    # A link to the file, as those who keep their settings elsewhere have it, stays one.
    path = host.path().resolve()
    try:
        before = path.read_text("utf-8") if path.exists() else None
        known = json.loads(before) if before and before.strip() else {}
        servers = known.setdefault(host.key, {})
        if servers.get(name) == dict(server):
            return []
        servers[name] = dict(server)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error}") from error
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidInputError(
            f"{path} is not JSON with an object under {host.key!r} ({error}): add the entry by hand"
        ) from error
    copy = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.bak")
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.touch(0o600)
        fresh.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", "utf-8")
        if before is not None:
            copy2(path, copy)
            copymode(path, fresh)
        fresh.replace(path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error}") from error
    return [path] if before is None else [path, copy]
