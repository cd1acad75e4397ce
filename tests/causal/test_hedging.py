"""Effects that only ask, deny, doubt or concede a cause: nothing is drawn to them, nothing told."""

from __future__ import annotations

import pytest

from cvx.causal import Pair, PairModel, RuleJudge
from cvx.causal.judges.offline import leaves_open
from cvx.embed import LexicalEmbedder
from cvx.memory import Memory

DEVELOPED = (
    (
        "The vaccine was given",
        "It is not true that children fell ill because the vaccine was given",
    ),
    ("Ann called", "Did the meeting fail because Ann called?"),
    ("Ben resigned", "Nobody believes the deal failed because Ben resigned"),
    ("The strike ended", "Flights resumed despite the strike"),
    ("The tutor left", "The exam was failed, but that had nothing to do with the tutor who left"),
    ("The storm passed", "In spite of the storm, the ferry sailed"),
    ("The drain was cleared", "The cellar flooded although the drain was cleared"),
    ("The fee was raised", "Members joined regardless of the fee"),
    ("The toll was doubled", "Traffic grew notwithstanding the toll that was doubled"),
    ("The union threatened", "Undeterred by the threats, the board closed the mine"),
)
# Written once the rules stood; none of them was used to write a rule.
HELD_OUT = (
    (
        "The mast was painted",
        "There is no proof that the radio failed because the mast was painted",
    ),
    ("The bakery burned", "Ana asked whether the street was closed because the bakery burned"),
    ("The new pump came", "It's a myth that the pond dried up because of the new pump"),
    ("The coach quit", "Hardly anyone thinks the team lost because the coach quit"),
    ("The bridge was shut", "Why would the market be empty because the bridge was shut?"),
    ("The fuse blew", "The engineer denies that the lamp went dark because the fuse blew"),
    ("The frost came", "The vines bore fruit even though the frost came"),
    ("The hacker was caught", "The leak was unrelated to the hacker who was caught"),
    ("The chef was ill", "It was false that the kitchen closed because the chef was ill"),
    ("The lock was changed", "I doubt the parcel vanished because the lock was changed"),
    ("The clown came", "The circus sold out irrespective of the clown who came"),
    ("The road iced over", "Few claim that the van crashed because the road iced over"),
    ("The valve was old", "The valve was not the cause of the blast"),
    ("Max shouted", "Police ruled out that the horse bolted because Max shouted"),
    ("The cook left", "Is it so that guests stayed away because the cook left?"),
    ("The well was dug", "It isn't the case that the house sank because the well was dug"),
    ("The pilot was tired", "The plane was late, and not because the pilot was tired"),
    ("The seed was cheap", "No one has shown that the crop failed due to the cheap seed"),
)
STATED = (
    ("The disk filled up", "The database stopped because the disk filled up"),
    ("The disk filled up", "Orders could not be saved because the disk filled up"),
    ("The disk filled up", "The backup did not run because the disk filled up"),
    ("Access was revoked", "Nobody could sign in because access was revoked"),
    ("The lorry broke down", "The parcel did not arrive, because the lorry broke down"),
    ("The badge expired", "Entry was denied because the badge expired"),
    ("The witness lied", "Nobody believed the report because the witness lied"),
    ("The drain was blocked", "The cellar flooded not only because the drain was blocked"),
    ("The disk was full", "Why did the server stop? It stopped because the disk was full."),
    ("The crew came back", "The crew came back, so flights resumed despite the fog"),
)


def memory_of(cause: str, effect: str) -> tuple[Memory, int]:
    memory = Memory(embedder=LexicalEmbedder())
    memory.add(cause, timestamp=0)
    return memory, memory.add(effect, timestamp=10**9).id


@pytest.mark.requirement("B13", "C13")
@pytest.mark.parametrize(("cause", "effect"), DEVELOPED + HELD_OUT)
def test_a_cause_that_is_asked_denied_or_doubted_is_never_drawn_or_told(
    cause: str, effect: str
) -> None:
    memory, effect_id = memory_of(cause, effect)
    for draw in (0.5, 0.0):
        assert all(
            link.state == "candidate" and link.weight <= 0.1
            for link in memory.causes.propose(effect_id, draw=draw)
        )
    memory.causes.propose(effect_id, judge=RuleJudge())
    assert memory.why(effect_id).steps == []
    (word,) = PairModel.shipped().judge([Pair(cause, effect)])
    assert word.verdict == "no"


@pytest.mark.requirement("B13", "C13")
@pytest.mark.parametrize(("cause", "effect"), STATED)
def test_a_cause_that_is_stated_is_drawn_beside_other_negations(cause: str, effect: str) -> None:
    memory, effect_id = memory_of(cause, effect)
    (link, *_) = memory.causes.propose(effect_id)
    assert link.weight > 0.1
    (word,) = RuleJudge().judge([Pair(cause, effect)])
    assert word.verdict == "yes"


@pytest.mark.requirement("B13")
def test_only_what_the_denied_clause_names_is_left_open() -> None:
    bank = "The deal failed not because Ben resigned but because the bank withdrew"
    assert leaves_open("Ben resigned", bank)
    assert not leaves_open("The bank withdrew", bank)
    memory = Memory(embedder=LexicalEmbedder())
    strike = memory.add("The strike went on", timestamp=0)
    crew = memory.add("The spare crew was hired", timestamp=1)
    flights = memory.add(
        "Despite the strike, flights resumed because the spare crew was hired", timestamp=2
    )
    found = {link.cause: link.state for link in memory.causes.propose(flights)}
    assert found[crew.id] == "judged"
    assert found.get(strike.id, "candidate") == "candidate"


CORRECTED = [
    ("The dentist comes on Monday at nine.", "No, it's Tuesday: the dentist comes on Tuesday."),
    ("My favourite colour is green.", "Actually my favourite colour is blue."),
    ("We meet Jo at six.", "Correction: we meet Jo at seven."),
    ("I am allergic to hazelnuts.", "I am not allergic to hazelnuts, it was walnuts."),
    ("Mein Reisepass liegt in der Schublade.", "Nein, der Reisepass liegt jetzt im Tresor."),
]


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(("earlier", "correction"), CORRECTED)
def test_a_correction_is_no_effect_of_what_it_corrects(earlier: str, correction: str) -> None:
    memory = Memory(embedder=LexicalEmbedder())
    for text in ("Ana had soup.", earlier, "Bo paid for the piano."):
        memory.add(text)
    assert [
        link for link in memory.causes.propose(memory.add(correction)) if link.weight > 0.1
    ] == []
    (word,) = RuleJudge().judge([Pair(earlier, correction)])
    assert word.verdict == "no"


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        ("The valve stuck.", "No water came through the valve."),
        ("The pump failed overnight.", "The heating did not work in the morning."),
        ("The pump failed overnight.", "Actually, the cellar was flooded because the pump failed."),
    ],
)
def test_a_negation_may_still_be_an_effect(cause: str, effect: str) -> None:
    assert not leaves_open(cause, effect)
