"""Are the caller's few words a whole answer to what the agent has just asked? English.

"Four" is the middle of many sentences, and all that is to be said after "For how many people?". Neither the rules of
`completeness.py` nor the counts of `sentence_ends.py` know what was asked, so a short answer is judged here.
"""

import re

from voicepipe.languages.en import words as english
from voicepipe.languages.en.as_said import as_said
from voicepipe.languages.en.completeness import DIGITS, LEADS_ON, SPELLING, VERBS
from voicepipe.languages.questions import QuestionPatterns, last_question

MOST_WORDS = 8
"""Words of an answer at most: what is longer is judged as a sentence."""
MOST_OF_A_YES = 12
"""Words: "yes please, that would be lovely, thank you very much". Of more there are too many readings to try."""
NAME_WORDS = 4
"""A person's name with what stands before it: "it's Ann Brown"."""


def _any(words: str) -> str:
    return "|".join(word.replace("_", " ") for word in words.split())


INVITES = re.compile(r"\b(?:help|assist|do for|describe|explain)\b")
""""How can I help you?" asks for a sentence, of which "yes" is mostly the beginning."""
DIGITAL = re.compile(r"\b(?:phone|mobile|telephone|(?:card|account|order|reference) number)\b")
SPELLED = re.compile(r"\b(?:spell|letters?|e ?mail)\b")
"""DIGITAL and SPELLED ask for what people dictate, with pauses between its parts."""
NAMES = re.compile(r"^(?!(?:is|are|was|do|does|did)\b).*\b(?:name|who)\b")
HOW_MANY = re.compile(r"\bhow many\b")
DETAIL = re.compile(r"\b(?:what|which|when|where|how|tell me|give me|let me know|say)\b")
"""Asks for something that a yes is no answer to."""
ASKS = QuestionPatterns(INVITES, DIGITAL, SPELLED, NAMES, DETAIL)

COMPANION = "|".join(english.COMPANIONS)
UNITS = "|".join(english.UNITS[1:])
TENS = "|".join(english.TENS)
NUMBER = (
    rf"(?:\d+|(?:{TENS})(?: (?:{UNITS}))?|{UNITS}|a couple|a dozen|half a dozen|"
    rf"(?:just|only) (?:me|myself)|myself)"
)
ORDINAL = rf"(?:\d+(?:st|nd|rd|th)|(?:(?:twenty|thirty) )?(?:{'|'.join(english.ORDINALS)}))"
WEEKDAY = "|".join(english.WEEKDAYS)
PART = _any("morning noon lunch lunchtime afternoon evening night")
MONTH = "|".join(english.MONTHS)
DAY = (
    rf"(?:(?:(?:this|next) )?(?:{WEEKDAY})(?: (?:{PART}))?|today|tonight|tomorrow(?: (?:{PART}))?|this (?:{PART})|"
    rf"(?:the )?day after tomorrow|(?:the )?{ORDINAL}(?: (?:of )?(?:{MONTH}))?|"
    rf"(?:{MONTH}) (?:the )?(?:{ORDINAL}|{UNITS}))"
)
TIME = (
    rf"(?:\d+[:.]\d\d|(?:half|(?:a )?quarter|{UNITS}|\d+)(?: minutes)? (?:past|to|after|before) (?:{UNITS}|\d+)|"
    rf"(?:{UNITS}|\d+) (?:thirty|fifteen|forty five|twenty|forty|fifty|o'?clock)|noon|midday|midnight)"
    rf"(?: (?:[ap] ?m|in the (?:morning|afternoon|evening)|at night|o'?clock))*"
)
FILLERS = "oh|well|so|um|uh|er|and"
YES = _any(
    "yes yeah yep yup sure of_course certainly absolutely definitely exactly correct right okay fine uh_huh "
    "mm_hmm all_right perfect great good lovely wonderful agreed confirmed please_do do_(?:it|that) go_ahead "
    "sounds_good why_not that_works confirm_(?:it|that) i_(?:agree|confirm) (?:i|we)_do "
    "(?:that|it|everything|all)(?:'s|_is|_would_be)_(?:(?:absolutely|all|quite)_)?(?:right|correct) "
    "that(?:'s|_is|_would_be|_will_be|_sounds)_(?:(?:absolutely|quite|just)_)?"
    "(?:fine|okay|all_right|perfect|great|good|lovely|wonderful)"
)
"""To any question: "it's fine" may be a no to "Shall I cancel it?"."""
IN_SHORT = "(?:i|we|it|you|they|he|she) (?:do|did|am|are|is|was|will|would|can|could|have|has)"
"""Alone it may be a beginning: "i would ..."."""
NO = _any("no nope nah not_really not_at_all neither nothing(?:_else)? none never_mind (?:i|we)_(?:don't|do_not)")
NO_MORE = _any("that(?:'s|_is|_would_be|_will_be)_(?:it|all) i(?:'m|_am)_(?:fine|good|okay|all_set)")
COURTESY = "please|thanks(?: a lot)?|thank you(?: very much| so much)?|sir|madam|ma'am|then|indeed|really"
DOUBT = "actually|maybe|probably|perhaps"
BEFORE = (
    r"oh|well|so|um|uh|er|hm|and|just|only|it's|it is|it will be|that's|we are|we're|we'll be|we will be|there are|"
    r"there will be|there'll be|make it|for|on|at|"
    r"around|about|by"
)
BESIDE = (
    r"people|persons?|guests?|adults?|child|children|kids?|seats?|of us|(?:a )?table for|[ap] ?m|o'?clock|"
    r"in the (?:morning|afternoon|evening)"
)

