"""The command says what it found and did, and scripts can tell by the exit code."""

from pathlib import Path

from tests.cli.command import Cvx, process
from tests.store.planted import lost_tail, sql


def test_a_sound_store_is_exit_code_0(tmp_path: Path) -> None:
    process(tmp_path / "s", "add", "a mug")
    done = process(tmp_path / "s", "doctor")
    assert (done.code, done.out.splitlines()[-1], done.err) == (0, "sound", "")


def test_damage_is_exit_code_1_and_what_is_sound_goes_into_a_new_store(
    cvx: Cvx, tmp_path: Path
) -> None:
    for text in ("a mug on a shelf", "a cup in a sink"):
        cvx("add", text)
    sql("UPDATE events SET text = 'a mug on a shelg' WHERE event_id = 1")(cvx.store)
    found = cvx("doctor", "--json")
    assert found.code == 1
    assert found.json["sound"] is False
    (finding,) = found.json["findings"]
    assert (finding["check"], finding["where"], finding["harmless"]) == ("row", "events [1]", False)
    said = cvx("doctor")
    assert said.code == 1
    assert said.out.splitlines()[-1].endswith("cvx doctor --repair NEW_FOLDER")
    done = cvx("doctor", "--repair", tmp_path / "new")
    assert done.code == 0
    assert "left out 1 row of events" in done.out
    new = Cvx(tmp_path / "new")
    assert new("doctor").code == 0
    assert "a cup in a sink" in new("recall", "cup").out
    assert cvx("doctor").code == 1


def test_an_option_is_no_folder_to_repair_into(cvx: Cvx) -> None:
    cvx("add", "a mug")
    done = cvx("doctor", "--repair", "--json")
    assert (done.code, "name the new folder" in done.err) == (2, True)
    assert not Path("--json").exists()


def test_a_lost_tail_is_refused_and_a_new_store_goes_on(cvx: Cvx, tmp_path: Path) -> None:
    cvx("add", "a mug", "--embedder", "lexical:16")
    lost_tail(cvx.store)
    assert cvx("recall", "mug").code == 3
    assert "put a copy of memory.db back" in cvx("doctor").out
    assert cvx("doctor", "--repair", tmp_path / "new").code == 0
    assert Cvx(tmp_path / "new")("recall", "mug").code == 0


def test_what_is_left_of_a_text_is_exit_code_1_and_never_shown(cvx: Cvx) -> None:
    for text in ("the secret 4711", "a mug"):
        cvx("add", text)
    found = cvx("doctor", "--look-for", "SECRET 4711", "--json")
    assert found.code == 1
    assert [(one["check"], one["where"]) for one in found.json["findings"]] == [
        ("remains", "events [1]")
    ]
    said = cvx("doctor", "--look-for", "-", stdin="nothing of it\nsecret 4711\n")
    assert said.code == 1
    assert "cvx forget 1 --erase" in said.out
    assert said.out.splitlines()[-1] == "something is left of what was looked for"
    assert "secret" not in said.out
    assert cvx("forget", "1", "--erase", "--yes").code == 0
    assert cvx("doctor", "--look-for", "secret 4711").code == 0
    assert cvx("doctor", "--look-for", "-", stdin="\n").code == 2
    assert cvx("doctor", "--look-for", "a mug", "--repair", "new").code == 2


def test_of_damaged_pages_the_rest_is_saved(cvx: Cvx, tmp_path: Path) -> None:
    lines = "\n".join(f'{{"text": "note {number}"}}' for number in range(200))
    cvx("add", "--file", "-", "--embedder", "lexical:64", stdin=lines)
    path = cvx.store / "memory.db"
    raw = bytearray(path.read_bytes())
    raw[-4096 * 8 : -4096 * 7] = bytes(4096)
    path.write_bytes(raw)
    assert "--repair" in cvx("doctor").out.splitlines()[-1]
    saved = cvx("doctor", "--repair", tmp_path / "new", "--json").json
    assert 100 < saved["rows"]["events"] <= 200
    new = Cvx(tmp_path / "new")
    assert new("doctor").code == 0
    assert new("recall", "note 3").code == 0
    assert cvx("doctor", "--repair", tmp_path / "new").code == 4


def test_findings_that_a_crash_leaves_are_no_problem(cvx: Cvx) -> None:
    cvx("add", "a mug")
    (cvx.store / "index" / "7.json.tmp").write_text("")
    done = cvx("doctor")
    assert done.code == 0
    assert "stray_file (harmless)" in done.out
