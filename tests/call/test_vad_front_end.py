"""Facts of the caller's voice: what may be a voice over our own, and our own echo."""

from collections.abc import Callable

import numpy as np
import pytest

from voicepipe.audio import BLOCK, RATE, Block, Pcm
from voicepipe.call.vad_front_end import VadFrontEnd
from voicepipe.engines.vad_windows import WindowListener
from voicepipe.turn.facts import Fact, MaybeVoice, NoVoice, Silence, VoiceGoesOn, VoiceStarted
from voicepipe.turn.vad import WINDOW, VadConfig


def noise(ms: int, seed: int, level: float = 3000) -> Pcm:
    return np.random.default_rng(seed).normal(0, level, ms * RATE // 1000).astype(np.int16)


QUIET, OURS = noise(480, 0, 2), noise(1000, 1)


class LoudIsVoice:
    """A `WindowDetector`."""

    def ask(self, window: Pcm, listener: WindowListener) -> None:
        level = np.abs(window).mean()
        listener.answered(0.95 if level > 500 else 0.2 if level > 100 else 0.02)


class Listener:
    """A VAD front end, and its last fact."""

    def __init__(self, reference: Callable[[], Pcm | None]) -> None:
        self.front_end = VadFrontEnd(LoudIsVoice(), VadConfig(), reference, self)
        self._fact: Fact | None = None

    def judged(self, block: Block, fact: Fact | Exception | None) -> None:
        assert not isinstance(fact, Exception)
        self._fact = fact

    def hear(self, block: Block) -> Fact | None:
        self.front_end.hear(block)
        return self._fact


def facts(sound: Pcm, reference: Pcm | None = OURS) -> list[tuple[int, Fact]]:
    """(ms, fact) of every block that told anything, silence and more of the same voice aside."""
    front_end = Listener(lambda: reference)
    told: list[tuple[int, Fact]] = []
    for pos in range(0, sound.size - BLOCK + 1, BLOCK):
        fact = front_end.hear(Block(sound[pos : pos + BLOCK], pos, 0.0))
        if fact is not None and not isinstance(fact, VoiceGoesOn | Silence):
            told.append(((pos + BLOCK) * 1000 // RATE, fact))
    return told


def test_a_voice_over_our_own_is_told_at_its_first_window() -> None:
    (first, maybe), (second, started) = facts(np.concatenate([QUIET, noise(400, 2)]))
    assert isinstance(maybe, MaybeVoice)
    assert first <= 480 + 2 * WINDOW * 1000 // RATE
    assert isinstance(started, VoiceStarted)
    assert second - first >= 20


def test_the_hiss_of_stop_over_our_own_is_told_before_it_is_a_voice() -> None:
    hiss, voice = noise(128, 2, 200), noise(400, 3)
    (first, maybe), (second, started) = facts(np.concatenate([QUIET, hiss, voice]))
    assert isinstance(maybe, MaybeVoice) and first <= 480 + 2 * WINDOW * 1000 // RATE
    assert isinstance(started, VoiceStarted) and second > 480 + 128
    assert [type(fact) for _, fact in facts(np.concatenate([QUIET, hiss, QUIET]))] == [MaybeVoice, NoVoice]


def test_a_voice_in_noise_that_might_be_one_is_told_at_its_first_window() -> None:
    hiss = noise(1200, 2, 200)
    hiss[RATE:] = noise(200, 3)
    told = facts(np.concatenate([QUIET, hiss]))
    assert [type(fact) for _, fact in told[:4]] == [MaybeVoice, NoVoice, MaybeVoice, VoiceStarted]
    assert 1480 <= told[2][0] <= 1480 + 2 * WINDOW * 1000 // RATE


def test_noise_that_comes_and_goes_is_ducked_once_a_second_at_most() -> None:
    bursts = [part for n in range(10) for part in (noise(96, n, 200), QUIET[: RATE * 96 // 1000])]
    told = [at for at, fact in facts(np.concatenate([QUIET, *bursts])) if isinstance(fact, MaybeVoice)]
    assert len(told) == 2 and told[1] - told[0] >= 1000


def test_noise_that_might_be_a_voice_is_not_ducked_for_long() -> None:
    (first, maybe), (second, none) = facts(np.concatenate([QUIET, noise(1000, 2, 200), QUIET]))
    assert isinstance(maybe, MaybeVoice) and isinstance(none, NoVoice)
    assert second - first <= 260


def test_a_click_over_our_own_passes() -> None:
    (_, maybe), (_, none) = facts(np.concatenate([QUIET, noise(32, 2), QUIET]))
    assert isinstance(maybe, MaybeVoice)
    assert isinstance(none, NoVoice)


@pytest.mark.parametrize("sound", [noise(32, 2), noise(400, 2)])
def test_where_no_reply_sounds_there_is_nothing_to_duck(sound: Pcm) -> None:
    told = [fact for _, fact in facts(np.concatenate([QUIET, sound, QUIET]), None)]
    assert not [fact for fact in told if isinstance(fact, MaybeVoice | NoVoice)]


def test_our_own_echo_ducks_nothing() -> None:
    sent = np.concatenate([QUIET, OURS])
    assert not facts(np.concatenate([QUIET, (OURS * 0.3).astype(np.int16)]), sent)
    # It was there all along, and becomes loud enough to be taken for a voice.
    swelling = (OURS * np.linspace(0.05, 0.5, OURS.size)).astype(np.int16)
    assert not facts(swelling, sent)


def test_an_echo_that_was_not_known_at_its_onset_is_no_speech() -> None:
    def speech(sound: Pcm) -> list[bool]:
        front_end = Listener(lambda: np.concatenate([QUIET, OURS]))
        heard = [
            front_end.hear(Block(sound[at : at + BLOCK], at, 0.0)) for at in range(0, sound.size - BLOCK + 1, BLOCK)
        ]
        return [fact.speech for fact in heard if isinstance(fact, VoiceGoesOn)]

    echo = (OURS * 0.3).astype(np.int16)
    late = speech(np.concatenate([QUIET, noise(100, 2), echo]))
    assert late[0] and not any(late[25:]), "once the window holds nothing else"
    assert all(speech(np.concatenate([QUIET, noise(1000, 2)])))


def test_a_client_that_stops_sending_ends_the_doubt() -> None:
    front_end = Listener(lambda: OURS)
    sound = np.concatenate([QUIET[: 15 * WINDOW], noise(40, 2)])
    last = [front_end.hear(Block(sound[at : at + BLOCK], at, 0.0)) for at in range(0, sound.size - BLOCK + 1, BLOCK)][
        -1
    ]
    assert isinstance(last, MaybeVoice)
    assert isinstance(front_end.front_end.nothing(1000), NoVoice)
    assert front_end.front_end.nothing(1250) is None


def silences(*, narrow: bool) -> list[Silence]:
    """The silences that are told of a pause in a voice that is perhaps none."""
    front_end = Listener(lambda: None)
    sound = np.concatenate([QUIET, noise(400, 2), noise(200, 3, 200)])
    told = [front_end.hear(Block(sound[at : at + BLOCK], at, 0.0, narrow=narrow)) for at in range(0, sound.size, BLOCK)]
    return [fact for fact in told if isinstance(fact, Silence)]


def test_what_a_telephone_leaves_of_a_consonant_is_no_pause() -> None:
    assert any(fact.sure for fact in silences(narrow=False))
    assert not any(fact.sure for fact in silences(narrow=True))
