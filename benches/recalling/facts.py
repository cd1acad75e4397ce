"""Stores of short facts, as assistants keep them, with questions in other words.

Four people, each written in a style of its own: of a third person, of "the user", in the first
person, and notes of a team. A line is a fact and after ``|`` the questions that it answers; an
indented one goes on. The floor was fitted to the first two; the others took no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cvx.embed import Embedder
from cvx.evaluation import Label
from cvx.memory import Memory
from cvx.types import Event

_JONAS = """
Jonas lives in Graz | Which city is he based in? / Where is Jonas's home?
Jonas teaches chemistry at a secondary school | What is his profession? /
    What does Jonas do for a living?
Jonas is lactose intolerant | What can he not digest? / Is milk fine for Jonas?
Jonas's wife is called Amelie | Who is he married to?
Jonas has twin daughters, Ida and Paula | Does he have kids? / How many children does Jonas have?
Jonas rides a black Triumph motorcycle | What vehicle does he own?
Jonas plays the trumpet in a brass band | Which instrument does he play? / What are his hobbies?
Jonas wants to hike the Camino next spring | What journey is he planning?
Jonas is scared of spiders | What frightens him?
Jonas's blood pressure is too high | Any health problems?
Jonas takes ramipril every morning | Which medicine does he use? / What drug must Jonas not forget?
Jonas gave up smoking in 2021 | When did he quit cigarettes?
Jonas supports Sturm Graz | Which football team is he a fan of?
Jonas reads mostly science fiction | What kind of books does Jonas enjoy?
Jonas's mobile number ends in 4417 | What is his phone number?
Jonas prefers to be contacted by email | How should one get in touch with him?
Jonas's birthday is 3 February | When was he born?
Jonas has a mortgage with Raiffeisen | Where did he borrow money for the house?
Jonas keeps bees in the garden | Does he have any animals?
Jonas learned sailing on Lake Garda | Where did he learn to handle a boat?
Jonas's father died last winter | Are his parents still alive?
Jonas is allergic to penicillin | Which antibiotic is dangerous for him?
Jonas uses Linux on his laptop | Which operating system does he run?
Jonas votes for the Greens | What are his political views?
Jonas sings tenor
Jonas's favourite dish is mushroom risotto | What meal should I cook for him? /
    What does Jonas love to eat?
Jonas goes to bed at ten | What time does he fall asleep?
Amelie is an architect | What does his spouse work as?
Amelie comes from Lyon | Which country is his wife from?
Ida is left-handed
Paula needs glasses | Which daughter sees badly?
Jonas lost his wallet in the tram | What went missing?
Jonas's dishwasher is broken | What appliance has to be repaired?
Jonas is a member of the fire brigade | Is he a volunteer anywhere?
Jonas has an appointment with the notary on Thursday | When does he see the lawyer?
Jonas pays for the school trip in May
"""
_JONAS_UNKNOWN = """
What is his shoe size? / Who is his landlord? / Which newspaper does he subscribe to? /
When is his next flight? / Does Amelie have a sister? /
What is the licence number of his car insurance? / Where did he go to university? /
What is his favourite colour? / Which gym does Paula attend? / What did the plumber charge? /
How tall is Ida? / Who repaired his roof?
"""
_USER = """
User works as a freelance illustrator | What is my job? / How do I earn my money?
User's partner is named Dario | Who am I together with? / What's my boyfriend called?
User is vegan | Can I eat cheese? / Do I follow a special diet?
User has asthma | Do I have a chronic illness? / Why do I need an inhaler?
User moved from Porto to Utrecht in 2019 | Where did I live previously? / What is my current city?
User's dog is a dachshund named Fritz | What breed is my pet? / What is the name of my dog?
User's sister Ines is getting married in June | When is the wedding? /
    Any family celebrations coming up?
User drinks two espressos a day | How much caffeine do I consume?
User runs ten kilometres on Sundays | What exercise do I get? / Which sport do I practise?
User's laptop is a ThinkPad X1 | What computer am I using?
User dislikes phone calls | How do I feel about being rung up?
User prefers answers in bullet points | What format do I like for responses?
User speaks Portuguese, Dutch and English | Which languages do I know?
User is writing a graphic novel about lighthouses | What is my creative project? /
    What is my book about?
