"""Where our requests go, which of theirs are in order, and callers who do not refresh the session."""

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, phone, sip
from voicepipe.config.phone_config import SipTrunk
from voicepipe.ingress.sip.dialog import LEAST_S, SessionTimer, TooShort, negotiated
from voicepipe.ingress.sip.kept_messages import KeptRequest
from voicepipe.ingress.sip.message import SipMessage


async def test_our_requests_go_the_way_that_the_invite_came() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as proxy:
        route = f"<sip:127.0.0.1:{proxy.port};lr>"
        answer = await ann.dial(headers=[("Record-Route", route)])
        assert answer.header("record-route") == route
        await pop.calls[0].line.hang_up()
        goodbye = await proxy.got("BYE")
        assert goodbye.start == f"BYE sip:ann@127.0.0.1:{ann.port} SIP/2.0"
        assert goodbye.header("route") == route


TRUNK = SipTrunk(name="carrier", addresses=("127.0.0.0/8",))


@pytest.fixture
def without_ack(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is answered and gets no ACK ends soon."""
    monkeypatch.setattr("voicepipe.ingress.sip.sip_call.ACK_S", 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contact", "ours"), [("<sip:ann@8.8.8.8>", "198.51.100.7"), ("<sip:ann@phone.invalid>", "127.0.0.1")]
)
async def test_who_asks_us_to_offer_is_where_its_contact_says(contact: str, ours: str, without_ack: None) -> None:
    """It names no address for its sound before its ACK, but has to be told ours."""
    pop = FakePop(sip(trunks=(TRUNK,), public_address="198.51.100.7"))
    async with calling(pop) as ann:
        ann.contact = contact
        ann.invite("", [("Record-Route", f"<sip:127.0.0.1:{ann.port};lr>")])
        assert f"c=IN IP4 {ours}\r\n" in (await ann.final("INVITE")).body


@pytest.mark.slow
@pytest.mark.parametrize("contact", ["<sip:ann@10.1.2.3:5060>", "<sip:ann@203.0.113.9:9>", "<sip:ann@phone.invalid>"])
async def test_a_phone_behind_a_nat_is_hung_up_where_it_speaks_from(contact: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.contact = contact
        await ann.dial()
        await pop.calls[0].line.hang_up()
        assert (await ann.got("BYE")).start == f"BYE {contact.strip('<>')} SIP/2.0"


@pytest.mark.slow
async def test_a_strict_router_is_asked_in_its_own_name() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as proxy:
        await ann.dial(headers=[("Record-Route", f"<sip:127.0.0.1:{proxy.port}>")])
        await pop.calls[0].line.hang_up()
        goodbye = await proxy.got("BYE")
        assert goodbye.start == f"BYE sip:127.0.0.1:{proxy.port} SIP/2.0"
        assert goodbye.header("route") == f"<sip:ann@127.0.0.1:{ann.port}>"


@pytest.mark.slow
async def test_a_change_that_is_refused_changes_nothing() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as elsewhere:
        await ann.dial()
        ann.contact = f"<sip:ann@127.0.0.1:{elsewhere.port}>"
        assert (await ann.dial("v=0\r\nnonsense")).code == 488
        await pop.calls[0].line.hang_up()
        assert (await ann.got("BYE")).start.startswith(f"BYE sip:ann@127.0.0.1:{ann.port}")


async def test_requests_out_of_order_are_refused() -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        ann.seq += 5
        await ann.dial(ann.sdp())
        ann.request("INFO", seq=1)
        assert (await ann.final("INFO")).code == 500
        await ann.hang_up()


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
        monkeypatch.setattr("voicepipe.ingress.sip.dialog.SessionTimer.over_s", 0.0)
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
