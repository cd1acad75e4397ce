"""Erased is erased: no byte of it in any file."""

import json
import shutil
import signal
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cvx.embed import CachedEmbedder, LexicalEmbedder
from cvx.errors import DamagedStoreError, UnknownError
from cvx.memory import Memory
from cvx.memory.reembed import reembed
from cvx.scoring import UsageTracker
from cvx.scoring.usage import Whose
from cvx.store.doctor import check
from cvx.store.rows import whose_use
from cvx.store.schema import SET_ASIDE
from cvx.types import Cue, Decision, Filter
from tests.store.index_comparison import index_differences
from tests.store.planted import opened
from tests.store.processes import CONTEXT, consistent, embedder, export_until_killed

SECRET = "xylophone zanzibar quixotic"


def files_with(folder: Path, needle: bytes) -> list[str]:
    return [p.name for p in folder.rglob("*") if p.is_file() and needle in p.read_bytes()]


def test_an_erase_of_nothing_writes_nothing(tmp_path: Path) -> None:
    cached = CachedEmbedder(embedder(), tmp_path / "vectors.sqlite")
    with Memory.open(tmp_path / "m", embedder=cached) as memory:
        memory.add("a mug")
        memory.admin.snapshot()
        before = memory.record.tail(), inodes(tmp_path)
        assert memory.erase([]).complete
        assert (memory.record.tail(), inodes(tmp_path)) == before


def inodes(folder: Path) -> dict[Path, tuple[int, int]]:
    """Which files there are; one that is written anew is another, or of another time."""
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found}


def test_an_erase_takes_nodes_out_of_every_index_and_builds_none_anew(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=embedder()) as memory:
        events = [memory.add(f"note {at}", tags=[f"tag {at % 5}"]) for at in range(40)]
        memory.add("the tram", tags=["only here"], aliases=["the bus"])
        memory.link(events[3], events[9], why="it was so")
        assert memory.admin.snapshot()
        with Memory.open(folder, embedder=embedder()) as other:
            built = [one.admin.stats()["rebuilds"] for one in (memory, other)]
            assert memory.erase([41, events[3].id]) == [events[3].id, 41]
            later = memory.add("note 99", tags=["new"])
            for one in (memory, other):
                assert one.recall("note 99")[0].text == later.text
                assert len(one.index) == 40
                assert events[3].node not in one.index
                assert one.index.edges() == []
            assert [one.admin.stats()["rebuilds"] for one in (memory, other)] == built
    assert not files_with(folder / "index", b"only here")
    assert index_differences(folder) == []


def test_of_many_texts_none_keeps_a_word_of_those_that_were_erased(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder=embedder()) as memory:
        for part in range(8):
            memory.add_many([f"word{at} of part{part} of all" for at in range(300)])
        memory.update(7, text="a zanzibar in between")
        memory.update(7, text="said otherwise")
        memory.add("quixotic", aliases=["東京都 xylophone"])
        memory.erase([7, 2401])
        with memory.record.database.borrowed() as db:
            words: set[str] = set()
            for table in ("events_words", "events_pairs"):
                db.execute(f"CREATE VIRTUAL TABLE temp.told USING fts5vocab(main, {table}, 'row')")
                words.update(row[0] for row in db.execute("SELECT term FROM told"))
                db.execute("DROP TABLE told")
        assert {"part7", "word299", "all"} < words
        assert words.isdisjoint(
            {"zanzibar", "quixot", "quixotic", "xylophon", "otherwis", "東京", "都"}
        )
        assert check(tmp_path).sound


