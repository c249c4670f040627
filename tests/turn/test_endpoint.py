"""How long to wait, by the words."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.languages.en.completeness import LEADS_ON
from voicepipe.turn.endpoint import Eagerness, EndpointConfig, Endpointer, EndpointVerdict, Evidence, FixedSilence

CONFIG = EndpointConfig()
WORDS = st.lists(st.sampled_from(sorted(LEADS_ON) + ["hours", "table", "five", "zürich", "'s", "o'clock"]), max_size=12)
SENTENCES: dict[str, list[tuple[str, bool]]] = json.loads(
    (Path(__file__).parent / "endpoint_sentences.json").read_text()
)
"""Sentences and their beginnings up to a pause: text, complete?

Some beginnings could stand alone ("thank you", "are you open"): no endpointer that only reads can tell them.
"""


def confident(text: str) -> bool:
    return Endpointer(CONFIG).judge(Evidence(text)).confident


@pytest.mark.parametrize(("part", "recall", "mistakes"), [("development", 0.9, 0.06), ("held_out", 0.9, 0.06)])
def test_finished_sentences_are_known_and_beginnings_are_waited_for(part: str, recall: float, mistakes: float) -> None:
    judged = [(confident(text), complete) for text, complete in SENTENCES[part]]
    whole = [sure for sure, complete in judged if complete]
    begun = [sure for sure, complete in judged if not complete]
    assert sum(whole) / len(whole) >= recall
    assert sum(begun) / len(begun) <= mistakes


def test_words_are_judged_the_same_however_they_are_written() -> None:
    for text, _ in SENTENCES["development"]:
        assert confident(f"{text.capitalize().replace(' i ', ' I ')}.") is confident(text), text


@pytest.mark.parametrize(
    "text",
    [
        "My number is 555-01",
        "It's 555 01.",
        "My phone number is 555.",
        "Okay, so I was wondering about Friday...",
        "Can I come on the",
        "my number is",
        "my number is five five five",
        "i would like a table for",
        "can i book",
        "what time does the kitchen",
        "i'd like to come on the",
        "um",
        "we are",
        "half",
        "it's for my wife's",
        "and",
        "And.",
    ],
)
def test_hesitation_is_not_answered(text: str) -> None:
    verdict = Endpointer(CONFIG).judge(Evidence(text))
    assert not verdict.confident
    assert verdict.required_ms > 3 * CONFIG.sure_ms
    assert verdict.reason


@pytest.mark.parametrize(
    "text",
    ["yes", "no", "tomorrow", "for two", "hold on", "who am i speaking to", "what do you serve", "how are you",
     "my number is five five five one two three four", "on the ninth of may", "yes we are", "stop",
     "On the 21st June.", "On 21 June.", "on the twenty first of june",
     "My number is 555-0123.", "It's 020 7946 0958", "In 2026.",
     "Tomorrow at 7:30 p.m.", "About $4.50?", "For 2 at 19:00"],
)  # fmt: skip
def test_short_and_odd_but_complete(text: str) -> None:
    assert confident(text)


@pytest.mark.parametrize(("text", "complete"), [
    ("we need a big", False), ("is that your new", False), ("i want something big", True), ("that is nice", True),
    ("what is the special", True),
])  # fmt: skip
def test_an_adjective_after_an_article_wants_its_noun(text: str, complete: bool) -> None:
    assert confident(text) == complete


def test_the_voice_and_the_full_stop_have_a_say() -> None:
    end = Endpointer(CONFIG)
    heard = [end.probability(Evidence("the lobster", pitch=pitch)) for pitch in (-1.5, 0.0, 1.5)]
    assert heard == sorted(set(heard))
    judged = [end.probability(Evidence("the lobster", voice=voice)) for voice in (0.01, 0.5, 1.0)]
    assert judged == sorted(set(judged))
    stops = [end.probability(Evidence("the lobster", full_stop=full_stop)) for full_stop in (0.0, 0.5, 0.9, 1.0)]
    assert stops == sorted(stops) and stops[0] < 0.3 < 0.75 < stops[-1]


@pytest.mark.parametrize("text", ["Yes,", "Yes...", "Four...", "At seven...", "At seven-"])
def test_an_answer_whose_mark_leaves_it_open_is_waited_for(text: str) -> None:
    asked = "Is that right?" if text.startswith("Yes") else "How many people, and at what time?"
    for full_stop in (None, 0.05):
        evidence = Evidence(text, voice=0.5, full_stop=full_stop, asked=asked)
        assert not Endpointer(CONFIG).judge(evidence).confident


def test_an_answer_without_a_full_stop_is_one() -> None:
    evidence = Evidence("four people", voice=0.5, full_stop=0.0, asked="How many people is it for?")
    assert Endpointer(CONFIG).judge(evidence).required_ms == CONFIG.answer_ms


MAYBE = st.none() | st.floats(0, 1)


@given(WORDS, st.floats(-5, 5), MAYBE, MAYBE)
def test_every_evidence_has_a_verdict_within_the_configured_waits(
    words: list[str], pitch: float, voice: float | None, full_stop: float | None
) -> None:
    verdict = Endpointer(CONFIG).judge(Evidence(" ".join(words), pitch, voice, full_stop))
    assert CONFIG.sure_ms <= verdict.required_ms <= CONFIG.longest_ms
    assert verdict.reason


@given(WORDS)
def test_eagerness_scales_only_the_waits_of_the_unsure(words: list[str]) -> None:
    levels: list[Eagerness] = ["high", "auto", "medium", "low"]
    waits = [Endpointer(CONFIG, level).judge(Evidence(" ".join(words))) for level in levels]
    high, auto, medium, low = (verdict.required_ms for verdict in waits)
    assert high <= auto == medium <= low
    if auto > CONFIG.yes_ms:
        assert high < auto < low


# --- what the agent asked


FALLS = 9.0
"""The log-odds of a voice that leaves no doubt, whatever the words are."""


def after(asked: str, text: str, pitch: float = 0.0) -> EndpointVerdict:
    return Endpointer(CONFIG).judge(Evidence(text, pitch, asked=asked))


def test_a_few_words_that_answer_what_was_asked_are_complete() -> None:
    many, shall = "With pleasure. For how many people?", "A table for four on Friday. Is that right?"
    assert not after("", "four").confident, "nobody asked"
    for asked, text in ((many, "four"), (many, "for four please"), (shall, "yes please"), (shall, "No thanks.")):
        verdict = after(asked, text)
        assert verdict.confident and verdict.required_ms == CONFIG.answer_ms, text
    assert Endpointer(CONFIG).may_end("for four", many)


@pytest.mark.parametrize("text", ["wait", "wait a moment", "stop please", "hold on", "just a moment please", "no wait"])
def test_nobody_waits_for_an_answer_to_wait(text: str) -> None:
    """Behind "wait a moment" a voice paused for 150 ms, and then said "please": the reply was cut and begun again."""
    verdict = after("", text, FALLS)
    assert verdict.confident and verdict.required_ms == CONFIG.yes_ms
    second = after("For how many people?", "one second", FALLS)
    assert second.required_ms == CONFIG.yes_ms, "which is no number of people"
    assert after("", "wait can i bring my dog", FALLS).required_ms == CONFIG.sure_ms


def test_behind_a_lone_yes_a_but_may_follow() -> None:
    """A booking cannot be taken back, and three voices of the probes pause for up to 260 ms at that comma."""
    shall = "A table for four on Friday. Is that right?"
    for text in ("yes", "No.", "okay"):
        verdict = after(shall, text)
        assert verdict.confident and verdict.required_ms == CONFIG.yes_ms > 260, text
    long = msgspec.structs.replace(CONFIG, answer_ms=400)
    assert Endpointer(long).judge(Evidence("yes", asked=shall)).required_ms == 400


def test_a_word_that_answers_nothing_may_be_a_misheard_no() -> None:
    """ "No, at eight" was heard as "now", and cut in."""
    shall = "A table for four on Friday. Is that right?"
    assert after(shall, "now", FALLS).required_ms == CONFIG.yes_ms
    assert after(shall, "what now", FALLS).required_ms == CONFIG.sure_ms
    for other in ("", "How can I help you?", "What would you like to drink?", "Would you like red or white wine?"):
        assert after(other, "water", FALLS).required_ms == CONFIG.sure_ms, other


def test_an_answer_that_goes_on_is_waited_for() -> None:
    shall = "A table for four on Friday. Is that right?"
    assert not after(shall, "yes but").confident
    assert not after(shall, "Yes,").confident, "so a recogniser writes it that hears more coming"
    assert not after(shall, "yes", pitch=-1.5).confident, "the voice stays up"
    assert Endpointer(CONFIG).judge(Evidence("yes", asked=shall, voice=0.05)).confident is False, (
        "a turn model heard it"
    )
    assert after(shall, "what are your opening hours").required_ms == CONFIG.sure_ms


def test_digits_of_a_telephone_number_are_no_time() -> None:
    assert after("And at what time?", "730").confident
    assert not after("And your telephone number?", "730").confident


def test_a_comma_is_no_sign_that_more_comes() -> None:
    """Whisper writes "7," for a "seven" that is all."""
    for asked, said in (("And at what time?", "7,"), ("For how many people?", "for four people,"), ("", "on Sunday,")):
        assert after(asked, said) == after(asked, said.rstrip(",")), said


@pytest.mark.parametrize("text", ["", "what are your opening hours", "i would like to"])
def test_a_client_that_says_how_much_silence_ends_a_turn_gets_that(text: str) -> None:
    end = FixedSilence(CONFIG, 700)
    assert end.judge(Evidence(text)) == EndpointVerdict(700, confident=False, reason="as the client set it")
    assert end.may_end(text) == Endpointer(CONFIG).may_end(text)
