"""Does the sentence end here, by its words? A few rules of English grammar, each with its weight.

The words come from a recogniser, as they were said (`as_said`), so a rule looks at classes of words rather than at
sentences, and none is certain. Weights are log-odds, set by hand on development sentences
(tests/turn/endpoint_sentences.json); what no rule speaks against is left to the ends of callers' sentences
(`sentence_ends.py`).
"""

import re
from itertools import takewhile

from voicepipe.languages.en.words import MONTHS, NUMBERS, UNITS
from voicepipe.languages.language import CompletenessRule
from voicepipe.languages.spelling import Spelling, spelling_file


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


DIGITS = _set("oh double triple") | {*UNITS[:10]}
DETERMINERS = _set(
    "a an the my your our their his its this that these those every each another either which whose any some"
)
PREPOSITIONS = _set(
    "of for to at in on from with by about into onto near under over between after before until till "
    "during through than as like around without within toward towards against per via except behind "
    "beside past off"
)
CONJUNCTIONS = _set("and or but because if when while so whether since unless although")
SUBJECTS = _set("i we he she they")
BE = _set("is are am was were be been being isn't aren't it's that's there's i'm we're they're you're he's she's")
DO = _set(
    "do does did don't doesn't didn't can could can't couldn't will would won't wouldn't shall should "
    "shouldn't may might must"
)
HAVE = _set(
    "has had i've we've you've they've i'd we'd you'd he'd she'd they'd i'll we'll you'll it'll they'll "
    "let's gonna wanna"
)
QUESTION = _set("what which who whom how why where when what's where's who's how's whose")
FILLERS = _set("um uh er erm hmm")
DEGREES = _set("very quite just only also almost least pretty exactly nearly not never")
LEADS_ON = DETERMINERS | PREPOSITIONS | CONJUNCTIONS | SUBJECTS | BE | DO | HAVE | QUESTION | FILLERS | DEGREES

NEEDS_OBJECT = _set(
    "book reserve bring accept serve have make get got take want need prefer change cancel move put give "
    "tell send like see ask order buy find use offer provide recommend try wondering calling hoping "
    "looking trying going sounds"
)
VERBS = NEEDS_OBJECT | _set(
    "open close cost go come eat drink sit park stay start end finish work mean say speak talk call reach "
    "leave arrive help know think do be deliver sell cook bake hold wait stop repeat hear understand "
    "confirm delete add fit join pick drop walk drive look live allow include run play smoke celebrate invite "
    "reschedule push switch keep seat host stand rent smell taste expect remember read write spell show "
    "arrange organize connect transfer remind check happen feel seem return visit dress wear enter access "
    "turn fix set rate email text phone ring contact cater prepare split share pay meet charge extend unlock renew "
    "ship track refund repair install replace reset activate download upgrade withdraw deposit borrow lend post "
    "treat clean wash collect shift fill pass swap include require allow bother explain describe suggest choose "
    "happen begin"
)
ADJECTIVES = _set(
    "able actual afraid amazing angry available awful bad basic beautiful big bright broken busy calm careful "
    "central cheap cheerful clean clear clever close comfortable common complete convenient correct cosy crazy "
    "current daily dangerous dark decent deep delicious different difficult direct dirty dry early easy electric "
    "empty entire equal exact excellent exciting expensive fair famous fantastic fast formal former free fresh "
    "friendly full funny gentle glad good gorgeous great happy hard healthy heavy helpful high honest hot huge "
    "important impossible interesting joint large late lazy little live lonely long loud lovely low lucky married "
    "mild missing modern narrow national natural near nearby necessary nervous new next nice noisy normal obvious "
    "odd official old online ordinary overall own particular perfect personal physical plain pleasant polite poor "
    "popular possible precise pretty previous private proper proud quick quiet ready real reasonable recent "
    "relevant reliable responsible romantic rough sad safe scary separate serious sharp short shy silly similar "
    "simple slow small soft specific spicy steep straight strange strict strong stupid suitable sunny sure tall "
    "tasty terrible thick thin tidy tight tiny tired tough traditional true typical ugly unusual upper urgent "
    "useful usual various warm weak weird whole wide wild wonderful wooden worried wrong"
)
"""Common English adjectives that are seldom nouns."""
NOUN_FOLLOWS = _set("a an the my your our their his its some every each another")

