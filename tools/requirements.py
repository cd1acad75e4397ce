"""Print the table of requirements and their proofs; fail where one has none.

It reads what the last full runs of pytest and `cargo test` left in `runs/`, so it knows not only
which tests name a requirement but that they passed, and it reads their source, so that a test
which asserts nothing does not count.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST_PROOFS = ROOT / "runs" / "pytest-proofs.json"
CARGO_LOG = ROOT / "runs" / "cargo-test.log"
PYTEST = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]

RUST_TEST = re.compile(
    r"/// Requirements?: (?P<ids>[A-Z][0-9]+(?:, [A-Z][0-9]+)*)\n"
    r"(?:\s*(?:///|#\[)[^\n]*\n)*"
    r"\s*fn (?P<name>\w+)\([^{]*\{(?P<body>.*?)\n(?=    \}\n|\}\n)",
    re.DOTALL,
)
RUST_BINARY = re.compile(r"^ +Running \S.* \(\S*?(\w+)-[0-9a-f]+\)$")
RUST_PASSED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. ok$")
RUST_ASSERTION = re.compile(r"assert\w*!|prop_assert\w*!|unwrap_err\(|\bcheck_\w+\(|\bassert_\w+\(")


def asserts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the body can fail by its own doing: an assert, `raises`, or a helper `assert_*`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name and (name == "raises" or name.startswith(("assert_", "check_"))):
                return True
    return False


def python_proofs(problems: list[str]) -> dict[str, list[str]]:
    """Ids to the pytest node ids that passed and assert something."""
    proofs: dict[str, list[str]] = defaultdict(list)
    bodies: dict[tuple[str, str], bool] = {}
    sources = (path for part in PYTEST["testpaths"] for path in (ROOT / part).rglob("test_*.py"))
    for path in sorted(sources):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                bodies[str(path.relative_to(ROOT)), node.name] = asserts(node)
    for nodeid, seen in json.loads(PYTEST_PROOFS.read_text()).items():
        name = nodeid.rpartition("::")[2].partition("[")[0]
        if seen["outcome"] == "failed":
            problems.append(f"{nodeid} failed")
        elif not bodies.get((nodeid.partition("::")[0], name), False):
            problems.append(f"{nodeid} asserts nothing")
        elif seen["outcome"] == "passed":
            for requirement in seen["ids"]:
                proofs[requirement].append(nodeid)
    return proofs


def passed_in(log: str) -> set[str]:
    """The Rust tests that passed: the name of their binary, and their path in it."""
    passed, binary = set(), ""
    for line in log.splitlines():
        if found := RUST_BINARY.match(line):
            binary = found[1]
        elif found := RUST_PASSED.match(line):
            passed.add(f"{binary}::{found[1]}")
    return passed


def rust_module(path: Path) -> str:
    """The binary and the module that a source file below ``crates/`` is compiled into."""
    crate, folder, *modules = path.with_suffix("").parts
    if folder == "src":
        modules = [module for module in modules if module not in ("lib", "mod")]
        modules = [crate.replace("-", "_"), *modules]
    return "::".join(modules).removesuffix("_tests")


def rust_proofs(problems: list[str]) -> dict[str, list[str]]:
    """Ids to the Rust tests that passed and assert something."""
    proofs: dict[str, list[str]] = defaultdict(list)
    passed = passed_in(CARGO_LOG.read_text())
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        module = rust_module(path.relative_to(ROOT / "crates"))
        for test in RUST_TEST.finditer(path.read_text()):
            label = f"{path.relative_to(ROOT)}::{test['name']}"
            name = test["name"]
            if passed.isdisjoint((f"{module}::{name}", f"{module}::tests::{name}")):
                problems.append(f"{label} did not pass in the last `cargo test`")
            elif not RUST_ASSERTION.search(test["body"]):
                problems.append(f"{label} asserts nothing")
            else:
                for requirement in test["ids"].split(", "):
                    proofs[requirement].append(label)
    return proofs


def main() -> int:
    """Print the table; return 1 where a claimed line has no proof."""
    for needed in (PYTEST_PROOFS, CARGO_LOG):
        if not needed.is_file():
            print(f"{needed.relative_to(ROOT)} is missing: run `make test`, which writes it")
            return 1
    problems: list[str] = []
    proofs = python_proofs(problems)
    for requirement, tests in rust_proofs(problems).items():
        proofs[requirement] += tests
    claimed: dict[str, str] = {}
    for lines in tomllib.loads((ROOT / "tests" / "requirements.toml").read_text()).values():
        claimed |= lines
    print(f"{'id':5}{'tests':>6}  requirement, and the first test that proves it")
    for requirement, statement in claimed.items():
        tests = sorted(proofs.get(requirement, []))
        print(f"{requirement:5}{len(tests):6}  {statement}")
        print(f"{'':13}{tests[0] if tests else 'NO PROOF'}")
        if not tests:
            problems.append(f"{requirement} has no passing test that asserts something")
    others = sorted(set(proofs) - set(claimed), key=lambda i: (i[0], int(i[1:])))
    if others:
        print(
            "named by tests, not claimed yet:", " ".join(f"{i}({len(proofs[i])})" for i in others)
        )
    for problem in problems:
        print("problem:", problem)
    print(f"{len(claimed) - sum(not proofs.get(i) for i in claimed)} of {len(claimed)} proved")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
