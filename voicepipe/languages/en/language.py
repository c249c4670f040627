"""English: all that is known of it, in one place."""

from voicepipe.agent import Agent, Intent
from voicepipe.languages.en import answers
from voicepipe.languages.en.as_said import as_said
from voicepipe.languages.en.callers import callers_ends
from voicepipe.languages.en.completeness import DIGITS, RULES
from voicepipe.languages.en.forms import FORMS
from voicepipe.languages.language import AgentTexts, Language, TurnWords

AGENT = Agent(name="")
"""Has the English texts: they are the defaults of an agent's keys."""
TEXTS = AgentTexts(
    interrupt=AGENT.interrupt,
    acknowledgement=AGENT.acknowledgement,
    fallback=AGENT.fallback,
    no_input=AGENT.no_input,
    transfer_failed=AGENT.transfer_failed,
    cannot_transfer=AGENT.cannot_transfer,
    not_understood=AGENT.not_understood,
    denied=Intent(name="", examples=("",)).denied,
    opening="Hello, how can I help you?",
    no_model="I cannot answer that, since I have no language model.",
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
    has_own_weights=True,
)
ENGLISH = Language("en", "English", FORMS, TURN, TEXTS)
