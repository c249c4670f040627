"""What of `nemotron` needs neither torch nor weights: its front end, its chunks, its slots, its checkpoint's files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faster_whisper.feature_extractor import FeatureExtractor
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models

from voicepipe import config
from voicepipe.agent import Agent
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.commands import check
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.nemotron import checkpoint, front_end
from voicepipe.engines.asr.nemotron.checkpoint import Texts
from voicepipe.engines.asr.nemotron.chunks import BEHIND, FACTOR, LEAD, Chunks, frames_of
from voicepipe.engines.asr.nemotron.slots import Slots

# --- the front end ------------------------------------------------------------------------------------------------


def test_the_bands_are_slaneys() -> None:
    theirs = FeatureExtractor.get_mel_filters(16_000, front_end.FFT, 128)
    assert np.abs(front_end.mel_filters(128).T - theirs).max() < 1e-6


def mel(sound: Any) -> Any:
    frames = (sound.size - front_end.samples(1)) // front_end.HOP + 1
    at, shape, filters = front_end.positions(frames), front_end.window(), front_end.mel_filters(128)
    return front_end.log_mel(np, sound, at, shape, filters)


def test_a_tone_is_heard_in_its_band_and_silence_as_the_least() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(16_000) / 16_000)
    edges = front_end._hz(np.linspace(0, front_end._mels(8000), 130))
    assert set(mel(tone).argmax(-1)) <= {int(np.searchsorted(edges, 1000)) - shift for shift in (0, 1, 2)}
    assert np.allclose(mel(np.zeros(1600)), np.log(front_end.GUARD))


# --- chunks -------------------------------------------------------------------------------------------------------


def sound(samples: int) -> Any:
    return (np.arange(samples) % 30_000 + 1).astype(np.int16)


@given(st.sampled_from([80, 160, 320, 560, 1120]), st.lists(st.integers(0, 5000), max_size=20))
def test_chunks_are_the_sound_however_it_comes(chunk_ms: int, sizes: list[int]) -> None:
    frames = frames_of(chunk_ms)
    chunks, whole, taken = Chunks(frames), sound(sum(sizes)), []
    at = 0
    for size in sizes:
        chunks.feed(whole[at : at + size])
        at += size
        while chunks.ready:
            before = chunks.rest()
            taken.append(chunks.take())
            assert np.array_equal(before[0], taken[-1])
    assert chunks.fed == whole.size
    padded = np.concatenate([np.zeros(LEAD, np.int16), whole, np.zeros(100_000, np.int16)])
    step, size = frames * FACTOR * front_end.HOP, front_end.samples(frames * FACTOR)
    rest = chunks.rest()
    assert len(rest) in {1, 2}
    for number, chunk in enumerate([*taken, *rest]):
        assert np.array_equal(chunk, padded[number * step :][:size])
    covered = (len(taken) + len(rest) - 1) * step + size - LEAD
    assert covered >= whole.size + BEHIND, "the last word's end is heard, and what follows it"
    assert chunks.heard == (len(taken) - 1) * step + size - LEAD if taken else chunks.heard == 0


# --- slots --------------------------------------------------------------------------------------------------------


def test_calls_take_turns_for_slots_and_one_call_does_not_have_them_all() -> None:
    slots: Slots[str] = Slots(4)
    for who in ("a1", "a2", "a3", "a4", "a5", "b1", "b2"):
        slots.request(who, who[0])
        slots.request(who, who[0])
    assert [slots.next() for _ in range(5)] == ["a1", "b1", "a2", "b2", None]
    assert {slots.of(who) for who in ("a1", "a2", "b1", "b2")} == {0, 1, 2, 3}
    slots.leave("b1")
    assert slots.next() is None, "a has two, and no more than a quarter is free"
    slots.leave("b2")
    assert slots.next() == "a3"
    assert (slots.in_use, slots.waiting) == (3, 2)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60))
def test_a_slot_is_one_utterances(events: list[tuple[int, bool]]) -> None:
    slots: Slots[int] = Slots(3)
    here = set()
    for who, comes in events:
        if comes:
            slots.request(who, str(who % 3))
            here.add(who)
        else:
            slots.leave(who)
            slots.leave(who)
            here.discard(who)
        while slots.next() is not None:
            pass
        has = [slot for who in here if (slot := slots.of(who)) is not None]
        assert len(set(has)) == len(has) == slots.in_use <= 3
        assert slots.in_use + slots.waiting == len(here)
    for who in here:
        slots.leave(who)
    assert (slots.in_use, slots.waiting) == (0, 0) and not slots._has


# --- a checkpoint's files -----------------------------------------------------------------------------------------


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    described = {"model_type": "nemotron_asr_streaming", "dtype": "bfloat16", "encoder_config": {"hidden_size": 1024}}
    (tmp_path / "config.json").write_text(json.dumps(described))
    tokenizer = Tokenizer(models.BPE(vocab={"▁hello": 0, "▁wor": 1, "ld": 2, "<blank>": 3, "▁<de-DE>": 4}, merges=[]))
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens([AddedToken("<blank>", special=True)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "model.safetensors").write_bytes(b"w" * 1000)
    return tmp_path


def read(folder: Path, **changes: Any) -> checkpoint.Checkpoint:
    return checkpoint.read(NemotronConfig(model=str(folder), **changes))


def test_what_it_takes_of_a_gpu_is_told_by_its_files(folder: Path) -> None:
    found = read(folder)
    assert (found.bytes_of_weights("bfloat16"), found.bytes_of_weights("float32")) == (1000, 2000)
    assert 7.0e6 < found.bytes_of_slot("bfloat16") < 7.4e6
    assert not found.many_languages


def test_text_is_written_as_the_models_tokenizer_does(folder: Path) -> None:
    texts = Texts(read(folder))
    assert texts.text([0, 1, 2, 3]) == "hello world" and texts.text([]) == ""
    assert texts.text([0, 4, 1, 2]) == "hello world", "the language that it heard is none of the words"
    assert texts.prompt("de") == 0, "the English model knows no other"


def test_languages_are_those_of_the_models_files(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "nemotron3_5_asr"}')
    prepared = {"prompt_dictionary": {"en-US": 0, "en": 0, "de-DE": 9, "de": 9, "auto": 101}}
    (folder / "processor_config.json").write_text(json.dumps(prepared))
    texts = Texts(read(folder))
    asked = {"de": 9, "de-DE": 9, "de-AT": 9, "en-us": 0, "xx": 101, None: 101}
    assert {language: texts.prompt(language) for language in asked} == asked


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("config.json", '{"model_type": "whisper"}', "names the model 'whisper'"),
        ("config.json", "[]", "is missing or names no model"),
        ("processor_config.json", '{"feature_extractor": {"hop_length": 200}}', "another front end than Nemotron's"),
        ("preprocessor_config.json", '{"n_fft": 400}', "its n_fft differ"),
        ("processor_config.json", '{"supported_num_lookahead_tokens": [6, 0]}', "trained for 80, 560"),
    ],
)
def test_another_model_is_refused(folder: Path, file: str, text: str, said: str) -> None:
    read(folder)
    (folder / file).write_text(text)
    with pytest.raises(EngineError, match=said):
        read(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_file_that_is_missing_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    with pytest.raises(EngineMissing, match=file.replace("model", r"\*", 1) if "model" in file else file):
        read(folder)


def test_who_speaks_another_language_is_told_that_the_model_does_not(folder: Path) -> None:
    agents = [Agent("desk", language="de-DE"), Agent("front", language="en-GB")]

    def said(model: Path) -> list[str]:
        tables = {"engines": {"asr": "nemotron"}, "nemotron": {"model": str(model)}}
        return list(check._unheard(agents, config.parse(tables)))

    (line,) = said(folder)
    assert line.startswith("Agent desk is spoken to in 'de-DE'") and "nemotron-3.5-asr" in line
    (folder / "config.json").write_text('{"model_type": "nemotron3_5_asr"}')
    assert said(folder) == said(folder / "none") == []
