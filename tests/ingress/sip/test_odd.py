"""What telephones, proxies and strangers do that is odd: nobody's call but theirs has to do with it."""

import asyncio
import logging
from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, phone, sip
from tests.support.waiting import until
from voicepipe.config.phone_config import SipTrunk
from voicepipe.ingress import server
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.header_text import SipError
from voicepipe.pop import pop_http as http

pytestmark = pytest.mark.slow

TRUNK = SipTrunk(name="carrier", addresses=("127.0.0.0/8",))


@pytest.fixture
def without_ack(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is answered and gets no ACK ends soon."""
    monkeypatch.setattr("voicepipe.ingress.sip.sip_call.ACK_S", 0.1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Contact", "<sip:x@1.2.3.4;p=a b>"),
        ("Contact", "<sip:x@b c>"),
        ("Contact", "<sip:x@127.0.0.1\x00>"),
        ("Record-Route", "<sip:127.0.0.1;a=b c;lr>"),
        ("Record-Route", "<sip:127.0.0.1\x07;lr>"),
    ],
)
async def test_an_address_that_is_none_is_refused_and_harms_nobody(name: str, value: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as odd:
        await ann.dial()
        if name == "Contact":
            odd.contact = value
        answer = await odd.dial(headers=[] if name == "Contact" else [(name, value)])
        assert answer.start == "SIP/2.0 400 Bad Request"
        before = len(ann.heard())
        await until(lambda: len(ann.heard()) > before + 5)
        assert (await ann.hang_up()).code == 200


async def test_a_call_that_fails_at_its_end_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as odd:
        await ann.dial()
        await odd.dial()

        def fails(*_: Any) -> None:
            raise ValueError("no request")

        monkeypatch.setattr("voicepipe.ingress.sip.dialog.Dialog.send", fails)
        await pop.calls[1].line.hang_up()
        await until(lambda: pop.live == 1)
        before = len(ann.heard())
        await until(lambda: len(ann.heard()) > before + 5)
        assert (await ann.hang_up()).code == 200


async def test_nothing_is_sent_before_the_ack() -> None:
    async with calling(FakePop(sip())) as ann:
        ann.invite()
        ann.took(await ann.final("INVITE"))
        await asyncio.sleep(0.2)
        assert not ann.heard()
        ann.ack()
        await until(lambda: ann.heard())
        await ann.hang_up()


async def test_a_goodbye_before_the_ack() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.invite()
        ann.took(await ann.final("INVITE"))
        assert (await ann.hang_up()).code == 200
        await settled(pop)


@pytest.mark.parametrize(
    ("sound", "ours"),
    [("8.8.8.8", "198.51.100.7"), ("127.0.0.1", "127.0.0.1"), ("10.1.2.3", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")],
)
async def test_past_a_proxy_of_our_own_sound_comes_by_the_public_address(
    sound: str, ours: str, without_ack: None
) -> None:
    """And without an ACK nothing is sent there."""
    pop = FakePop(sip(trunks=(TRUNK,), public_address="198.51.100.7"))
    async with calling(pop) as ann:
        proxy = [("Record-Route", f"<sip:127.0.0.1:{ann.port};lr>")]
        ann.invite(ann.sdp().replace("IN IP4 127.0.0.1", f"IN IP4 {sound}"), proxy)
        answer = await ann.final("INVITE")
        assert f"c=IN IP4 {ours}\r\n" in answer.body
        assert "@127.0.0.1:" in answer.header("contact")


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


@pytest.mark.parametrize("contact", ["<sip:ann@10.1.2.3:5060>", "<sip:ann@203.0.113.9:9>", "<sip:ann@phone.invalid>"])
async def test_a_phone_behind_a_nat_is_hung_up_where_it_speaks_from(contact: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.contact = contact
        await ann.dial()
        await pop.calls[0].line.hang_up()
        assert (await ann.got("BYE")).start == f"BYE {contact.strip('<>')} SIP/2.0"


async def test_a_strict_router_is_asked_in_its_own_name() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as proxy:
        await ann.dial(headers=[("Record-Route", f"<sip:127.0.0.1:{proxy.port}>")])
        await pop.calls[0].line.hang_up()
        goodbye = await proxy.got("BYE")
        assert goodbye.start == f"BYE sip:127.0.0.1:{proxy.port} SIP/2.0"
        assert goodbye.header("route") == f"<sip:ann@127.0.0.1:{ann.port}>"


async def test_a_change_that_is_refused_changes_nothing() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as elsewhere:
        await ann.dial()
        ann.contact = f"<sip:ann@127.0.0.1:{elsewhere.port}>"
        assert (await ann.dial("v=0\r\nnonsense")).code == 488
        await pop.calls[0].line.hang_up()
        assert (await ann.got("BYE")).start.startswith(f"BYE sip:ann@127.0.0.1:{ann.port}")


async def test_short_names_of_headers() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        answer = await ann.dial(headers=[("k", "timer"), ("x", "90")])
        assert answer.header("session-expires") == "90;refresher=uac"
        ann.answers = False
        task = asyncio.create_task(pop.calls[0].line.transfer("sip:desk@127.0.0.1"))
        ann.answer(await ann.got("REFER"), "202 Accepted")
        ann.request("NOTIFY", [("o", "refer")], "SIP/2.0 200 OK\r\n", kind="message/sipfrag")
        assert (await ann.final("NOTIFY")).code == 200
        await asyncio.wait_for(task, 60)
        ann.answers = True
        await ann.hang_up()


async def test_who_hangs_up_before_the_transfer_is_taken_was_not_transferred() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        await ann.dial()
        ann.answers = False
        task = asyncio.create_task(pop.calls[0].line.transfer("sip:desk@127.0.0.1"))
        await ann.got("REFER")
        await ann.hang_up()
        await settled(pop)
        assert not task.done()
        task.cancel()


async def test_callers_who_hear_it_ring_are_told_that_the_server_goes_down() -> None:
    pop = FakePop(sip(ring_ms=60_000))
    task = asyncio.create_task(http.serve(pop, server.bind(pop.config.http)))
    await pop.serving.wait()
    async with phone(pop) as ann:
        ann.invite()
        await ann.got("INVITE", 180)
        task.cancel()
        assert (await ann.final("INVITE")).code == 503
        await asyncio.wait({task})


async def test_a_pop_that_drains_says_so_to_whoever_asks() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        pop.status = "draining"
        ann.request("OPTIONS")
        assert (await ann.final("OPTIONS")).code == 503


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


async def test_an_identity_is_asserted_by_trunks_alone() -> None:
    asserted = [("P-Asserted-Identity", "<tel:+4930777>")]
    for trunks, caller in (((TRUNK,), "+4930777"), ((), "ann")):
        pop = FakePop(sip(trunks=trunks))
        async with calling(pop) as ann:
            await ann.dial(headers=asserted)
            assert pop.calls[0].settings.origin.caller == caller
            await ann.hang_up()


@pytest.mark.parametrize("text", ["tel:+4930", "tel:+4930;tag=1", "sips:a@b;tag=1", '"Ann" <sip:a@b;x=y>;tag=1'])
def test_addresses_in_every_form(text: str) -> None:
    assert Address.of(text).user in ("+4930", "a")


@pytest.mark.parametrize("text", ["<sip:a@b c>", "<sip:a@b\r\nX: y>", '<sip:a@"b>', "<http:>", "<//x>", ""])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(SipError):
        Address.of(text)
