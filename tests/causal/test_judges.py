"""Judges: what their answers mean, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvx.causal.cause_probability import PairModel
from cvx.causal.judges import (
    CallableJudge,
    Judge,
    Judgement,
    LLMJudge,
    NoJudge,
    Pair,
    RuleJudge,
    as_judge,
    judgements,
    question,
    read_answer,
)
from cvx.errors import InvalidInputError

RAIN = Pair("it rained all night", "the cellar flooded after it rained")


@pytest.mark.requirement("C7")
def test_a_model_is_asked_in_the_words_of_the_blueprint() -> None:
    assert question("it rained", "the cellar flooded") == (
        "Based on the preceding event: 'it rained', did it directly lead to the following event: "
        "'the cellar flooded'? If yes, briefly explain the relationship. If no, simply respond "
        "with 'No.'"
    )


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    "answer",
    ["No", "No.", "no", " NO. ", "'No.'", "**No.**", "No, they are unrelated.", "No - unrelated",
     "No it did not", "No there is no link", "No\nThe events are unrelated.", "Not directly.",
     "<think>Yes? Perhaps.</think>\nNo.", "Answer: No.", "Nope.", "None.", "Unrelated.", "False",
     "There is no causal relationship between them.", "NO causal relationship", "No direct link.",
     "There was no clear connection.", "No evidence that it did.", "It did not.", "It didn\u2019t.",
     "The first event did not lead to the second.", "These events are unrelated.",
     "The preceding event did not directly lead to the following event.",
     "The two events are not causally related."],
)  # fmt: skip
def test_a_denial_is_a_no(answer: str) -> None:
    assert read_answer(answer).verdict == "no"


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("Notably, the drain was blocked.", None),
        ("Water came in because the drain was blocked.", None),
        ("The rain led\nto the flood.", "The rain led to the flood."),
        ("The drain was full, so the cellar flooded.", None),
        ("Answer: Yes, water came in.", "water came in."),
        ("Yes. Water came in.", "Water came in."),
        ("YES - water\n came in", "water came in"),
        ("**Yes**, no pump worked, so water came in.", "no pump worked, so water came in."),
        ("Yes.\n\nExplanation: Water came in.", "Water came in."),
        ("Yes. The drain could not hold the water.", "The drain could not hold the water."),
        ("<think>No? Perhaps.</think>Yes, water came in.", "water came in."),
        ("No, or does it?</think> Yes, water came in.", "water came in."),
    ],
)
def test_a_yes_with_a_reason_or_a_plain_statement_of_a_cause_is_a_yes(
    answer: str, why: str | None
) -> None:
    found = read_answer(answer)
    assert (found.verdict, found.why) == ("yes", why or answer)


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    "answer",
    [
        *("", "  \n", "water " * 500, None, 7, {"verdict": "no"}),
        # Shrugs, doubts, denials in words of their own.
        *("I don't know.", "I cannot determine that.", "Unclear.", "Not sure.", "Maybe."),
        *("It is not clear.", "As an AI, I cannot say", "Unlikely.", "I would say no."),
        *("It may have caused the flood.", "Did the rain cause it?", "Rain and flood."),
        *("Something else caused the flood.", "The flood was caused by another event."),
        *("The drain did not hold, so the cellar flooded.", "Nobody had cleaned the drain."),
        *("No one had cleaned the drain.", "No doubt it did: water came in."),
        *("There is no doubt that the rain led to it.", "Water came in through the drain."),
        # Other languages, other formats, messages of a server.
        *("Nein", "Nein, das eine hat nichts mit dem anderen zu tun.", "Non.", "\u4e0d\u662f"),
        *('{"verdict": "no"}', '{"caused": true, "why": "because of the rain"}', "[]"),
        *('```json\n{"caused": false}\n```', "<answer>The rain caused it.</answer>"),
        *("ERROR 500", "Internal Server Error: caused by upstream", "Error: led to a time-out"),
        # A yes without a reason, halved, taken back, or beside a no.
        *("Yes", "Yes.", "Yes, it did.", "Yes, that is correct.", "Yes?", "Yes/No", "Yes or no?"),
        *("Yes and no.", "Yes, but not directly.", "Yes, indirectly: the drain was full."),
        *("Yes, possibly because of rain.", "Yes, if the pump was off at night."),
        *("Yes, it rained. However, the flood came from a pipe.", "No. Actually yes, it did."),
        *("Yes. The first event did not lead to the second.", "Yesterday it rained all day."),
        # Thoughts that never end.
        *("<think>Yes, because the drain was blocked", "<thinking>No.", "No. <think>Or yes"),
    ],
)  # fmt: skip
def test_what_is_neither_a_clear_yes_with_a_reason_nor_a_clear_no_is_no_judgement(
    answer: object,
) -> None:
    found = read_answer(answer)
    assert found.verdict == "unjudged"
    assert found.why


@given(st.text())
def test_every_text_has_some_meaning(answer: str) -> None:
    found = read_answer(answer)
    assert found.verdict in ("yes", "no", "unjudged")
    assert found.why


class _Client:
    def __init__(self, method: str) -> None:
        setattr(
            self, method, lambda prompt: f"Yes. Water came in. ({len(prompt)} characters asked)"
        )


def openai_client() -> Any:
    def create(*, model: str | None, messages: list[dict[str, str]]) -> object:
        content = f"Yes. Water came in. {model} {messages[0]['role']}"
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=content))])

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


@pytest.mark.requirement("C13")
def test_a_client_of_any_shape_can_be_asked() -> None:
    shapes: list[object] = [
        lambda _: "Yes. Water came in.",
        *(_Client(method) for method in ("complete", "generate", "invoke", "ask", "chat")),
        lambda _: SimpleNamespace(content="Yes. Water came in."),
    ]
    for client in shapes:
        assert LLMJudge(client).judge([RAIN])[0].why.startswith("Water came in.")
    assert LLMJudge(openai_client(), model="m").judge([RAIN])[0].why == "Water came in. m user"
    with pytest.raises(InvalidInputError, match="int cannot be asked"):
        LLMJudge(7)
    with pytest.raises(InvalidInputError, match="timeout_s"):
        LLMJudge(print, timeout_s=0)


@pytest.mark.requirement("C7", "C13")
def test_a_model_that_raises_leaves_the_pair_unjudged() -> None:
    def broken(prompt: str) -> str:
        raise ConnectionError("no route")

    (found,) = LLMJudge(broken).judge([RAIN])
    assert (found.verdict, found.why) == ("unjudged", "ConnectionError: no route")


@pytest.mark.requirement("C7", "C13")
def test_a_model_that_hangs_is_not_waited_for() -> None:
    never = threading.Event()
    (found,) = LLMJudge(lambda _: never.wait(), timeout_s=0.01).judge([RAIN])
    assert (found.verdict, found.why) == ("unjudged", "no answer within 0.01 s")
    never.set()


@pytest.mark.requirement("C13")
def test_what_a_function_answers_is_understood() -> None:
    answers: list[tuple[object, str, float | None]] = [
        (True, "yes", None),
        (False, "no", None),
        (None, "no", None),
        ("Yes", "unjudged", None),
        (0.8, "yes", 0.8),
        (0.2, "no", 0.2),
        (1.5, "unjudged", None),
        ("No.", "no", None),
        ("Yes. Water came in.", "yes", None),
        (Judgement("unjudged"), "unjudged", None),
    ]
    for answer, verdict, probability in answers:
        (found,) = CallableJudge(lambda _cause, _effect, a=answer: a).judge([RAIN])  # type: ignore[misc]
        assert (found.verdict, found.probability) == (verdict, probability)


@pytest.mark.requirement("C13")
def test_anything_that_can_be_asked_becomes_a_judge() -> None:
    rules = RuleJudge()
    assert as_judge(rules) is rules
    assert as_judge(None).judge([RAIN, RAIN])[1].verdict == "unjudged"
    assert as_judge(lambda _: "No.").judge([RAIN])[0].verdict == "no"
    for judge in (rules, NoJudge(), LLMJudge(print), CallableJudge(max)):
        assert isinstance(judge, Judge)
        assert judge.name


class _Odd:
    name = "odd"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def judge(self, pairs: Sequence[Pair]) -> Any:  # noqa: ARG002
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_judge_that_raises_or_answers_nonsense_judges_nothing() -> None:
    for answer in (ValueError("broken"), [], None, ["yes", "no"], [Judgement("yes")] * 3):
        found = judgements(_Odd(answer), [RAIN, RAIN])
        assert [one.verdict for one in found] == ["unjudged", "unjudged"]
        assert found[0].why


@pytest.mark.requirement("C13")
def test_rules_go_by_words_likeness_and_time() -> None:
    rules = RuleJudge()
    (named,) = rules.judge([RAIN])
    assert named.confirmed
    assert 'it says "after"' in named.why
    assert sum(value for _, value in named.factors) == pytest.approx(named.probability)
    late = RAIN._replace(lag=-5)
    assert rules.judge([late])[0] == Judgement("no", 0.0, "the effect came first")
    foreign = Pair("it rained", "the mayor resigned")
    assert rules.judge([foreign])[0].probability == 0.0
    vectors = np.eye(2, dtype=np.float32)
    alike = foreign._replace(cause_vector=vectors[0], effect_vector=vectors[0])
    assert rules.judge([alike])[0].probability == pytest.approx(0.25)
    for empty in (Pair("", "the cellar flooded"), Pair("it rained", "...")):
        assert rules.judge([empty])[0].verdict == "unjudged"
    with pytest.raises(InvalidInputError, match="bound"):
        RuleJudge(bound=2)


words = st.text(alphabet="abc ", max_size=20)


@given(words, words, st.none() | st.integers(-5, 5))
def test_rules_give_every_pair_a_probability_or_no_judgement(
    cause: str, effect: str, lag: int | None
) -> None:
    (found,) = RuleJudge().judge([Pair(cause, effect, lag=lag)])
    assert (found.verdict == "unjudged") == (found.probability is None)


def test_a_judgement_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="verdict"):
        Judgement("maybe")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="probability"):
        Judgement("yes", 1.5)


SAID = "Yes. Water came in through the drain."


def _holding(**fields: object) -> SimpleNamespace:
    return SimpleNamespace(**fields)


async def _soon(prompt: str) -> str:
    await asyncio.sleep(0)
    return SAID if prompt else ""


class _Ollama:
    def chat(self, model: str = "", messages: Sequence[object] = ()) -> object:
        return {"message": {"role": "assistant", "content": SAID}} if messages else model


class _Pipeline:
    def __call__(self, prompt: str) -> object:
        return [{"generated_text": prompt + SAID}]


class _ChatPipeline:
    def __call__(self, prompt: str) -> object:
        return [{"generated_text": [{"role": "user", "content": prompt}, {"content": SAID}]}]


SHAPES = {
    "a function": lambda _prompt: SAID,
    "a coroutine": _soon,
    "OpenAI chat": _holding(
        chat=_holding(
            completions=_holding(
                create=lambda model, messages: _holding(
                    choices=[_holding(message=_holding(content=SAID))], id=model or messages
                )
            )
        )
    ),
    "OpenAI responses": _holding(
        responses=_holding(create=lambda **asked: _holding(output_text=SAID, id=asked["input"]))
    ),
    "Anthropic": _holding(
        messages=_holding(
            create=lambda max_tokens, messages: _holding(
                content=[_holding(type="text", text=SAID)], usage=max_tokens, id=messages
            )
        )
    ),
    "Gemini": _holding(
        models=_holding(generate_content=lambda contents: _holding(text=SAID, candidates=contents))
    ),
    "Gemini, older": _holding(generate_content=lambda _contents: _holding(text=SAID)),
    "Ollama": _Ollama(),
    "a pipeline": _Pipeline(),
    "a chat pipeline": _ChatPipeline(),
    "a mapping": lambda _prompt: {"response": SAID},
    "a list": lambda _prompt: [{"text": SAID}],
}


@pytest.mark.requirement("C13")
@pytest.mark.parametrize("shape", SHAPES)
def test_clients_of_every_shape_are_understood(shape: str) -> None:
    (made,) = LLMJudge(SHAPES[shape]).judge([Pair("it rained", "the cellar flooded")])
    assert (made.verdict, made.why) == ("yes", "Water came in through the drain.")


@pytest.mark.requirement("C13")
def test_an_asynchronous_client_is_understood_where_a_loop_is_running() -> None:
    async def within() -> str:
        judge = LLMJudge(_soon, timeout_s=None)
        return judge.judge([Pair("it rained", "the cellar flooded")])[0].verdict

    assert asyncio.run(within()) == "yes"


@pytest.mark.requirement("C13")
@pytest.mark.parametrize(
    "thing", [7, "gpt", {}, [], LLMJudge, lambda: "no prompt", lambda a, b: a + b]
)
def test_what_cannot_be_asked_is_refused_at_once(thing: object) -> None:
    with pytest.raises(InvalidInputError, match="cannot be asked"):
        LLMJudge(thing)


@pytest.mark.requirement("C13", "B13")
def test_the_pair_model_judges_pairs_by_themselves() -> None:
    flood = "the cellar flooded because the drain was blocked"
    pairs = [
        Pair("the drain was blocked", flood),
        Pair("no gear wheels came", "the line stood still (no gear wheels came)"),
        Pair("a cat slept on the sofa", "the mayor resigned"),
        Pair("the drain was blocked", flood, lag=-1),
        Pair("", flood),
    ]
    named, aside, apart, later, blank = PairModel.shipped().judge(pairs)
    assert (named.verdict, aside.verdict, apart.verdict) == ("yes", "yes", "no")
    assert named.why == 'it says "because" and both speak of drain and blocked'
    assert aside.why.startswith('it says "no gear wheels came"')
    assert apart.why == ""
    assert apart.probability is not None
    assert apart.probability < 0.3
    assert all(part for made in (named, aside, apart) for _, part in made.factors)
    assert (later.verdict, later.why) == ("no", "the effect came first")
    assert blank.verdict == "unjudged"
    assert PairModel.shipped().judge([]) == []
    # The same pair gets the same answer, whatever it is asked beside.
    assert PairModel.shipped().judge(pairs[:1]) == [named]