TWO = rf"(?:me and my (?:{COMPANION})|my (?:{COMPANION}) and (?:i|me|myself))"
VALUES = rf"{TIME}|{DAY}|{NUMBER}|{BEFORE}|{BESIDE}|{COURTESY}"
SAYS_A_VALUE = re.compile(rf"\b(?:{TIME}|{DAY}|{NUMBER})\b")
ALL_VALUES = re.compile(rf"(?:{VALUES}|{DOUBT}|no|yes|but|sorry)(?: (?:{VALUES}|{DOUBT}|no|yes|but|sorry))*")
BOTH = re.compile(rf"(?:(?:{BEFORE}) )*{TWO}(?: (?:{COURTESY}))*")
YES_OR_NO = re.compile(
    rf"(?:(?:{FILLERS}) )*(?:{YES}|{IN_SHORT}|{NO}|{NO_MORE})"
    rf"(?: (?:{YES}|{IN_SHORT}|{NO}|{NO_MORE}|{COURTESY}|{DOUBT}))*"
)
ASSENT = re.compile(rf"(?:(?:{FILLERS}) )*(?:{YES}|please)(?: (?:{YES}|{IN_SHORT}|{NO_MORE}|{COURTESY}))*")
"""A yes and nothing else."""
ASSENT_TO = re.compile(rf"{ASSENT.pattern}(?: (?:{VALUES}))+")
"""A yes to details that it repeats: "yes, for two"."""
DO_IT = re.compile(
    rf"(?:(?:{FILLERS}|{YES}|{IN_SHORT}|{COURTESY}) )*"
    rf"(?P<verb>\w+)(?: (?P<what>it|that|(?:the|my|our) \w+))?(?: (?:{COURTESY}))*"
)
"""A yes, if the agent has asked whether to do this: "cancel it please"."""
DISSENT = re.compile(
    rf"(?:(?:{FILLERS}|{YES}|{IN_SHORT}|{COURTESY}|sorry) )*"
    rf"(?:(?:but )?(?:no|nope|nah)|not|do not|don't|wrong|(?:that|it)(?:(?: is|'s) (?:not|wrong)| isn't))\b"
)
"""A no, whatever stands before it ("okay no", "of course not") and behind."""
LONE = frozenset("yes yeah yep yup no nope nah okay sure right".split())
MOMENT = r"(?:a|one|just a|just one) (?:moment|minute|second|sec)"
WAIT = re.compile(
    rf"(?:(?:{FILLERS}|no|sorry|please) )*(?:wait|stop|hold on|hang on|{MOMENT})"
    rf"(?: (?:wait|stop|hold on|hang on|{MOMENT}|{COURTESY}))*"
)
NAME_GIVEN = re.compile(
    r"(?:(?:oh|well|um|uh|yes|sure|it's|it is|this is|i'm|i am|under|(?:my|the) name(?: is|'s)) )*(.+)"
)


