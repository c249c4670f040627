"""The media of phone calls."""

import time

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, opened, sip
from tests.support.waiting import until
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.rtp_session import RtpSession


async def test_the_log_says_whose_sound_was_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop(sip(silent_ms=500))
    async with calling(pop) as ann:
        ann.media_of(await ann.dial())
        elsewhere, port = await opened(lambda data, source: None, "127.0.0.2")
        for n in range(3):
            elsewhere.sendto(bytes(RtpPacket(0, n, n * 160, 7, bytes(160))), ann.media)
        await ann.got("BYE")
        elsewhere.close()
        await settled(pop)
    refused = f"3 datagrams refused, the last from 127.0.0.2:{port}"
    assert f"no sound for 0.5 s ({refused}): hanging up" in caplog.text


async def test_nobody_is_silent_while_it_rings() -> None:
    pop = FakePop(sip(ring_ms=500))
    async with calling(pop) as ann:
        invited = time.monotonic()
        await ann.dial()
        await until(lambda: ann.heard())
        media: RtpSession = pop.calls[0].line.media  # type: ignore[attr-defined]
        now = time.monotonic()
        assert now - media.silent_s(now) > invited + 0.4
        await ann.hang_up()
