"""What a model's directory says of it, before anything is loaded."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from voicepipe import config
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.heard_languages import heard_languages
from voicepipe.engines.asr.nemotron import checkpoint
from voicepipe.engines.asr.nemotron.checkpoint import Texts


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
    assert texts.heard([0, 4, 1, 2], ("en", "de-AT")).tag == "de-AT" and not texts.heard([0, 4], ("en", "fr")).tag
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


def test_the_languages_that_a_model_hears(folder: Path) -> None:
    settings = config.parse({"engines": {"asr": "nemotron"}, "nemotron": {"model": str(folder)}})
    assert heard_languages(settings) == frozenset({"en"})
    (folder / "config.json").write_text('{"model_type": "nemotron3_5_asr"}')
    (folder / "processor_config.json").write_text('{"prompt_dictionary": {"de-DE": 1, "en-US": 0, "auto": 9}}')
    assert heard_languages(settings) == frozenset({"de", "en"})