User's deadline for the publisher is 15 April | When do I have to hand in the manuscript?
User has a fear of flying | Do I like planes?
User plays the ukulele | Can I make music?
User's rent is 1,150 euros a month | How expensive is my flat?
User's apartment is on the fourth floor without a lift | Do I have to climb stairs to get home?
User's best friend is Katrien | Who is closest to me?
User volunteers at a repair cafe | Where do I help out for free?
User owes Dario 200 euros | Do I have debts?
User wears a size 38 dress | What clothing size am I?
User's favourite film is Spirited Away | Which movie do I love most?
User has a dentist's bill to pay | Which invoice is open?
User broke a finger at volleyball in school | What injuries have I had?
User's health insurer is Zilveren Kruis | Who pays my medical costs?
User's wifi is called Vuurtoren | What is the name of my network?
User is saving up for a kiln | What am I putting money aside for?
User's grandmother lives in a nursing home in Braga | Where does my granny stay?
User keeps the spare key at the bakery | Where can I get in if I lose my keys?
User is learning to throw pottery | Which craft am I taking up?
User's bicycle was stolen at the station | What crime happened to me?
User has an exam in Dutch on Friday | Which test do I have this week?
User's fridge makes a humming noise | Which device is too loud?
User likes rainy weather
"""
_USER_UNKNOWN = """
What is my blood group? / Who is my boss? / What did I have for lunch? /
Where was my mother born? / What is my car's number plate? / Which bank do I use? /
When does my passport expire? / What is Dario's salary? / How old is Katrien? /
Which school did Ines go to? / What is the PIN of my card? / When did I last see a doctor?
"""
_FIRST = """
I grew up on a farm near Cork | Where did she spend her childhood?
I work night shifts as a baker | What is her occupation? / At what hours does she work?
My husband Niall is a bus driver | What does her spouse do?
We have three sons | How many kids are there?
I can't eat shellfish | What seafood makes her ill? / Any allergies to keep in mind?
My eldest, Conor, plays hurling | Which of the children is sporty?
I'm terrified of the dentist | What is she anxious about?
We drive an old Volvo | What car does the family have?
My knee was operated on in March | What surgery has she had?
I love country music | What sort of songs does she listen to?
We are going to Majorca in September | Where is the next holiday?
I get migraines when I sleep badly | What causes her headaches?
Our cat is called Whiskey | Do they keep a pet?
I do my shopping at Aldi | Which supermarket does she go to?
I finished a course in bookkeeping | What qualification did she get?
My phone is cracked | What did she break?
The landlady wants to sell our house | Why may they have to move?
I am on a waiting list for an allotment | Does she want to grow vegetables?
I go to Mass every Sunday | Is she religious?
My mother has dementia | Who in the family is ill?
I bake sourdough at home too
Niall is colour-blind | Which sense is impaired in her husband?
We bank with AIB | Where is their account?
Our wifi password is on the fridge | How can a guest get on the internet?
I earn 14 euros an hour | What is her wage?
I knit jumpers for the boys | What handicraft does she do?
My brother emigrated to Perth | Which relative lives abroad?
I have a library card | Can she borrow novels?
I weigh 68 kilos | How heavy is she?
I quit drinking two years ago | Does she take alcohol?
The bins are collected on Tuesdays | When is the rubbish taken away?
I'd like to be called Peg | What is her nickname?
The boiler makes 60 degrees
"""
_FIRST_UNKNOWN = """
What is her maiden name? / Who is her favourite actor? / What did the electrician say? /
Which university did Conor go to? / When did her father retire? / What is her passport number? /
Does Niall play golf? / Where did they marry? / How old is her sister? /
What colour is the bathroom?
"""
_TEAM = """
Staging is redeployed from main every hour | How often is the test environment updated?
Production runs on Kubernetes in Frankfurt | Where is the live system hosted?
The database password rotates on the first of the month | When do credentials change?
Farah is on call this week | Who answers the pager?
Invoices are sent by the billing service at night | Which component mails the bills?
The search index is rebuilt on Sundays | What happens at the weekend?
Gustav reviews all changes to the payment code | Who must approve a pull request about money?
The company card is in the top drawer | How can I buy something for the office?
Our biggest customer is Nordlicht AG | Which client matters most?
The contract with Nordlicht ends in November | When must the deal be renewed?
Flaky tests are marked with quarantine | How do we deal with unreliable checks?
Logs are kept for thirty days | What is the retention period?
The VPN breaks after macOS updates | Why can my Mac not reach the intranet?
Backups are copied to Glacier | Where are the archives stored?
Farah prefers written proposals over meetings | How does she like to discuss ideas?
The mobile app is written in Flutter | Which framework do we use for phones?
Only Gustav can publish to the App Store | Who releases the iOS version?
The coffee machine must be descaled monthly | What maintenance does the kitchen need?
Customers in Brazil pay by Pix | What payment methods exist in South America?
The disk of db-3 fills up when exports hang | What makes the server run out of space?
Feature flags live in LaunchDarkly | Where do I switch something on for some users?
Standup is at 9:45 | When is the daily meeting?
The intern starts on 2 May | Who joins us soon?
Rate limits are 100 requests per minute | How many calls are allowed?
The office closes at eight | Until when can I stay in the building?
Accessibility is audited by an agency | Do we check for blind users?
The old API is switched off in December | What is deprecated?
The designers use Figma | Which tool are mockups drawn in?
Travel is booked through Farah | How do I get a train ticket?
Python 3.11 is the oldest version supported | Which interpreter do we need?
"""
_TEAM_UNKNOWN = """
What is the office's address? / Who founded the company? / How many employees are there? /
Which law firm do we use? / When was the last fire drill? / What does the canteen serve? /
Where is Gustav from? / How much is the intern paid? / What was last year's revenue? /
Which printer is out of toner?
"""


class Facts(NamedTuple):
    """One store: facts, questions with the place of the fact that answers, and unknown ones."""

    facts: tuple[str, ...]
    asked: tuple[tuple[str, int], ...]
    unknown: tuple[str, ...]


def _read(lines: str, unknown: str) -> Facts:
    rows = [line.partition("|") for line in lines.strip().replace("\n    ", " ").splitlines()]
    return Facts(
        tuple(fact.strip() for fact, _, _ in rows),
        tuple(
            (question.strip(), at)
            for at, (_, _, questions) in enumerate(rows)
            for question in questions.split("/")
            if question.strip()
        ),
        tuple(question.strip() for question in unknown.split("/")),
    )


STORES = {
    "Jonas": _read(_JONAS, _JONAS_UNKNOWN),
    "the user": _read(_USER, _USER_UNKNOWN),
    "I": _read(_FIRST, _FIRST_UNKNOWN),
    "a team": _read(_TEAM, _TEAM_UNKNOWN),
}
FITTED = ("Jonas", "the user")
HELD_OUT = ("I", "a team")
"""What the floor was fitted to, and what took no part."""


class Renamed:
    """An embedder that nobody knows: its floor goes by its own scale."""

    def __init__(self, embedder: Embedder) -> None:
        self.embed = embedder.embed
        self._info = embedder.info()

    def info(self) -> Mapping[str, Any]:
        """Say what the vectors are."""
        return {**self._info, "id": "another", "provider": "own"}


_WHO = "Oskar Pilar Quirin Renate Sami Tilda Umar Valeria Wanda Yusuf Zora Anselm".split()  # noqa: SIM905
_WHAT = (
    "{} is looking for a tenant for {}", "{} bought {} bags of cement", "{} painted fence {}",
    "{} missed train {}", "{} planted {} leeks", "{} has a cousin in house {}",
    "{} won {} euros at cards", "{} ordered part {} for the tractor", "{} returned book {}",
    "{} swam {} lengths", "{} caught {} trout", "{} complained about room {}",
    "{} translated page {}", "{} is waiting for parcel {}", "{} carries crate {} upstairs",
)  # fmt: skip


def of_others(count: int) -> list[str]:
    """Return so many facts of other people, all different."""
    rng = np.random.default_rng(0)
    out = dict[str, None]()
    while len(out) < count:
        out[str(rng.choice(_WHAT)).format(rng.choice(_WHO), rng.integers(2, 999))] = None
    return list(out)


def remembered(
    name: str, embedder: Embedder, others: int = 0
) -> tuple[Memory, list[Label], list[Label]]:
    """Return a store with so many facts of other people beside, its questions, and unknown ones."""
    store = STORES[name]
    memory = Memory(embedder=embedder)
    ids = memory.add_many([Event(text) for text in (*store.facts, *of_others(others))]).tolist()
    asked = [Label(query=q, gold=frozenset([ids[at]]), group=name) for q, at in store.asked]
    return memory, asked, _nowhere(store.unknown)


def _nowhere(cues: Sequence[str]) -> list[Label]:
    return [Label(query=cue, gold=frozenset(), group="unknown") for cue in cues]
