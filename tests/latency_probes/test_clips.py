"""The utterance set is whole, and what is made of it at run time is the same every time."""

import re
from pathlib import Path

import numpy as np
import pytest

from latency_probes import clips, sound
from latency_probes.clips import (
    FOLDER,
    GERMAN,
    GERMAN_PAUSE,
    GERMAN_VOICES,
    GUEST_KINDS,
    HARD,
    HARD_VOICES,
    KINDS,
    VOICES,
    Utterance,
)
from latency_probes.timeline import BLOCK, WIRE_RATE, frame_levels, voiced_span
from voicepipe.audio import dbfs, samples_to_ms
from voicepipe.base.errors import ProbeError

SET = clips.load((*KINDS, *GUEST_KINDS, *HARD, GERMAN, GERMAN_PAUSE))
SIZES = {
    "finished": 120, "unfinished": 20, "pause_inside": 110, "pause_between": 40, "barge_in": 25, "hard": 120,
    "hard_pause": 110, "hard_de": 24, "hard_de_pause": 20,
}  # fmt: skip


def some(kind: str) -> list[Utterance]:
    return [utterance for utterance in SET if utterance.kind == kind]


@pytest.mark.parametrize("kind", SIZES)
def test_every_set_is_large_enough_and_has_every_voice(kind: str) -> None:
    assert len(some(kind)) >= SIZES[kind]
    voices = set(HARD_VOICES if kind in HARD else GERMAN_VOICES if kind in (GERMAN, GERMAN_PAUSE) else VOICES)
    assert {utterance.voice for utterance in some(kind)} == voices


def test_synthetic_voices_are_in_sets_of_their_own_and_say_the_same() -> None:
    for hard, kind in HARD.items():
        said, by_hard = ({(each.text, each.cut_ms > 0) for each in some(kind)} for kind in (kind, hard))
        assert said == by_hard
    assert not {each.voice for each in clips.load()} & set(HARD_VOICES)


def test_german_callers_say_sentences_of_their_own_in_a_quiet_room_one_a_call() -> None:
    whole, paused = some(GERMAN), some(GERMAN_PAUSE)
    assert all(5 <= len(each.text.split()) <= 14 for each in whole + paused)
    assert all(bool(each.before) == bool(each.cut_ms) == (each in paused) for each in whole + paused)
    assert {each.noise for each in whole + paused} == {"quiet"}
    assert all(clips.intents()[each.intent].closing for each in whole + paused)
    speech = clips.speech(paused[0], 1)
    assert 300 <= clips.pause_ms(GERMAN_PAUSE, sound.rng_for(1, paused[0].id)) <= 700
    assert speech.voiced[0] < speech.resumed < speech.voiced[1]


def test_the_files_are_those_of_the_manifest_and_small() -> None:
    files = {file.relative_to(FOLDER).as_posix(): file.stat().st_size for file in FOLDER.rglob("*.opus")}
    assert set(files) == {utterance.file for utterance in SET}
    assert sum(files.values()) < 6_000_000


def test_ids_are_unique() -> None:
    assert len({utterance.id for utterance in SET}) == len(SET)


@pytest.mark.parametrize("kind", ["finished", "pause_inside", "pause_between"])
def test_half_of_the_callers_have_noise_around_them(kind: str) -> None:
    noisy = [utterance.noise for utterance in some(kind) if utterance.noise != "quiet"]
    assert 0.4 < len(noisy) / len(some(kind)) < 0.6
    assert set(noisy) == {"babble_20", "babble_15", "pink_20", "pink_15"}


def test_every_intent_is_known_and_its_expressions_compile() -> None:
    intents = clips.intents()
    assert {utterance.intent for utterance in SET} == set(intents) - {"prompt"}
    for intent in intents.values():
        for pattern in intent.expect:
            re.compile(pattern)


def test_pauses_are_where_the_text_says() -> None:
    for utterance in some("pause_inside") + some("pause_between") + some("hard_pause") + some(GERMAN_PAUSE):
        assert utterance.text.startswith(utterance.before + " ")
        assert bool(utterance.place) == (utterance.kind != "pause_between")