COMPLETE_ENDS = frozenset(
    (
        "hold on, come in, go on, later on, think so, hope so, like that, for that, said that, is that, like this, is "
        "this, about that, about this, of that, do that, not really, yes i do, yes we do, yes i am, yes we are, yes "
        "you can, i will, how are you, who are you, why not, or not, course not, all i need, all we need, my own, "
        "your own, a little, the usual, the special, nice day, thank you, where is it, what is it, who is it, when is "
        "it, much is it, need this, need that, have this, have that, get this, get that, that is nice, your name"
    ).split(", ")
)
"""Phrases that end a sentence although their last word seldom does."""

NUMBER_OF = re.compile(r"\b(number|phone|mobile|cell|telephone|(?:call|reach|ring|text) (?:me|us)(?: at| on)?)\b")
SPELLING = Spelling(spelling_file("en"), NUMBERS.__contains__)
PHONE_DIGITS = 7
"""A phone number has at least so many."""


def inside_a_number(words: list[str]) -> bool:
    """Too few digits for a phone number, or a word that begins one: "half ...", "june ..."."""
    digits = sum(1 for _ in takewhile(DIGITS.__contains__, reversed(words)))
    if 0 < digits < PHONE_DIGITS and (digits >= 3 or NUMBER_OF.search(" ".join(words[:-digits]))):
        return True
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in ("half", "quarter"):
        return before not in ("a", "the", "one") or last == "half"
    return last in MONTHS and last != "may" and before not in ("of", "in", "this", "next") and not _ordinal(before)


def leads_on(words: list[str]) -> bool:
    """The last word wants another: "for ...", "my ...", "we are ...", "um ..."."""
    if SPELLING.ends_in_letters(words):
        return False  # "m a r i a"
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last.endswith("'s") and last not in BE | QUESTION:
        return True  # "my wife's ..."
    if last in ("many", "much", "think", "hope", "guess") and before in ("how", "i", "we"):
        return True
    if last not in LEADS_ON or " ".join(words[-2:]) in COMPLETE_ENDS or " ".join(words[-3:]) in COMPLETE_ENDS:
        return False
    if last == "may":
        return before != "of"
    if last in ("that", "this"):
        return len(words) < 3 or before in ("hoping", "think", "sure", "mean", "wondering")
    # "who am i speaking to": in a longer question the preposition may stand last.
    stranded = last in ("to", "with", "on", "at", "from", "in") and words[0] in QUESTION and len(words) >= 4
    return not stranded or before in DETERMINERS | BE


def lacks_a_verb(words: list[str]) -> bool:
    """A question that has its auxiliary and its subject only: "what time does the kitchen ...", "are dogs ..."."""
    if " ".join(words[-3:]) in COMPLETE_ENDS:
        return False
    for at, word in enumerate(words[:5]):
        asks = at == 0 or words[0] in QUESTION or words[at - 1] in FILLERS
        if asks and word in DO:
            return not any(later in VERBS for later in words[at + 2 :])
        if asks and word in ("is", "are", "was", "were"):
            return len(words) - at - 1 < 2 and (at > 1 or words[0] not in ("who", "where", "what"))
    return False


def lacks_an_object(words: list[str]) -> bool:
    """ "i'd like to book ...", "do you accept ..."; not "what do you serve"."""
    return words[-1] in NEEDS_OBJECT and words[0] not in QUESTION and " ".join(words[-3:]) not in COMPLETE_ENDS


def lacks_a_noun(words: list[str]) -> bool:
    """ "do you have a quiet ...", "what is the exact ..."."""
    if " ".join(words[-2:]) in COMPLETE_ENDS:
        return False
    return words[-1] in ADJECTIVES and len(words) > 1 and words[-2] in NOUN_FOLLOWS


def _ordinal(word: str) -> bool:
    return word.endswith(("th", "first", "second", "third"))


RULES = (
    CompletenessRule("in the middle of a number", inside_a_number, -6.0),
    CompletenessRule("the last word leads on", leads_on, -6.0),
    SPELLING.rule,
    CompletenessRule("the question has no verb yet", lacks_a_verb, -4.0),
    CompletenessRule("the adjective has no noun yet", lacks_a_noun, -3.0),
    CompletenessRule("the verb has no object yet", lacks_an_object, -3.0),
)
