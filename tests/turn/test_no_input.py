"""Silence, and sound that is no voice: when is a caller asked, and when is it goodbye?"""

import numpy as np
import pytest

from voicepipe.agent import Agent
from voicepipe.audio import BLOCK, RATE, Pcm
from voicepipe.turn.no_input import LineSound, NoInput

ASK, BYE = "Are you there?", "Goodbye."
MINUTE_MS = 60_000


def agent(*texts: str, hold_music_ms: int = 3 * MINUTE_MS) -> Agent:
    return Agent("a", no_input=texts, no_input_ms=8000, hold_music_ms=hold_music_ms)


def said(who: Agent, *stretches: tuple[float, bool]) -> list[tuple[int, str]]:
    """What is said and at which second, where the line is quiet or loud (True) for so many seconds."""
    silence, lines, now = NoInput(), list[tuple[int, str]](), 0
    for seconds, loud in stretches:
        for _ in range(round(seconds * RATE / BLOCK)):
            now += BLOCK
            if text := silence.line(now, who, loud=loud):
                lines.append((now // RATE, text))
                silence.wait(now)
                if silence.goodbye:
                    return lines
    return lines


@pytest.mark.parametrize(
    ("who", "stretches", "lines"),
    [
        (agent(ASK, BYE), [(60, False)], [(8, ASK), (16, BYE)]),
        (agent(ASK, BYE), [(180, True)], [(8, ASK)]),
        (agent(ASK, BYE), [(400, True)], [(8, ASK), (196, BYE)]),
        (agent(ASK, BYE), [(60, True), (60, False)], [(8, ASK), (68, BYE)]),
        (agent(ASK, BYE), [(10, False), (60, True), (60, False)], [(8, ASK), (78, BYE)]),
        (agent(ASK, BYE), [(20, True), (5, False), (20, True), (60, False)], [(8, ASK), (53, BYE)]),
        (agent(ASK, ASK, BYE), [(100, True)], [(8, ASK), (16, ASK)]),
        (agent(BYE), [(100, True), (60, False)], [(108, BYE)]),
        (agent(ASK, BYE, hold_music_ms=0), [(60, True)], [(8, ASK), (16, BYE)]),
        (agent(ASK, BYE, hold_music_ms=MINUTE_MS), [(200, True)], [(8, ASK), (76, BYE)]),
        (agent(), [(300, True)], []),
    ],
)
def test_when_what_is_said(who: Agent, stretches: list[tuple[float, bool]], lines: list[tuple[int, str]]) -> None:
    assert said(who, *stretches) == lines


def test_who_was_back_may_be_held_as_long_again() -> None:
    silence, who, now = NoInput(), agent(ASK, BYE, hold_music_ms=MINUTE_MS), 0
    for _ in range(3):
        texts = []
        for _ in range(50 * 60):
            now += BLOCK
            if text := silence.line(now, who, loud=True):
                texts.append(text)
                silence.wait(now)
        assert texts == [ASK]
        silence.back(now)


def noise(dbfs: float, seconds: float) -> Pcm:
    sound = np.random.default_rng(1).standard_normal(round(seconds * RATE))
    return np.clip(sound * 32768 * 10 ** (dbfs / 20), -32768, 32767).astype(np.int16)


def loud(pcm: Pcm, sound: LineSound | None = None) -> bool:
    sound = sound or LineSound()
    for block in pcm[: pcm.size // BLOCK * BLOCK].reshape(-1, BLOCK):
        sound.push(block)
    return sound.loud


@pytest.mark.parametrize(("dbfs", "is_loud"), [(-12, True), (-20, True), (-30, True), (-50, False), (-65, False)])
def test_music_is_loud_and_a_room_is_not(dbfs: float, is_loud: bool) -> None:
    assert loud(noise(dbfs, 5)) is is_loud


def test_silence_is_not_loud() -> None:
    assert not loud(np.zeros(RATE, np.int16)) and not LineSound().loud


def test_music_that_breathes_stays_loud_and_what_was_said_before_the_silence_does_not() -> None:
    beat = np.concatenate([noise(-20, 0.3), np.zeros(RATE // 2, np.int16)])
    assert loud(np.tile(beat, 10))
    assert not loud(np.concatenate([noise(-15, 5), noise(-60, 7)])), "before `no_input_ms` is over"
