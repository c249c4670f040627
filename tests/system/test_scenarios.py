"""Whole conversations in virtual time, one file of tests/scenarios/ each."""

import weakref
from itertools import groupby

import pytest

from tests.support.collector import uncollected
from tests.support.scenario import SCENARIOS, Recording, load, play
from voicepipe.agent import Agent
from voicepipe.conversation.events import ReplyDone
from voicepipe.conversation.prompt import SPEAKS
from voicepipe.languages.loading import load_languages

NAMES = sorted(path.stem for path in SCENARIOS.glob("*.toml"))

FAILING = ("guess_refused", "nothing_recognised", "stalled_model", "stalled_voice", "turn_model_fails")
"""An engine fails in these: the error's traceback and its frames hold each other until the collector comes."""


@pytest.fixture(scope="module", autouse=True)
def languages_are_known() -> None:
    """As a PoP does it before its first call: it reads a file."""
    load_languages([Agent("a", languages=("en", "fr"))])


@pytest.mark.virtual_time
@pytest.mark.parametrize("name", NAMES)
async def test_scenario(name: str) -> None:
    """It goes as its file says, and the call is freed when it has ended, without the garbage collector."""
    with uncollected():
        recording = await play(load(name))
        _as_expected(recording)
        if name not in FAILING:
            call = recording.call
            left = [weakref.ref(part) for part in (call, call._speaking, call._hearing, call._playout)]
            del recording, call
            assert [part() for part in left] == [None] * len(left)


def _as_expected(recording: Recording) -> None:
    scenario = recording.scenario
    story = recording.story
    _in_order(scenario.expect, story)
    for beginning in scenario.never:
        assert not [line for line in story if line.startswith(beginning)], story
    if scenario.prompt:
        messages = recording.llm.prompts[-1].messages
        assert [f"{message.role}: {message.text}" for message in messages] == scenario.prompt
    assert recording.refused == scenario.refused
    assert recording.line.transferred == scenario.transferred
    assert "".join(key for _, key in recording.line.pressed) == scenario.pressed
    rungs = [event.record.ladder for _, event in recording.events if isinstance(event, ReplyDone)]
    if scenario.asked:
        assert recording.asr.asked == scenario.asked
    _voiced_as_expected(recording)
    _in_languages_as_expected(recording)
    if scenario.ladder:
        assert [rung for rung in rungs if rung] == scenario.ladder
    for says, bounds in ((scenario.says[:1], scenario.gap_ms), (scenario.says[-1:], scenario.last_gap_ms)):
        if bounds:
            spoke = says[0].at_ms + says[0].for_ms
            audible = recording.audible(spoke)
            assert audible is not None, story
            assert bounds[0] <= audible - spoke <= bounds[1], f"{audible - spoke} ms"
    if scenario.audible_ms:
        low, high = scenario.audible_ms
        assert low <= (recording.audible(0) or 0) <= high, recording.audible(0)
    if scenario.silence_ms:
        begins, ends = scenario.silence_ms
        audible = recording.audible(begins)
        assert audible is None or audible >= ends, audible
    if scenario.silent_ms is not None:
        began = scenario.says[-1].at_ms
        assert recording.silent(began) - began <= scenario.silent_ms
    if scenario.ducked_ms is not None:
        began = scenario.says[-1].at_ms
        quiet, loud = recording.ducked(began)
        assert quiet is not None and quiet - began <= scenario.ducked_ms
        assert loud is not None and loud - quiet < 1000


def _voiced_as_expected(recording: Recording) -> None:
    scenario, tts = recording.scenario, recording.tts
    _in_order(scenario.spoken, [f"{voice}: {text.strip()}" for voice, text in tts.voiced])
    if scenario.firsts:
        assert [text for text in tts.firsts if text.strip()] == scenario.firsts


def _in_languages_as_expected(recording: Recording) -> None:
    scenario = recording.scenario
    if scenario.expected_languages:
        assert recording.asr.languages == scenario.expected_languages
    if scenario.told_languages:
        systems = [prompt.messages[0].text for prompt in recording.llm.prompts]
        told = [system.partition(SPEAKS)[2].partition(" ")[0] for system in systems]
        assert [name for name, _ in groupby(told)] == scenario.told_languages


def _in_order(expected: list[str], story: list[str]) -> None:
    at = 0
    for line in expected:
        assert line in story[at:], f"{line!r} is missing in {story[at:]}, all: {story}"
        at = story.index(line, at) + 1
