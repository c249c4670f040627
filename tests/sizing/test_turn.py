"""First phrases: as long as the call path cuts them, and when a turn's first sound comes under the ladder's rung."""

import math
import re
from dataclasses import replace
from statistics import NormalDist, mean

import pytest

from voicepipe.config import LadderConfig
from voicepipe.conversation.phrases import Phraser
from voicepipe.sizing.gpu_models import GPUS, LINKS
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import Group
from voicepipe.sizing.recognition import Nemotron, recogniser
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.traffic import WORDS_A_MINUTE, FirstPhrase, Traffic
from voicepipe.sizing.turn import Making, TurnEstimate, first_sound, turn
from voicepipe.sizing.voices import voice
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


def test_the_rung_is_the_ladders() -> None:
    assert Traffic().short_phrase_ms == LadderConfig().short_phrase_ms
    assert Traffic().sure_ms == EndpointConfig().sure_ms


def making(whole: float, sounds: float, waits: float = 0.0) -> Making:
    return Making(NormalDist(whole, waits), NormalDist(sounds, 0.0))


@pytest.mark.parametrize(
    ("rung", "written", "sounds"), [(100, 100, 80), (math.inf, 100, 80), (90, 90, 50), (10, 70, 50)]
)
def test_a_late_phrase_is_cut_at_the_rung_or_when_it_has_words_enough(
    rung: float, written: float, sounds: float
) -> None:
    """One that is whole by then is spoken as it is. Without waiting all turns take the same."""
    assert first_sound(making(100, 80), making(70, 50), rung) == (written, sounds, written + sounds)


def test_with_one_kind_of_phrase_waits_add_up_as_chance_has_it() -> None:
    both = Making(NormalDist(100, 30), NormalDist(80, 40))
    for rung in (math.inf, -math.inf):
        *_, p95 = first_sound(both, both, rung)
        assert p95 == pytest.approx(180 + 1.645 * 50, abs=1)


def test_what_was_whole_just_before_the_rung_is_the_slowest() -> None:
    """Half of the turns are written in time, and the voice takes long for them; later ones are cut."""
    *_, p95 = first_sound(making(100, 80, waits=1), making(70, 20, waits=1), rung=100)
    assert 179 < p95 <= 180


def at(calls: int, tts: str, traffic: Traffic, asr: str = "nemotron") -> TurnEstimate:
    group = Group(LLMS["llama-3.1-8b"], "bf16", GPUS["h100"], LINKS["nvlink"])
    return turn(SizedHost(group, 1, recogniser(asr), voice(tts), traffic=traffic), calls)


@pytest.mark.parametrize("tts", ["kokoro", "neutts"])
def test_the_rung_never_makes_a_turn_longer(tts: str) -> None:
    for calls in range(1, 33, 4):
        never, usual, at_once = (at(calls, tts, Traffic(short_phrase_ms=ms)).compute_p95 for ms in (0, 80, 1))
        assert at(calls, tts, Traffic().cut_short()).compute_p95 <= at_once <= usual <= never


def test_the_rung_counts_from_commit_and_that_waits_for_the_last_words() -> None:
    """60 ms after the engines began, or when the words are there."""
    slow = replace(Traffic(short_phrase_ms=1), phrase=FirstPhrase(100, 2.5), short_phrase=FirstPhrase(1, 1.7))
    soon, late = at(1, "neutts", slow), at(8, "neutts", slow, asr="large-v3-turbo")
    assert soon.asr < 60 < late.asr
    assert soon.asr + soon.first_token + soon.first_phrase == pytest.approx(60 + 1 + soon.token / 2)
    assert late.first_token + late.first_phrase == pytest.approx(max(late.first_token, 1 + late.token / 2))


def test_replies_for_nothing_are_long() -> None:
    """They are made before commit, where nobody hurries: the rung takes no work off the GPU."""
    never, at_once = (at(16, "neutts", Traffic(short_phrase_ms=ms)) for ms in (0, 1))
    assert at_once.busy == never.busy and at_once.slow == never.slow and at_once.replies == never.replies


@pytest.mark.parametrize("ms", [0, 1, 80])
def test_where_all_are_short_the_rung_has_nothing_to_do(ms: int) -> None:
    short = Traffic().cut_short()
    assert short.is_cut_short and not Traffic().is_cut_short
    for tts in ("kokoro", "neutts"):
        assert at(8, tts, replace(short, short_phrase_ms=ms)) == at(8, tts, short)


def test_replies_for_nothing_are_short_where_all_are() -> None:
    usual, short = (at(16, "neutts", traffic) for traffic in (Traffic(), Traffic().cut_short()))
    assert short.busy["tts"] < usual.busy["tts"] and short.replies < usual.replies


def test_what_never_comes_is_cut_by_no_rung() -> None:
    host = SizedHost(Group(LLMS["llama-3.1-8b"], "bf16", GPUS["h100"], LINKS["nvlink"]), 1, Nemotron(), voice("kokoro"))
    assert turn(host, 200).compute == turn(host, 200).compute_p95 == math.inf


def test_a_recogniser_that_cannot_keep_up_is_not_the_language_models_fault() -> None:
    found = at(64, "neutts", Traffic(), asr="large-v3")
    assert found.asr == found.compute == math.inf and math.isfinite(found.first_phrase)
