"""The server answers whoever has its token on this machine, and nobody else."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
from pathlib import Path

import pytest

from cvx.embed import LexicalEmbedder
from cvx.errors import InvalidInputError
from cvx.inspect import PageData, Server
from cvx.inspect.server import ASKED, WHOLE
from cvx.memory import Memory
from tests.inspect.conftest import HOSTILE, Site, served


def test_the_page_and_its_files_come_with_a_policy_that_lets_nothing_else_run(site: Site) -> None:
    for path, kind in (
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/page.css", "text/css"),
    ):
        got = site(path, token="")
        policy = got.headers["Content-Security-Policy"]
        assert got.code == 200
        assert got.headers["Content-Type"].startswith(kind)
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        assert got.headers["Cache-Control"] == "no-store"
    page = site("/").body
    assert "http" not in page.replace("http-equiv", "")
    assert "<script>" not in page
    assert "style=" not in page


def test_every_question_needs_the_token(site: Site) -> None:
    for name in (*WHOLE, *ASKED):
        got = site(f"/api/{name}", token="wrong")
        assert (got.code, "token" in got.json["error"]) == (401, True), name
    assert site("/api/overview").code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "", "127.0.0.1:1"]
)
def test_another_name_for_this_machine_is_refused(site: Site, host: str) -> None:
    for path in ("/", "/api/overview"):
        assert site(path, Host=host).code == 403


def test_the_port_that_browsers_leave_out_may_be_left_out(store: Path) -> None:
    with Memory.open(store, read_only=True) as memory:
        try:
            server = Server(PageData(memory), port=80)
        except InvalidInputError:
            pytest.skip("port 80 cannot be listened on here")
        with server:
            assert {"localhost", "127.0.0.1", "localhost:80"} <= server.hosts


def test_the_page_of_another_site_is_refused(site: Site) -> None:
    assert site("/api/overview", Origin="http://evil.example").code == 403
    assert site("/api/overview", Origin="null").code == 403
    assert site("/api/overview", Origin=site.url).code == 200


def test_what_is_not_there_is_not_found(site: Site) -> None:
    for path in ("/etc/passwd", "/../server.py", "/api/change", "/api/memory", "/api/__init__"):
        assert site(path).code == 404, path
    assert site("/api/event?id=999").code == 404
    assert site("/api/event?id=one").code == 400
    assert site("/api/events?page=-1").code == 400
    assert site("/api/recall?cue=").code == 400
    assert "give words to recall by" in site("/api/recall?cue=").json["error"]


def test_a_page_that_reads_refuses_every_change(site: Site) -> None:
    got = site("/api/change", {"id": 1, "state": "archived"})
    assert (got.code, "--edit" in got.json["error"]) == (403, True)


@pytest.mark.requirement("B21")
def test_a_change_needs_the_token_and_json(editable: Site) -> None:
    wanted = {"id": 2, "text": "the cellar was wet", "tags": ["wet"]}
    assert editable("/api/change", wanted, token="wrong").code == 401
    assert editable("/api/change", wanted, Origin="http://evil.example").code == 403
    assert editable("/api/change", wanted, Content_Type="text/plain").code == 415
    assert editable("/api/change", b"[1]").code == 400
    assert editable("/api/change", b"{").code == 400
    deep = editable("/api/change", b"[" * 20_000)
    assert (deep.code, "at most 32 deep" in deep.json["error"]) == (400, True)
    assert editable("/api/change", {"id": 2, "sql": "x"}).code == 400
    assert editable("/api/change", {"id": 2, "state": "lost"}).code == 400
    assert editable("/api/change", {"id": 99, "text": "x"}).code == 404
    assert editable.memory.get(2).text == "the cellar flooded"
    told = editable("/api/change", wanted).json
    assert (told["text"], told["tags"], told["version"]) == ("the cellar was wet", ["wet"], 2)
    assert editable("/api/events?q=was+wet").json["total"] == 1


def test_forgetting_takes_an_event_out_of_recall_and_can_be_undone(editable: Site) -> None:
    assert editable("/api/change", {"id": 2, "state": "archived"}).json["state"] == "archived"
    assert 2 not in [hit.id for hit in editable.memory.recall("the cellar flooded")]
    assert editable("/api/events?state=archived").json["total"] == 1
    assert editable("/api/change", {"id": 2, "state": "active"}).json["state"] == "active"
    assert editable.memory.recall("the cellar flooded")[0].id == 2


def test_a_body_that_is_too_large_is_refused_unread(editable: Site) -> None:
    with socket.create_connection(("127.0.0.1", editable.server.server_port), timeout=30) as line:
        head = f"POST /api/change HTTP/1.1\r\nHost: 127.0.0.1:{editable.server.server_port}\r\n"
        line.sendall(f"{head}Content-Length: 999999999\r\n\r\n".encode())
        assert b"413" in line.recv(4096).split(b"\r\n")[0]
    assert editable("/api/overview").code == 200


def test_a_browser_that_goes_away_leaves_the_server_running(site: Site) -> None:
    address = ("127.0.0.1", site.server.server_port)
    for request in (b"", b"GET / HT", b"GET /page.js HTTP/1.1\r\nHost: x\r\n", b"\x16\x03\x01\x00"):
        with socket.create_connection(address, timeout=30) as line:
            line.sendall(request)
    head = f"GET /page.js HTTP/1.1\r\nHost: 127.0.0.1:{site.server.server_port}\r\n\r\n".encode()
    with socket.create_connection(address, timeout=30) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        line.sendall(head * 50)
    assert site("/api/overview").code == 200


def test_many_pages_ask_at_once(site: Site) -> None:
    codes: list[int] = []

    def look() -> None:
        some = ("events?q=the", "map", "recall?cue=cellar", "learning", "episodes")
        codes.extend(site(f"/api/{path}").code for path in some)

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200] * 30


def test_a_port_that_is_taken_says_so(site: Site) -> None:
    with pytest.raises(InvalidInputError, match=r"port \d+ cannot be listened on .*--port another"):
        Server(PageData(site.memory), site.server.server_port)


def test_a_hostile_memory_is_only_ever_json(site: Site) -> None:
    got = site("/api/event?id=4")
    assert got.headers["Content-Type"] == "application/json"
    assert got.json["text"] == HOSTILE


@pytest.mark.requirement("B21")
def test_a_store_that_another_program_writes_to_is_shown_as_it_grows(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    with Memory.open(folder, embedder=LexicalEmbedder(32)) as writer:
        writer.add("before")
        with served(folder) as site:
            assert site("/api/overview").json["events"] == 1
            writer.add_many(["after", "and after"])
            assert site("/api/events?q=after").json["total"] == 2
            with writer.admin.transaction():
                writer.add("not yet")
                assert site("/api/overview").json["events"] == 3


def test_a_damaged_row_is_told_by_every_view_that_needs_it(tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    with Memory.open(folder, embedder=LexicalEmbedder(32)) as memory:
        memory.add_many(["rain", "snow"])
    with sqlite3.connect(folder / "memory.db") as base:
        base.execute("UPDATE events SET text = 'hail' WHERE event_id = 2")
    base.close()
    with served(folder) as site:
        got = site("/api/events?q=rain")
        assert got.code == 500
        assert "doctor" in got.json["error"]
        assert site("/api/event?id=1").json["text"] == "rain"


def test_the_token_is_never_part_of_what_is_sent_for(site: Site) -> None:
    before, _, after = site.server.url.partition("#token=")
    assert (before, after) == (site.url + "/", site.server.token)
    assert len(site.server.token) >= 32
    assert site.server.token not in json.dumps([site("/").body, site("/api/overview").json])
