"""JSON of clients and providers, as dear as it can be made: none stops the loop for long."""

import time
from typing import Any

import pytest
from starlette.datastructures import Headers

from tests.support.stopwatch import spent
from voicepipe.agent import Agent
from voicepipe.call_settings import CallSettings
from voicepipe.ingress.access import decoded
from voicepipe.ingress.api_keys import SecretRequest
from voicepipe.ingress.realtime import client_events
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.telephony.dialects import TELNYX, TWILIO, BadMessage, Dialect
from voicepipe.ingress.webrtc import offer
from voicepipe.ingress.wire_errors import WireError

MOST = 512 * 1024
"""As `limits.event_bytes` has it."""
ENOUGH_S = 0.3
"""For what takes some 20 ms, and took 700."""
SLOW = ["9e303", "9e-310"]


def many(unit: str, size: int = 500_000) -> str:
    return "[" + ",".join([unit] * (size // (len(unit) + 1))) + "]"


@pytest.mark.parametrize("number", SLOW)
@pytest.mark.parametrize(
    "message",
    [
        '{"type":"session.update","session":{"x":%s}}',
        '{"type":"response.create","response":{"tools":[{"name":"a","parameters":{"x":%s}}]}}',
        '{"type":"response.create","response":{"audio":{"output":{"voice":{"x":%s}}}}}',
        '{"type":"conversation.item.create","x":%s,"item":{"type":"message","role":"user","content":[]}}',
    ],
)
def test_an_event_with_numbers_that_are_slow_to_read(message: str, number: str) -> None:
    raw = message % many(number)
    begun = time.thread_time()
    client_events.decode(raw, MOST)
    client_events.event_id(raw, MOST)
    assert time.thread_time() - begun < ENOUGH_S


def test_a_number_that_no_float_can_be_is_a_clients_mistake() -> None:
    with pytest.raises(WireError, match=r"^Invalid value for 'session.*Number out of range.$") as refused:
        client_events.decode('{"type":"session.update","session":{"x":1e999}}', MOST)
    assert refused.value.code == "invalid_value"


@pytest.mark.parametrize("number", SLOW)
@pytest.mark.parametrize("shape", [dict[str, Any], SecretRequest])
def test_a_body_with_such_numbers(shape: Any, number: str) -> None:
    said = f'{{"session":{{"x":{many(number)}}}}}'.encode()
    begun = time.thread_time()
    decoded(said, shape)
    assert time.thread_time() - begun < ENOUGH_S


@pytest.mark.parametrize("number", SLOW)
async def test_a_form_with_such_numbers(number: str) -> None:
    session = f'{{"x":{many(number)}}}'
    part = '--b\r\nContent-Disposition: form-data; name="{}"; filename="f"\r\n\r\n{}\r\n'
    sent = f"{part.format('sdp', 'v=0')}{part.format('session', session)}--b--\r\n".encode()
    headers = Headers({"content-type": "multipart/form-data; boundary=b"})
    begun = time.thread_time()
    _, asked = await offer.read(headers, sent, MOST)
    assert time.thread_time() - begun < ENOUGH_S
    assert asked["x"][0] == float(number)


@pytest.mark.parametrize("number", SLOW)
@pytest.mark.parametrize("dialect", [TWILIO, TELNYX])
def test_messages_of_a_media_stream_with_such_numbers(dialect: Dialect, number: str) -> None:
    raw = f'{{"event":"weather","x":{many(number, 64_000)}}}'
    assert spent(lambda: [dialect.read(raw) for _ in range(10)]) < 0.45, "it was 0.5 to 0.9 s for what takes 0.15"


def test_a_provider_that_offers_a_long_name_of_a_sound_does_not_fill_the_log() -> None:
    form = '{"event":"start","streamSid":"MZ1","start":{"callSid":"CA1","mediaFormat":{"encoding":"%s"}}}'
    with pytest.raises(BadMessage) as refused:
        TWILIO.read(form % ("x" * 60_000))
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("unit", ["{}", "[" * 400 + "]" * 400, "9e303", '"text"'])
def test_modalities_in_masses(unit: str) -> None:
    patch = client_events.decode(f'{{"type":"session.update","session":{{"output_modalities":{many(unit)}}}}}', MOST)
    session = Session.of(CallSettings.of(Agent("a")), id="sess_1")
    assert isinstance(patch, client_events.SessionUpdate)
    changes = patch.session

    def update() -> None:
        with pytest.raises(WireError, match="output_modalities"):
            session.updated(changes)

    assert spent(update) < 0.02, "it was 30 to 110 ms"
