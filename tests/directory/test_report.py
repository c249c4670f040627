"""What a PoP says of itself: how large it is, and where its calls begin."""

import msgspec
import pytest

from tests.directory.reports import condition, report
from voicepipe.directory.report import PopReport
from voicepipe.observe.recent_turns import RecentTurns


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("websocket", "wss://fra.example/v1/realtime"),
        ("webrtc", "https://fra.example/v1/realtime/calls"),
        ("sip", "sip:203.0.113.5:5060"),
        ("twilio", "https://fra.example/twilio/voice"),
        ("telnyx", "https://fra.example/telnyx/voice"),
    ],
)
def test_each_kind_of_call_has_an_address(kind: str, address: str) -> None:
    assert condition(sip="203.0.113.5:5060").call_url(kind) == address


def test_a_call_to_a_pop_without_tls_has_none_either() -> None:
    assert condition(url="http://127.0.0.1:8080").call_url("websocket") == "ws://127.0.0.1:8080/v1/realtime"


def test_a_report_arrives_as_it_was_sent_and_is_small() -> None:
    sent = report(7, begun=("call_1",), recent=RecentTurns(turns=3, p50_ms=180.5), version="2.1")
    assert msgspec.json.decode(msgspec.json.encode(sent), type=PopReport) == sent
    assert len(msgspec.json.encode(sent)) < 1000
    more = report(7, begun=("call_1",), recent=RecentTurns(turns=3, p50_ms=180.5), version="2.1",
                  agents={"front-desk": "en", "a-second-agent-of-it": "en-GB"})  # fmt: skip
    assert len(msgspec.json.encode(more)) - len(msgspec.json.encode(sent)) < 40


def test_a_report_of_an_older_version_leaves_things_out() -> None:
    sparse = msgspec.json.decode(msgspec.json.encode(report()))
    for key in ("zone", "place", "agents", "kinds", "url"):
        sparse["condition"].pop(key)
    its = msgspec.json.decode(msgspec.json.encode(sparse), type=PopReport).condition
    assert (its.share, its.weight, its.recent, its.edition, its.agents, its.place) == (1.0, 1.0, None, None, {}, None)


@pytest.mark.parametrize(
    ("key", "value"), [("slots", 0), ("calls", -1), ("share", 1.5), ("share", -0.1), ("weight", 0), ("status", None)]
)
def test_a_report_that_cannot_be_is_none(key: str, value: object) -> None:
    said = msgspec.json.decode(msgspec.json.encode(report()))
    said["condition"][key] = value
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(msgspec.json.encode(said), type=PopReport)


@pytest.mark.parametrize("said", [b"", b"{}", b"[" * 500, b"\xff"])
def test_what_is_no_report_is_refused(said: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(said, type=PopReport)
