"""What each policy did to which memory, and why: a frame and a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.errors import FileError, InvalidInputError
from cvx.learn.decay import (
    BayesianDecay,
    BlindDecay,
    ContextAwareDecay,
    DecayCase,
    DecayLedger,
    DecayPolicy,
    GatedDecay,
    Judged,
    ProportionalDecay,
    reason_of,
)
from cvx.learn.decay_report import POLICIES, decay_report
from cvx.learn.loop import ActiveMemory
from cvx.temporal_index import TemporalIndex
from cvx.types import Cue, Filter
from tests.learn.test_decay import Rewards, cases

FOLLOWED = {"expert_action": "take", "agent_actions": frozenset({"take"})}
SCENARIOS = {
    "another family": DecayCase("clean", "cool", **FOLLOWED),  # type: ignore[arg-type]
    "ignored": DecayCase("cool", "cool", followed=False),
    "good region": DecayCase("cool", "cool", followed=True, region_quality=1.0),
    "bad region": DecayCase("cool", "cool", followed=True, region_quality=0.0),
}


def scenarios() -> list[Judged]:
    return [Judged(7, node, case) for node, case in enumerate(SCENARIOS.values())]


@pytest.mark.requirement("V14", "V15")
def test_the_table_of_scenarios_is_a_row_each_with_its_reason() -> None:
    report = decay_report(
        scenarios(), dict.fromkeys(range(4), 1.0), label_of=list(SCENARIOS).__getitem__
    )
    aware = report.cases.filter(policy="context-aware")
    assert aware["memory"].to_list() == list(SCENARIOS)
    assert aware["after"].to_list() == pytest.approx([1.0, 1.0, 0.95, 0.7])
    assert aware["why"].to_list() == [
        "another family of goals: clean, not cool",
        "its advice was not followed",
        "followed in a region of quality 1.00",
        "followed in a region of quality 0.00",
    ]
    blind = report.cases.filter(policy="blind")
    assert blind["after"].to_list() == pytest.approx([0.85] * 4)
    rows = {row["policy"]: row for row in report.policies().iter_rows(named=True)}
    assert (rows["context-aware"]["lowered"], rows["context-aware"]["spared"]) == (2, 2)
    assert (rows["blind"]["lowered"], rows["blind"]["spared"]) == (4, 0)
    assert rows["context-aware"]["mean_lost"] == pytest.approx(0.35 / 4)


@pytest.mark.requirement("V15")
@given(
    st.lists(st.builds(Judged, st.integers(0, 4), st.integers(0, 3), cases), max_size=25),
    st.sampled_from(sorted(POLICIES)),
)
def test_a_report_foretells_what_a_ledger_does(judged: list[Judged], name: str) -> None:
    start: dict[int, float | None] = {0: 1.0, 1: 0.4, 2: 0.0, 3: None}
    rewards = Rewards(start)
    ledger = DecayLedger()
    for game, node, case in judged:
        rewards.lose(ledger, game, {node: case}, POLICIES[name])
    report = decay_report(judged, start, {name: POLICIES[name]})
    after = {row["node"]: row["after"] for row in report.memories().iter_rows(named=True)}
    assert after == {node: pytest.approx(rewards[node]) for _, node, _ in judged}
    again = decay_report(ledger.cases, start, {name: POLICIES[name]})
    assert again.cases.equals(report.cases)


@pytest.mark.requirement("V15")
def test_each_gate_says_what_it_stopped() -> None:
    gated = GatedDecay(ContextAwareDecay(), max_phase_gap=0.25, same_region=True)
    blamed = {"followed": True, "region_quality": 0.0}
    rows = {
        "another phase: 10% into its episode, 90% into the game": DecayCase(
            expert_place=0.1,
            game_place=0.9,
            same_region=True,
            **blamed,  # type: ignore[arg-type]
        ),
        "another region": DecayCase(
            expert_place=0.1,
            game_place=0.2,
            same_region=False,
            **blamed,  # type: ignore[arg-type]
        ),
        "followed in a region of quality 0.00": DecayCase(**blamed),  # type: ignore[arg-type]
    }
    assert [reason_of(gated, case) for case in rows.values()] == list(rows)
    assert [gated.factor(case) for case in rows.values()] == [1.0, 1.0, 0.7]


def test_a_policy_of_ones_own_need_not_give_reasons() -> None:
    class Halves:
        def factor(self, case: DecayCase) -> float:  # noqa: ARG002
            return 0.5

    report = decay_report([Judged(0, 1, DecayCase())], {1: 0.8}, {"mine": Halves()})
    assert report.cases.row(0, named=True) == {
        "policy": "mine", "game": 0, "node": 1, "memory": "1",
        "before": 0.8, "after": 0.4, "factor": 0.5, "why": "by Halves",
    }  # fmt: skip


def test_a_memory_without_reward_is_listed_with_nothing_lost() -> None:
    report = decay_report([Judged(0, 1, DecayCase())], {1: None}, {"blind": BlindDecay()})
    row = report.memories().row(0, named=True)
    assert (row["before"], row["after"], row["lost"]) == (None, None, 0.0)
    assert report.cases["why"].to_list() == ["it has no reward to lose"]
    assert "none" in report.to_html()


class Page(HTMLParser):
    """Collects tags that are open, and whatever refers to another place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.refers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta" and not tag.startswith("!"):
            self.open.append(tag)
        self.refers += [str(value) for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.requirement("V15")
def test_the_page_stands_alone_and_shows_what_memories_say_as_text(tmp_path: Path) -> None:
    report = decay_report(
        scenarios(), dict.fromkeys(range(4), 1.0), label_of=lambda node: f"<script>alert({node})"
    )
    path = report.write(tmp_path / "decay.html", "What <failures> cost")
    text = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.refers == []
    assert "<script" not in text
    assert "http" not in text
    assert "What &lt;failures&gt; cost" in text
    assert all(name in text for name in POLICIES)
    assert "another family of goals: clean, not cool" in text


def test_a_long_page_says_how_many_memories_it_leaves_out() -> None:
    report = decay_report(scenarios(), dict.fromkeys(range(4), 1.0), {"blind": BlindDecay()})
    assert "3 memories that lost less are left out" in report.to_html(most=1)
    assert "left out" not in report.to_html()
    with pytest.raises(InvalidInputError, match="most is 0"):
        report.to_html(most=0)


def test_without_failures_the_page_says_so() -> None:
    report = decay_report([], {})
    assert "No memory was recalled in a failed game" in report.to_html()
    assert report.policies().is_empty()


def test_a_page_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"):
        decay_report([], {}).write(tmp_path / "no folder" / "page.html")


@pytest.mark.requirement("V15", "V17")
def test_a_loop_reports_its_failures_from_the_rewards_before_any_decay() -> None:
    loop = ActiveMemory(TemporalIndex(32), decay=BlindDecay(0.5))
    loop.add_demonstration("clean a mug", [("a kitchen", "take mug 1")], "clean")
    for game in range(3):
        run = loop.begin("clean a cup", "clean")
        decision = loop.recall(Cue(step="a kitchen"))
        loop.act(decision, "take mug 1" if game else "sing")
        loop.close(run, 0.0)
    report = loop.decay_report({"blind": BlindDecay(0.5), "aware": ContextAwareDecay()})
    blind = report.memories().filter(policy="blind").row(0, named=True)
    assert (blind["games"], blind["decays"], blind["before"]) == (3, 3, 1.0)
    assert blind["after"] == loop.index.reward(0) == 0.125
    assert "demonstration 0: clean a mug | a kitchen | take mug 1" in blind["memory"]
    aware = report.cases.filter(policy="aware")["why"].to_list()
    assert aware[0] == "its advice was not followed"
    assert re.match(r"followed in a region of quality 0\.\d\d", aware[1])
    assert loop.index.reward(0) == 0.125


def test_a_ledger_keeps_the_newest_cases_only() -> None:
    rewards, ledger = Rewards({1: 1.0}), DecayLedger(keep=2)
    for game in range(5):
        rewards.lose(ledger, game, {1: DecayCase()}, BlindDecay())
    assert [one.game for one in ledger.cases] == [3, 4]


@pytest.mark.requirement("V15", "V16")
@pytest.mark.parametrize("policy", [ProportionalDecay(), BayesianDecay()], ids=["P", "Bayes"])
def test_a_loop_decays_by_what_it_knew_before_the_game(policy: DecayPolicy) -> None:
    loop = ActiveMemory(TemporalIndex(32), decay=policy)
    loop.add_demonstration("clean a mug", [("a kitchen", "take mug 1")], "clean")
    assert loop.mdp is not None
    assert loop.usage is not None
    expected = 1.0
    for game in range(4):
        region = loop.mdp.region_of(0)
        assert region is not None
        chance, used = loop.mdp.success(region, "take"), loop.usage.count(("node", 0))
        assert chance is not None
        blamed = DecayCase(
            "clean", "clean", followed=True, action_success=chance, uses=used.followed
        )
        expected *= 1.0 if game == 1 else policy.factor(blamed)
        run = loop.begin("clean a cup", "clean")
        decision = loop.recall(Cue(step="a kitchen"), Filter(entities=[0]))
        loop.act(decision, "take mug 1", decision.hits[0])
        loop.close(run, float(game == 1))
        assert loop.index.reward(0) == pytest.approx(expected)
    assert expected < 0.8
