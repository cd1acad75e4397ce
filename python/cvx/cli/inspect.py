"""Commands that show a memory in a browser: inspect and report."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvx.cli.console import EmbedderSpec, Json, Store, emit, line, note, opened, tell
from cvx.errors import CvxError, FileError

if TYPE_CHECKING:
    from cvx.memory import Memory


def inspect(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to serve, on 127.0.0.1; 0: any free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    edit: Annotated[
        bool, typer.Option("--edit", help="Let the page change and forget events.")
    ] = False,
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Show a memory in a browser: memories, regions, causes, recalls, episodes, what it learned.

    For example:
      cvx inspect --store ~/memory
      cvx inspect --store ~/memory --edit --no-browser --port 8300

    The address has a token that a page needs to see anything. Without --edit the store is only
    read, also while others write to it. Ctrl-C ends it.
    """
    from cvx.inspect import PageData, Server

    with _looked_at(store, embedder, reads=not edit) as memory:
        view = PageData(memory, can_edit=edit)
        with Server(view, port) as server:
            view.prepare()
            if json:
                emit({"url": server.url})
            else:
                line(f"{server.url}")
                note("serving this page until Ctrl-C; " + ("edits" if edit else "it only reads"))
            if browser and not webbrowser.open(server.url):
                note("no browser was found: open the address above")
            server.serve_forever()


def report(
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, of type .html.")],
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a file that is there already.")
    ] = False,
    store: Store = None,
    embedder: EmbedderSpec = None,
    json: Json = False,
) -> None:
    """Write what `cvx inspect` shows as one file that opens without a server or a network.

    For example:
      cvx report --store ~/memory --out memory.html
    """
    from cvx.inspect import report as page_of

    with _looked_at(store, embedder, reads=True) as memory:
        page = page_of(memory)
    try:
        with out.open("w" if force else "x", encoding="utf-8") as file:
            file.write(page)
    except FileExistsError as error:
        raise FileError(f"{out} is there already: give another file, or --force") from error
    except OSError as error:
        raise FileError(f"{out} cannot be written ({error}): give another file") from error
    size = len(page.encode())
    tell({"path": str(out), "bytes": size}, f"wrote {size:,} bytes to {out}", as_json=json)


@contextlib.contextmanager
def _looked_at(store: Path | None, embedder: str | None, *, reads: bool) -> Iterator[Memory]:
    """Open a memory to look at it; where its embedder cannot be had, recall goes by words."""
    with contextlib.ExitStack() as held:
        try:
            memory = held.enter_context(opened(store, embedder, read_only=reads))
        except CvxError as error:
            if embedder is not None:
                raise
            memory = held.enter_context(opened(store, embeds=False, read_only=reads))
            note(f"recall goes by words alone: {error}")
        yield memory
