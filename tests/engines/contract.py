"""What every engine must do, whatever is behind it. An adapter's test is a subclass that names a factory."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import numpy as np
import pytest

from voicepipe.agent import Agent, Intent, ToolSpec
from voicepipe.audio import RATE, Pcm, dbfs
from voicepipe.engines.base import Asr, Delta, Engine, Hypothesis, Llm, Message, Prompt, Speech, ToolCall, Tts, Vad

T = TypeVar("T", Vad, Asr, Llm, Tts)

WINDOW = 512
AUDIBLE_DBFS = -45.0


def tone(seconds: float, level: int = 6000, rate: int = RATE) -> Pcm:
    """A buzz with overtones: int16[seconds * rate]."""
    at = np.arange(round(seconds * rate)) / rate
    overtones = np.arange(1, 12)[:, None]
    wave = (np.sin(2 * np.pi * 140 * overtones * at) / overtones).sum(axis=0)
    buzz: Pcm = (level * wave / 2).astype(np.int16)
    return buzz


async def started(factory: Callable[[], T]) -> T:
    engine = factory()
    await engine.start()
    return engine


async def check_life(engine: Engine) -> None:
    """Starting and closing twice does no harm."""
    await engine.start()
    await engine.start()
    await engine.close()
    await engine.close()


class VadContract:
    @staticmethod
    def factory() -> Vad:
        raise NotImplementedError

    @pytest.fixture
    async def vad(self) -> AsyncIterator[Vad]:
        engine = await started(self.factory)
        yield engine
        await engine.close()

    async def test_starts_and_closes_repeatedly(self) -> None:
        await check_life(self.factory())

    async def test_probabilities_are_between_0_and_1(self, vad: Vad) -> None:
        stream = vad.stream()
        loudest = np.full(WINDOW, -32768, np.int16)
        for window in (np.zeros(WINDOW, np.int16), tone(1)[:WINDOW], loudest):
            assert 0 <= vad.probabilities([(stream, window)])[0] <= 1

    async def test_silence_is_no_voice(self, vad: Vad) -> None:
        stream = vad.stream()
        assert max(vad.probabilities([(stream, np.zeros(WINDOW, np.int16))])[0] for _ in range(30)) < 0.35

    async def test_streams_do_not_share_memory(self, vad: Vad) -> None:
        windows = tone(1)[: 20 * WINDOW].reshape(20, WINDOW)
        alone = vad.stream()
        expected = [vad.probabilities([(alone, window)])[0] for window in windows]
        first, second = vad.stream(), vad.stream()
        quiet, mixed = np.zeros(WINDOW, np.int16), []
        for number, window in enumerate(windows):  # Together and one by one, in either order.
            if number % 3 == 0:
                mixed.append(vad.probabilities([(second, quiet), (first, window)])[1])
            elif number % 3 == 1:
                mixed.append(vad.probabilities([(first, window), (second, quiet)])[0])
            else:
                mixed.append(vad.probabilities([(first, window)])[0])
                vad.probabilities([(second, quiet)])
        assert mixed == pytest.approx(expected, abs=1e-5)


class AsrContract:
    sound: Pcm = tone(1.0)
    """Something that the engine hears words in."""

    @staticmethod
    def factory() -> Asr:
        raise NotImplementedError

    @pytest.fixture
    async def asr(self) -> AsyncIterator[Asr]:
        engine = await started(self.factory)
        yield engine
        await engine.close()

    async def test_starts_and_closes_repeatedly(self) -> None:
        await check_life(self.factory())

    async def test_no_sound_no_words(self, asr: Asr) -> None:
        stream = asr.stream(lambda partial: None)
        stream.feed(np.empty(0, np.int16))
        assert (await stream.settle()).text == ""
        assert (await stream.finish()).text == ""

    async def test_chunks_of_any_size(self, asr: Asr) -> None:
        stream = asr.stream(lambda partial: None)
        at = 0
        for size in (1, 319, 320, 321, 7, 5000, 0, self.sound.size):
            stream.feed(self.sound[at : at + size])
            at += size
        final = await stream.finish()
        assert final.text and 0 < final.until <= self.sound.size

    async def test_goes_on_after_settling(self, asr: Asr) -> None:
        stream = asr.stream(lambda partial: None)
        half = self.sound.size // 2
        stream.feed(self.sound[:half])
        settled = await stream.settle()
        stream.feed(self.sound[half:])
        final = await stream.finish()
        assert settled.until <= half < final.until

    async def test_settling_twice_says_the_same(self, asr: Asr) -> None:
        stream = asr.stream(lambda partial: None)
        stream.feed(self.sound)
        assert (await stream.settle()).text == (await stream.settle()).text
        stream.cancel()

    async def test_nothing_is_delivered_after_cancel(self, asr: Asr) -> None:
        partials: list[Hypothesis] = []
        stream = asr.stream(partials.append)
        stream.feed(self.sound)
        stream.cancel()
        stream.feed(self.sound)
        stream.cancel()
        await asyncio.sleep(0.3)
        assert partials == []

    async def test_nothing_is_delivered_after_finish(self, asr: Asr) -> None:
        partials: list[Hypothesis] = []
        stream = asr.stream(partials.append)
        stream.feed(self.sound)
        await stream.finish()
        seen = len(partials)
        stream.feed(self.sound)
        stream.cancel()
        await asyncio.sleep(0.3)
        assert len(partials) == seen

    async def test_a_cancelled_settle_leaves_the_stream_usable(self, asr: Asr) -> None:
        stream = asr.stream(lambda partial: None)
        stream.feed(self.sound)
        settling = asyncio.ensure_future(stream.settle())
        await asyncio.sleep(0)
        settling.cancel()
        await asyncio.gather(settling, return_exceptions=True)
        assert (await stream.finish()).text

    async def test_streams_at_the_same_time(self, asr: Asr) -> None:
        streams = [asr.stream(lambda partial: None) for _ in range(3)]
        for at in range(0, self.sound.size, 320):
            for stream in streams:
                stream.feed(self.sound[at : at + 320])
        silent = asr.stream(lambda partial: None)
        silent.feed(np.zeros(1600, np.int16))
        assert all(final.text for final in await asyncio.gather(*(stream.finish() for stream in streams)))
        silent.cancel()


class LlmContract:
    agent = Agent(
        name="Test",
        greeting="Hello.",
        intents=(Intent("hours", ("what are your opening hours",), reply="From noon to ten. Every day of the week."),),
    )
    said = "what are your opening hours"

    @staticmethod
    def factory() -> Llm:
        raise NotImplementedError

    @pytest.fixture
    async def llm(self) -> AsyncIterator[Llm]:
        engine = await started(self.factory)
        yield engine
        await engine.close()

    def prompt(self, said: str | None = None, **options: Any) -> Prompt:
        return Prompt((Message("user", self.said if said is None else said),), agent=self.agent, **options)

    async def test_starts_and_closes_repeatedly(self) -> None:
        await check_life(self.factory())

    async def test_streams_words(self, llm: Llm) -> None:
        deltas = await texts(llm, self.prompt())
        assert len(deltas) > 3
        assert "".join(deltas) == "".join(deltas).strip()

    async def test_the_same_prompt_at_the_same_time(self, llm: Llm) -> None:
        one, other = await asyncio.gather(texts(llm, self.prompt()), texts(llm, self.prompt()))
        assert "".join(one) == "".join(other)

    async def test_an_iterator_may_be_closed_early(self, llm: Llm) -> None:
        deltas = llm.generate(self.prompt())
        await anext(deltas)
        await deltas.aclose()
        assert await texts(llm, self.prompt())

    async def test_a_task_may_be_cancelled(self, llm: Llm) -> None:
        task = asyncio.ensure_future(texts(llm, self.prompt()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await texts(llm, self.prompt())

    async def test_max_tokens(self, llm: Llm) -> None:
        assert len(await texts(llm, self.prompt(max_tokens=2))) == 2

    @pytest.mark.parametrize("said", ["", "   ", "?!", "\0", "x" * 5000])
    async def test_odd_texts_are_answered(self, llm: Llm, said: str) -> None:
        assert await texts(llm, self.prompt(said))

    async def test_a_prompt_without_messages_is_answered(self, llm: Llm) -> None:
        assert await texts(llm, Prompt((), agent=self.agent))
        assert await texts(llm, Prompt((Message("system", "You are helpful."),)))

    async def test_warming_does_no_harm(self, llm: Llm) -> None:
        await llm.warm(Prompt((Message("system", "You are helpful."),)))
        await llm.warm(Prompt((), (ToolSpec("add"),)))


class ToolContract(LlmContract):
    """For language engines that call tools."""

    tool = ToolSpec(
        "add",
        "Adds two numbers.",
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
    )

    async def test_a_named_tool_is_called(self, llm: Llm) -> None:
        call = await the_call(llm, self.prompt("add 2 and 3", tools=(self.tool,), tool_choice="add"))
        assert call.name == "add" and call.call_id
        assert isinstance(json.loads(call.arguments), dict)

    async def test_no_tool_is_called_against_the_choice(self, llm: Llm) -> None:
        assert await texts(llm, self.prompt("add 2 and 3", tools=(self.tool,), tool_choice="none"))

    async def test_a_result_is_spoken(self, llm: Llm) -> None:
        call = ToolCall("call_1", "add", '{"a": 2, "b": 3}')
        messages = (
            Message("user", "add 2 and 3"),
            Message("assistant", call=call),
            Message("tool", "5", call_id="call_1"),
        )
        assert "5" in "".join(await texts(llm, Prompt(messages, (self.tool,), agent=self.agent)))


class TtsContract:
    text = "A table for two, on Friday at seven."

    @staticmethod
    def factory() -> Tts:
        raise NotImplementedError

    @pytest.fixture
    async def tts(self) -> AsyncIterator[Tts]:
        engine = await started(self.factory)
        yield engine
        await engine.close()

    async def test_starts_and_closes_repeatedly(self) -> None:
        await check_life(self.factory())

    async def test_has_voices(self, tts: Tts) -> None:
        assert tts.voices()
        assert all(tts.voice_for(voice) == voice for voice in tts.voices())
        default = tts.voice_for("")
        assert default in tts.voices()
        assert [tts.voice_for(name) for name in ("alloy", "no such voice", "x" * 500)] == [default] * 3

    async def test_speech_begins_at_once(self, tts: Tts) -> None:
        speech = await whole(tts, self.text)
        assert speech.pcm.dtype == np.int16
        assert dbfs(speech.pcm[: tts.rate // 100]) > AUDIBLE_DBFS
        assert tts.rate < speech.pcm.size < 10 * tts.rate

    async def test_words_end_in_order(self, tts: Tts) -> None:
        speech = await whole(tts, self.text)
        ends = [word.end for word in speech.words]
        if ends:
            assert [word.text for word in speech.words] == self.text.split()
            assert ends == sorted(ends) and 0 < ends[0] and ends[-1] <= speech.pcm.size

    @pytest.mark.parametrize("text", ["", " \n", "...", "—"])
    async def test_nothing_to_say(self, tts: Tts, text: str) -> None:
        assert all(piece.pcm.dtype == np.int16 for piece in [piece async for piece in tts.speak(text)])
        assert text.strip() or not [piece async for piece in tts.speak(text)]

    async def test_an_unknown_voice_falls_back(self, tts: Tts) -> None:
        known, unknown = await whole(tts, self.text), await whole(tts, self.text, voice="../no such voice\0")
        assert_same_speech(known, unknown)

    async def test_speed(self, tts: Tts) -> None:
        slow, fast = await whole(tts, self.text, speed=0.7), await whole(tts, self.text, speed=1.5)
        assert fast.pcm.size < 0.8 * slow.pcm.size

    async def test_speakers_at_the_same_time_do_not_mix(self, tts: Tts) -> None:
        alone = [await whole(tts, text) for text in (self.text, "Goodbye.")]
        together = await asyncio.gather(whole(tts, self.text), whole(tts, "Goodbye."))
        for one, other in zip(alone, together, strict=True):
            assert_same_speech(one, other)

    async def test_an_iterator_may_be_closed_early(self, tts: Tts) -> None:
        pieces = tts.speak(" ".join([self.text] * 40))
        assert (await anext(pieces)).pcm.size
        await pieces.aclose()
        assert (await whole(tts, self.text)).pcm.size

    async def test_a_task_may_be_cancelled(self, tts: Tts) -> None:
        expected = await whole(tts, self.text)
        task = asyncio.ensure_future(whole(tts, " ".join([self.text] * 10)))
        await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert_same_speech(await whole(tts, self.text), expected)


async def texts(llm: Llm, prompt: Prompt) -> list[str]:
    """The text of a reply, which must not call a tool."""
    deltas: list[Delta] = [delta async for delta in llm.generate(prompt)]
    assert all(isinstance(delta, str) for delta in deltas), deltas
    return [delta for delta in deltas if isinstance(delta, str)]


async def the_call(llm: Llm, prompt: Prompt) -> ToolCall:
    """The one tool call of a reply."""
    calls = [delta async for delta in llm.generate(prompt) if isinstance(delta, ToolCall)]
    assert len(calls) == 1
    return calls[0]


async def whole(tts: Tts, text: str, *, voice: str = "", speed: float = 1.0) -> Speech:
    """A phrase in one piece."""
    pieces = [piece async for piece in tts.speak(text, voice=voice, speed=speed)]
    pcm = np.concatenate([piece.pcm for piece in pieces]) if pieces else np.empty(0, np.int16)
    return Speech(pcm, pieces[0].words if len(pieces) == 1 else ())


def assert_same_speech(one: Speech, other: Speech) -> None:
    """The same words in the same time. Samples may differ: voices have some chance in them."""
    assert [word.text for word in one.words] == [word.text for word in other.words]
    assert one.pcm.size == pytest.approx(other.pcm.size, rel=0.03)
