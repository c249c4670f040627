"""`voicepipe models pull`, by the real huggingface_hub from a hub on loopback."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.support.fake_hub import FakeHub, serving
from voicepipe import config
from voicepipe.commands import cli
from voicepipe.engines import packages
from voicepipe.engines.weights import hub, hub_fetch, needed_models

TEXTS = {"config.json": b"{}", "tokenizer.json": b"{ }", "README.md": b"read me"}
MODELS = {
    "org/whisper": {**TEXTS, "model.bin": b"w" * 200_000, "vocabulary.json": b"[]"},
    "org/small": {**TEXTS, "model.safetensors": b"new"},
    "org/small@v1": {**TEXTS, "model.safetensors": b"old"},
    "org/nemotron": {
        **TEXTS,
        "processor_config.json": b"{  }",
        "model.safetensors": b"s" * 900,
        "own.nemo": b"n" * 900,
    },
    "org/kokoro": {"kokoro-v1.0.onnx": b"k" * 200_000, "voices-v1.0.bin": b"v"},
    "org/llm": {**TEXTS, "model.safetensors": b"s" * 9000, "pytorch_model.bin": b"p" * 9000, "onnx/model.onnx": b"o"},
}
Pull = Callable[[str], tuple[int, str]]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    with serving(FakeHub(MODELS, gated=frozenset({"org/llm"}))) as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield running


@pytest.fixture
def pull(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Pull:
    """Exit status and standard output for a configuration with these tables."""

    def run(tables: str) -> tuple[int, str]:
        file = tmp_path / "my.toml"
        file.write_text(tables)
        status = cli.main(["models", "pull", str(file)])
        said = capsys.readouterr()
        return status, said.out + said.err.split("\n")[-2] if status == 2 else said.out

    return run


WHISPER = "[endpoint]\nmodel = ''\n[whisper]\nmodel = '{}'"
NEMOTRON = "[engines]\nasr = 'nemotron'\n[nemotron]\nmodel = '{}'"
VLLM = "[engines]\nasr = 'scripted'\nllm = 'vllm'\n[vllm]\nmodel = '{}'"


def test_of_a_recogniser_that_streams_transformers_files_are_fetched(fake: FakeHub, pull: Pull) -> None:
    assert pull(NEMOTRON.format("org/nemotron"))[0] == 0
    assert sorted(fake.fetched) == ["config.json", "model.safetensors", "processor_config.json", "tokenizer.json"]
    assert (hub.local("org/nemotron") / "model.safetensors").exists()


def test_what_the_engine_needs_is_fetched_and_found(fake: FakeHub, pull: Pull) -> None:
    status, said = pull(WHISPER.format("org/whisper"))
    assert status == 0
    assert sorted(fake.fetched) == ["config.json", "model.bin", "tokenizer.json", "vocabulary.json"]
    assert fake.fetched[-1] == "model.bin", "weights come last: where they are, nothing is missing"
    assert "org/whisper: 4 of 4 files, 0.00 GB" in said
    assert (hub.local("org/whisper") / "model.bin").stat().st_size == 200_000


def test_the_second_time_there_is_nothing_to_fetch(fake: FakeHub, pull: Pull) -> None:
    pull(WHISPER.format("org/whisper"))
    fake.fetched.clear()
    assert "org/whisper: nothing to fetch" in pull(WHISPER.format("org/whisper"))[1]
    assert fake.fetched == []


def test_a_connection_that_breaks_goes_on_where_it_broke(
    fake: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.breaks.add("model.bin")
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    assert pull(WHISPER.format("org/whisper"))[0] == 0
    assert fake.fetched[-2:] == ["model.bin", "model.bin bytes=100000-"]
    assert (hub.local("org/whisper") / "model.bin").read_bytes() == MODELS["org/whisper"]["model.bin"]


def test_a_run_that_was_ended_goes_on_with_what_is_missing(fake: FakeHub, pull: Pull) -> None:
    pull(WHISPER.format("org/whisper"))
    (hub.local("org/whisper") / "model.bin").resolve().unlink()
    fake.fetched.clear()
    assert "org/whisper: 1 of 4 files" in pull(WHISPER.format("org/whisper"))[1]
    assert fake.fetched == ["model.bin"]


def test_no_such_model(fake: FakeHub, pull: Pull) -> None:
    status, said = pull(WHISPER.format("org/none"))
    assert status == 1
    assert said == (
        "whisper.model: the hub has no model org/none, or it is private: check the name, or set the environment "
        "variable HF_TOKEN to a token that may read it\n"
    )


def test_a_gated_model(fake: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    status, said = pull(VLLM.format("org/llm"))
    assert status == 1
    assert f"accepted its terms: do so at {fake.url}/org/llm and set the environment variable HF_TOKEN" in said
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    assert pull(VLLM.format("org/llm"))[0] == 0
    assert sorted(fake.fetched) == ["config.json", "model.safetensors", "tokenizer.json"]


def test_the_revision_that_is_configured_is_fetched_and_found(fake: FakeHub, pull: Pull, tmp_path: Path) -> None:
    tables = VLLM.format("org/small") + "\nargs.revision = 'v1'"
    status, said = pull(tables)
    assert (status, "org/small (revision v1): 3 of 3 files" in said) == (0, True)
    settings = config.load(tmp_path / "my.toml")
    assert needed_models.problems(settings) == []
    assert (hub.local(settings.vllm.model, settings.vllm.revision) / "model.safetensors").read_bytes() == b"old"
    assert "org/small (revision v1): nothing to fetch" in pull(tables)[1]
    (tmp_path / "my.toml").write_text(VLLM.format("org/small"))
    assert "org/small is not on this machine" in needed_models.problems(config.load(tmp_path / "my.toml"))[0]


def test_of_a_tokenizer_that_comes_from_elsewhere_no_weights_are_fetched(
    fake: FakeHub, pull: Pull, tmp_path: Path
) -> None:
    tables = VLLM.format("org/small") + "\nargs.tokenizer = 'org/whisper'"
    assert pull(VLLM.format("org/small"))[0] == 0
    problem = "vllm.args.tokenizer: org/whisper is not on this machine; fetch it with"
    (tmp_path / "my.toml").write_text(tables)
    assert needed_models.problems(config.load(tmp_path / "my.toml"))[0].startswith(problem)
    fake.fetched.clear()
    status, said = pull(tables)
    assert (status, "org/whisper: 3 of 3 files" in said) == (0, True)
    assert sorted(fake.fetched) == ["config.json", "tokenizer.json", "vocabulary.json"]
    assert needed_models.problems(config.load(tmp_path / "my.toml")) == []


def test_a_revision_that_the_hub_does_not_have(fake: FakeHub, pull: Pull) -> None:
    status, said = pull(VLLM.format("org/small") + "\nargs.revision = 'v9'")
    assert status == 1
    assert said == "vllm.model: the hub has no revision v9 of org/small: give a branch, a tag or a whole commit id\n"


def test_a_hub_that_cannot_be_reached(fake: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    pull(WHISPER.format("org/whisper"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    status, said = pull(WHISPER.format("org/whisper"))
    assert status == 0
    assert "org/whisper: here; whether the hub has a newer one is not known: " in said
    status, said = pull(VLLM.format("org/llm"))
    assert status == 1
    assert said.startswith("vllm.model: org/llm cannot be fetched from http://127.0.0.1:9: ")
    assert "check the network" in said
    assert "`hf download org/llm --local-dir FOLDER`" in said and 'set vllm.model = "/path/to/FOLDER"' in said


def test_a_full_disk(fake: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    status, said = pull(WHISPER.format("org/whisper"))
    assert status == 2
    assert "the models need 0.0 GB, and " in said and "set the environment variable HF_HOME" in said
    assert fake.fetched == []


KOKORO = "[engines]\ntts = 'kokoro'\n[kokoro]\nmodel = './new/kokoro-v1.0.onnx'\nvoices = './voices-v1.0.bin'"


@pytest.fixture
def kokoro(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    monkeypatch.setattr(needed_models, "KOKORO", f"{fake.url}/org/kokoro/resolve/main")
    return fake


def test_files_that_no_hub_has_are_fetched_from_where_they_are(kokoro: FakeHub, pull: Pull, tmp_path: Path) -> None:
    (tmp_path / "voices-v1.0.bin").write_bytes(b"mine")
    status, said = pull(KOKORO)
    assert status == 0
    assert kokoro.fetched == ["kokoro-v1.0.onnx"]
    assert f"kokoro.model: here, at {tmp_path / 'new' / 'kokoro-v1.0.onnx'}\n" in said
    assert f"kokoro.voices: here, at {tmp_path / 'voices-v1.0.bin'}\n" in said
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["kokoro-v1.0.onnx"]
    assert (tmp_path / "new" / "kokoro-v1.0.onnx").read_bytes() == MODELS["org/kokoro"]["kokoro-v1.0.onnx"]
    assert needed_models.problems(config.load(tmp_path / "my.toml")) == []
    assert pull(KOKORO)[0] == 0 and len(kokoro.fetched) == 1


def test_a_file_whose_connection_breaks_goes_on_where_it_broke(kokoro: FakeHub, pull: Pull, tmp_path: Path) -> None:
    kokoro.breaks.add("kokoro-v1.0.onnx")
    assert pull(KOKORO)[0] == 0
    assert kokoro.fetched[:2] == ["kokoro-v1.0.onnx", "kokoro-v1.0.onnx bytes=100000-"]
    assert (tmp_path / "new" / "kokoro-v1.0.onnx").read_bytes() == MODELS["org/kokoro"]["kokoro-v1.0.onnx"]


def test_a_file_that_cannot_be_reached(pull: Pull, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(needed_models, "KOKORO", "http://127.0.0.1:9")
    status, said = pull(KOKORO)
    model = tmp_path / "new" / "kokoro-v1.0.onnx"
    assert status == 1
    assert "kokoro.model: http://127.0.0.1:9/kokoro-v1.0.onnx cannot be fetched: " in said and "HTTPS_PROXY" in said
    assert f"`curl -LC - --create-dirs -o {model} http://127.0.0.1:9/kokoro-v1.0.onnx`; copy it here" in said
    assert "kokoro.voices: http" in said and not model.exists()


def test_a_file_of_a_name_that_is_not_there(kokoro: FakeHub, pull: Pull, tmp_path: Path) -> None:
    status, said = pull(KOKORO.replace("kokoro-v1.0", "other"))
    assert status == 1
    assert "kokoro.model" in said and "/other.onnx cannot be fetched: its server answers 404" in said
    assert not (tmp_path / "new").exists()


def test_a_recording_of_a_voice_is_made_by_hand(fake: FakeHub, pull: Pull, tmp_path: Path) -> None:
    voices = "[neutts.voices.anna]\nfile = 'anna.wav'\ntext = 'Hello.'\nconsent = 'Anna Example, 3 May 2026'\n"
    for name in ("model", "codec"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").touch()
    tables = f"[engines]\ntts = 'neutts'\n[neutts]\nmodel = './model'\ncodec = './codec'\n{voices}"
    status, said = pull(tables)
    assert status == 1 and fake.fetched == []
    assert f"neutts.voices.anna.file: there is no {tmp_path / 'anna.wav'}; record somebody who consents" in said
    (tmp_path / "anna.wav").touch()
    assert pull(tables)[0] == 0


def test_engines_without_models(pull: Pull) -> None:
    status, said = pull("[engines]\nasr = 'scripted'")
    assert (status, said.endswith("the chosen engines need no models\n")) == (0, True)


def test_check_warns_of_a_missing_model(fake: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[engines]\nllm = 'vllm'\nasr = 'whisper'\n[whisper]\nmodel = 'org/whisper'")
    assert cli.main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    missing = f"org/whisper is not on this machine; fetch it with `voicepipe models pull {file}`"
    assert f"{file}: warning: whisper.model: {missing}\n" in said
    assert f"{file}: warning: vllm.model: none is named, and the engine needs one" in said
    assert fake.fetched == []


def test_check_warns_of_a_turn_model_that_is_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[endpoint]\nmodel = './turn.onnx'")
    assert cli.main(["check", str(file)]) == 0
    said = (
        f"{file}: warning: endpoint.model: there is no {tmp_path / 'turn.onnx'}; give the path of a Smart Turn v3 model"
    )
    assert said in capsys.readouterr().out


def test_check_refuses_a_neutts_without_a_voice_and_hides_nothing_else_that_is_missing(
    fake: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {"neutts": "no_such_package"})
    file = tmp_path / "my.toml"
    file.write_text("[engines]\ntts = 'neutts'\n[neutts]\nmodel = 'org/voice'\ncodec = 'org/codec'")
    for files in ([str(file)], ["--config", str(file)]):
        assert cli.main(["check", *files]) == 2
        said = capsys.readouterr().out
        assert f"{file}: neutts: it has no voice; add a table [neutts.voices.NAME] with a recording" in said
        assert "its package no_such_package is not installed" in said
        assert "org/voice is not on this machine" in said and "org/codec is not on this machine" in said
        assert f"{file}: ok" not in said and said.count("has no voice") == 1


@pytest.mark.e2e
def test_a_pop_that_does_not_start_says_what_to_type(
    fake: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {})
    file = tmp_path / "my own.toml"
    file.write_text(WHISPER.format("org/whisper"))
    assert cli.main(["pop", "--config", str(file), "--port", "0"]) == 2
    assert f"fetch it with `voicepipe models pull '{file}'`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        ("config.json model.bin tokenizer.json README.md .gitattributes", "config.json tokenizer.json model.bin"),
        ("a.png model.safetensors pytorch_model.bin consolidated.safetensors original/x.pth", "model.safetensors"),
        (
            "model-1-of-2.safetensors model-2-of-2.safetensors model.safetensors.index.json "
            "pytorch_model.bin.index.json pytorch_model-1-of-1.bin",
            "model.safetensors.index.json model-1-of-2.safetensors model-2-of-2.safetensors",
        ),
        ("chat_template.jinja tokenizer.model params.json consolidated.safetensors",
         "chat_template.jinja params.json tokenizer.model consolidated.safetensors"),
        ("config.json pytorch_model.bin training_args.bin rust_model.ot", "config.json pytorch_model.bin"),
    ],
)  # fmt: skip
def test_one_format_of_the_weights(paths: str, kept: str) -> None:
    assert hub_fetch.needed(paths.split()) == kept.split()
