"""A character's definition: identity, background, style and relations that it is seeded with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cvx.arguments import a_mapping, some_texts, wrong
from cvx.embed.chunks import chunk_text
from cvx.validation import storable_namespace, storable_text

LONGEST = 300
"""Characters of one piece of a background."""

QUERIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "identity": ("who am I?", "what is my identity?", "describe myself"),
        "background": ("what is my background?", "what is my history?"),
        "communication": (
            "how do I communicate?",
            "how do I speak?",
            "what is my communication style?",
        ),
        "decision_style": ("how do I make decisions?", "what is my decision style?"),
        "traits": ("what are my traits?", "describe my personality"),
        "skills": ("what am I good at?", "what are my skills?"),
        "values": ("what do I value?", "what are my principles?"),
        "goals": ("what do I want?", "what are my goals?"),
    }
)
"""By category: the questions under which a character finds what it is."""

SCENE_QUERIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "location": ("where am I?", "what is the location?", "describe the scene"),
        "atmosphere": ("what's the atmosphere?", "what's the mood?", "describe the atmosphere"),
        "time": ("what time is it?", "when is this happening?"),
        "context": ("what is happening?", "what's the situation?"),
    }
)
"""By category: the questions under which everybody finds where it is."""

OTHER_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "identity": (
            "what is my role?", "which character do I play?", "sum me up",
            "what is my archetype?", "introduce me", "tell me about myself", "characterise me",
            "what defines me as a person?", "who am I supposed to be?", "my own description",
            "what should I tell others about myself?", "which persona is mine?",
        ),
        "background": (
            "what happened to me in my life?", "what is my life story?",
            "which experiences shaped me?", "what did I do before?", "what is my past?",
            "how has my life gone until now?", "what have I been through?",
            "what lies behind me in life?", "where did I study and work?",
            "my childhood and earlier years", "what are the events of my past?",
        ),
        "communication": (
            "how do I talk?", "how do I talk with people?", "what does my speech sound like?",
            "what words and phrases do I use?", "how do I put things?",
            "what is my manner of conversation?", "how do I tell people something?",
        ),
        "decision_style": (
            "how do I decide?", "how do I choose between options?",
            "what do I weigh before I decide?", "how do I take a decision?",
            "what is my approach to choices?", "what steps lead me to a choice?",
            "am I a careful or a quick decider?",
        ),
        "traits": (
            "what are my characteristics?", "what is my temper?",
            "am I patient, shy, proud or outgoing?", "what are my flaws and quirks?",
            "what is my nature and temperament?", "which qualities and weaknesses do I have?",
        ),
        "skills": (
            "what can I do?", "what do I do best?", "what are my abilities?", "what can I offer?",
            "what are my strong points?", "what am I able to do well?", "what could I help with?",
            "what is my expertise?", "in what am I excellent?",
            "which crafts and competences do I have?", "what have I learned to do?",
            "what am I talented at?",
        ),
        "values": (
            "what matters to me?", "what do I care about?", "what do I stand for?",
            "what is my moral code?", "what would I never give up?",
            "what do I appreciate in people?", "what are my values?",
            "which moral rules do I follow?", "what are my beliefs and convictions?",
            "what are my ideals and ethics?", "what is right and wrong for me?",
            "what guides my actions morally?",
        ),
        "goals": (
            "what am I after?", "what do I want to achieve?", "what is my aim?",
        ),
        "location": (
            "which place is this?", "where does this happen?", "what does the room look like?",
            "what is around me?", "what can I see here?", "where are we now?",
            "where is this set?", "what are my surroundings?", "which building or room is it?",
            "what is the name of the place?", "what is the venue or address?", "location",
        ),
        "atmosphere": (
            "how do people feel here?", "how does it feel here?", "what is the vibe in the room?",
            "are people tense or relaxed?", "what is the mood of the scene?",
            "what is the emotional climate?", "are people in good spirits?",
            "what is the feeling in the air?", "what is the emotional tone of the gathering?",
            "how cheerful or gloomy is it?", "what spirit prevails?", "ambience",
        ),
        "time": (
            "when does the scene take place?", "what time of day is it?",
            "at what point in time is this?", "what is the current hour?",
            "which day and season is it?", "how late or early is it?",
        ),
        "context": (
            "what is going on here?", "what are we doing here?", "why are we here?",
            "what is everybody up to?", "give me the context", "how do things stand?",
            "what are people doing?", "what is going on around me?", "what is this about?",
            "what is the task at hand?", "what event is this?", "what scenario is this?",
        ),
    }
)  # fmt: skip
"""By category: further questions that mean the same, to tell what is asked in whatever words."""

ABOUT_QUERIES = ("who is {name}?", "what do I know about {name}?", "describe {name}")
"""The questions under which a character finds what it knows of another one."""


@dataclass(frozen=True, slots=True)
class Gift:
    """One event to be seeded, for a character or for everybody.

    Parameters
    ----------
    key : str
        What it is called in its namespace; given again, it is updated.
    type : {"character", "scene", "character_knowledge"}
        Which of the three it is.
    category : str
        What it is about.
    text : str
        What it says.
    queries : tuple of str
        The questions it is found under.
    more : mapping, optional
        What else is stored with it: whom it is ``about``; of an identity, its ``appearance``; the
        ``goals`` one by one.
    """

    key: str
    type: str
    category: str
    text: str
    queries: tuple[str, ...]
    more: Mapping[str, Any] = field(default_factory=dict)

    def metadata(self, agent: str | None) -> dict[str, Any]:
        """Return what is stored beside the text, but for the question."""
        whose = {} if agent is None else {"agent": agent}
        return {**whose, "type": self.type, "category": self.category, **self.more}


def own_gifts(
    name: str,
    appearance: str,
    role: str,
    background: str,
    told: Mapping[str, str],
    goals: Sequence[str],
) -> Iterator[Gift]:
    """Yield what a character knows about itself.

    Parameters
    ----------
    name, role, background : str
        As ``Cast.seed`` was given them.
    appearance : str
        What others can see too.
    told : mapping of str to str
        The further categories and what is said of each.
    goals : sequence of str
        What it is after.
    """
    shown = shown_name(name)
    who = as_sentence(f"You are {shown}, {role}" if role.strip() else f"You are {shown}")
    texts: dict[str, list[str]] = {
        "identity": [f"{who} {appearance}"],
        "background": chunk_text(background, LONGEST),
        **{category: [text] for category, text in told.items()},
        "goals": [f"What you want: {'; '.join(goals)}"] if goals else [],
    }
    told_too: dict[str, dict[str, Any]] = {
        "identity": {"appearance": appearance},
        # Its pieces are read together.
        "background": {"session": "background"},
        "goals": {"goals": [*goals]},
    }
    for category, pieces in texts.items():
        more = told_too.get(category, {})
        for number, text in enumerate(pieces):
            key = f"{category}:{number}"
            yield Gift(key, "character", category, text, QUERIES[category], more)


def about_gift(other: str, category: str, text: str) -> Gift:
    """Return what is known of another character: how it looks ("identity"), or how one stands."""
    key = f"{category} of:{other}"
    return Gift(key, "character_knowledge", category, text, about_queries(other), {"about": other})


def about_queries(other: str) -> tuple[str, ...]:
    """Return the questions under which a character finds what it knows of another one."""
    return tuple(one.replace("{name}", shown_name(other)) for one in ABOUT_QUERIES)


def scene_gifts(fields: Mapping[str, str]) -> list[Gift]:
    """Return what everybody knows of where they are, by category."""
    return [
        Gift(f"scene {category}:0", "scene", category, text, SCENE_QUERIES[category])
        for category, text in fields.items()
    ]


def check_name(called: str, value: Any) -> str:
    """Return a name that a character can have.

    Raises
    ------
    InvalidInputError
        No text, one without any visible character, or one that is no namespace.
    """
    return storable_namespace(called, some_words(called, value))


def shown_name(name: str) -> str:
    """Return a name as it stands in a text: on one line."""
    return " ".join(name.split())


def some_words(name: str, value: Any) -> str:
    """Return a text that says something."""
    if not isinstance(value, str) or not value.strip():
        raise wrong(name, value, "a text that says something")
    return storable_text(name, value)


def texts_of_words(name: str, value: Any) -> tuple[str, ...]:
    """Return texts each of which says something."""
    return tuple(
        some_words(f"{name}[{place}]", one) for place, one in enumerate(some_texts(name, value))
    )


def some_of_words(name: str, value: Any) -> tuple[str, ...]:
    """Return at least one text, each of which says something."""
    if not (found := texts_of_words(name, value)):
        raise wrong(name, value, "at least one text")
    return found


def relations(name: str, value: Any) -> dict[str, str]:
    """Return how a character stands to others, by their names."""
    return {
        other: some_words(f"{name}[{check_name('a name', other)!r}]", how)
        for other, how in a_mapping(name, value).items()
    }


def as_sentence(text: str) -> str:
    """Return a text with a full stop at its end, where it has no other."""
    return text if text.rstrip().endswith((".", "!", "?")) else f"{text.rstrip()}."
