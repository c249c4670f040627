"""Keys that a program sends to a telephone: what comes there, and what is said where none can be sent."""

from itertools import groupby

import httpx

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import Phone, phone, sip
from tests.support.waiting import until
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.telephone_events import KEYS, TelephoneEvent

EVENTS = 101


def pressed(ann: Phone) -> list[list[RtpPacket]]:
    """The packets of each key that came."""
    events = [packet for packet in ann.heard() if packet.payload_type == EVENTS]
    return [list(key) for _, key in groupby(events, key=lambda packet: packet.timestamp)]


async def test_keys_come_one_after_another_as_telephone_events() -> None:
    pop = FakePop(sip())
    async with serving(pop) as address, phone(pop) as ann:
        call_id = (await ann.dial()).header("x-voicepipe-call-id")
        await until(lambda: len(ann.heard()) > 5)
        async with httpx.AsyncClient(base_url=f"http://{address}/v1/realtime/calls", trust_env=False) as client:
            assert (await client.post(f"/{call_id}/dtmf", json={"digits": "12#"})).status_code == 200
            assert (await client.post(f"/{call_id}/dtmf", json={"digits": "2"})).status_code == 200
        await until(lambda: [TelephoneEvent.parse(key[-1].payload).ended for key in pressed(ann)] == [True] * 4)
        keys = pressed(ann)
        assert "".join(KEYS[TelephoneEvent.parse(key[0].payload).number] for key in keys) == "12#2"
        assert all(key[0].marker for key in keys)
        assert {TelephoneEvent.parse(key[-1].payload).duration for key in keys} == {1280}, "160 ms at 8 kHz"
        heard = ann.heard()
        assert [b.seq - a.seq for a, b in zip(heard, heard[1:], strict=False)].count(1) == len(heard) - 1
        pauses = [b[0].timestamp - a[0].timestamp for a, b in zip(keys[:2], keys[1:3], strict=True)]
        assert all(pause % 2**32 >= 1280 + 480 for pause in pauses), "60 ms between two"
        await ann.hang_up()


async def test_a_telephone_that_takes_no_keys() -> None:
    pop = FakePop(sip())
    async with serving(pop) as address, phone(pop) as ann:
        call_id = (await ann.dial(ann.sdp(formats="0"))).header("x-voicepipe-call-id")
        async with httpx.AsyncClient(base_url=f"http://{address}/v1/realtime/calls", trust_env=False) as client:
            answer = await client.post(f"/{call_id}/dtmf", json={"digits": "1"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "dtmf_failed")
        assert error["message"] == "The caller's phone takes no keys: its SDP names no telephone-event."
        await ann.hang_up()


async def test_keys_that_wait_are_forgotten_with_the_way_to_send_them() -> None:
    pop = FakePop(sip())
    async with serving(pop) as address, phone(pop) as ann:
        call_id = (await ann.dial()).header("x-voicepipe-call-id")
        async with httpx.AsyncClient(base_url=f"http://{address}/v1/realtime/calls", trust_env=False) as client:
            await client.post(f"/{call_id}/dtmf", json={"digits": "1" * 40})
        await until(lambda: pressed(ann))
        await ann.dial(ann.sdp(formats="0"))
        before = len(ann.heard())
        await until(lambda: len(ann.heard()) > before + 20)
        assert {packet.payload_type for packet in ann.heard()[before + 2 :]} == {0}
        assert {len(packet.payload) for packet in ann.heard()[before + 2 :]} == {160}
        await ann.hang_up()
