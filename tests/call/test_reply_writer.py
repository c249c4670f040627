"""What a model takes back, what it leaves unsaid, and what fails behind whole words. In virtual time."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from tests.support.scenario import Recording, Says, Scenario, play
from tests.support.scripted import ScriptedLlm
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.engines.base import Delta, Prompt, StreamCorrection

pytestmark = pytest.mark.virtual_time
ASKED, FALLBACK = "are you open", "Please say that again."
THOUGHT = "Okay, they greet me and they want to know when we are open. I will answer that in a brief and friendly way. "
ANSWER = "We are open until ten."
Script = Sequence[Delta | float | Exception]


def words(text: str) -> list[str]:
    return [f"{word} " for word in text.split()]


class Writes(ScriptedLlm):
    """Each answer as a script has it: what it gives, seconds to wait, what it fails with."""

    scripts: Sequence[Script] = ()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.prompts.append(prompt)
        script = self.scripts[min(len(self.prompts), len(self.scripts)) - 1]
        for step in script:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                yield step


async def said(monkeypatch: pytest.MonkeyPatch, *scripts: Script, **changes: Any) -> Recording:
    monkeypatch.setattr(Writes, "scripts", scripts)
    monkeypatch.setattr("tests.support.scenario.ScriptedLlm", Writes)
    base: dict[str, Any] = {
        "about": "A question.", "hears": [ASKED, "hello"], "says": [Says(500, 1400)], "length_ms": 12_000,
        "agent": {"fallback": FALLBACK, "acknowledgement": ""},
        "config": {"ladder": {"acknowledge_ms": 0, "short_phrase_ms": 0}},
    }  # fmt: skip
    return await play(Scenario(**(base | changes)))


def heard(recording: Recording) -> list[str]:
    return [line for line in recording.story if line.startswith(("agent", "reply"))]


async def test_thoughts_that_were_not_heard_are_not_and_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = await said(monkeypatch, [*words(THOUGHT), StreamCorrection.WITHDRAWN, *words(ANSWER)])
    assert heard(recording) == [f"agent (completed): {ANSWER} ", "reply completed"]
    messages = recording.tool_runs._history.messages("")
    assert [message.text for message in messages if message.role == "assistant"] == [f"{ANSWER} "]


@pytest.mark.parametrize("modality", ["audio", "text"])
async def test_what_was_heard_of_them_stays_and_the_rest_is_not_said(
    modality: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second later the first phrase is heard, or was sent; two sentences of thought wait to be."""
    script: Script = [*words(THOUGHT * 4), 1.0, StreamCorrection.WITHDRAWN, *words(ANSWER)]
    recording = await said(monkeypatch, script, settings={"modality": modality})
    [message, reply] = heard(recording)
    assert message.endswith(f"{ANSWER} ") and reply == "reply completed"
    assert message.count("brief") <= (1 if modality == "audio" else 4)


async def test_a_long_thought_is_not_listened_to_while_its_end_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream is read ahead of the voice: a minute of sound would stand between."""
    recording = await said(
        monkeypatch, [*words(THOUGHT * 20), 0.5, StreamCorrection.WITHDRAWN, *words(ANSWER)], length_ms=20_000
    )
    assert len(heard(recording)[0]) < len(THOUGHT) + len(ANSWER) + 30


async def test_a_model_that_hangs_behind_its_thoughts_is_answered_by_the_fallback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They were heard past the last step."""
    script: Script = [*words(THOUGHT * 2), 5.5, StreamCorrection.WITHDRAWN, 60.0]
    ladder = {"acknowledge_ms": 0, "short_phrase_ms": 0, "stall_ms": 8000}
    recording = await said(monkeypatch, script, length_ms=30_000, config={"ladder": ladder})
    assert FALLBACK in "".join(heard(recording))


async def test_thoughts_without_an_answer_are_answered_by_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = await said(monkeypatch, [*words(THOUGHT), StreamCorrection.WITHDRAWN])
    assert heard(recording) == [f"agent (completed): {FALLBACK}", "reply completed"]


async def test_who_calls_a_tool_in_words_is_asked_again_without_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = {"fallback": FALLBACK, "acknowledgement": "", "tools": [{"name": "look", "function": "m:f"}]}
    recording = await said(monkeypatch, ["Let me look. ", StreamCorrection.CALL_AS_TEXT], words(ANSWER), agent=agent)
    assert heard(recording) == [f"agent (completed): Let me look. {ANSWER} ", "reply completed"]
    first, second = recording.llm.prompts
    assert (first.tool_choice, second.tool_choice) == ("auto", "none")
    assert "nothing was done" in second.messages[-1].text


@pytest.mark.parametrize("thought", [words(THOUGHT), []])
async def test_a_tool_that_was_called_in_thoughts_is_not_called(
    thought: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script: Script = [*thought, StreamCorrection.CALL_AS_TEXT, 0.1, StreamCorrection.WITHDRAWN, *words(ANSWER)]
    recording = await said(monkeypatch, script)
    assert heard(recording) == [f"agent (completed): {ANSWER} ", "reply completed"]
    assert len(recording.llm.prompts) == 1


async def test_who_does_it_again_is_silent_and_the_fallback_comes_when_an_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recording = await said(monkeypatch, [StreamCorrection.CALL_AS_TEXT])
    assert heard(recording) == [
        "reply failed A part of this server failed; try again.", f"agent (completed): {FALLBACK}", "reply completed",
    ]  # fmt: skip
    assert recording.llm.prompts[-1].tool_choice == "none"
    first = recording.audible(1900)
    assert first is not None and 6500 < first < 8000, "five seconds"


BROKEN: list[Exception] = [EngineError("what is no chat completion"), EngineDead("it broke off")]


@pytest.mark.parametrize("error", BROKEN, ids=["garbage", "gone"])
async def test_nothing_is_said_behind_whole_words(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (ANSWER, f"Yes. {ANSWER}", "Is that so?"):
        [message, reply] = heard(await said(monkeypatch, [*words(text), 0.2, error]))
        assert message == f"agent (completed): {text} " and reply.startswith("reply failed")


async def test_half_a_sentence_is_followed_by_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = await said(monkeypatch, [*words("We are open until"), EngineError("garbage")])
    assert heard(recording)[0] == f"agent (completed): We are open until {FALLBACK}"


async def test_no_words_at_all_are_replaced_by_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heard(await said(monkeypatch, [EngineError("garbage")]))[0] == f"agent (completed): {FALLBACK}"


async def test_whole_words_whose_stream_hangs_are_said_in_place_of_the_fallback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last word of a phrase is known by the next one, which does not come."""
    recording = await said(monkeypatch, [*words("We are open."), 60.0])
    assert heard(recording)[0] == "agent (completed): We are open. "
    recording = await said(monkeypatch, [*words("We are open until"), 60.0])
    assert heard(recording)[0] == f"agent (completed): {FALLBACK}"
