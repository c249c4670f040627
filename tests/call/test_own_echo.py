"""A speakerphone: the agent hears itself, 20 dB weaker and late, and must not interrupt itself. With Silero."""

import numpy as np
import pytest

from tests.engines.contract import whole
from voicepipe.audio import BLOCK, RATE, Block, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.call.playout import NOBODY, Playout
from voicepipe.call.speech import Phrase
from voicepipe.call.vad_front_end import VadFrontEnd
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.vad.silero import SileroVad
from voicepipe.engines.vad_windows import WindowListener
from voicepipe.line import SoundListener
from voicepipe.turn.facts import Fact, MaybeVoice, VoiceStarted
from voicepipe.turn.vad import VadConfig

pytestmark = pytest.mark.engine
GAIN = 0.1
REPLY = "Yes, behind the house. Parking is free for our guests."


class Phone:
    """A line whose client plays at once all that it gets, and whose microphone hears that `delay` blocks later."""

    out_rate, lead_ms, kind, takes_sound = RATE, 200, "test", True

    def __init__(self) -> None:
        self.now = 0.0
        self.air = np.zeros(20 * RATE, np.float64)
        self.end = 0

    def send(self, pcm: Pcm) -> None:
        at = max(self.end, round(self.now * RATE))
        self.air[at : at + pcm.size] = pcm
        self.end = at + pcm.size

    def clear(self) -> int:
        return 0

    async def listen(self, listener: SoundListener) -> None:
        raise NotImplementedError

    async def hang_up(self) -> None: ...


class Facts(list[Fact]):
    """The facts of a VAD front end."""

    def judged(self, block: Block, fact: Fact | Exception | None) -> None:
        assert not isinstance(fact, Exception)
        if fact:
            self.append(fact)


class AtOnce:
    """The `WindowDetector` of one stream that answers before it returns."""

    def __init__(self, vad: SileroVad) -> None:
        self._vad, self._stream = vad, vad.stream()

    def ask(self, window: Pcm, listener: WindowListener) -> None:
        listener.answered(self._vad.probabilities([(self._stream, window)])[0])


async def facts(delay_ms: int, voice: Pcm | None = None) -> list[Fact]:
    """The facts of the VAD front end while REPLY is played, in a room with its echo; `voice` speaks from 1.5 s on."""
    tts, vad, phone = EspeakTts(), SileroVad(), Phone()
    await tts.start()
    await vad.start()
    playout = Playout(phone, lambda: phone.now, -15.0)  # type: ignore[arg-type]
    told = Facts()
    front_end = VadFrontEnd(AtOnce(vad), VadConfig(), playout.reference, told)
    spoken = Resampler(tts.rate, RATE)((await whole(tts, REPLY)).pcm)
    noise = np.random.default_rng(delay_ms).normal(0, 12, phone.air.size)
    for n in range(5 * RATE // BLOCK):
        phone.now = n * BLOCK / RATE
        if n == 50:
            playout.begin(NOBODY)
            await playout.put(Phrase("", spoken))
        playout._pump()
        late = n * BLOCK - delay_ms * RATE // 1000
        near = noise[n * BLOCK : (n + 1) * BLOCK].copy()
        if late >= 0:
            near += GAIN * phone.air[late : late + BLOCK]
        if voice is not None and 75 * BLOCK <= n * BLOCK < 75 * BLOCK + voice.size // BLOCK * BLOCK:
            near += voice[(n - 75) * BLOCK : (n - 74) * BLOCK]
        phone.now += BLOCK / RATE
        front_end.hear(Block(near.astype(np.int16), n * BLOCK, phone.now))
    return told


@pytest.mark.parametrize("delay_ms", [40, 110, 180, 250])
async def test_the_echo_of_a_reply_is_no_voice_from_its_first_sample_to_its_last(delay_ms: int) -> None:
    assert [fact for fact in await facts(delay_ms) if isinstance(fact, MaybeVoice | VoiceStarted)] == []


async def test_a_caller_is_heard_over_it() -> None:
    tts = EspeakTts()
    await tts.start()
    caller = Resampler(tts.rate, RATE)((await whole(tts, "no wait that is wrong")).pcm)
    told = await facts(180, caller)
    started = [fact.pos for fact in told if isinstance(fact, VoiceStarted)]
    assert started and all(pos >= 1.5 * RATE for pos in started)
