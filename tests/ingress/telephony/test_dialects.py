"""The grammar of media streams in two dialects, as their documentation shows it; and order among Telnyx's chunks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.ingress.telephony.dialects import (
    MESSAGE_BYTES,
    TELNYX,
    TWILIO,
    BadMessage,
    Dialect,
    SoundFormat,
    StreamError,
    StreamKey,
    StreamMark,
    StreamMedia,
    StreamStart,
    StreamStop,
)
from voicepipe.ingress.telephony.stream import EARLY, WAIT_S, ReorderBuffer

TWILIO_START: dict[str, Any] = {
    "event": "start", "sequenceNumber": "1", "streamSid": "MZ1",
    "start": {
        "accountSid": "AC1", "streamSid": "MZ1", "callSid": "CA1", "tracks": ["inbound"],
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        "customParameters": {"from": "+1555", "odd": 3},
    },
}  # fmt: skip
TELNYX_START: dict[str, Any] = {
    "event": "start", "sequence_number": "1", "stream_id": "32DE",
    "start": {
        "user_id": "3E6F", "call_control_id": "v2:T02", "call_session_id": "ff55", "from": "+13122010094",
        "to": "+13122123456", "tags": ["TAG1"], "client_state": "aGF2", "custom_parameters": {"customer": "c1"},
        "media_format": {"encoding": "L16", "sample_rate": 16000, "channels": 1},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "message", "said"),
    [
        (TWILIO, {"event": "connected", "protocol": "Call", "version": "1.0.0"}, None),
        (TWILIO, TWILIO_START,
         ("MZ1", StreamStart("MZ1", "CA1", "", "", {"from": "+1555"}, SoundFormat("pcmu", 8000)))),
        (
            TWILIO,
            {"event": "media", "sequenceNumber": "3", "streamSid": "MZ1",
             "media": {"track": "inbound", "chunk": "1", "timestamp": "5", "payload": "AQID"}},
            ("MZ1", StreamMedia(b"\1\2\3", 1)),
        ),
        (TWILIO, {"event": "media", "streamSid": "MZ1", "media": {"track": "outbound", "payload": "AQID"}}, None),
        (TWILIO, {"event": "dtmf", "streamSid": "MZ1", "dtmf": {"track": "inbound_track", "digit": "#"}},
         ("MZ1", StreamKey("#"))),
        (TWILIO, {"event": "dtmf", "streamSid": "MZ1", "dtmf": {"digit": "flash"}}, None),
        (TWILIO, {"event": "mark", "streamSid": "MZ1", "mark": {"name": "7"}}, ("MZ1", StreamMark("7"))),
        (TWILIO, {"event": "stop", "streamSid": "MZ1", "stop": {"callSid": "CA1"}}, ("MZ1", StreamStop())),
        (TWILIO, {"event": "weather", "streamSid": "MZ1"}, None),
        (TELNYX, {"event": "connected", "version": "1.0.0"}, None),
        (TELNYX, TELNYX_START,
         ("32DE", StreamStart("32DE", "v2:T02", "+13122010094", "+13122123456", {"customer": "c1"},
                              SoundFormat("l16", 16_000)))),
        (TELNYX, {"event": "media", "media": {"track": "inbound", "chunk": "2", "payload": "AQ=="}},
         ("", StreamMedia(b"\1", 2))),
        (TELNYX, {"event": "dtmf", "stream_id": "32DE", "occurred_at": "now", "dtmf": {"digit": "1"}},
         ("32DE", StreamKey("1"))),
        (TELNYX, {"event": "error", "payload": {"code": 100002, "title": "unknown", "detail": "no such event"}},
         ("", StreamError("100002: unknown: no such event"))),
    ],
)  # fmt: skip
def test_what_is_said(dialect: Dialect, message: dict[str, Any], said: object) -> None:
    assert dialect.read(json.dumps(message)) == said


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("{", "is no JSON"),
        ("[]", "is no JSON object"),
        (b"\xff\xfe", "is no JSON"),
        ("[" * 50_000, "is no JSON"),
        ('{"event":"media","media":{"payload":"***"}}', "no base64"),
        ('{"event":"start","start":{"mediaFormat":{"encoding":"audio/opus"}}}', "audio/opus at 0 Hz"),
        ('{"event":"start","start":{"mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000}}}', "no streamSid"),
        (" " * (MESSAGE_BYTES + 1), f"is of {MESSAGE_BYTES + 1} bytes"),
    ],
)
def test_what_makes_no_sense(raw: str | bytes, why: str) -> None:
    with pytest.raises(BadMessage, match=why):
        TWILIO.read(raw)


def test_what_we_say() -> None:
    assert json.loads(TWILIO.media("MZ1", b"\1")) == {
        "event": "media",
        "streamSid": "MZ1",
        "media": {"payload": "AQ=="},
    }
    assert json.loads(TWILIO.mark("MZ1", "3")) == {"event": "mark", "streamSid": "MZ1", "mark": {"name": "3"}}
    assert json.loads(TWILIO.clear("MZ1")) == {"event": "clear", "streamSid": "MZ1"}
    assert json.loads(TELNYX.media("x", b"\1")) == {"event": "media", "media": {"payload": "AQ=="}}
    assert json.loads(TELNYX.clear("x")) == {"event": "clear"}


words = st.sampled_from(["start", "media", "dtmf", "mark", "stop", "error", "payload", "mediaFormat", "media_format",
                         "streamSid", "stream_id", "chunk", "digit", "name", "track", "encoding"])  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("aA1=*\u00e9", max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
messages = st.dictionaries(words, st.dictionaries(words, json_values, max_size=5) | json_values, max_size=6)


@given(st.sampled_from([TWILIO, TELNYX]), words | st.none(), messages)
def test_random_messages_are_read_or_refused(dialect: Dialect, event: str | None, message: dict[str, Any]) -> None:
    try:
        dialect.read(json.dumps({**message, "event": event}))
    except BadMessage as error:
        assert str(error)


# --- order ------------------------------------------------------------------------------------------------------


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


def reordered(arrivals: list[tuple[float, int]]) -> list[list[int]]:
    clock = Clock()
    put = ReorderBuffer[int](clock)
    out = []
    for after, number in arrivals:
        clock.now += after
        out.append(put(number, number))
    return out


def test_what_comes_in_order_does_not_wait() -> None:
    assert reordered([(0.02, n) for n in (1, 2, 3)]) == [[1], [2], [3]]


def test_what_comes_early_waits_for_what_is_missing() -> None:
    assert reordered([(0.02, n) for n in (1, 3, 2, 4)]) == [[1], [], [2, 3], [4]]


def test_what_is_missing_is_not_waited_for_for_long() -> None:
    assert reordered([(0.021, n) for n in (1, 3, 4, 5, 6, 2, 7)]) == [[1], [], [], [], [3, 4, 5, 6], [], [7]]


def test_without_numbers_there_is_no_order() -> None:
    assert reordered([(0.0, 0), (0.0, 0)]) == [[0], [0]]


@given(st.lists(st.integers(1, 40), max_size=60), st.floats(0.0, 0.05))
def test_order_is_kept_and_nothing_comes_twice(numbers: list[int], after: float) -> None:
    out = [number for ready in reordered([(after, number) for number in numbers]) for number in ready]
    assert out == sorted(set(out))


@given(st.permutations(range(1, 30)))
def test_nothing_waits_for_ever(numbers: list[int]) -> None:
    clock = Clock()
    put = ReorderBuffer[int](clock)
    for number in numbers:
        put(number, number)
    clock.now += WAIT_S
    put(100, 100)
    clock.now += WAIT_S
    put(200, 200)
    assert set(put._early) <= {200}


def test_chunks_that_never_come_in_order_are_not_kept() -> None:
    put = ReorderBuffer[int](Clock())
    out = [number for n in range(2, 10_000) for number in put(2 * n, 2 * n)]
    assert len(put._early) <= EARLY and len(out) > 9_900 and out == sorted(out)
