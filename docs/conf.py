"""How Sphinx makes a site of the pages: ``make docs``.

The source folder is the root of the repository, so that links between README, docs and rfcs are
the same in the site as in the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cvx

ROOT = Path(__file__).resolve().parent.parent

project = "cvx"
author = "The cvx authors"
copyright = author  # noqa: A001
version = release = cvx.__version__
root_doc = "docs/contents"
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md", "rfcs/*.md", "crates/cvx-index/README.md"]
exclude_patterns = [
    ".*",
    "target",
    "dist",
    "runs",
    "site",
    "fuzz",
    "benches",
    "experiments",
    "tests",
]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
# Several classes have an attribute "n": a docstring that says `n` means its own.
suppress_warnings = ["ref.python"]
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# A name in single backticks is a link where there is one.
default_role = "py:obj"
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "furo"
html_title = f"cvx {version}"
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None


def _first_page(app: Any, error: Exception | None) -> None:
    """Lead from the top of the site to its first page."""
    if error is None:
        page = f'<!doctype html><meta http-equiv="refresh" content="0; url={root_doc}.html">'
        (Path(app.outdir) / "index.html").write_text(f'{page}<a href="{root_doc}.html">cvx</a>\n')


def _no_module_text(app: Any, what: str, name: str, *rest: Any) -> None:
    """Leave out what a module says of itself: the pages have introductions of their own."""
    del app, name
    if what == "module":
        rest[-1].clear()


def setup(app: Any) -> None:
    """Say what is done beside what Sphinx does."""
    app.connect("build-finished", _first_page)
    app.connect("autodoc-process-docstring", _no_module_text)
