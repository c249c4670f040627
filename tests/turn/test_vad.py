"""Where voice begins and ends, from levels and probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.audio import BLOCK, RATE, Pcm
from voicepipe.turn.vad import WINDOW, VadConfig, VoiceTracker


def noise(ms: int, level_dbfs: float, seed: int = 0) -> Pcm:
    size = ms * RATE // 1000
    return (
        (np.random.default_rng(seed).normal(0, 32768 * 10 ** (level_dbfs / 20), size))
        .clip(-32768, 32767)
        .astype(np.int16)
    )


def track(pcm: Pcm, voiced: tuple[int, int], lag_windows: int = 2) -> list[tuple[int, bool, float, bool]]:
    """(ms, active, silence ms, sure) after each block; probabilities lag the end of voice as Silero's do."""
    tracker, done, story = VoiceTracker(VadConfig()), 0, []
    for pos in range(0, pcm.size - BLOCK + 1, BLOCK):
        probabilities = []
        while done + WINDOW <= pos + BLOCK:
            middle = (done + WINDOW // 2) * 1000 // RATE
            late = voiced[1] + lag_windows * 32
            probabilities.append(
                0.98 if voiced[0] <= middle < voiced[1] else 0.6 if middle < late and middle >= voiced[0] else 0.02
            )
            done += WINDOW
        voice = tracker.push(pcm[pos : pos + BLOCK], pos, probabilities)
        story.append(((pos + BLOCK) * 1000 // RATE, voice.active, voice.silence_ms, voice.sure))
    return story


@pytest.mark.parametrize("floor_dbfs", [-90.0, -60.0, -45.0, -35.0])
def test_silence_is_counted_from_the_last_voiced_frame(floor_dbfs: float) -> None:
    quiet, loud = noise(500, floor_dbfs), noise(1000, -18, 1)
    story = track(np.concatenate([quiet, loud, noise(600, floor_dbfs, 2)]), (500, 1500))
    begun = next(ms for ms, active, _, _ in story if active)
    assert 540 <= begun <= 640
    for ms, _, silence_ms, _ in story:
        if ms >= 1560:
            assert abs(silence_ms - (ms - 1500)) <= 40
    sure = next(ms for ms, active, silence_ms, sure in story if active and sure and ms > 1500)
    assert sure <= 1640


def test_a_click_is_no_voice() -> None:
    pcm = np.concatenate([noise(500, -80), noise(30, -10), noise(500, -80)])
    assert not any(active for _, active, _, _ in track(pcm, (500, 530), lag_windows=0))


def test_forgetting_begins_anew() -> None:
    tracker = VoiceTracker(VadConfig())
    for n in range(10):
        tracker.push(noise(20, -18, n), n * BLOCK, [0.98] if n % 2 else [])
    assert tracker.voice.active
    tracker.forget()
    assert not tracker.voice.active


@given(st.lists(st.tuples(st.floats(-90, -3), st.floats(0, 1)), max_size=50))
def test_positions_never_run_backward_or_ahead(blocks: list[tuple[float, float]]) -> None:
    tracker, last = VoiceTracker(VadConfig()), 0
    for n, (level, probability) in enumerate(blocks):
        voice = tracker.push(noise(20, level, n), n * BLOCK, [probability] if n % 2 else [])
        assert voice.now == (n + 1) * BLOCK
        assert last <= voice.last <= voice.now
        last = voice.last
        if voice.active:
            assert 0 <= voice.started <= voice.last


def begins(probabilities: list[float]) -> tuple[int, int]:
    """First voiced window, and windows of hiss before it, where each window has its probability."""
    tracker, pos = VoiceTracker(VadConfig()), 0
    for probability in probabilities:
        tracker.push(noise(32, -30, pos), pos, [probability])
        pos += WINDOW
        if tracker.voice.active:
            return tracker.voice.started // WINDOW, round(tracker.voice.hiss / WINDOW)
    raise AssertionError("no voice")


def test_a_voice_may_begin_with_a_hiss_but_not_with_all_the_noise_before() -> None:
    assert begins([0.02, 0.02, 0.9, 0.9]) == (2, 0)
    assert begins([0.02, 0.2, 0.3, 0.9, 0.9]) == (3, 2)
    assert begins([0.2, 0.02, 0.9, 0.9]) == (2, 0)
    assert begins([0.2] * 20 + [0.9, 0.9]) == (20, 5)
