"""Callers who do not refresh the session."""

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, sip
from voicepipe.ingress.sip.kept_messages import KeptRequest
from voicepipe.ingress.sip.message import SipMessage
from voicepipe.ingress.sip.timers import LEAST_S, SessionTimer, TooShort, negotiated


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


def asked(*headers: str) -> SessionTimer | None:
    lines = "".join(f"{header}\r\n" for header in headers)
    return negotiated(
        SipMessage(
            KeptRequest(
                f"INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:a@b>\r\n"
                f"Call-ID: x\r\nCSeq: 1 INVITE\r\n{lines}\r\n"
            )
        )
    )


@pytest.mark.parametrize("said", ["1800", " 1800 ", "1800;refresher=uac", "1800 ; x=y"])
def test_the_far_end_refreshes(said: str) -> None:
    timer = asked("Supported: 100rel, Timer", f"Session-Expires: {said}")
    assert timer == SessionTimer(1800)
    assert timer.headers == (("Session-Expires", "1800;refresher=uac"), ("Require", "timer"))


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Supported: timer",),
        ("Session-Expires: 1800",),
        ("Supported: timer", "Session-Expires: soon"),
        ("Supported: timer", f"Session-Expires: {'9' * 10}"),
        ("Supported: timer", "Session-Expires: -90"),
        ("Supported: timer", "Session-Expires: 1800; Refresher = UAS"),
    ],
)
def test_there_is_no_timer_that_we_would_have_to_refresh_or_that_makes_no_sense(headers: tuple[str, ...]) -> None:
    assert asked(*headers) is None


def test_an_interval_may_be_too_short() -> None:
    assert asked("Supported: timer", f"Session-Expires: {LEAST_S}") == SessionTimer(LEAST_S)
    with pytest.raises(TooShort):
        asked("Supported: timer", f"Session-Expires: {LEAST_S - 1};refresher=uas")


@pytest.mark.parametrize(("interval", "over"), [(90, 60.0), (96, 64.0), (1800, 1768.0)])
def test_a_call_is_over_a_little_before_its_interval_is(interval: int, over: float) -> None:
    """RFC 4028, 10: by a third of it, and 32 s at most."""
    assert SessionTimer(interval).over_s == over
