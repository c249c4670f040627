"""Whom a probe calls, and what it asks."""

import time
from pathlib import Path

import msgspec
import pytest

from tests.directory.fleets import OPERATOR, SIGNER, served
from tests.directory.reports import report
from voicepipe.base.errors import ConfigError
from voicepipe.config.probe_config import ProbeConfig, ProbedConfig
from voicepipe.directory import subjects
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.probe.probe_targets import ListedPop, ListedPops, configured, listed, questions, straight

POP = ProbedConfig(name="eu", url="https://fra1.example.com:8443", pop="fra1", by=("websocket", "sip"))
DIRECTORY = ProbedConfig(name="all", directory="https://voice.example.com", straight=True)


def test_each_target_is_called_by_each_door() -> None:
    found = configured(ProbeConfig(targets=(POP, DIRECTORY)))
    assert [(its.target, its.way, its.pop, its.by, its.phone) for its in found] == [
        ("eu", "straight", "fra1", "websocket", "fra1.example.com:5060"),
        ("eu", "straight", "fra1", "sip", "fra1.example.com:5060"),
        ("all", "directory", "", "websocket", "voice.example.com:5060"),
    ]


def test_pops_that_fell_silent_are_called_and_those_that_drain_are_not() -> None:
    rows = ListedPop("fra1", "https://fra1", "ok"), ListedPop("lhr1", "https://lhr1", "draining")
    found = straight(DIRECTORY, 1, ListedPops(rows, (ListedPop("iad1", "https://iad1"),)))
    assert [(its.target, its.way, its.pop, its.url, its.number) for its in found] == [
        ("all", "straight", "fra1", "https://fra1", 1),
        ("all", "straight", "iad1", "https://iad1", 1),
    ]


def test_keys_are_read_when_they_are_needed(tmp_path: Path) -> None:
    (file := tmp_path / "key").write_text("one\n")
    target = ProbedConfig(name="eu", url="http://127.0.0.1:9", key_file=str(file))
    [its] = configured(ProbeConfig(targets=(target,)))
    assert its.key() == "one"
    file.write_text("two")
    assert its.key() == "two" and its.password() == ""
    file.unlink()
    with pytest.raises(ConfigError, match=r"targets\[0\]\.key_file: there is no .*/key"):
        its.key()


async def test_a_directory_lists_its_pops_to_its_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Directory(bus := MemoryBus(), SIGNER)
    for name in ("fra", "lhr"):
        said = msgspec.json.encode(report(epoch=int(time.time() * 1000)))
        directory.take(BusMessage(subjects.of_pop(subjects.REPORTS, name), said))
    async with served(directory, bus) as at:
        target = ProbedConfig(name="all", directory=at.url, operator_key_env="OPERATOR_KEY")
        monkeypatch.setenv("OPERATOR_KEY", OPERATOR)
        assert sorted(row.pop for row in (await listed(target, 0)).pops) == ["fra", "lhr"]
        monkeypatch.setenv("OPERATOR_KEY", "k-acme")
        with pytest.raises(ConfigError, match=r"targets\[0\]\.straight: .* wants the operator's key"):
            await listed(target, 0)
    with pytest.raises(ConfigError, match="does not answer"):
        await listed(target, 0)


def test_a_question_is_a_recording_of_the_package_or_a_file(tmp_path: Path) -> None:
    (file := tmp_path / "q.wav").touch()
    targets = (
        POP,
        ProbedConfig(name="own", url="http://x", question=str(file), words="is it open", expect=("noon",)),
    )
    shipped, own = questions(ProbeConfig(targets=targets))
    assert shipped.utterance.text == "when do you open on sunday" and "tuesday" in shipped.expect
    assert (own.utterance.text, own.utterance.file, own.expect) == ("is it open", str(file), ("noon",))


@pytest.mark.parametrize(
    ("question", "says"),
    [("finished-1", "targets[0].question: 'finished-1' is neither"), (__file__, "targets[0].words: say which words")],
)
def test_a_question_that_cannot_be_asked(question: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        questions(ProbeConfig(targets=(ProbedConfig(name="eu", url="http://x", question=question),)))
    assert str(caught.value).startswith(says)
