"""Noise at the SIP port and at a call's media ports: nothing fails, the call goes on, and nothing is left."""

import asyncio
import logging
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.sip.peer import Phone, opened, phone, sip
from tests.ingress.sip.test_strangers import STRANGER, stack
from tests.ingress.sip.torture import answerable, tortures
from tests.support.waiting import until
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.datagram_check import check_datagram, stateless_answer
from voicepipe.ingress.sip.header_text import SipError
from voicepipe.ingress.sip.names import ResolvingSender
from voicepipe.rtp.packet import RtpPacket

MESSAGES = [torture.message for torture in tortures()]
ODD = [
    b"", b"\0", b"\r\n", b"\r\n\r\n", b";", b",", b"<", b">", b'"', b"%", b"[::1]", b":0", b":99999", b"-1",
    b"\xff\xfe", b"sip:", b"tel:+1", b"*", b"INVITE", b"ACK", b"CANCEL", b"BYE", b"SIP/2.0", b"99999999999999999999",
    b"z9hG4bK", b"Via: SIP/2.0/UDP nowhere.invalid;rport=7\r\n", b"Record-Route: <sip:>\r\n",
    b"Contact: *\r\n", b"Expires: 1\r\n", b"Session-Expires: 1;refresher=uas\r\n", b"Supported: timer\r\n",
    b"CSeq: 1 CANCEL\r\n",
]  # fmt: skip


def mutated(message: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """At each place so many bytes are replaced."""
    for at, length, new in changes:
        at %= len(message) + 1
        message = message[:at] + new + message[at + length :]
    return answerable(message)


changed = st.builds(
    mutated,
    st.sampled_from(MESSAGES),
    st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 12), st.sampled_from(ODD) | st.binary(max_size=6))),
)


@pytest.mark.usefixtures("hasty")
@given(st.lists(changed | st.binary(max_size=1500), min_size=20, max_size=40))
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
async def test_noise_at_the_sip_port(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, noise: list[bytes]
) -> None:
    monkeypatch.setattr(ResolvingSender, "send", lambda *_: None)
    pop = FakePop(sip())
    async with serving(pop), phone(pop) as ann:
        await ann.dial()
        mallory, _ = await opened(lambda data, source: None)
        for datagram in noise:
            mallory.sendto(datagram, ann.server)
            await asyncio.sleep(0)
        assert (await ann.hang_up()).code == 200
        await settled(pop)
        mallory.close()
        left = stack()._transactions
        await until(lambda: not (left.tserver or left.tclient))
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@given(st.binary(max_size=300).map(lambda data: data.decode("latin-1")) | st.text(max_size=300))
def test_what_cannot_be_read_is_said_to_be_so(text: str) -> None:
    for made in (text, f"INVITE sip:a@b SIP/2.0\r\n{text}"):
        if seen := check_datagram(made.encode()):
            stateless_answer(seen, ("127.0.0.1", 5060), 400, "Bad Request")
    for made in (text, f"<{text}>", f"<sip:{text}>", f'"{text}" <sip:a@b>;{text}'):
        try:
            Address.of(made)
        except SipError:
            continue


async def hurl(ann: Phone, host: str, ports: tuple[int, ...]) -> None:
    """Junk, and packets that are nearly right, from another port of this host."""
    rng = random.Random(4475)
    made, _ = await opened(lambda data, source: None, host)
    for n in range(1500):
        kind, size = rng.randrange(4), rng.randrange(400)
        packet = bytes(
            RtpPacket(
                rng.randrange(128), rng.randrange(2**16), rng.randrange(2**32), rng.randrange(2**32), b"\x7f" * size
            )
        )
        data = (rng.randbytes(size), packet, b"\x80\xc8" + rng.randbytes(size), b"\x81\xc9\0\7" + rng.randbytes(28))[
            kind
        ]
        made.sendto(data, ("127.0.0.1", rng.choice(ports)))
        if n % 20 == 0:
            await asyncio.sleep(0.005)
    made.close()


@pytest.mark.parametrize("host", [STRANGER, "127.0.0.1"])
async def test_noise_at_the_media_ports(host: str, caplog: pytest.LogCaptureFixture) -> None:
    """From a stranger's address, and from the peer's own (another program behind the same NAT)."""
    pop = FakePop(sip())
    async with serving(pop), phone(pop) as ann:
        ann.media_of(await ann.dial())
        await ann.talk(5, 5)
        before = len(ann.heard())
        talking = asyncio.create_task(ann.talk(0, 60))
        await hurl(ann, host, (ann.media[1], ann.media[1] + 1))
        await talking
        heard = [packet.seq for packet in ann.heard()]
        assert len(heard) > before + 10, "ours still go to the phone"
        assert {(later - one) % 2**16 for one, later in zip(heard, heard[1:], strict=False)} == {1}
        if host == STRANGER:
            sound = [block for block in pop.calls[0].blocks if not block.filled]
            assert len(sound) >= 60
        assert (await ann.hang_up()).code == 200
        await settled(pop)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
