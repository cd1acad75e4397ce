"""Running the command: in this process, or as a person does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cvx.cli.app import build
from cvx.cli.console import report


@dataclass(frozen=True)
class Done:
    """What a run of the command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout."""
        (line,) = self.out.splitlines()
        return json.loads(line)


class Cvx:
    """The command on one store, in this process."""

    def __init__(self, store: Path) -> None:
        self.store = store

    def __call__(self, *arguments: object, stdin: str | None = None) -> Done:
        given = [str(argument) for argument in arguments]
        environment = {"CVX_STORE": str(self.store)}
        done = CliRunner().invoke(build(), given, input=stdin, env=environment)
        code, err = done.exit_code, done.stderr
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            assert isinstance(done.exception, Exception)
            with pytest.MonkeyPatch.context() as patch:
                said: list[str] = []
                patch.setattr(sys.stderr, "write", said.append)
                code = report(done.exception, as_json="--json" in given)
            err += "".join(said)
        return Done(code, done.stdout, err)


def environment(store: Path, **more: str) -> dict[str, str]:
    source = Path(__file__).resolve().parent.parent.parent / "python"
    return {**os.environ, "PYTHONPATH": str(source), "CVX_STORE": str(store), **more}


def process(store: Path, *arguments: object, stdin: str | None = None, **more: str) -> Done:
    """Run the command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "cvx", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env=environment(store, **more),
    )
    return Done(done.returncode, done.stdout, done.stderr)