@pytest.mark.requirement("B8")
def test_nothing_of_an_erased_event_is_left_in_any_file(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    vector = np.arange(1, 17, dtype=np.float32) * np.float32(0.12345)
    alias = embedder().embed(["kaleidoscope"])[0]
    with Memory.open(folder, embedder=embedder()) as memory:
        for number in range(30):
            memory.add(f"ordinary text {number}")
        secret = memory.add(
            SECRET, vector=vector, aliases=["kaleidoscope"], metadata={"pin": "8731-4455"}
        ).id
        memory.link(1, secret, "caused", why="because of the walrus")
        memory.update(secret, metadata={"pin": "9999-0000"}, reward=0.5)
        assert memory.recall(SECRET, 1)[0].similarity < 1
        memory.admin.snapshot()
        for needle in (b"zanzibar", vector.tobytes(), alias.tobytes(), b"8731-4455", b"walrus"):
            assert files_with(folder, needle)
        done = memory.erase([secret])
        assert done.complete
        for needle in (
            b"xylophone",
            b"zanzibar",
            b"quixotic",
            b"kaleidoscope",
            vector.tobytes(),
            alias.tobytes(),
            b"8731-4455",
            b"9999-0000",
            b"walrus",
        ):
            assert files_with(folder, needle) == []
        assert memory.recall(SECRET, 40, sources=["lexical"]) == []
        assert len(memory) == 30
        assert memory.admin.check() == []
        with pytest.raises(UnknownError):
            memory.get(secret)
        again = memory.add("the next one").id
        assert again != secret
        assert memory.get(again).node == 32
    assert files_with(folder, vector.tobytes()) == []
    consistent(folder)


@pytest.mark.requirement("B8")
def test_decisions_that_recalled_an_erased_step_forget_it(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=embedder()) as memory:
        loop = memory.learning.loop()
        run = loop.begin(f"find the {SECRET}", "find")
        loop.act(loop.recall(Cue(step="in the zanzibar room")), "take xylophone")
        first = loop.close(run, 1.0)
        run = loop.begin("an ordinary goal", "find")
        decision = loop.recall(Cue(step="in a room"))
        loop.act(decision, "take it", decision.hits, rendered="take xylophone")
        loop.close(run, 0.0)
        (secret,) = (e.event_id for e in memory.record.events() if e.episode_id == first.episode_id)
        assert secret is not None
        memory.erase(secret)
        for needle in (b"zanzibar", b"xylophone", b"quixotic"):
            assert files_with(folder, needle) == []
        (left,) = memory.record.decisions()
        assert (left["hits"], left["followed"], left["rendered"]) == ([], [], "")
        assert [e.goal for e in memory.record.episodes()] == ["an ordinary goal"]
        assert memory.admin.check() == []
        assert len(memory.learning.loop().episodes) == 1


@pytest.mark.requirement("B8")
def test_a_decision_forgets_an_erased_step_that_it_showed_as_what_came_next(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "m"
    steps = [("a door", "open door"), ("a table", "say swordfish"), ("a hall", "leave")]
    with Memory.open(folder, embedder=embedder()) as memory:
        loop = memory.learning.loop(distinct=None, k=1)
        shown = loop.add_demonstration("get in", steps, "enter")
        loop.add_demonstration("get out", [("a window", "jump")], "enter")
        for seen in ("a door", "a window"):
            run = loop.begin("get in again", "enter")
            decision = loop.recall(Cue(step=seen))
            loop.act(decision, "knock", rendered=loop.render(decision))
            loop.close(run, 0.0)
        assert files_with(folder, b"swordfish")
        memory.erase(
            event.event_id or 0
            for event in memory.record.events()
            if event.node == shown.steps[1].node
        )
        assert files_with(folder, b"swordfish") == []
        door, window = memory.record.decisions()
        assert ([hit[0] for hit in door["hits"]], door["rendered"]) == ([shown.steps[0].node], "")
        assert "jump" in window["rendered"]
        assert memory.admin.check() == []


@pytest.mark.requirement("B8")
def test_counts_of_use_that_quote_an_erased_event_go_unless_another_says_the_same(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "m"
    words = ["say swordfish", "open door"]
    with Memory.open(folder, embedder=embedder()) as memory:
        loop = memory.learning.loop(
            distinct=None, usage_key=lambda hit, _: ("moment", f"{hit.action}, go")
        )
        first, _ = (
            loop.add_demonstration("get in", [("a door", action) for action in actions], "enter")
            for actions in (words, ["open door"])
        )
        run = loop.begin("get in again", "enter")
        loop.act(loop.recall(Cue(step="a door")), "knock")
        loop.close(run, 1.0)
        nodes = {step.node for step in first.steps}
        memory.erase(e.event_id or 0 for e in memory.record.events() if e.node in nodes)
        assert files_with(folder, b"swordfish") == []
        quoting = [context for context, *_ in memory.record.usage() if "moment" in context]
        assert quoting == ['["moment","open door, go"]']
        assert memory.admin.check() == []


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("whose", [("", ""), ("ana", ""), ("", "web"), ("ana", "web")])
def test_counts_go_with_an_erased_event_whoever_they_are_of(
    tmp_path: Path, whose: tuple[str, str]
) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        # It says what the contexts of others are called, too: these stay.
        secret, kept = memory.add(f"{SECRET}, ana, a node").id, memory.add("a mug").id
        node = {event: memory.get(event).node for event in (secret, kept)}
        tracker = UsageTracker()
        for context in (("node", node[secret]), ("node", node[kept]), ("moment", "zanzibar")):
            tracker.add(context, followed=True, helped=True, whose=Whose(*whose))
        with memory.record.transaction() as write:
            tracker.save(write)
        memory.erase(secret)
        left = [whose_use(json.loads(context)) for context, *_ in memory.record.usage()]
        assert left == [(["node", node[kept]], *whose)]
        assert memory.admin.check() == []


@pytest.mark.requirement("B8")
def test_learned_weights_stay_whatever_an_erased_event_says(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        secret = memory.add("recency").id
        with memory.record.transaction() as write:
            for name in ("weights", "weights:ana", "of a user"):
                write.set_state(name, {"names": ["recency"]})
        memory.erase(secret)
        found = [memory.record.state(name) for name in ("weights", "weights:ana", "of a user")]
        assert found == [{"names": ["recency"]}, {"names": ["recency"]}, None]


@pytest.mark.requirement("B8")
def test_what_was_noted_of_a_decision_and_replaced_forgets_an_erased_event_too(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=embedder()) as memory:
        secret = memory.add(SECRET).id
        (hit,) = memory.recall(SECRET, 1)
        asked = Decision(memory.record.take_decision_number(), Cue(text="what?"), (hit,))
        for rendered in (SECRET, "seen"):
            with memory.record.transaction() as write:
                write.add_decisions(
                    [(replace(asked, rendered=rendered), {"shown": SECRET})], replace=True
                )
        with memory.record.transaction() as write:
            write.touch({secret: 5})
            write.touch({secret: 9})
        assert files_with(folder, b"zanzibar")
        memory.erase(secret)
        assert files_with(folder, b"zanzibar") == []
        # That of the recall is written down, too.
        assert [d["record"] for d in memory.record.decisions()] == [{}, {}]
        assert memory.record.used([secret]) == {}
        assert memory.admin.check() == []


class Remembering(LexicalEmbedder):
    """The lexical embedder with a cache that can be told to forget."""

    calls = 0
    forgotten: tuple[str, ...] = ()

    def forget(self, texts: Iterable[str]) -> None:
        self.calls += 1
        self.forgotten = tuple(texts)


@pytest.mark.requirement("B8")
def test_the_cache_of_the_embedder_is_told_and_so_is_the_past() -> None:
    model = Remembering(dim=16)
    with Memory(embedder=model) as memory:
        kept = memory.add("kept").id
        secret = memory.add(SECRET, aliases=["another name"]).id
        stamp = memory.get(secret).recorded
        assert stamp is not None
        memory.erase(secret)
        assert set(model.forgotten) == {SECRET, "another name"}
        assert model.calls == 1
        past = memory.as_of(stamp)
        assert past.frames.events()["event_id"].to_list() == [kept]
        with pytest.raises(UnknownError):
            memory.erase([kept, secret])
        assert len(memory) == 1


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("by", ["itself", "another"])
def test_what_was_noted_of_an_erased_event_is_not_written_later(tmp_path: Path, by: str) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        secret, kept = memory.add(SECRET).id, memory.add("an ordinary xylophone").id
        block = memory.context(SECRET, 200, k=2)
        assert {hit.event.event_id for hit in block.hits if hit.event} == {secret, kept}
        if by == "itself":
            memory.erase(secret)
        else:
            with Memory.open(tmp_path / "m", embedder=embedder()) as other:
                other.erase(secret)
    report = check(tmp_path / "m")
    assert report.findings == ()
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        (decision,) = memory.record.decisions()
        assert [hit[0] for hit in decision["hits"]] == [memory.get(kept).node]
        assert decision["record"] == {}
        assert [context for context, *_ in memory.record.usage()] == [f'["event",{kept}]']


@pytest.mark.requirement("B8")
def test_what_an_erased_event_says_takes_away_no_count_of_anything_else(tmp_path: Path) -> None:
    contexts = [
        ("node", 9001),
        ("event", 7001),
        ("heat", 0),
        ("moment", "heat #"),
        ("plan", "x", "1"),
    ]
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.learning.loop().add_demonstration(
            "warm it", [("an egg", "heat egg with oven")], "heat"
        )
        erased = [memory.add(said).id for said in ("1", "node", "event", "heat", "moment")]
        memory.add("egg 1 of 2")
        tracker = UsageTracker()
        for context in contexts:
            tracker.add(context, followed=True, helped=True)
        with memory.record.transaction() as write:
            tracker.save(write)
        memory.erase(erased)
        left = {context for context, *_ in memory.record.usage()}
        assert left >= {json.dumps(context, separators=(",", ":")) for context in contexts}


WORDS = ("Schließfach", "47110815", "Pässwörd", "Xylophon", "Zanzibar", "Tresor", "Quastenflosser")
TEXT = "Schließfach 47110815 öffnet das Pässwörd Xylophon"


def escaped(said: str) -> str:
    return json.dumps(said)[1:-1]


def traces(folder: Path, vectors: Iterable[bytes]) -> list[tuple[str, str]]:
    """Where any of the words stands, in UTF-8, as JSON or as JSON within JSON; or a vector."""
    needles = dict.fromkeys(vectors, "a vector")
    for said in WORDS:
        for form in (said, said.casefold(), escaped(said), escaped(escaped(said))):
            needles[form.encode()] = said
    found = []
    for path in sorted(folder.rglob("*")):
        raw = path.read_bytes() if path.is_file() else b""
        found += [(path.name, name) for needle, name in needles.items() if needle in raw]
    return found


def with_everything(folder: Path) -> list[bytes]:
    """Make a store in which a secret went every way that there is; return its vectors."""
    first, model = LexicalEmbedder(16), LexicalEmbedder(24)
    with Memory.open(folder, embedder=first) as memory:
        for number in range(30):
            memory.add(f"an ordinary text {number}", action=f"go {number}", reward=1.0)
        memory.context("Was ist in Schließfach 47110815?")
        secret = memory.add(
            TEXT,
            aliases=["der Zanzibar-Tresor"],
            action="drehe auf 47110815",
            metadata={"pin": "Quastenflosser"},
            key="Tresor 1",
            tags=["Zanzibar"],
            reward=1.0,
        ).id
        assert secret == 31
        memory.update(secret, metadata={"pin": "Pässwörd"})
        memory.link(1, secret, "caused", why="wegen Xylophon")
        memory.link(1, 2, "caused", why="das Pässwörd fehlte", evidence="Xylophon, sagt er")
        memory.link(1, 3, "caused", why="ohne Pässwörd")
        block = memory.context("Schließfach 47110815 mit Xylophon")
        assert secret in [hit.event.event_id for hit in block.hits if hit.event]
        memory.feedback(block, followed=[secret], action="nannte das Pässwörd", outcome=1.0)
        memory.context("der Zanzibär-Tresör?", where=Filter(ids=[secret]))
        memory.context("an ordinary text 0 Quastenflosser?", where=Filter(ids=[1]))
        other = memory.context("an ordinary text 0 im Tresor?", where=Filter(ids=[1]))
        memory.feedback(other, action="nannte Zanzibar", outcome=0.0)
        with memory.record.transaction() as write:
            write.set_state("of a user", {"learned": ["Xylophon"]})
            write.set_state("of another", {"learned": ["a Xylophon"]})
        with memory.record.transaction() as write:
            write.set_state("of another", {"learned": ["nothing"]})
        loop = memory.learning.loop(
            distinct=None, usage_key=lambda hit, _: ("did", f"{hit.action}!")
        )
        run = loop.begin("get in", "open")
        decision = loop.recall(Cue(step="a vault", vector=first.embed([TEXT])[0]))
        hit, *_ = (hit for hit in decision.hits if hit.action == "drehe auf 47110815")
        loop.act(decision, "turn", hit, rendered=loop.render(decision))
        loop.close(run, 1.0)
        # Again, so that the journal keeps what was counted before.
        run = loop.begin("get in", "open")
        loop.act(decision := loop.recall(decision.cue), "turn", decision.hits)
        loop.close(run, 1.0)
        assert '["did","drehe auf 47110815!"]' in [context for context, *_ in memory.record.usage()]
        memory.admin.snapshot()
    reembed(folder, model)
    with pytest.raises(KeyboardInterrupt):
        reembed(folder, LexicalEmbedder(32), progress=broken_off)
    with opened(folder) as db:
        # As repairs by an older version left it.
        db.execute(SET_ASIDE)
        told = json.dumps({"event_id": secret, "text": TEXT})
        db.execute("INSERT INTO set_aside VALUES (1, 0, 'damaged', 'events', ?)", (told,))
    killed = CONTEXT.Process(target=export_until_killed, args=(str(folder), f"{folder}/all.jsonl"))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    for path in (folder / "index").iterdir():
        shutil.copy(path, path.with_name(f"{path.name}.lost"))
    return [
        row.tobytes()
        for made in (first, model, LexicalEmbedder(32))
        for row in made.embed([TEXT, "der Zanzibar-Tresor"])
    ]


def broken_off(done: int, total: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.requirement("B8")
def test_no_byte_of_what_was_erased_is_left_wherever_it_went(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    vectors = with_everything(folder)
    cached = CachedEmbedder(LexicalEmbedder(24), folder / "vectors.sqlite")
    mine, other = (Memory.open(folder, embedder=cached) for _ in range(2))
    # Recalled and not written down yet, here and by another; one shows it, the others name it.
    mine.update(31, metadata={"pin": "Tresor"})
    assert mine.context("Pässwörd Xylophon?").hits
    mine.context("an ordinary text 0, Tresor?", where=Filter(ids=[1]))
    other.context("an ordinary text 0, Tresor?", where=Filter(ids=[1]))
    cues = ["Pässwörd Xylophon?", "an ordinary text 0, Tresor?"]
    vectors += [row.tobytes() for row in cached.embed([TEXT, *cues])]
    found = traces(folder, vectors)
    endings = {name.rpartition(".")[2] for name, _ in found}
    assert endings >= {"db", "db-wal", "cvx", "lost", "partial", "sqlite"}
    assert ("memory.db", "Zanzibar") in found
    done = mine.erase(31)
    assert done == [31]
    assert done.complete
    assert traces(folder, vectors) == []
    other.close()
    mine.close()
    assert traces(folder, vectors) == []
    assert [one for one in check(folder).findings if not one.harmless] == []
    with Memory.open(folder, embedder=cached) as memory:
        assert memory.admin.check() == []
        assert len(memory) == 32
        # What has nothing to do with it is as it was.
        assert memory.record.state("of a user") is None
        assert memory.record.state("of another") == {"learned": ["nothing"]}
        links = [link for link in memory.record.links() if link.kind == "caused"]
        assert [(link.weight, link.why, link.evidence) for link in links] == [(1.0, "", "")] * 2
        decisions = memory.record.decisions()
        told = [row["outcome"] for row in decisions if row["record"].get("shown") == [1]]
        assert told == [None, 0.0, None, None]
        # Of what it was shown for, and what named it, no word is left.
        assert {row["cue"]["text"] for row in decisions} == {""}
        assert not any(row["record"].get("cue_hash") for row in decisions if not row["episode"])
        assert memory.record.used([1])[1][0] > 0
    assert traces(folder, vectors) == []


@pytest.mark.requirement("B8")
def test_a_cache_in_the_folder_is_cleaned_whoever_opened_it(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    with Memory.open(
        folder, embedder=CachedEmbedder(embedder(), folder / "vectors.sqlite")
    ) as memory:
        secret, kept = memory.add(SECRET).id, memory.add("a kept one").id
        secret_vector, kept_vector = (memory.get(one).vector for one in (secret, kept))
    assert secret_vector is not None
    assert kept_vector is not None
    sqlite3.connect(folder / "of somebody.db").execute("CREATE TABLE x (said TEXT)").close()
    (folder / "empty").touch()
    with Memory.open(folder, embedder=embedder()) as memory:
        assert "vectors.sqlite" in files_with(folder, secret_vector.tobytes())
        memory.erase(secret)
        assert files_with(folder, secret_vector.tobytes()) == []
        assert "vectors.sqlite" in files_with(folder, kept_vector.tobytes())


@pytest.mark.requirement("B8")
def test_nothing_is_erased_where_a_trigger_keeps_copies(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=embedder()) as memory:
        with opened(folder) as db:
            db.execute("CREATE TABLE copies (said TEXT)")
            db.execute(
                "CREATE TRIGGER keep AFTER DELETE ON events"
                " BEGIN INSERT INTO copies VALUES (OLD.text); END"
            )
        secret = memory.add(SECRET).id
        with pytest.raises(DamagedStoreError, match=r"copies.*keep|keep.*copies"):
            memory.erase(secret)
        assert memory.get(secret).text == SECRET
        with opened(folder) as db:
            assert db.execute("SELECT count(*) FROM copies").fetchone() == (0,)
            db.execute("DROP TRIGGER keep")
            db.execute("DROP TABLE copies")
        assert memory.erase(secret).complete
        assert files_with(folder, b"zanzibar") == []


@pytest.mark.requirement("B8")
def test_what_quotes_nothing_of_it_stays_as_it_was(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", embedder=embedder()) as memory:
        memory.add("the spare key is under the green pot", action="look under the pot")
        secret = memory.add("the code of the green safe is 4711", entity="5").id
        loop = memory.learning.loop(usage_key=lambda hit, _: ("did", f"{hit.action}, at 47110"))
        run = loop.begin("get in", "open")
        vector = memory.embedder.embed(["the spare key is under the green pot"])[0]
        decision = loop.recall(Cue(step="at the green door", vector=vector), k=1)
        loop.act(decision, "look under the pot", decision.hits, rendered="the key, the green pot")
        loop.close(run, 1.0)
        memory.link(1, 3, why="the key of the green pot")
        block = memory.context("where is the key of the green door?", where=Filter(ids=[1]))
        memory.feedback(block, followed=[1], action="took the key", outcome=1.0)
        memory.feedback(memory.context("a mug?", where=Filter(ids=[1])))
        record = memory.record
        learned = record.decisions(), record.usage(), record.links()
        before = [entry for entry in record.journal() if entry[2] in ("row", "link")]
        memory.erase(secret)
        assert record.decisions() == learned[0]
        assert record.usage() == learned[1]
        assert record.links() == learned[2]
        assert [entry for entry in record.journal() if entry[2] in ("row", "link")] == before


@pytest.mark.requirement("B8")
def test_an_erase_beside_a_reader_says_so_and_is_completed_later(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with Memory.open(folder, embedder=embedder()) as memory:
        secret = memory.add(SECRET).id
        with opened(folder) as db:
            db.execute("BEGIN")
            assert db.execute("SELECT count(*) FROM events").fetchall() == [(1,)]
            done = memory.erase(secret)
            assert done == [secret]
            assert not done.complete
            assert repr(done) == f"Erased([{secret}], complete=False)"
            assert files_with(folder, b"zanzibar") == ["memory.db-wal"]
        assert memory.erase([]).complete
        assert files_with(folder, b"zanzibar") == []


@pytest.mark.requirement("B8")
def test_what_feedback_taught_loses_the_words_of_the_erased_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder(24)) as memory:
        harbour = memory.add("The harbour opens at nine.").id
        secret = memory.add("The Quastenflosser sleeps in tank seven.").id
        for question, helped in (
            ("when does the harbour open?", harbour),
            ("where does the Quastenflosser sleep?", secret),
            ("which Quastenflosser opens the harbour?", harbour),
        ):
            memory.feedback(memory.recall(question), helped=[helped])
        name = "recall:"
        before = memory.record.state(name)
        memory.erase(secret)
        after = memory.record.state(name)
    assert before is not None
    assert [helped for _, helped in before["asked"]] == [[harbour], [secret], [harbour]]
    assert after == {**before, "asked": before["asked"][:1]}
    assert not any(
        b"quastenflosser" in path.read_bytes().lower()
        for path in tmp_path.rglob("*")
        if path.is_file()
    )


@pytest.mark.requirement("B8")
@pytest.mark.parametrize("open_decision", [False, True])
def test_feedback_after_an_erase_does_not_bring_back_the_words_of_the_erased(
    tmp_path: Path, open_decision: bool
) -> None:
    with Memory.open(tmp_path / "m", embedder=LexicalEmbedder(24)) as memory:
        harbour = memory.add("The harbour opens at nine.").id
        secret = memory.add("The Quastenflosser sleeps in tank seven.").id
        asked = memory.recall("which Quastenflosser opens the harbour?", 1)
        assert [hit.event.event_id for hit in asked if hit.event] == [harbour]
        if not open_decision:
            memory.feedback(asked, helped=[harbour])
            # From now on what was learned is in memory, too.
            asked = memory.recall("when does the harbour open?", 1)
            memory.erase(secret)
            asked = memory.recall("when does the harbour open?", 1)
        else:
            memory.erase(secret)
        memory.feedback(asked, helped=[harbour])
        after = memory.record.state("recall:")
    assert after is not None
    assert after["asked"] == ([] if open_decision else [[["harbour", "open"], [harbour]]])
    assert files_with(tmp_path, b"quastenflosser") == []