def wants_digits(asked: str) -> bool:
    """Whether the last question of `asked`, the agent's words, is for a telephone number or the like."""
    return ASKS.asks(last_question(asked)) == "digits"


def answers(text: str, asked: str) -> bool:
    """Whether `text`, the caller's words so far, may be all of an answer to `asked`, the agent's words before them.

    A yes or no, a number of people, a day, a time; a name where one was asked for. Not the parts of what people
    dictate, as telephone numbers are."""
    question, said = last_question(asked), as_said(text)
    asks, words = ASKS.asks(question), said.split()
    if asks == "spelled":
        return SPELLING.answers(words, asked)
    if asks in ("", "digits") or not 0 < len(words) <= MOST_WORDS or WAIT.fullmatch(said):
        return False
    if asks == "name":
        return _is_name(said)
    if asks == "yes" and YES_OR_NO.fullmatch(said):
        return True
    if HOW_MANY.search(question) and BOTH.fullmatch(said):
        return True
    return bool(ALL_VALUES.fullmatch(said) and SAYS_A_VALUE.search(said)) and not _goes_on(words)


def is_lone(text: str) -> bool:
    """Whether `text` is a yes or a no without so much as a "please", which is how "yes, but ..." begins. The endpointer
    asks (`endpoint.py`): such a turn waits `endpoint.yes_ms`, other answers `endpoint.answer_ms`."""
    return as_said(text) in LONE


def is_stray(text: str, asked: str) -> bool:
    """Whether `text` is a single word that is no answer to `asked`, which wants a yes or a no: it may be a misheard one
    ("now"), and "but ..." may follow. Of two things that are offered ("red or white?") any word may be one."""
    question = last_question(asked)
    wants_yes = ASKS.asks(question) == "yes" and "or" not in question.split()
    return wants_yes and len(as_said(text).split()) == 1 and not answers(text, asked)


def asks_to_wait(text: str) -> bool:
    """Whether `text` is "wait a moment" or the like, and nothing else. "Please" may follow, and nobody waits for what
    the agent says to it."""
    return bool(WAIT.fullmatch(_short(text)))


def agrees(text: str, *, repeating: bool = False) -> bool:
    """Whether `text` is a yes and nothing else. `repeating`: it has details in it, all as they were read back; then
    these may stand behind the yes."""
    said = _short(text)
    return bool(ASSENT.fullmatch(said) or (repeating and ASSENT_TO.fullmatch(said) and not _goes_on(said.split())))


def declines(text: str) -> bool:
    """Whether `text` is a no, whatever else is in it."""
    return bool(DISSENT.match(" ".join(as_said(text).split()[:MOST_OF_A_YES])))


def to_be_done(text: str) -> tuple[str, str]:
    """The action in words such as "yes, cancel it please", and what it is to be done to: ("cancel", "it"). Empty: there
    is more in them."""
    found = DO_IT.fullmatch(_short(text))
    return (found["verb"], found["what"] or "") if found and found["verb"] in VERBS else ("", "")


def _short(text: str) -> str:
    """`text`, plain; nothing if it has too many words."""
    said = as_said(text)
    return said if len(said.split()) <= MOST_OF_A_YES else ""


def _goes_on(words: list[str]) -> bool:
    """Its last word wants another, or it is three digits in a row: of a telephone number, not of guests."""
    digits = [word in DIGITS or word.isdigit() for word in words]
    month = words[-2:] == ["of", "may"]
    return (words[-1] in LEADS_ON and not month) or any(all(digits[at : at + 3]) for at in range(len(words) - 2))


def _is_name(said: str) -> bool:
    found = NAME_GIVEN.fullmatch(said)
    name = found[1].split() if found else []
    return 0 < len(name) <= NAME_WORDS - 1 and not {*name} & (
        LEADS_ON | english.NO_NAME | english.NUMBERS.keys() | english.ORDINALS.keys()
    )
