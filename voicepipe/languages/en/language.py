"""English: all that is known of it, in one place."""

from voicepipe.languages.en import answers
from voicepipe.languages.en.as_said import as_said
from voicepipe.languages.en.callers import callers_ends
from voicepipe.languages.en.completeness import DIGITS, RULES
from voicepipe.languages.en.forms import FORMS
from voicepipe.languages.language import AgentTexts, Language, TurnWords

TEXTS = AgentTexts(
    interrupt=("stop", "wait", "no", "hold on", "excuse me"),
    acknowledgement="One moment.",
    fallback="Sorry, I am having trouble right now. Could you say that again?",
    no_input=("Are you still there?", "I cannot hear you, so I will say goodbye."),
    transfer_failed="I am sorry, nobody can take your call right now. Can I help you myself?",
    cannot_transfer="I am sorry, I cannot put you through from here.",
    not_understood=("Sorry, I did not catch that. Could you say it again?",),
)
TURN = TurnWords(
    as_said=lambda text, dictated: as_said(text, dictated=dictated),
    rules=RULES,
    ends=lambda said: callers_ends().probability(said),
    wants_digits=answers.wants_digits,
    answers=answers.answers,
    is_lone=answers.is_lone,
    is_stray=answers.is_stray,
    asks_to_wait=answers.asks_to_wait,
    is_digit=DIGITS.__contains__,
    warm=callers_ends,
)
ENGLISH = Language("en", "English", FORMS, TURN, TEXTS)
