"""Which models a configuration's engines need, and what is said of those that are not here."""

from pathlib import Path
from typing import Any

import pytest

from voicepipe import config
from voicepipe.engines.weights import known_models, needed_models
from voicepipe.engines.weights.needed_models import NeededModel, chosen, problems

OFF = {"asr": "scripted", "llm": "frontdesk", "tts": "espeak"}


def needed(engines: dict[str, str], **tables: Any) -> list[NeededModel]:
    return list(chosen(config.parse({"engines": OFF | engines, **tables})))


def test_engines_without_models_need_none() -> None:
    assert needed({}) == []


def test_models_come_in_the_order_of_a_turn() -> None:
    tables = {"vllm": {"model": "org/llm"}, "kokoro": {"model": "k.onnx", "voices": "v.bin"}}
    tables |= {"endpoint": {"model": "turn.onnx"}}
    keys = [model.key for model in needed({"asr": "whisper", "llm": "vllm", "tts": "kokoro"}, **tables)]
    assert keys == ["whisper.model", "vllm.model", "kokoro.model", "kokoro.voices", "endpoint.model"]


def test_beside_scripted_words_no_model_judges_turns() -> None:
    assert needed({}, endpoint={"model": "turn.onnx"}) == []


def test_vllm_may_need_a_tokenizer_and_a_draft_model() -> None:
    args = {"tokenizer": "org/words", "tokenizer_revision": "v2", "speculative_config": {"model": "org/draft"}}
    _, words, draft = needed({"llm": "vllm"}, vllm={"model": "org/llm", "args": args})
    assert (words.key, words.name, words.revision, words.weights) == (needed_models.TOKENIZER, "org/words", "v2", False)
    assert (draft.key, draft.name, draft.weights) == (needed_models.DRAFT, "org/draft", True)


def test_kokoros_own_files_have_an_address(tmp_path: Path) -> None:
    model, _ = needed({"tts": "kokoro"}, kokoro={"model": str(tmp_path / "kokoro-v1.0.onnx"), "voices": "v.bin"})
    assert model.url == f"{needed_models.KOKORO}/kokoro-v1.0.onnx"
    assert model.by_hand == f"curl -LC - --create-dirs -o {tmp_path}/kokoro-v1.0.onnx {model.url}"
    assert model.problem() == (
        f"kokoro.model: there is no {tmp_path}/kokoro-v1.0.onnx; fetch it with `voicepipe models pull CONFIG`"
    )


def test_each_voice_needs_its_recording() -> None:
    voices = {"anna": {"file": "/nowhere/anna.wav", "text": "a", "consent": "nobody, 2026"}}
    parts = {"model": "org/llm", "codec": "org/codec", "voices": voices}
    *_, recording = needed({"tts": "neutts"}, neutts=parts)
    assert recording.problem() == (
        "neutts.voices.anna.file: there is no /nowhere/anna.wav; record somebody who consents to it, as a WAV file"
    )


def test_a_known_model_is_one_of_the_table_unless_a_path_or_a_revision_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = known_models.MODELS[0].name
    assert NeededModel("whisper.model", name).known == known_models.MODELS[0]
    assert NeededModel("whisper.model", name, revision="v1").known is None
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir(parents=True)
    assert NeededModel("whisper.model", name).known is None


def test_a_model_that_nobody_named() -> None:
    assert NeededModel("vllm.model", "").problem().startswith("vllm.model: none is named, and the engine needs one")


def test_what_is_here_is_no_problem(tmp_path: Path) -> None:
    settings = config.parse({"engines": OFF | {"asr": "whisper"}, "whisper": {"model": str(tmp_path)},
                             "endpoint": {"model": "/nowhere/turn.onnx"}})  # fmt: skip
    (said,) = problems(settings)
    assert said.startswith("endpoint.model: there is no /nowhere/turn.onnx; give the path of a Smart Turn v3 model")
