"""Callers by SIP who are gone without a goodbye: who does not refresh the session, or sends nothing that is taken."""

import time

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, opened, phone, sip
from tests.support.waiting import until
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.rtp_session import RtpSession


async def test_a_session_that_is_not_refreshed_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    pop = FakePop(sip())
    timer = [("Supported", "timer"), ("Session-Expires", "90")]
    async with calling(pop) as ann:
        short = await ann.dial(headers=[("Supported", "timer"), ("Session-Expires", "60")])
        assert (short.code, short.header("min-se")) == (422, "90")
        ann.to_tag = ""
        answer = await ann.dial(headers=timer)
        assert answer.header("session-expires") == "90;refresher=uac" and "timer" in answer.header("require")
        ann.request("UPDATE", timer)
        assert (await ann.final("UPDATE")).header("session-expires") == "90;refresher=uac"
        monkeypatch.setattr("voicepipe.ingress.sip.timers.SessionTimer.over_s", 0.0)
        await ann.got("BYE")
        await settled(pop)


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


async def test_a_caller_without_a_sound_is_gone_unless_on_hold() -> None:
    pop = FakePop(sip(silent_ms=500))
    async with calling(pop) as ann, phone(pop) as holds:
        await holds.dial(holds.sdp(direction="inactive"))
        ann.media_of(await ann.dial())
        await ann.talk(0, 20)
        await ann.got("BYE")
        await until(lambda: pop.live == 1)
        assert (await holds.hang_up()).code == 200