@pytest.mark.parametrize("kind", SIZES)
def test_every_clip_is_voiced_inside_itself(kind: str) -> None:
    for utterance in some(kind):
        pcm = clips.decode(FOLDER / utterance.file)
        first, last = voiced_span(pcm)
        assert 0 <= first < last <= pcm.size, utterance.id
        assert first / WIRE_RATE < 0.25, utterance.id
        assert 0.08 < last / WIRE_RATE < 7, utterance.id
        assert -27 < dbfs(pcm[first:last]) < -20, utterance.id
        if utterance.cut_ms:
            cut = utterance.cut_ms * WIRE_RATE // 1000
            assert first < cut < last, utterance.id


def test_a_pause_is_drawn_by_seed_and_silent() -> None:
    utterance = some("pause_inside")[0]
    said, again, other = (clips.speech(utterance, seed) for seed in (1, 1, 2))
    assert np.array_equal(said.pcm, again.pcm)
    assert said.pcm.size != other.pcm.size
    pause = samples_to_ms(said.pcm.size - clips.decode(FOLDER / utterance.file).size, WIRE_RATE)
    assert 300 <= pause <= 700
    assert said.voiced[0] < said.resumed < said.voiced[1]
    cut = utterance.cut_ms * WIRE_RATE // 1000
    assert not said.pcm[cut : cut + int(0.29 * WIRE_RATE)].any()


def test_voices_die_away_before_a_pause_in_natural_clips_and_german_ones() -> None:
    """Nobody stops within a vowel from one sample to the next."""
    for utterance in some("pause_inside") + some("pause_between") + some(GERMAN_PAUSE):
        clip = clips.decode(FOLDER / utterance.file)
        cut = utterance.cut_ms * WIRE_RATE // 1000
        assert dbfs(clip[cut - WIRE_RATE // 200 : cut]) < dbfs(clip) - 8, utterance.id


def test_a_missing_clip_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="cannot be read"):
        clips.decode(tmp_path / "none.opus")


@pytest.mark.parametrize(("noise", "level"), [("quiet", -66), ("pink_20", -43), ("babble_15", -38)])
def test_a_bed_has_its_level_and_repeats_without_a_seam(noise: str, level: float) -> None:
    bed = sound.bed(noise, 1)
    assert bed.size == sound.BED_BLOCKS * BLOCK
    assert dbfs(bed) == pytest.approx(level, abs=0.5)
    steps = np.abs(np.diff(bed.astype(np.int32)))
    assert abs(int(bed[0]) - int(bed[-1])) <= steps.max()
    assert np.array_equal(bed, sound.bed.__wrapped__(noise, 1))
    assert not np.array_equal(bed, sound.bed(noise, 2))


def test_mixing_starts_at_the_phase_and_wraps() -> None:
    bed = sound.bed("pink_20", 1)
    mixed = sound.mixed(np.full(BLOCK * 2, 100, np.int16), bed, bed.size - BLOCK)
    assert np.array_equal(mixed, np.concatenate([bed[-BLOCK:], bed[:BLOCK]]) + 100)
    assert sound.mixed(np.full(8, 32767, np.int16), np.full(8, 9, np.int16), 0).max() == 32767


@pytest.mark.parametrize("name", sound.SOUNDS)
def test_sounds_over_a_reply_are_audible_and_the_same_for_a_seed(name: str) -> None:
    make = sound.SOUNDS[name]
    first, again, other = (make(sound.rng_for(seed, name)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert first.size != other.size or not np.array_equal(first, other)
    assert 0.1 < first.size / WIRE_RATE < 2.5
    assert frame_levels(first).max() > -45


def test_hesitations_are_as_long_as_people_s() -> None:
    """Half of them are longer than 450 ms, and one in eleven longer than a second."""
    drawn = [clips.pause_ms(clips.HESITATION, sound.rng_for(seed, "hesitation")) for seed in range(2000)]
    assert sorted(drawn)[1000] == pytest.approx(450, abs=30)
    assert sum(pause > 1000 for pause in drawn) / 2000 == pytest.approx(0.09, abs=0.02)
    clip = clips.load([clips.HESITATION])[0]
    assert clip.kind == clips.HESITATION and clip.cut_ms
    assert clips.speech(clip, 1).resumed > clips.speech(clip, 1).voiced[0]
