"""What calls ask of the engines, as the call path and its configuration have it."""

import re
from statistics import mean

import pytest

from voicepipe.config import LadderConfig
from voicepipe.conversation.phrases import Phraser
from voicepipe.sizing.traffic import WORDS_A_MINUTE, FirstPhrase, Traffic
from voicepipe.turn.endpoint import EndpointConfig

REPLIES = """\
We are open from nine to six, Monday to Saturday.
Sure, I can book that for you. What name shall I put it under?
Of course. Could I have your phone number, please?
I'm sorry to hear that. Let me see what I can do for you.
Your appointment is on Thursday at half past two with Dr. Miller.
Yes, we do have a table for four at seven this evening.
The delivery should arrive between ten and twelve tomorrow morning.
Thank you for calling. Is there anything else I can help you with?
I have found your order, and it left our warehouse this morning.
Let me check that for you. One moment, please.
You can park in the garage behind the building, and the first hour is free.
Unfortunately we are fully booked on Friday, but I could offer you Saturday at eight.
That will be 24.50 in total, including delivery.
Your balance is 312 euros and 40 cents.
Great, I have you down for two people at six.
The doctor is away this week, so the next free appointment is on Monday.
Could you tell me the number on your invoice? It begins with two letters.
No problem, I have cancelled that booking for you.
You would need to bring your passport and a proof of address.
The internet should be back within the hour; our engineers are working on it.
Hello, this is the front desk. How can I help you?
It takes about three days, and we send you a message when it is ready.
If you like, I can put you through to a colleague.
Please restart the router and wait until the light turns green.
Breakfast is served from half past six until ten in the restaurant downstairs.
I can see two payments on your account, one of them from yesterday.
""".splitlines()
"""What agents say on the phone every day."""

TOKEN = re.compile(r"\s*\w+|'\w+|[^\w\s]")
"""A word with the space before it, or a mark: 1.2 tokens a word here. Models' tokenizers part rare words, too."""


def first(reply: str, *, hurry: bool) -> FirstPhrase:
    """Its first phrase, and the tokens that were there when it was certain."""
    cutter, tokens = Phraser(hurry=hurry), TOKEN.findall(reply)
    for count, token in enumerate(tokens, 1):
        for text in cutter.push(token):
            return FirstPhrase(count, len(text.split()) * 60 / WORDS_A_MINUTE)
    return FirstPhrase(len(tokens), len(reply.split()) * 60 / WORDS_A_MINUTE)


@pytest.mark.parametrize(("hurry", "reckoned"), [(False, Traffic().phrase), (True, Traffic().short_phrase)])
def test_first_phrases_are_as_the_call_path_cuts_them(hurry: bool, reckoned: FirstPhrase) -> None:
    assert all("".join(TOKEN.findall(reply)) == reply for reply in REPLIES)
    phrases = [first(reply, hurry=hurry) for reply in REPLIES]
    assert reckoned.tokens == round(mean(phrase.tokens for phrase in phrases))
    assert reckoned.speech_s == round(mean(phrase.speech_s for phrase in phrases), 1)


def test_the_deadline_is_the_ladders() -> None:
    assert Traffic().short_phrase_ms == LadderConfig().short_phrase_ms
    assert Traffic().sure_ms == EndpointConfig().sure_ms


def test_more_calls_ask_for_more_in_proportion() -> None:
    one = Traffic()
    for rate in (one.ends, one.phrases, one.tokens, one.wasted):
        assert rate(0) == 0 and rate(16) == pytest.approx(16 * rate(1))


def test_what_one_call_asks_for_in_a_turn() -> None:
    traffic = Traffic(turn_s=10, silences=1.25, reply_tokens=60, spoken=0.52, phrase=FirstPhrase(8, 2.5))
    turn_ms = 10_000
    assert turn_ms * traffic.ends(1) == pytest.approx(1.25)
    assert turn_ms * traffic.wasted(1) == pytest.approx(0.25)
    assert turn_ms * traffic.phrases(1) == pytest.approx(2), "5.2 s of speech in phrases of 2.6"
    assert turn_ms * traffic.tokens(1) == pytest.approx(62), "a reply, and a quarter of a phrase for nothing"
