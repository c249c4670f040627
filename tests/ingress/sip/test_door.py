"""What is told at SIP's door to those who are not let in."""

import logging

import pytest

from tests.ingress.fake_pop import FakePop
from tests.ingress.sip.peer import calling, sip
from voicepipe.base.errors import Draining, PopFull, TenantFull
from voicepipe.config.phone_config import SipTrunk
from voicepipe.ingress.sip.bodies import ACCEPT


@pytest.mark.parametrize(
    ("refused", "wait"), [(PopFull("All slots are taken."), "2"), (Draining("It is being shut down."), "30")]
)
async def test_a_full_pop_says_when_to_come_again(refused: Exception, wait: str) -> None:
    pop = FakePop(sip())
    pop.refuse = refused
    async with calling(pop) as ann:
        answer = await ann.dial()
        assert (answer.code, answer.header("retry-after")) == (503, wait)
        pop.refuse = None
        ann.to_tag = ""
        assert (await ann.dial()).code == 200
        await ann.hang_up()


async def test_a_tenant_whose_places_are_taken_is_busy() -> None:
    pop = FakePop(sip())
    pop.refuse = TenantFull("All slots of acme are taken.")
    async with calling(pop) as ann:
        assert (await ann.dial()).code == 486


@pytest.mark.parametrize(
    ("method", "headers", "code", "header"),
    [
        ("MESSAGE", [], 405, "allow"),
        ("SUBSCRIBE", [], 405, "allow"),
        ("INVITE", [("Require", "100rel")], 420, "unsupported"),
        ("BYE", [], 481, ""),
        ("OPTIONS", [], 200, "allow"),
    ],
)
async def test_what_is_not_spoken_here_is_said(
    method: str, headers: list[tuple[str, str]], code: int, header: str
) -> None:
    async with calling(FakePop(sip())) as ann:
        ann.request(method, headers)
        answer = await ann.final(method)
        assert answer.code == code
        assert not header or answer.header(header)


async def test_a_body_that_is_no_sdp_is_refused() -> None:
    async with calling(FakePop(sip())) as ann:
        ann.request("INVITE", body="<xml/>", kind="application/xml")
        answer = await ann.final("INVITE")
        assert (answer.code, answer.header("accept")) == (415, ACCEPT)


@pytest.mark.slow
async def test_a_pop_that_drains_says_so_to_whoever_asks() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        pop.status = "draining"
        ann.request("OPTIONS")
        assert (await ann.final("OPTIONS")).code == 503


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contact", "headers", "left"),
    [
        ("<sip:ann@127.0.0.1>;expires=60;+sip.instance=x", [], "<sip:ann@127.0.0.1>;+sip.instance=x;expires=60"),
        ("<sip:ann@127.0.0.1>;expires=3600", [], "<sip:ann@127.0.0.1>;expires=300"),
        ("<sip:ann@127.0.0.1>", [("Expires", "0")], ""),
        ("<sip:ann@127.0.0.1>;expires=0", [], ""),
        ("<sip:u@h;expires=60;line=abc>;expires=120", [], "<sip:u@h;expires=60;line=abc>;expires=120"),
        ("<sip:u@h;expires=0>", [], "<sip:u@h;expires=0>;expires=300"),
        ('"a;expires=7" <sip:u@h> ; Expires = 90 ; q=0.5', [], '"a;expires=7" <sip:u@h>;q=0.5;expires=90'),
        ("sip:u@h;x=y;expires=20", [], "sip:u@h;x=y;expires=20"),
        ("sip:u@h", [("Expires", "40")], "sip:u@h;expires=40"),
        ("<sip:ann@127.0.0.1>", [("Expires", "9" * 5000)], "<sip:ann@127.0.0.1>;expires=300"),
    ],
)
async def test_registrations(contact: str, headers: list[tuple[str, str]], left: str) -> None:
    async with calling(FakePop(sip())) as ann:
        ann.contact = contact
        ann.request("REGISTER", headers)
        answer = await ann.final("REGISTER")
        assert (answer.code, answer.header("contact")) == (200, left)


@pytest.mark.slow
async def test_what_strangers_send_is_not_written_on_the_terminal(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    elsewhere = SipTrunk(name="carrier", addresses=("192.0.2.1",))
    async with calling(FakePop(sip(trunks=(elsewhere,)))) as ann:
        ann.request("INV\x1b[31mITE", uri="sip:a@1.2.3.4:")
        assert (await ann.final("INV\x1b[31mITE")).code == 403
        ann.request("OPTIONS", [("Supported", "timer"), ("Session-Expires", "1" * 5000), ("Require", "\x1b[31m")])
        assert (await ann.final("OPTIONS")).code == 403
    assert "\x1b" not in caplog.text and "403" in caplog.text
    assert not capfd.readouterr().out
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
